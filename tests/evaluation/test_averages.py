"""Bounds of averages: their formula as a loop, policies that learn, widths, exact cases."""

import numpy as np
import pytest

from explorax.evaluation.averages import RATES, average_interval
from explorax.evaluation.bounded import BOUNDED, Bounded
from explorax.evaluation.scoring import scores_of_logging
from tests.evaluation.logs import TARGET, adaptive_log, value_of


def of_rewards(rewards, low=0.0, high=1.0):
    return BOUNDED["dr"](scores_of_logging(rewards, (low, high)))


def by_hand(scores, cap, alpha):
    """Return the lower bound as the docstring states it, row by row."""
    slacks, total = [], 0.5
    xi, forecasts = [], []
    for t, score in enumerate(scores, 1):
        forecasts.append(min(max(total / t, 0), 1) / (1 + cap))
        xi.append(score / (1 + cap))
        total += score
    variation = sum((one - forecast) ** 2 for one, forecast in zip(xi, forecasts, strict=True))
    for rate in RATES:
        slacks.append((np.log(len(RATES) / alpha) + (-np.log(1 - rate) - rate) * variation) / rate)
    return np.mean(scores) - (1 + cap) * min(slacks) / len(scores)


def test_the_bounds_are_their_formula():
    rng = np.random.default_rng(0)
    lower, upper = rng.normal(0.5, 1, 500).clip(-2), rng.normal(0.5, 1, 500).clip(-2)
    low, high = average_interval(Bounded(lower, np.full(500, 2.0), upper, -3.0, 7.0), 0.9)
    assert low == pytest.approx(-3 + 10 * by_hand(lower, 2.0, 0.05))
    assert high == pytest.approx(-3 + 10 * (1 - by_hand(upper, 2.0, 0.05)))


def test_the_average_of_a_policy_that_learns_is_covered():
    """The value of the log's policy grows; of 300 logs at 90 % at most 30 may fail at all, and bounds are cautious."""
    missed = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        means = np.linspace(0.1, 0.9, 400) ** 2  # a policy that learns
        low, high = average_interval(of_rewards((rng.random(400) < means).astype(float)), 0.9)
        missed += not low <= means.mean() <= high
    assert missed <= 30


def test_differences_from_a_policy_that_learns_are_covered():
    missed = 0
    for seed in range(60):
        made = adaptive_log(np.random.default_rng(seed), 500)
        target = made.scores()
        chances = np.array([[0.2, 0.5, 0.7], [0.6, 0.4, 0.3]])[made.contexts]
        truth = np.mean(np.sum(chances * (TARGET[made.contexts] - made.every), axis=1))
        low, high = average_interval(BOUNDED["dr"](target).minus(of_rewards(made.rewards)), 0.9)
        missed += not low <= truth <= high
    assert missed <= 6
    assert value_of(TARGET) > 0  # the target is worth something


def test_rare_rewards_have_narrow_bounds():
    """The width follows the variance: that of clicks of 1 % is a fraction of that of coins."""
    clicks, coins = np.arange(20_000) % 100 == 0, np.arange(20_000) % 2 == 0
    widths = [np.diff(average_interval(of_rewards(each.astype(float)), 0.95))[0] for each in (clicks, coins)]
    assert widths[0] < widths[1] / 3
    assert widths[1] < 0.05  # the asymptotic interval is 0.014


def test_bounds_stay_in_the_range_and_scale_with_it():
    for rewards in (np.zeros(10), np.ones(10)):
        low, high = average_interval(of_rewards(rewards), 0.95)
        assert 0 <= low <= rewards[0] <= high <= 1
    rewards = np.random.default_rng(0).random(300)
    plain = average_interval(of_rewards(rewards), 0.95)
    scaled = average_interval(of_rewards(10 * rewards - 3, -3.0, 7.0), 0.95)
    np.testing.assert_allclose(scaled, 10 * np.array(plain) - 3)
