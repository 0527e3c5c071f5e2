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
from explorax.agent.arm_tables import Pick
from explorax.agent.offers import Shown
from explorax.log import writer
from tests.agent.logs import assert_recovers, everything, rows
from tests.agent.test_pending import COUNTING, counting
from tests.helpers import assert_same

INTERRUPTED = {each.__file__ for each in (ids, live, pending, recording, reward_window, writer)}


class Interrupt:
    """A Ctrl-C before line number `at` of the modules where a reward or a decision changes the memory and the file.

    None comes at a `with`, as none does in truth between a lock and its release, and none where a loop goes back: what
    a tracer raises there passes by the `with` around a comprehension in Python 3.12 and 3.13, as a Ctrl-C does not.
    """

    def __init__(self, at):
        self.left, self.lines = at, {}

    def __call__(self, frame, event, _):
        if frame.f_code.co_filename not in INTERRUPTED:
            return None
        if event == "call":
            self.lines[id(frame)] = 0
        if event == "line":
            line, last = frame.f_lineno, self.lines[id(frame)]
            self.lines[id(frame)] = line
            locking = linecache.getline(frame.f_code.co_filename, line).lstrip().startswith("with")
            if line > last and not locking:
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


@pytest.mark.parametrize("window", [False, True])
def test_threads_that_choose_and_learn(window, tmp_path, monkeypatch):
    """With snapshots in the middle of it all."""
    monkeypatch.setattr(recording, "SNAPSHOT_EVERY", 7)
    path, ticks = tmp_path / "decisions.db", itertools.count()
    timed = {"reward_window": 9.0, "default_reward": 0.25, "clock": lambda: float(next(ticks))} if window else {}
    agent, learned = counting(log=path, max_pending=9, **timed), []

    def play():
        for i in range(40):
            made = agent.choose_many(3).ids if i % 3 == 0 else [agent.choose().id]
            if i % 7 == 0 and window:
                made = agent.choose_many(2, deferred=True).ids
            try:
                if i % 5 == 0:
                    agent.withdraw(made[0])
                else:
                    agent.learn(list(made), np.ones(len(made)))
                    learned.extend(made)
            except errors.UnknownDecision:  # dropped, or too late
                continue

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(each for (each,) in rows(path, "SELECT decision FROM rewards WHERE NOT by_default")) == sorted(
        learned
    )
    assert [each for (each,) in rows(path, "SELECT id FROM decisions ORDER BY id")] == list(range(agent.decisions))
    assert len(rows(path, "SELECT seq FROM snapshots")) == 2
    clock = {"clock": lambda: 1e6} if window else {}
    again = assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING, **clock)
    if not window:
        np.testing.assert_array_equal(agent.state, [len(learned), len(learned)])
        assert again.choose() == agent.choose()


def test_a_log_says_which_windows_were_closed(tmp_path):
    """Also if a decision with an earlier time is written just before they are, by a clock that was set back."""
    path, times, closed = tmp_path / "decisions.db", [0.0], recording.Recorded.closed
    agent = windowed(path, times)
    first, record, waiting = agent.choose(), agent._live.record, agent._live.pending
    pick = Pick(0, 0, np.zeros(3), 0, 0, False, True, None, 0)

    def close_late(due, time, ids, rewards, then):
        times[0] = 1.0
        record.decided(waiting, waiting.take(1), 0, False, [Shown()], pick, None, None, None)
        closed(record, due, time, ids, rewards, then)

    record.closed = close_late
    times[0] = 20.0
    agent.close_windows()
    del record.closed
    assert agent.pending == [first.id + 1]
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING, clock=lambda: 1.0)


def test_a_clock_that_tells_no_time(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SNAPSHOT_EVERY", 2)
    path, told = tmp_path / "decisions.db", [1.0]

    def clock():
        if isinstance(told[0], Exception):
            raise told[0]
        return told[0]

    agent = counting(log=path, clock=clock)
    first = agent.choose()
    before = everything(agent)
    for wrong, error in [(float("nan"), errors.InvalidArgument), ("now", errors.InvalidArgument), (OSError(), OSError)]:
        told[0] = wrong
        for call in (agent.choose, lambda: agent.choose_many(2), lambda: agent.learn(first.id, 1.0)):
            with pytest.raises(error):
                call()
        assert_same(everything(agent)["ledger"], before["ledger"])
    told[0] = 2
    assert agent.choose().id == first.id + 1
    agent.learn([0, 1], [1.0, 1.0])
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)
    with pytest.raises(errors.InvalidArgument, match="clock must return a finite number"):
        counting(log=tmp_path / "other.db", clock=lambda: None)


def test_a_decision_that_is_refused_takes_no_number(tmp_path):
    """So the next one is the same for whoever recovers the log."""
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    agent.choose()
    for wrong in ({"all_propensities": True}, {"explain": True}, {"deferred": True}, {"among": ["nobody"]}):
        with pytest.raises(errors.InvalidArgument):
            agent.choose(**wrong)
    assert agent.decisions == 1
    again = assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)
    assert again.choose() == agent.choose()


