"""Estimators: slow loops from the definitions, identities, invariances, bias, bad input."""

import numpy as np
import pytest

from explorax.errors import InvalidArgument, UnknownName
from explorax.evaluation.estimators import (
    ESTIMATORS,
    adaptive_dr,
    dm,
    dr,
    dr_shrinkage,
    ips,
    known_before,
    on_policy,
    sndr,
    snips,
    switch_dr,
)
from explorax.evaluation.intervals import INTERVALS
from explorax.evaluation.tuning import shrinkages, thresholds
from tests.evaluation.logs import TARGET, independent_log, value_of

LOG = independent_log(np.random.default_rng(0), 300)


def in_a_loop(scores, threshold=2.0, strength=3.0, power=0.5):
    """Return all estimates from their definitions, one row at a time."""
    sums = dict.fromkeys(["rewards", "w", "wr", "m", "residual", "switch", "shrunk", "h", "hg"], 0.0)
    rows, spreads = scores.size, []
    for t in range(rows):
        reward, weight, model, predicted = (float(each[t]) for each in scores[:4])
        sums["rewards"] += reward
        sums["w"] += weight
        sums["wr"] += weight * reward
        sums["m"] += model
        sums["residual"] += weight * (reward - predicted)
        sums["switch"] += weight * (reward - predicted) if weight <= threshold else 0.0
        sums["shrunk"] += strength * weight / (weight**2 + strength) * (reward - predicted)
        latest = spreads[len(spreads) - -(-len(spreads) // 4) :] or [scores.spread[0]]
        h = sum(v**-power for v in latest) / len(latest)
        sums["h"] += h
        sums["hg"] += h * (model + weight * (reward - predicted))
        spreads.append(scores.spread[t])
    return {
        "on_policy": sums["rewards"] / rows,
        "ips": sums["wr"] / rows,
        "snips": sums["wr"] / sums["w"],
        "dm": sums["m"] / rows,
        "dr": (sums["m"] + sums["residual"]) / rows,
        "sndr": sums["m"] / rows + sums["residual"] / sums["w"],
        "switch_dr": (sums["m"] + sums["switch"]) / rows,
        "dr_shrinkage": (sums["m"] + sums["shrunk"]) / rows,
        "adaptive_dr": sums["hg"] / sums["h"],
    }


def all_of_them(scores, threshold=2.0, strength=3.0, power=0.5):
    """Return all estimates with given settings."""
    return {name: each.estimate(scores) for name, each in ESTIMATORS.items()} | {
        "switch_dr": switch_dr(scores, threshold),
        "dr_shrinkage": dr_shrinkage(scores, strength),
        "adaptive_dr": adaptive_dr(scores, power),
    }


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_estimates_are_their_definitions(power):
    scores = LOG.scores()
    found = all_of_them(scores, power=power)
    assert set(found) == set(in_a_loop(scores))
    for name, wanted in in_a_loop(scores, power=power).items():
        np.testing.assert_allclose(found[name].value, wanted, rtol=1e-12, err_msg=name)


def test_what_rows_add_is_the_derivative_of_the_estimate():
    """Counting a row a little more must change an estimate by what the row adds to its error."""
    scores, step = LOG.scores().some(slice(40)), 1e-6
    for name, plain in all_of_them(scores).items():
        np.testing.assert_allclose(plain.influence.sum(), 0, atol=1e-12)
        if name == "adaptive_dr":  # whose weights depend on what came before
            continue
        changed = []
        for row in range(scores.size):
            count = np.ones(scores.size)
            count[row] += step
            changed.append(weighted(name, scores, count))
        np.testing.assert_allclose(
            (np.array(changed) - plain.value) / step, plain.influence, rtol=1e-4, atol=1e-7, err_msg=name
        )


def weighted(name, scores, count, threshold=2.0, strength=3.0):
    """Return an estimate in which row t counts count_t times."""
    w, r, m, q = scores.weights, scores.rewards, scores.modelled, scores.predicted
    kept = {"switch_dr": w * (w <= threshold), "dr_shrinkage": strength * w / (w**2 + strength)}.get(name, w)
    ratio, residual = np.sum(count * w * r) / np.sum(count * w), np.sum(count * w * (r - q)) / np.sum(count * w)
    mean = {"on_policy": r, "ips": w * r, "dm": m, "sndr": m}.get(name, m + kept * (r - q))
    return ratio if name == "snips" else np.average(mean, weights=count) + (residual if name == "sndr" else 0)


def test_the_logging_policy_itself_has_the_mean_reward():
    target = LOG.every
    scores = LOG.scores()
    own = LOG.scores(target=np.array([target[LOG.contexts == context][0] for context in (0, 1)]), model=False)
    assert ips(own).value == on_policy(own).value == on_policy(scores).value
    np.testing.assert_allclose(snips(own).value, LOG.rewards.mean(), rtol=1e-12)


def test_limits_are_other_estimators():
    scores, without = LOG.scores(), LOG.scores(model=False)
    assert dr(without).value == ips(without).value
    np.testing.assert_allclose(sndr(without).value, snips(without).value, rtol=1e-12)
    assert switch_dr(scores, np.inf).value == dr_shrinkage(scores, np.inf).value == dr(scores).value
    assert switch_dr(scores, 0).value == dr_shrinkage(scores, 0).value == dm(scores).value
    np.testing.assert_allclose(dr_shrinkage(scores, 1e12).value, dr(scores).value, rtol=1e-9)
    np.testing.assert_allclose(dr_shrinkage(scores, 1e-12).value, dm(scores).value, rtol=1e-9)
    np.testing.assert_allclose(adaptive_dr(scores, 0).value, dr(scores).value, rtol=1e-12)
    equal = scores._replace(spread=np.full(scores.size, 3.0))
    np.testing.assert_allclose(adaptive_dr(equal).value, dr(scores).value, rtol=1e-12)


def test_estimates_move_with_the_unit_of_rewards():
    plain, other = all_of_them(LOG.scores()), all_of_them(LOG.scores(scale=5.0, shift=-2.0))
    for name in ("on_policy", "snips", "dm", "sndr", "dr", "switch_dr", "dr_shrinkage", "adaptive_dr"):
        if name not in ("ips",):  # without a model, a shift is not seen through
            np.testing.assert_allclose(other[name].value, 5 * plain[name].value - 2, rtol=1e-10, err_msg=name)
            np.testing.assert_allclose(other[name].stderr, 5 * plain[name].stderr, rtol=1e-10, err_msg=name)
    np.testing.assert_allclose(all_of_them(LOG.scores(scale=5.0))["ips"].value, 5 * plain["ips"].value, rtol=1e-12)


def test_the_order_of_rows_matters_to_adaptive_weights_alone():
    scores = LOG.scores()
    other = scores.some(np.random.default_rng(1).permutation(scores.size))
    for name, each in ESTIMATORS.items():
        close = np.isclose(each.estimate(scores).value, each.estimate(other).value, rtol=1e-12)
        assert close == (name != "adaptive_dr"), name


def test_weights_of_rows_depend_on_earlier_rows_alone():
    values = np.random.default_rng(0).uniform(size=30)
    plain = known_before(values)
    for row in range(1, 30):
        changed = values.copy()
        changed[row:] = 5.0
        np.testing.assert_array_equal(known_before(changed)[: row + 1], plain[: row + 1])


def test_a_weight_at_the_threshold_counts():
    scores = LOG.scores()
    largest = float(scores.weights.max())
    assert switch_dr(scores, largest).value == dr(scores).value
    assert switch_dr(scores, np.nextafter(largest, 0)).value != dr(scores).value


@pytest.mark.parametrize("by", ["slope", "mse"])
def test_settings_are_chosen_among_the_candidates(by):
    scores = LOG.scores()
    assert switch_dr(scores, by).setting in thresholds(scores.weights)
    assert dr_shrinkage(scores, by).setting in shrinkages(scores.weights)


@pytest.mark.parametrize("by", ["slope", "mse"])
def test_a_good_model_is_trusted_and_a_bad_one_is_not(by):
    rng = np.random.default_rng(4)
    weights = rng.exponential(size=5000) ** 2 * (rng.random(5000) < 0.2) * 2.5
    predicted = rng.uniform(size=5000)
    rewards = predicted + rng.normal(size=5000)
    scores = LOG.scores()._replace(
        rewards=rewards, weights=weights, modelled=np.full(5000, 0.5), predicted=predicted, spread=None
    )
    bad = scores._replace(modelled=np.full(5000, 3.0), predicted=predicted + 2.5)
    for estimator in (switch_dr, dr_shrinkage):
        chosen = estimator(scores, by)
        assert chosen.setting < np.inf
        assert estimator(scores, chosen.setting).stderr < 0.9 * dr(scores).stderr
        assert chosen.value == estimator(scores, chosen.setting).value
        assert chosen.stderr == dr(scores).stderr  # one that knew nothing of the choice would be too small
        assert abs(estimator(bad, by).value - 0.5) < 4 * dr(bad).stderr


def test_unbiased_estimators_are_unbiased():
    """Over 600 logs the mean is within 4 standard errors: false alarms below 1 in 4 000 for all of them."""
    rng = np.random.default_rng(5)
    logs = [independent_log(rng, 60) for _ in range(600)]
    for name, each in ESTIMATORS.items():
        if each.unbiased and name != "on_policy":
            values = np.array([each.estimate(log.scores()).value for log in logs])
            assert abs(values.mean() - value_of(TARGET)) < 4 * values.std() / np.sqrt(600), name
    biased = np.array([dm(log.scores()).value for log in logs])
    assert abs(biased.mean() - value_of(TARGET)) > 10 * biased.std() / np.sqrt(600)


def test_the_table_is_complete():
    for name, each in ESTIMATORS.items():
        assert set(each.needs) <= {"model", "spread"}
        assert set(each.intervals) <= set(INTERVALS), name
        assert each.assumption.endswith(".")
        assert each.estimate(LOG.scores()).influence.shape == (300,)


def test_bad_input_is_refused():
    scores = LOG.scores()
    for name, each in ESTIMATORS.items():
        with pytest.raises(InvalidArgument, match=r"scores must have at least one row|weights must not all be 0|got"):
            each.estimate(scores.some(slice(0)))
        assert name
    nowhere = scores._replace(weights=np.zeros(scores.size))
    for estimator in (snips, sndr):
        with pytest.raises(InvalidArgument, match="weights must not all be 0, got 300 of them"):
            estimator(nowhere)
    assert ips(nowhere).value == 0
    with pytest.raises(InvalidArgument, match="all_propensities must be known for adaptive_dr, got None"):
        adaptive_dr(scores._replace(spread=None))
    with pytest.raises(InvalidArgument, match="all_propensities must be above 0 for the arms that the target wants"):
        adaptive_dr(scores._replace(spread=np.full(300, np.inf)))
    with pytest.raises(InvalidArgument, match="power must be a number from 0 to 1, got 2"):
        adaptive_dr(scores, 2)
    with pytest.raises(InvalidArgument, match="threshold must be a number of at least 0, infinity, 'slope' or 'mse'"):
        switch_dr(scores, -1.0)
    with pytest.raises(InvalidArgument, match="shrinkage must be a number of at least 0"):
        dr_shrinkage(scores, float("nan"))
    with pytest.raises(UnknownName, match="tuning must be one of"):
        switch_dr(scores, "best")


def test_rows_with_an_infinite_spread_count_for_nothing_in_adaptive_weights():
    scores = LOG.scores()
    spread = scores.spread.copy()
    spread[::2] = np.inf
    assert np.isfinite(adaptive_dr(scores._replace(spread=spread)).value)
