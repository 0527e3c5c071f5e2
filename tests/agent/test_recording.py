"""What is written has happened once, whatever comes between the file and the memory: interrupts, threads, clocks."""

import itertools
import json
import linecache
import math
import sys
import threading

import numpy as np
import pytest

from explorax import Agent, Encoder, errors, make
from explorax.agent import ids, live, pending, recording, reward_window
from explorax.log import writer
from tests.agent.logs import assert_alike, assert_recovers, everything, full_disk, killed, learned_by_hand, rows
from tests.agent.test_pending import COUNTING, counting
from tests.helpers import assert_same

INTERRUPTED = {each.__file__ for each in (ids, live, pending, recording, reward_window, writer)}


class Interrupt:
    """A Ctrl-C before line number `at` of the modules where a reward or a decision changes the memory and the file.

    None comes at a `with`, as none does in truth between a lock and its release.
    """

    def __init__(self, at):
        self.left = at

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in INTERRUPTED:
            return None
        if event == "line" and not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith(
            "with"
        ):
            self.left -= 1
            if self.left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self

    def during(self, act):
        """Whether it came while something was done."""
        sys.settrace(self)
        try:
            act()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def windowed(path, times, **settings):
    return counting(
        log=path, reward_window=10.0, default_reward=0.25, clock=lambda: times[0], max_pending=4, **settings
    )


ACTS = {  # what is interrupted, given an agent and its clock
    "choose": lambda agent, times: agent.choose(),
    "choose many": lambda agent, times: agent.choose_many(2),
    "slate": lambda agent, times: agent.choose_slate(2),
    "learn": lambda agent, times: agent.learn(agent.pending[-1], 0.5),
    "learn several": lambda agent, times: agent.learn(agent.pending[-2:], [0.5, 1.0]),
    "withdraw": lambda agent, times: agent.withdraw(agent.pending[-1]),
    "retire": lambda agent, times: agent.retire_arm(next(name for name, on in agent.arms.items() if on)),
}
WINDOWED = {
    **{name: ACTS[name] for name in ("choose many", "learn several", "withdraw")},
    "activate": lambda agent, times: agent.activate(agent.pending[-1]),
    "close": lambda agent, times: (times.__setitem__(0, times[0] + 11.0), agent.close_windows()),
}


@pytest.mark.parametrize(("name", "window"), [(name, False) for name in ACTS] + [(name, True) for name in WINDOWED])
def test_an_interrupt_anywhere(name, window, tmp_path):
    """The log and the memory go on to say the same, and all rewards count once."""
    times = [0.0]
    path = tmp_path / "decisions.db"
    agent = windowed(path, times) if window else counting(log=path, max_pending=4)
    act, counted = (WINDOWED if window else ACTS)[name], 0
    for at in itertools.count():
        agent.choose_many(3, deferred=window)
        if name == "retire" and sum(agent.arms.values()) < 2:
            for arm in (0, 1, 2):
                agent.restore_arm(arm) if not agent.arms[arm] else None
        came = Interrupt(at).during(lambda: act(agent, times))
        agent.choose(deferred=window)
        assert_recovers(agent, path, tmp_path / str(at), policy=COUNTING, clock=lambda: times[0]).close()
        counted = float(np.asarray(agent.state)[0])
        if not came:
            break
    learned = rows(path, "SELECT count(*) FROM rewards")[0][0] - len(
        agent._live.waiting().opened.rewards if window else ()
    )
    assert at > 20
    assert counted <= learned
    if not window:
        assert counted == learned
    assert agent.choose_many(4).ids.start == agent.decisions - 4
