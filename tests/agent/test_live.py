"""What is shared by threads and interrupts: numbers, held decisions, and the one step in which a state is replaced."""

import numpy as np
import pytest

from explorax import Agent, errors, glm_tsl
from explorax.agent import compiled
from explorax.agent.pending import Pending
from explorax.agent.recording import Recorded
from explorax.log.writer import Writer
from tests.agent.logs import assert_recovers
from tests.agent.test_pending import COUNTING, counting

PLACES = {  # functions after which an interrupt comes: what was written is there, and the memory does not know it yet
    "written": (Writer, "write"),
    "removed": (Pending, "remove"),
    "made": (Pending, "made_one"),
}


def interrupt_after(monkeypatch, owner, name):
    """Let an interrupt come when a function has returned the next time."""
    called, times = getattr(owner, name), iter([KeyboardInterrupt])

    def interrupted(*arguments):
        found = called(*arguments)
        if arguments[-1] != ():  # the ids of no decisions, which are removed before anything is learned
            for interrupt in times:
                raise interrupt
        return found

    monkeypatch.setattr(owner, name, interrupted)


@pytest.mark.parametrize("place", ["written", "removed"])
def test_a_reward_counts_once_whenever_the_interrupt_comes(place, tmp_path, monkeypatch):
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    first, second = agent.choose_many(2)
    interrupt_after(monkeypatch, *PLACES[place])
    with pytest.raises(KeyboardInterrupt):
        agent.learn(first.id, 0.5)
    np.testing.assert_array_equal(agent.state, [1.0, 0.5])
    assert agent.pending == [second.id]
    with pytest.raises(errors.AlreadyRewarded):
        agent.learn(first.id, 0.5)
    agent.learn(second.id, 1.0)
    again = assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)
    np.testing.assert_array_equal(again.state, [2.0, 1.5])


def test_a_reward_that_waits_for_its_window_counts_once(tmp_path, monkeypatch):
    path, times = tmp_path / "decisions.db", [0.0]
    agent = counting(log=path, reward_window=10.0, default_reward=0.25, clock=lambda: times[0])
    first, second = agent.choose_many(2)
    interrupt_after(monkeypatch, Writer, "write")
    with pytest.raises(KeyboardInterrupt):
        agent.learn(first.id, 0.5)
    times[0] = 11.0
    agent.close_windows()  # the default of a decision with a reward would be a second one
    np.testing.assert_array_equal(agent.state, [2.0, 0.75])
    with pytest.raises(errors.AlreadyRewarded):
        agent.learn(second.id, 1.0)
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING, clock=lambda: times[0])


@pytest.mark.parametrize("place", ["written", "made"])
def test_a_decision_that_was_written_waits(place, tmp_path, monkeypatch):
    """Nobody was told of it, but the log has it, and so has whoever recovers it."""
    path = tmp_path / "decisions.db"
    agent = counting(log=path, max_pending=2)
    agent.choose_many(2)
    interrupt_after(monkeypatch, *PLACES[place])
    with pytest.raises(KeyboardInterrupt):
        agent.choose()
    assert agent.pending == [1, 2]
    assert agent.dropped == 1
    assert agent.choose().id == 3
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)


def test_a_withdrawal_that_was_written_has_happened(tmp_path, monkeypatch):
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    first = agent.choose()
    interrupt_after(monkeypatch, Writer, "write")
    with pytest.raises(KeyboardInterrupt):
        agent.withdraw(first.id)
    with pytest.raises(errors.UnknownDecision):
        agent.learn(first.id, 1.0)
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)


@pytest.mark.parametrize("logged", [False, True])
def test_a_decision_that_fails_gives_its_number_back(logged, tmp_path, monkeypatch):
    agent = counting(**({"log": tmp_path / "decisions.db"} if logged else {}))
    with monkeypatch.context() as patched:
        patched.setattr(Pending, "made_one", lambda *arguments: 1 / 0)
        patched.setattr(Writer, "write", lambda *arguments: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            agent.choose()
    assert agent.decisions == 0
    assert agent.choose().id == 0


def test_a_decision_is_not_dropped_while_its_reward_is_written(tmp_path, monkeypatch):
    """With a log, too: the one whose reward is learned stays, and another one goes."""
    path, learn = tmp_path / "decisions.db", compiled.learn
    agent = counting(log=path, max_pending=2)
    first, second = agent.choose_many(2)

    def and_choose(*arguments):
        learned = learn(*arguments)
        agent.choose_many(2)
        return learned

    with monkeypatch.context() as patched:
        patched.setattr(compiled, "learn", and_choose)
        agent.learn(first.id, 0.5)
    assert agent.pending == [2, 3]
    assert agent.dropped == 1
    with pytest.raises(errors.UnknownDecision, match="among the 1 oldest"):
        agent.learn(second.id, 1.0)
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)


def test_a_default_that_no_reward_can_be_is_refused():
    with pytest.raises(errors.InvalidReward):
        Agent(glm_tsl(), arms=np.eye(2), reward_window=1.0, default_reward=2.0)


def test_learning_nothing_changes_nothing(tmp_path):
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    agent.choose()
    agent.learn([], [])
    agent.withdraw([])
    assert agent._live.now.version == 0
    assert isinstance(agent._live.record, Recorded)
    assert_recovers(agent, path, tmp_path / "killed", policy=COUNTING)
