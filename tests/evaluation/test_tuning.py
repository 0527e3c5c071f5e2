"""How much bias is accepted: the two rules by hand, candidates, and what is chosen where the answer is plain."""

import numpy as np
import pytest

from explorax.errors import UnknownName
from explorax.evaluation.estimate import Estimate
from explorax.evaluation.tuning import least_mse, shrinkages, slope, thresholds, tuned


def slope_by_hand(values, stderrs):
    """Return the last i for which the intervals of 1, …, i have a common point."""
    chosen = 0
    for last in range(1, len(values) + 1):
        widths = [min(stderrs[: j + 1]) for j in range(last)]
        if max(v - w for v, w in zip(values, widths, strict=False)) <= min(
            v + w for v, w in zip(values, widths, strict=False)
        ):
            chosen = last - 1
        else:
            break
    return chosen


@pytest.mark.parametrize("seed", range(50))
def test_slope_takes_the_last_candidate_that_meets_all_before_it(seed):
    rng = np.random.default_rng(seed)
    values, stderrs = np.cumsum(rng.exponential(0.4, 12)), np.sort(rng.uniform(0, 0.5, 12))[::-1]
    assert slope(values, stderrs, stderrs) == slope_by_hand(list(values), list(stderrs))


def test_without_bias_the_least_variance_is_taken_and_with_much_of_it_none():
    stderrs = np.array([1.0, 0.5, 0.1])
    for rule in (slope, least_mse):
        assert rule(np.array([0.0, 0.1, -0.1]), stderrs, stderrs) == 2
        assert rule(np.array([0.0, 50.0, 90.0]), stderrs, stderrs) == 0
        assert rule(np.array([0.0, 0.1, 90.0]), stderrs, stderrs) == 1


def test_estimated_mse_takes_noise_from_the_squared_bias():
    assert least_mse(np.array([0.0, 1.0]), np.array([1.0, 0.9]), np.array([0.0, 1.0])) == 1  # a gap of its own noise
    assert least_mse(np.array([0.0, 1.0]), np.array([1.0, 0.9]), np.array([0.0, 0.5])) == 0


def test_candidates_go_from_no_bias_to_the_model_alone():
    weights = np.concatenate([np.zeros(50), np.random.default_rng(0).exponential(size=500)])
    for candidates in (thresholds(weights), shrinkages(weights)):
        assert candidates[0] == np.inf
        assert candidates[-1] == 0
        assert np.all(np.diff(candidates[1:]) < 0)
    assert thresholds(np.zeros(4)) == [np.inf, 0.0]
    assert thresholds(np.ones(4)) == [np.inf, 1.0, 0.0]


@pytest.mark.parametrize("by", ["slope", "mse"])
def test_the_estimate_of_the_chosen_candidate_is_returned(by):
    rng = np.random.default_rng(0)
    noise = rng.normal(size=100)

    def estimate(setting):
        return Estimate(float(setting < 1), (noise - noise.mean()) / 100 * setting, setting)

    assert tuned([4.0, 2.0, 1.0, 0.0], estimate, by).setting == 1.0


def test_an_unknown_way_is_refused():
    with pytest.raises(UnknownName, match="tuning must be one of mse, slope, got 'slop'"):
        tuned([1.0], lambda setting: Estimate(0.0, np.zeros(2)), "slop")
