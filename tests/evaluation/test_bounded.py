"""Scores that are bounded below: their means, units, differences."""

import numpy as np
import pytest

from explorax.errors import InvalidArgument
from explorax.evaluation.bounded import BOUNDED
from tests.evaluation.logs import OTHER, TARGET, independent_log, value_of

LOG = independent_log(np.random.default_rng(0), 20_000)


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_means_are_the_value_and_one_minus_it(name):
    """Within 4 standard errors: false alarms below 1 in 2 000."""
    found, truth = BOUNDED[name](LOG.scores(scale=4.0, shift=-1.0)), value_of(TARGET)
    for scores, wanted in ((found.lower, truth), (found.upper, 1 - truth)):
        assert abs(scores.mean() - wanted) < 4 * scores.std() / np.sqrt(len(scores))
        assert np.all(scores >= -found.caps - 1e-9)
    np.testing.assert_allclose(found.in_rewards(np.array([0.0, 0.5, 1.0])), [-1, 1, 3])


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_a_difference_has_scores_of_its_own(name):
    one, two = (BOUNDED[name](LOG.scores(target, scale=4.0, shift=-1.0)) for target in (TARGET, OTHER))
    found = one.minus(two)
    wanted = 4 * (value_of(TARGET) - value_of(OTHER))
    for scores, sign in ((found.lower, 1), (found.upper, -1)):
        error = found.in_rewards(scores.mean()) - sign * wanted
        assert abs(error) < 4 * 8 * scores.std() / np.sqrt(len(scores))
        assert np.all(scores >= -found.caps - 1e-9)
    assert (found.low, found.high) == (-4, 4)


def test_the_cap_of_a_difference_is_the_mean_of_both():
    one, two = BOUNDED["ips"](LOG.scores()), BOUNDED["dr"](LOG.scores(OTHER))
    np.testing.assert_array_equal(one.minus(two).caps, two.caps / 2)
    np.testing.assert_array_equal(two.minus(one).caps, two.caps / 2)


def test_a_target_minus_itself_is_nearly_certain():
    one = BOUNDED["ips"](LOG.scores())
    found = one.minus(one)
    np.testing.assert_allclose(found.lower, LOG.scores().weights / 2, rtol=1e-12)  # rewards cancel


@pytest.mark.parametrize("name", sorted(BOUNDED))
def test_an_unknown_range_is_refused(name):
    with pytest.raises(InvalidArgument, match="reward_range must be known"):
        BOUNDED[name](LOG.scores(reward_range=None))
