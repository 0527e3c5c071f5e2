"""Windows of decisions: what is due, what it is taken for, and what teaches nothing."""

import pytest

from explorax.agent.reward_window import Due, Opened, Window
from explorax.errors import InvalidArgument, UnknownDecision


def test_windows_that_cannot_be():
    assert Window.of(None, None) is None
    assert Window.of(60, 1) == Window(60.0, 1.0)
    for seconds, default, words in [
        (None, 0.0, "default_reward must be left out without a reward_window, got 0.0"),
        (0, None, "reward_window must be a finite number above 0, got 0"),
        (float("inf"), None, "reward_window must be a finite number above 0, got inf"),
        (1.0, float("nan"), "default_reward must be a finite number, got nan"),
        (1.0, "0", "default_reward must be a finite number, got '0'"),
    ]:
        with pytest.raises(InvalidArgument, match=words):
            Window.of(seconds, default)


def opened(default):
    """Windows of 10 seconds: 3 and 1 of time 0, a deferred 4 of time 5, 2 of time 2, by a clock that was set back."""
    found = Opened(Window(10.0, default))
    found.add([3, 1], 0.0, False)
    found.add([4], 5.0, True)
    found.add([2], 2.0, False)
    found.rewards[1] = 1.0
    return found


@pytest.mark.parametrize(("time", "over"), [(9.9, []), (10.0, [3, 1]), (14.0, [3, 1]), (15.0, [3, 1, 4, 2])])
def test_a_window_behind_a_younger_one_waits_for_it(time, over):
    windows = opened(0.5)
    assert windows.over(time) == over
    assert windows.is_due(time) is bool(over)


def test_what_becomes_of_decisions():
    assert opened(0.5).due([3, 1, 4, 2]) == Due([3, 1, 2], [0.5, 1.0, 0.5], [3, 2], [4], 0.5, 2)
    assert opened(None).due([3, 1, 4]) == Due([1], [1.0], [], [3, 4], None, 4)
    assert opened(None).due([]) == Due([], [], [], [], None, None)
    windows = opened(0.5)
    windows.deferred.discard(4)
    assert windows.due([4]).defaulted == [4]


def test_decisions_up_to_one():
    windows = opened(0.5)
    assert windows.through(3) == [3]
    assert windows.through(4) == [3, 1, 4]
    windows.remove([3, 1, 7])
    assert windows.through(2) == [4, 2]
    assert not windows.rewards
    with pytest.raises(UnknownDecision, match="whose window is open, got 1"):
        windows.through(1)
