"""Ids are given out once, whatever is saved, lost and loaded; and a decision has one reward, whatever happens then."""

import threading
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, errors
from explorax.agent import compiled, propensity
from explorax.agent.pending import Pending, as_ids
from explorax.policies.base import Action, Policy

KEPT = Path(__file__).parent / "snapshots"
ARMS = np.eye(3)


def act(key, state, arms, t, mask=None):
    return Action(t % arms.shape[0], jnp.zeros(arms.shape[0]), jnp.asarray(False), jnp.asarray(True))


COUNTING = Policy(  # the arms in turn; the state counts rewards and adds them up
    init=lambda arms, key: jnp.zeros(2),
    act=act,
    update=lambda state, arm, x, reward: state + jnp.stack([1.0, reward]),
)


def counting(**settings):
    return Agent(COUNTING, arms=ARMS, draws=0, **settings)


def saved(agent, path, **settings):
    agent.save(path)
    return Agent.load(path, COUNTING, **settings)


def test_a_reward_of_a_lost_decision_is_not_credited_to_another(tmp_path):
    agent = counting()
    agent.save(tmp_path / "agent.npz")
    lost = agent.choose()  # shown to a reader; then the process dies
    loaded = Agent.load(tmp_path / "agent.npz", COUNTING)
    shown = loaded.choose()
    assert lost.id == 0 != shown.id
    with pytest.raises(errors.UnknownDecision, match="id of a decision that this agent knows, got 0") as refused:
        loaded.learn(lost.id, 1.0)
    assert not isinstance(refused.value, errors.AlreadyRewarded)
    assert loaded.pending == [shown.id]
    loaded.learn(shown.id, 0.5)
    np.testing.assert_array_equal(loaded.state, [1.0, 0.5])


def test_ids_are_unique_over_restarts(tmp_path):
    """Each agent loads what another one saved half-way, makes as many decisions, and is lost."""
    agent, given_out = counting(), []
    for restart in range(1, 5):
        given_out += agent.choose_many(5).ids
        agent.save(tmp_path / "agent.npz")
        given_out += [agent.choose().id for _ in range(3)]
        twin = Agent.load(tmp_path / "agent.npz", COUNTING)  # two from the same snapshot
        given_out += twin.choose_many(4).ids
        agent = Agent.load(tmp_path / "agent.npz", COUNTING)
        assert agent.decisions == 5 * restart
    assert given_out[:8] == list(range(8))
    assert len(set(given_out)) == len(given_out) == 48
    assert all(type(each) is int and int(float(each)) == each for each in given_out)  # as JavaScript has them
    known = [each for each in given_out if agent.is_pending(each)]
    assert known == agent.pending
    assert len(known) == 20
    agent.learn(known, np.ones(20))
    for each in known:
        with pytest.raises(errors.AlreadyRewarded):
            agent.learn(each, 1.0)


@pytest.mark.parametrize("method", ["stated_one", "stated"])
def test_decisions_under_way_while_the_agent_is_saved(method, tmp_path, monkeypatch):
    """They are not in the snapshot, no more than those after it; they are not said to have had rewards."""
    agent = counting()
    before = agent.choose()
    choose = agent.choose if method == "stated_one" else lambda: agent.choose_many(1)[0]
    reached, go_on, made = threading.Event(), threading.Event(), []
    stated = getattr(propensity.Knowledge, method)

    def waits(*arguments):
        reached.set()
        go_on.wait()
        return stated(*arguments)

    monkeypatch.setattr(propensity.Knowledge, method, waits)
    thread = threading.Thread(target=lambda: made.append(choose()))
    thread.start()
    reached.wait()
    with pytest.raises(errors.UnknownDecision, match=r"Decision 1 is still being made. Wait until"):
        agent.learn(1, 1.0)
    agent.save(tmp_path / "agent.npz")
    go_on.set()
    thread.join()
    after = agent.choose()
    loaded = Agent.load(tmp_path / "agent.npz", COUNTING)
    assert loaded.decisions == 2
    assert loaded.pending == [before.id]
    for lost in (*made, after):
        with pytest.raises(errors.UnknownDecision, match="that this agent knows") as refused:
            loaded.learn(lost.id, 1.0)
        assert not isinstance(refused.value, errors.AlreadyRewarded)
    again = saved(agent, tmp_path / "agent.npz")
    for each in (agent, again):
        each.learn([before.id, made[0].id, after.id], [1.0, 1.0, 1.0])


