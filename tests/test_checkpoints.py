"""Checkpoints are where the schedule says, and sums there do not depend on where chunks of rounds end."""

import numpy as np
import pytest

from explorax.checkpoints import Tally, check_schedule
from explorax.errors import InvalidArgument


@pytest.mark.parametrize(
    ("checkpoints", "spacing", "expected"),
    [
        (4, "even", [25, 50, 75, 100]),
        (1, "even", [100]),
        (3, "log", [1, 10, 100]),
        (1, "log", [100]),
        (1000, "even", list(range(1, 101))),
        ([1, 7, 100], "even", [1, 7, 100]),
        (np.array([100]), "log", [100]),
    ],
)
def test_the_checkpoints_of_a_schedule(checkpoints, spacing, expected):
    schedule = check_schedule(100, checkpoints, spacing, None, None)
    np.testing.assert_array_equal(schedule.checkpoints, expected)


@pytest.mark.parametrize("lengths", [(20,), (7, 7, 7), (1,) * 20])
def test_sums_do_not_depend_on_the_chunks(lengths):
    rng, told = np.random.default_rng(0), []
    regret, reward = rng.random((2, 21, 3))
    unconverged = rng.random((21, 3)) < 0.3
    tally = Tally(3, check_schedule(20, [4, 8, 20], "even", None, told.append))
    ends = np.cumsum(lengths)
    for start, stop in zip(ends - lengths, ends, strict=True):
        tally.add(regret[start:stop], reward[start:stop], unconverged[start:stop])
    found = tally.records(np.arange(3, dtype=np.uint32), range(5, 7), slice(1, 3))
    np.testing.assert_array_equal(found.instances, [5, 6])
    np.testing.assert_array_equal(found.rounds, [4, 8, 20])
    np.testing.assert_array_equal(found.regret, np.cumsum(regret, axis=0)[[3, 7, 19], 1:].T)
    np.testing.assert_array_equal(found.reward, np.cumsum(reward, axis=0)[[3, 7, 19], 1:].T)
    np.testing.assert_array_equal(found.digest, [1, 2])
    np.testing.assert_array_equal(found.unconverged, unconverged[:20, 1:].sum(axis=0))
    assert told == [*np.minimum(ends, 20)]


def test_sums_that_are_not_finite_are_refused():
    tally = Tally(1, check_schedule(2, 1, "even", None, None))
    tally.add(np.array([[0.0], [np.inf]]), np.zeros((2, 1)), np.zeros((2, 1), bool))
    with pytest.raises(InvalidArgument, match=r"^The environment's means or rewards are not finite\. Scale down"):
        tally.records(np.zeros(1, np.uint32), range(1), slice(None))
