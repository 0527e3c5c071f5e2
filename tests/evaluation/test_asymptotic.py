"""Normal intervals: the textbook's for means, coverage for ratios and adaptive weights."""

import numpy as np
import pytest

from explorax.evaluation.asymptotic import asymptotic
from explorax.evaluation.estimate import Estimate
from explorax.evaluation.estimators import ESTIMATORS
from tests.evaluation.logs import OTHER, TARGET, adaptive_log, independent_log, value_of

UNBIASED = ("ips", "snips", "dr", "sndr", "adaptive_dr")


def test_the_interval_of_a_mean_is_the_textbooks():
    terms = np.random.default_rng(0).normal(size=50)
    low, high = asymptotic(Estimate(terms.mean(), (terms - terms.mean()) / 50), 0.95)
    half = 1.959963984540054 * terms.std(ddof=1) / np.sqrt(50)
    np.testing.assert_allclose([low, high], [terms.mean() - half, terms.mean() + half], rtol=1e-12)


@pytest.mark.parametrize("make", [independent_log, adaptive_log])
def test_as_many_intervals_hold_as_they_promise(make):
    """Of 300 intervals of 90 %, 250 to 290 hold: by chance in all but 1 of 1 000 tests, for each estimator."""
    rng, hits = np.random.default_rng(1), dict.fromkeys(UNBIASED, 0)
    differences = dict.fromkeys(UNBIASED, 0)
    for _ in range(300):
        log = make(rng, 400)
        scores, others = log.scores(), log.scores(OTHER)
        for name in UNBIASED:
            estimate, other = ESTIMATORS[name].estimate(scores), ESTIMATORS[name].estimate(others)
            low, high = asymptotic(estimate, 0.9)
            hits[name] += low <= value_of(TARGET) <= high
            low, high = asymptotic(estimate.minus(other), 0.9)
            differences[name] += low <= value_of(TARGET) - value_of(OTHER) <= high
    for counts in (hits, differences):
        assert 250 <= min(counts.values()) <= max(counts.values()) <= 290, counts


def test_a_ratio_with_equal_rewards_is_certain():
    """With its denominator held fixed, the interval of snips would be as wide as that of ips."""
    scores = independent_log(np.random.default_rng(2), 100).scores()
    equal = scores._replace(rewards=np.ones(100))
    assert ESTIMATORS["snips"].estimate(equal).stderr < 1e-12 < 0.01 < ESTIMATORS["ips"].estimate(equal).stderr