def test_a_snapshot_that_cannot_be_kept(tmp_path, monkeypatch):
    """The log has it all: the reward is learned, and nobody hears of it."""
    monkeypatch.setattr(recording, "SNAPSHOT_EVERY", 2)
    path = tmp_path / "decisions.db"
    agent = counting(log=path)

    def fails():
        raise errors.NotFinite("no")

    agent._live.dump = fails
    agent.learn(agent.choose_many(3).ids, np.ones(3))
    assert rows(path, "SELECT seq FROM snapshots") == [(0,)]
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)


def test_rewards_since_the_last_snapshot_are_counted_over_restarts(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "SNAPSHOT_EVERY", 5)
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    for _ in range(5):
        agent.learn(agent.choose().id, 1.0)
        agent.close()
        agent = Agent.recover(path, COUNTING)
    assert rows(path, "SELECT seq FROM snapshots") == [(0,), (10,)]


def test_what_json_cannot_hold():
    exact = {"text": "ä\ud800", "number": np.float32(0.1), "whole": 2**70, "truth": np.bool_(True), "nothing": None}
    found = json.loads(recording.context_text(exact))
    assert found == {**exact, "number": float(np.float32(0.1)), "truth": True}
    for wrong in (float("nan"), np.float64("inf"), object(), {1, 2}, np.datetime64("2024-01-01"), np.zeros(2), b"a"):
        with pytest.raises(errors.InvalidArgument, match="A context must hold text, finite numbers, True and False"):
            recording.context_text({"user": wrong})


def test_a_context_that_is_not_logged_is_not_decided_on(tmp_path, monkeypatch):
    encoder = Encoder.fit([{"user": user, "price": price} for user in "ab" for price in (1.0, 2.0)])
    arms = {f"{price:g} €": {"price": price} for price in (1.0, 2.0)}
    path = tmp_path / "decisions.db"
    agent = Agent(make("lin_ts"), arms=arms, encoder=encoder, draws=0, max_pending=2, log=path)
    for user in "aba":
        agent.choose({"user": user})
    before = everything(agent)
    text = recording.context_text
    monkeypatch.setattr(
        recording, "context_text", lambda context: text({"b": math.nan} if context["user"] == "b" else context)
    )
    with pytest.raises(errors.InvalidArgument, match="to be logged"):
        agent.choose({"user": "b"})
    with pytest.raises(errors.InvalidArgument, match="to be logged"):
        agent.choose_many([{"user": "a"}, {"user": "b"}])
    assert_same(everything(agent)["ledger"], before["ledger"])
    assert rows(path, "SELECT context FROM decisions") == [('{"user": "a"}',), ('{"user": "b"}',), ('{"user": "a"}',)]
    assert_recovers(agent, path, tmp_path / "killed")


def test_names_of_arms(tmp_path):
    path = tmp_path / "decisions.db"
    names = ["ä", "arm\0", "二", 2**63 - 1, -(2**63)]
    agent = Agent(make("lin_ts"), arms=dict(zip(names, np.eye(5), strict=True)), log=path, draws=0)
    for name in names:
        agent.choose(among=[name])
    agent.add_arm(np.int64(7), np.ones(5))
    agent.retire_arm(np.int64(7))
    agent.restore_arm(7)
    agent.update_arm(np.str_("ä"), np.ones(5) / 2)
    for wrong in ("\ud800", 2**63, -(2**64)):
        with pytest.raises(
            errors.InvalidArgument, match="must be text that can be written as UTF-8, or a whole number"
        ):
            agent.add_arm(wrong, np.ones(5))
        with pytest.raises(
            errors.InvalidArgument, match="must be text that can be written as UTF-8, or a whole number"
        ):
            Agent(make("lin_ts"), arms={wrong: np.ones(2)}, log=tmp_path / "other.db")
    assert not (tmp_path / "other.db").exists()
    assert [name for (name,) in rows(path, "SELECT arm FROM decisions ORDER BY seq")] == names
    again = assert_recovers(agent, path, tmp_path / "killed")
    assert again.choose() == agent.choose()


def test_arms_that_differ_every_time_have_names_of_any_kind(tmp_path):
    path = tmp_path / "decisions.db"
    agent = Agent(make("lin_ts"), n_features=2, log=path, draws=0)
    agent.choose({"ä": [1.0, 0.0], 3: [0.0, 1.0]})
    for wrong in ("\ud800", 2**63):
        with pytest.raises(
            errors.InvalidArgument, match="must be text that can be written as UTF-8, or a whole number"
        ):
            agent.choose({wrong: [1.0, 0.0]})
    assert agent.decisions == 1
    assert_recovers(agent, path, tmp_path / "killed")