def test_many_choosers_while_the_agent_is_saved(tmp_path):
    """What was returned before `save` was called is in the snapshot; the rest is not, or is there as it should be."""
    agent, stop = counting(), threading.Event()
    made = [[] for _ in range(3)]

    def chooser(own):
        while not stop.is_set():
            own.extend([agent.choose()] if len(own) % 3 else agent.choose_many(4))

    threads = [threading.Thread(target=chooser, args=(own,)) for own in made]
    for thread in threads:
        thread.start()
    returned = []
    for i in range(5):
        returned.append([decision for own in made for decision in own[:]])
        agent.save(tmp_path / f"{i}.npz")
    stop.set()
    for thread in threads:
        thread.join()
    everything = [decision for own in made for decision in own]
    for i, there in enumerate(returned):
        loaded = Agent.load(tmp_path / f"{i}.npz", COUNTING)
        assert {decision.id for decision in there} <= set(loaded.pending)
        lost = [decision for decision in everything if not loaded.is_pending(decision.id)]
        for decision in [*lost[:50], *lost[-50:]]:
            with pytest.raises(errors.UnknownDecision, match="that this agent knows"):
                loaded.learn(decision.id, 1.0)


def test_a_decision_is_not_dropped_while_its_reward_is_learned(monkeypatch):
    agent, learn = counting(max_pending=2), compiled.learn
    first, second = agent.choose_many(2)

    def and_choose(*arguments):
        learned = learn(*arguments)
        agent.choose_many(2)  # more than may wait
        return learned

    monkeypatch.setattr(compiled, "learn", and_choose)
    agent.learn(first.id, 0.5)
    np.testing.assert_array_equal(agent.state, [1.0, 0.5])
    assert agent.pending == [2, 3]
    assert agent.dropped == 1
    with pytest.raises(errors.UnknownDecision, match="among the 1 oldest that were dropped because too many waited"):
        agent.learn(second.id, 1.0)


def test_a_reward_that_cannot_be_learned_may_be_learned_later(monkeypatch):
    agent = counting(max_pending=2)
    first, _ = agent.choose_many(2)

    def fails(*arguments):
        agent.choose_many(1)
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patched:
        patched.setattr(compiled, "learn", fails)
        with pytest.raises(RuntimeError, match="out of memory"):
            agent.learn(first.id, 1.0)
    np.testing.assert_array_equal(agent.state, [0.0, 0.0])
    assert agent.pending == [0, 1, 2]
    agent.learn(first.id, 1.0)
    np.testing.assert_array_equal(agent.state, [1.0, 1.0])
    agent.choose_many(2)
    assert agent.pending == [3, 4]  # the limit is kept again


def test_learners_and_choosers_of_few_pending_decisions():
    """Every reward is learned once or refused by name: the state has as many as were learned."""
    agent = counting(max_pending=4)
    agent.learn(agent.choose().id, 1.0)
    learned, refused = [], []

    def play():
        for _ in range(150):
            decision = agent.choose()
            agent.choose_many(2)
            try:
                agent.learn(decision.id, 1.0)
                learned.append(decision.id)
            except errors.UnknownDecision:
                refused.append(decision.id)

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(learned) + len(refused) == 600
    np.testing.assert_array_equal(agent.state, [1.0 + len(learned), 1.0 + len(learned)])
    assert agent.decisions == 1801
    assert agent.dropped == 1801 - 1 - len(learned) - len(agent.pending)


def test_dropped_decisions_are_counted_and_told_apart_where_that_is_known(tmp_path):
    agent = counting(max_pending=2)
    made = [decision.id for decision in agent.choose_many(5)]
    agent.learn(made[4], 1.0)
    for each in (agent, saved(agent, tmp_path / "agent.npz")):
        assert each.dropped == 3
        with pytest.raises(errors.AlreadyRewarded, match=r"is already known. Learn each decision once"):
            each.learn(made[4], 1.0)
        with pytest.raises(errors.UnknownDecision, match="among the 3 oldest that were dropped") as refused:
            each.learn(made[0], 1.0)
        assert not isinstance(refused.value, errors.AlreadyRewarded)
        assert each.pending == made[3:4]
        assert each.choose_many(2).ids
        assert each.dropped == 4
        with pytest.raises(errors.UnknownDecision, match="among the 4 oldest that were dropped"):
            each.learn(made[3], 1.0)


def test_what_format_1_does_not_know():
    """Its ids are numbers; of those that do not wait it is not known whether they were under way."""
    agent = Agent.load(KEPT / "format1-linear.npz")
    with pytest.raises(errors.UnknownDecision, match="it has had one, or was withdrawn, or was still being made when"):
        agent.learn(3, 1.0)
    with pytest.raises(errors.UnknownDecision, match="that this agent knows, got 12"):
        agent.learn(12, 1.0)
    agent.learn(9, 1.0)
    with pytest.raises(errors.UnknownDecision):
        agent.learn(9, 1.0)


