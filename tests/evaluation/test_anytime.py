"""Bounds for all numbers of rows: their definition in a loop, the supermartingale by enumeration, coverage of paths."""

import itertools
import math

import numpy as np
import pytest

from explorax.evaluation.anytime import DESIGNS, MOST, PRIOR, Moments, anytime_path, lower_bounds
from explorax.evaluation.bounded import BOUNDED, Bounded
from explorax.evaluation.scores import scored
from tests.evaluation.logs import OTHER, TARGET, adaptive_log, independent_log, value_of


def in_a_loop(scores, caps, alpha, design=None):
    """Return L_t of each row from the definition, and the parts of the supermartingale."""
    bounds, gained, lost, rate_sum, total, squares, steps = [], 0.0, 0.0, 0.0, 0.5, float(PRIOR**2), []
    for t, (score, k) in enumerate(zip(scores, caps, strict=True), start=1):
        mean, variance = min(max(total / t, 0.0), 1.0), squares / (t - 1 + PRIOR)
        rate = min(math.sqrt(2 * math.log(1 / alpha) / (design or t * math.log(1 + t)) / variance), MOST / (1 + k))
        stake, xi, guess = rate * (1 + k), score / (1 + k), mean / (1 + k)
        psi = -math.log(1 - stake) - stake
        gained += stake * xi
        lost += (xi - guess) ** 2 * psi
        rate_sum += stake / (1 + k)
        bounds.append((gained - math.log(1 / alpha) - lost) / rate_sum)
        steps.append((stake, xi, (xi - guess) ** 2 * psi))
        total += score
        squares += (score - mean) ** 2
    return bounds, steps


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_bounds_are_their_definition(name):
    bounded = BOUNDED[name](independent_log(np.random.default_rng(0), 8000).scores())
    found = anytime_path(bounded, 0.9)
    lower, mirrored = (
        np.max(
            [in_a_loop(scores, bounded.caps, 0.025)[0]]
            + [in_a_loop(scores, bounded.caps, 0.0125, design)[0] for design in DESIGNS],
            axis=0,
        )
        for scores in (bounded.lower, bounded.upper)
    )
    plain = in_a_loop(bounded.lower, bounded.caps, 0.025)[0]
    assert found.low[400] == pytest.approx(plain[400])  # each of the bounds is the largest one somewhere
    assert found.low[-1] > plain[-1]
    np.testing.assert_allclose(found.low, np.clip(lower, 0, 1), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(found.high, 1 - np.clip(mirrored, 0, 1), rtol=1e-10, atol=1e-12)


def tree(depth, k):
    """Yield the probability and the scores of all courses of a log of two arms whose policy follows its luck."""
    chances, target, model = (0.3, 0.8), (0.25, 0.75), (0.4, 0.6)
    for course in itertools.product([0, 1, 2, 3], repeat=depth):  # arm and reward of each row
        probability, scores, liking = 1.0, [], 0.5
        for step in course:
            arm, reward = step // 2, step % 2
            every = (1 - liking, liking)
            probability *= every[arm] * (chances[arm] if reward else 1 - chances[arm])
            weight = target[arm] / every[arm]
            control = sum(min(p * q, k * e) for p, q, e in zip(target, model, every, strict=True))
            scores.append(weight * reward - min(weight * model[arm], k) + control)
            won = reward == 1
            liking = min(max(liking + (0.2 if (arm == 1) == won else -0.2), 0.1), 0.9)
        yield probability, np.array(scores)
    assert math.isclose(0.25 * 0.3 + 0.75 * 0.8, 0.675)


@pytest.mark.parametrize("k", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("depth", [1, 3, 5])
@pytest.mark.parametrize("design", [None, 10])
def test_the_products_are_a_supermartingale(k, depth, design):
    """The mean over all courses of an adaptive log is at most 1 at the true value, and above 1 far below it."""
    total = mean = below = 0.0
    for probability, scores in tree(depth, k):
        _, steps = in_a_loop(scores, np.full(depth, k), 0.05, design)
        total += probability
        mean += probability * math.exp(sum(stake * (xi - 0.675 / (1 + k)) - loss for stake, xi, loss in steps))
        below += probability * math.exp(sum(stake * (xi + 2) - loss for stake, xi, loss in steps))
    np.testing.assert_allclose(total, 1, rtol=1e-12)
    assert mean <= 1
    assert below > 1


def test_the_mean_of_scores_before_a_row_depends_on_earlier_rows_alone():
    scores = np.random.default_rng(0).exponential(size=30)
    plain = Moments.before_each_row(scores)
    for row in range(30):
        changed = scores.copy()
        changed[row:] = 50.0
        for got, wanted in zip(Moments.before_each_row(changed), plain, strict=True):
            np.testing.assert_array_equal(got[: row + 1], wanted[: row + 1])


@pytest.mark.parametrize("make", [independent_log, adaptive_log])
def test_whole_paths_hold(make):
    """Of 200 paths of 80 % at most 60 may fail somewhere: by chance in fewer than 1 of 1 000 such tests."""
    rng, failures, truth, other = (
        np.random.default_rng(1),
        {"ips": 0, "dr": 0, "difference": 0},
        value_of(TARGET),
        value_of(OTHER),
    )
    for _ in range(200):
        log = make(rng, 150)
        one, two = (BOUNDED["dr"](log.scores(target)) for target in (TARGET, OTHER))
        for name, bounded, wanted in (
            ("ips", BOUNDED["ips"](log.scores()), truth), ("dr", one, truth),
            ("difference", one.minus(two), truth - other),
        ):  # fmt: skip
            path = anytime_path(bounded, 0.8).running()
            failures[name] += not path.low[-1] <= wanted <= path.high[-1]
    assert max(failures.values()) <= 60


def test_an_arm_without_a_chance_does_not_break_bounds():
    """The target wants an arm that the log never shows, which always pays: bounds must still hold."""
    rng, rows = np.random.default_rng(2), 3000
    rewards = (rng.random(rows) < 0.5).astype(float)
    every = np.tile([1.0, 0.0], (rows, 1))
    arms = np.zeros(rows, int)
    for paid in (0.0, 1.0):  # by the arm that is never shown
        scores = scored(
            rewards, arms, np.ones(rows), np.tile([0.4, 0.6], (rows, 1)), np.full((rows, 2), 0.5), every, (0, 1)
        )
        path = anytime_path(BOUNDED["dr"](scores), 0.95)
        assert path.low[-1] <= 0.4 * 0.5 + 0.6 * paid <= path.high[-1]
        assert path.high[-1] - path.low[-1] > 0.6


def test_bounds_come_closer_to_the_value():
    log = independent_log(np.random.default_rng(3), 30_000)
    path = anytime_path(BOUNDED["dr"](log.scores()), 0.95)
    widths = path.high - path.low
    assert widths[0] == 1
    assert widths[-1] < 0.5 * widths[3000] < widths[300]
    running = path.running()
    assert np.all(np.diff(running.low) >= 0)
    assert np.all(np.diff(running.high) <= 0)


def test_bounds_use_the_scores_up_to_their_row_alone():
    bounded = BOUNDED["dr"](independent_log(np.random.default_rng(4), 100).scores())
    cut = Bounded(bounded.lower[:60], bounded.caps[:60], bounded.upper[:60], 0.0, 1.0)
    for part, whole in zip(anytime_path(cut, 0.95), anytime_path(bounded, 0.95), strict=True):
        np.testing.assert_array_equal(part, whole[:60])


def test_a_lower_bound_is_finite_for_huge_scores():
    scores = np.array([1e8, 0.0, 1e-300, 5.0])
    found = lower_bounds(scores, np.zeros(4), Moments.before_each_row(scores), 1, 0.05)
    assert np.isfinite(found).all()
