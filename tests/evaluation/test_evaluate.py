"""Evaluation from end to end: known truth, identities, logs without propensities, rules that were never random."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import explorax
from explorax import LoggedData
from explorax.errors import InvalidArgument, InvalidReward, UnknownName
from explorax.evaluation.answer import ESTIMATED, MODEL_ALONE, NEVER_RANDOM
from explorax.evaluation.estimators import ESTIMATORS
from tests.evaluation.logs import CHANCES, OTHER, TARGET, adaptive_log, independent_log, value_of

ALL = tuple(name for name in ESTIMATORS if name != "on_policy")


def as_logged(made, propensities=True, **others):
    """Return a log as data whose contexts are unit vectors."""
    every = made.every if propensities else None
    return LoggedData.of(
        made.arms, made.rewards, names=[0, 1, 2], contexts=np.eye(2)[made.contexts], all_propensities=every, **others
    )


@pytest.mark.parametrize("make", [independent_log, adaptive_log])
def test_intervals_hold_the_truth(make):
    made = make(np.random.default_rng(0), 4000)
    policies = {"target": TARGET[made.contexts], "other": OTHER[made.contexts], "same": made.every}
    found = explorax.evaluate(as_logged(made), policies, estimator=ALL)
    truth = {"target": value_of(TARGET), "other": value_of(OTHER)}
    for row in found.rows[1:]:
        if row.target in truth and row.estimator in ("ips", "snips", "dr", "sndr", "adaptive_dr"):
            assert abs(row.value - truth[row.target]) < 4 * row.stderr, row  # fails in 1 of 1 500 logs
            if row.interval == "anytime":
                assert row.low <= truth[row.target] <= row.high
    same, logging = found["same"], found["logging policy"]
    assert same.verdict == "undecided"
    assert logging.value == made.rewards.mean()


def test_ips_of_the_policy_of_the_log_is_its_mean_reward():
    made = independent_log(np.random.default_rng(1), 300)
    found = explorax.evaluate(as_logged(made), made.every, estimator="ips", reward_model=None)
    assert found["policy"].value == pytest.approx(made.rewards.mean(), abs=1e-12)
    assert found["policy"].effective == pytest.approx(300)


def test_estimates_are_those_of_the_definition():
    made = independent_log(np.random.default_rng(2), 300)
    model = np.random.default_rng(3).random((300, 3))
    target, rows = TARGET[made.contexts], np.arange(300)
    weights = target[rows, made.arms] / made.every[rows, made.arms]
    modelled = np.sum(target * model, axis=1)
    wanted = {
        "ips": np.mean(weights * made.rewards),
        "snips": np.sum(weights * made.rewards) / np.sum(weights),
        "dm": modelled.mean(),
        "dr": np.mean(modelled + weights * (made.rewards - model[rows, made.arms])),
    }
    found = explorax.evaluate(as_logged(made), target, estimator=tuple(wanted), reward_model=model)
    assert {row.estimator: row.value for row in found.rows[1:]} == pytest.approx(wanted, abs=1e-12)


def test_a_later_row_changes_no_score_before():
    """The reward model sees the past only, so the first half of a log gives the same scores within the whole log."""
    made = independent_log(np.random.default_rng(4), 256)
    log = as_logged(made)
    half = explorax.evaluate(log.some(slice(128)), TARGET[made.contexts[:128]], estimator="dr")
    other = LoggedData(
        log.arms, np.where(np.arange(256) < 128, log.rewards, 0.0), log.features, log.names, log.propensities,
        all_propensities=log.all_propensities,
    )  # fmt: skip
    rest = explorax.evaluate(other.some(slice(128)), TARGET[made.contexts[:128]], estimator="dr")
    assert half.rows == rest.rows


def test_what_learns_beats_what_does_not():
    rng = np.random.default_rng(5)
    matrix = np.eye(3)
    arms = rng.integers(0, 3, 3000)
    rewards = (rng.random(3000) < np.array([0.1, 0.3, 0.8])[arms]).astype(float)
    log = LoggedData.of(arms, rewards, names=list("abc"), features=matrix, propensities=np.full(3000, 1 / 3))
    for learning in ("replay", "trained"):
        found = explorax.evaluate(log, {"learns": explorax.lin_ucb()}, estimator="dr", learning=learning)
        assert found["learns"].verdict == "better"
        assert abs(found["learns"].value - 0.8) < 0.06
        assert found["learns"].estimator == {"replay": "replay", "trained": "dr"}[learning]
        assert found["logging policy"].rows == {"replay": 3000, "trained": 1500}[learning]


def test_rewards_without_a_range_have_asymptotic_intervals():
    made = independent_log(np.random.default_rng(6), 300)
    log = as_logged(made._replace(rewards=made.rewards * 5 - 1))
    target = TARGET[made.contexts]
    assert {row.interval for row in explorax.evaluate(log, target).rows} == {"asymptotic"}
    found = explorax.evaluate(log, target, estimator="dr", reward_range=(-1, 4))
    assert {row.interval for row in found.rows} == {"anytime"}
    with pytest.raises(InvalidArgument, match="reward_range must be known"):
        explorax.evaluate(log, target, estimator="dr", interval="anytime")
    with pytest.raises(InvalidReward, match="rewards must lie in reward_range"):
        explorax.evaluate(log, target, reward_range=(0, 1))


def test_values_and_intervals_scale_with_rewards():
    made = independent_log(np.random.default_rng(7), 300)
    target = TARGET[made.contexts]
    plain = explorax.evaluate(as_logged(made), target, estimator="dr", reward_model="gaussian")
    model = 10 * np.full((300, 3), 0.5) - 3
    scaled = as_logged(made._replace(rewards=made.rewards * 10 - 3))
    one = explorax.evaluate(as_logged(made), target, estimator="dr", reward_model=np.full((300, 3), 0.5))
    two = explorax.evaluate(scaled, target, estimator="dr", reward_model=model, reward_range=(-3, 7))
    for first, second in zip(one.rows, two.rows, strict=True):
        assert [second.value, second.low, second.high] == pytest.approx(
            [10 * each - 3 for each in (first.value, first.low, first.high)]
        )
    assert plain.rows[0] == one.rows[0]


def test_a_model_alone_needs_no_propensities():
    made = independent_log(np.random.default_rng(8), 2000)
    log = as_logged(made, propensities=False)
    found = explorax.evaluate(
        log, TARGET[made.contexts], estimator="dm", reward_model=DecisionTreeRegressor(max_depth=4), fitted="cross"
    )
    assert abs(found["policy"].value - value_of(TARGET)) < 0.05
    assert found.answer.startswith(MODEL_ALONE)
    assert found.diagnostics == {}
    with pytest.raises(InvalidArgument, match="log must have propensities to weigh rewards, got None"):
        explorax.evaluate(log, TARGET[made.contexts])


@pytest.mark.parametrize("given", ["estimate", DecisionTreeClassifier(max_depth=2)], ids=["logistic", "tree"])
def test_estimated_propensities_are_named_as_an_assumption(given):
    made = independent_log(np.random.default_rng(9), 3000)
    found = explorax.evaluate(as_logged(made, propensities=False), TARGET[made.contexts], propensities=given)
    assert abs(found["policy"].value - value_of(TARGET)) < 0.05
    assert found.answer.startswith(ESTIMATED)
    assert any("no unmeasured confounding" in each for each in found.assumptions)
    assert found["policy"].interval == "asymptotic"  # bounds that hold for all numbers of rows need logged ones
    with pytest.raises(InvalidArgument, match="propensities must be logged for anytime intervals, got a log without"):
        explorax.evaluate(
            as_logged(made, propensities=False),
            TARGET[made.contexts],
            propensities=given,
            estimator="dr",
            interval="anytime",
        )


def test_models_that_know_later_rewards_have_no_intervals_for_all_numbers_of_rows():
    made = independent_log(np.random.default_rng(9), 300)
    found = explorax.evaluate(as_logged(made), TARGET[made.contexts], fitted="cross", estimator=("dr", "ips"))
    assert [row.interval for row in found.rows] == ["anytime", "asymptotic", "anytime"]
    with pytest.raises(InvalidArgument, match="fitted must be 'past' for betting intervals of dr, got 'cross'"):
        explorax.evaluate(as_logged(made), TARGET[made.contexts], fitted="cross", estimator="dr", interval="betting")


@pytest.mark.parametrize("known", [True, False])
def test_a_rule_that_was_never_random_is_no_witness(known):
    made = independent_log(np.random.default_rng(10), 500)
    arms = np.array([2, 0])[made.contexts]
    rewards = (np.random.default_rng(0).random(500) < CHANCES[made.contexts, arms]).astype(float)
    given = {"propensities": np.ones(500)} if known else {}
    log = LoggedData.of(arms, rewards, names=[0, 1, 2], contexts=np.eye(2)[made.contexts], **given)
    found = explorax.evaluate(log, OTHER[made.contexts], propensities=None if known else "estimate")
    assert found.answer == NEVER_RANDOM
    assert not found.random
    never = np.eye(3)[(arms + 1) % 3]
    only = explorax.evaluate(log, {"never": never}, propensities=None if known else "estimate")
    assert only.answer == NEVER_RANDOM
    assert all(np.isfinite(row.value) for row in only.rows)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"estimator": "drr"}, UnknownName, "Did you mean 'dr'"),
        ({"interval": "betting"}, InvalidArgument, "got 'betting' for snips"),
        ({"level": 95}, InvalidArgument, "level must be a number between 0 and 1, got 95"),
        ({"reward_model": "glmm"}, UnknownName, "Did you mean 'glm'"),
        ({"reward_model": None}, InvalidArgument, "reward_model must be given for the estimator dr"),
        ({"fitted": "future"}, UnknownName, "fitted must be one of cross, past"),
        ({"propensities": "estimate"}, InvalidArgument, "must be left out for a log that has them"),
        ({"learning": "online"}, UnknownName, "learning must be one of replay, trained"),
        ({"seed": 0.5}, InvalidArgument, "seed must be a whole number"),
        ({"policies": {}}, InvalidArgument, "policies must not be empty"),
        ({"policies": np.ones((50, 3))}, InvalidArgument, "got 3 as the sum"),
        ({"log": None}, InvalidArgument, "log must be a LoggedData or the path"),
    ],
)
def test_bad_input(given, kind, said):
    made = independent_log(np.random.default_rng(11), 50)
    arguments = {"log": as_logged(made), "policies": TARGET[made.contexts]} | given
    with pytest.raises(kind, match=said):
        explorax.evaluate(**arguments)