def test_settings_of_an_agent_may_be_given_anew(tmp_path):
    agent = counting()
    agent.choose_many(5)
    loaded = saved(agent, tmp_path / "agent.npz", draws=3, max_pending=2)
    assert loaded.pending == [3, 4]
    assert loaded.dropped == 3
    assert loaded.choose().propensity == 1.0  # the arms in turn: all of 3 repetitions agree
    assert agent.choose().propensity is None
    assert saved(loaded, tmp_path / "agent.npz").choose().propensity == 1.0  # kept from then on
    assert saved(loaded, tmp_path / "agent.npz", stderr=0.25).choose().propensity_stderr > 0
    for settings, words in [
        ({"draws": 3, "stderr": 0.1}, "must not both be given, got draws=3 and stderr=0.1"),
        ({"draws": -1}, "draws must be a whole number of at least .*, got -1"),
        ({"max_pending": 0}, "max_pending must be a whole number of at least 1, got 0"),
    ]:
        with pytest.raises(errors.InvalidArgument, match=words):
            Agent.load(tmp_path / "agent.npz", COUNTING, **settings)


def test_an_interrupt_leaves_a_reward_learned_once(tmp_path, monkeypatch):
    """After the state was replaced, and before the decision was removed from those that wait."""

    def interrupted(self, decisions):
        if decisions:
            raise KeyboardInterrupt

    agent = counting()
    first, second = agent.choose_many(2)
    with monkeypatch.context() as patched:
        patched.setattr(Pending, "remove", interrupted)
        with pytest.raises(KeyboardInterrupt):
            agent.learn(first.id, 0.5)
    np.testing.assert_array_equal(agent.state, [1.0, 0.5])
    for each in (saved(agent, tmp_path / "agent.npz"), agent):
        assert each.pending == [second.id]
        assert not each.is_pending(first.id)
        with pytest.raises(errors.AlreadyRewarded):
            each.learn(first.id, 0.5)
        each.learn(second.id, 1.0)
        np.testing.assert_array_equal(each.state, [2.0, 1.5])


# Pending decisions by themselves


def pending_with(count, limit=100):
    pending = Pending(2, "float32", limit)
    for number in range(count):
        assert pending.take(1) == number
        assert pending.made_one(number, 10 + number, np.full(2, float(number))) == number
    return pending


def test_what_waits_is_kept_as_it_was():
    pending = pending_with(3)
    assert pending.take(2) == 3
    assert pending.made(3, np.array([7, 8]), np.ones((2, 2))) == range(3, 5)
    assert pending.waiting() == [0, 1, 2, 3, 4]
    pulled = pending.hold([4, 1])
    assert pulled.rows.tolist() == [8, 11]
    np.testing.assert_array_equal(pulled.features, [[1, 1], [1, 1]])
    assert pending.hold([2]).features.tolist() == [[2.0, 2.0]]
    pending.remove([2])
    assert pending.waiting() == [0, 1, 3, 4]
    assert 2 not in pending
    with pytest.raises(errors.AlreadyRewarded, match="The reward of decision 2 is already known"):
        pending.hold([0, 2])


def test_slots_are_used_again():
    pending = pending_with(5)
    for number in range(5, 500):
        pending.remove([number - 5])
        pending.made_one(pending.take(1), 0, np.zeros(2))
    assert pending.room == 16  # for what waits, not for what has ever been


def test_a_ledger_goes_on_where_it_was_taken():
    pending = pending_with(6, limit=4)
    pending.remove([3])
    ledger = pending.ledger()
    assert (ledger.decisions, ledger.dropped, ledger.unsure, ledger.waiting.tolist()) == (6, 2, 2, [2, 4, 5])
    for same_ids in (True, False):
        again = Pending(2, "float32", 4)
        again.resume(ledger, same_ids)
        assert again.waiting() == [2, 4, 5]
        assert again.hold([4]).rows.tolist() == [14]
        assert again.take(1) == 6
        assert (again.made_one(6, 0, np.zeros(2)) == 6) is same_ids
        assert again.ledger().waiting[:3].tolist() == [2, 4, 5]


def test_ids_are_whole_numbers():
    assert as_ids(np.int32(3)) == ([3], True)
    assert as_ids([]) == ([], False)
    assert as_ids(np.array([1, 2])) == ([1, 2], False)
    for bad in (1.0, "1", True, [1.5], [[1]], None, [2**80]):
        with pytest.raises(
            errors.InvalidArgument,
            match="decision_id must be the id of a decision, a whole number, or a list of ids, got",
        ):
            as_ids(bad)
