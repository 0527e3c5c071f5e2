"""Bounds for a fixed number of rows: definitions in loops, the martingale by enumeration, coverage, width."""

import math

import numpy as np
import pytest

from explorax.evaluation.anytime import MOST, PRIOR, anytime_path
from explorax.evaluation.bounded import BOUNDED
from explorax.evaluation.fixed_n import STAKE, bernstein, betting
from tests.evaluation.logs import OTHER, TARGET, adaptive_log, independent_log, value_of
from tests.evaluation.test_anytime import tree


def stakes_of(scores, alpha):
    """Return √(2 log(1/α) / (σ̂² n)) of each row, and the mean before each row, in a loop."""
    total, squares, found, means = 0.5, float(PRIOR**2), [], []
    for t, score in enumerate(scores, start=1):
        mean = min(max(total / t, 0.0), 1.0)
        means.append(mean)
        found.append(math.sqrt(2 * math.log(1 / alpha) / (squares / (t - 1 + PRIOR) * len(scores))))
        total += score
        squares += (score - mean) ** 2
    return found, means


def capital(scores, caps, number, alpha):
    """Return the largest capital of a gambler, by definition."""
    wealth = best = 1.0
    for score, cap, stake in zip(scores, caps, stakes_of(scores, alpha)[0], strict=True):
        limit = STAKE / (number + cap) if number + cap > 0 else math.inf
        wealth *= 1 + min(stake, limit) * (score - number)
        best = max(best, wealth)
    return best


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_betting_refuses_what_its_definition_refuses(name):
    bounded = BOUNDED[name](independent_log(np.random.default_rng(0), 200).scores())
    low, high = betting(bounded, 0.9)
    for bound, scores in ((low, bounded.lower), (1 - high, bounded.upper)):
        assert capital(scores, bounded.caps, bound - 1e-6, 0.05) >= 20
        assert capital(scores, bounded.caps, bound + 2e-6, 0.05) < 20


def test_bernstein_is_its_definition():
    bounded = BOUNDED["dr"](independent_log(np.random.default_rng(1), 200).scores())
    found = bernstein(bounded, 0.9)
    bounds = []
    for scores in (bounded.lower, bounded.upper):
        gained = rate_sum = 0.0
        for score, k, rate, mean in zip(scores, bounded.caps, *stakes_of(scores, 0.05), strict=True):
            rate = min(rate, MOST / (1 + k))
            stake = rate * (1 + k)
            gained += rate * score - ((score - mean) / (1 + k)) ** 2 * (-math.log(1 - stake) - stake)
            rate_sum += rate
        bounds.append((gained - math.log(20)) / rate_sum)
    np.testing.assert_allclose(found, [bounds[0], 1 - bounds[1]], rtol=1e-10)


@pytest.mark.parametrize("k", [0.0, 1.0, 3.0])
def test_the_capital_is_a_martingale_and_never_negative(k):
    mean = 0.0
    for probability, scores in tree(4, k):
        wealth = 1.0
        for score, stake in zip(scores, stakes_of(scores, 0.05)[0], strict=True):
            wealth *= 1 + min(stake, STAKE / (0.675 + k)) * (score - 0.675)
            assert wealth > 0
        mean += probability * wealth
    np.testing.assert_allclose(mean, 1, rtol=1e-12)


@pytest.mark.parametrize("method", [bernstein, betting])
@pytest.mark.parametrize("make", [independent_log, adaptive_log])
def test_intervals_hold(method, make):
    """Of 200 intervals of 80 % at most 60 may fail: by chance in fewer than 1 of 1 000 such tests."""
    rng, failures = np.random.default_rng(2), {"ips": 0, "dr": 0, "difference": 0}
    for _ in range(200):
        log = make(rng, 150)
        one, two = (BOUNDED["dr"](log.scores(target)) for target in (TARGET, OTHER))
        for name, bounded, wanted in (
            ("ips", BOUNDED["ips"](log.scores()), value_of(TARGET)),
            ("dr", one, value_of(TARGET)),
            ("difference", one.minus(two), value_of(TARGET) - value_of(OTHER)),
        ):
            low, high = method(bounded, 0.8)
            failures[name] += not low <= wanted <= high
    assert max(failures.values()) <= 60


def test_a_fixed_number_of_rows_gives_narrower_intervals():
    log = independent_log(np.random.default_rng(3), 3000)
    bounded = BOUNDED["dr"](log.scores())
    path = anytime_path(bounded, 0.95)
    widths = [
        high - low for low, high in (betting(bounded, 0.95), bernstein(bounded, 0.95), (path.low[-1], path.high[-1]))
    ]
    assert widths == sorted(widths)


@pytest.mark.parametrize("method", [bernstein, betting])
def test_rewards_that_say_nothing_give_the_whole_range(method):
    bounded = BOUNDED["ips"](independent_log(np.random.default_rng(4), 1).scores(scale=3.0, shift=1.0))
    assert method(bounded, 0.95) == (1, 4)
