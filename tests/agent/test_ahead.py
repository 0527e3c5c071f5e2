"""A decision that is made together with learning the reward before it is the one that would have been made later."""

import threading

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, errors, make
from explorax.agent import ahead, compiled

FEATURES = 3
MATRIX = np.random.default_rng(0).uniform(-1, 1, (6, FEATURES))
NAMED = dict(zip("abcdef", MATRIX, strict=True))


@pytest.fixture
def made(monkeypatch, turns):
    """Let every agent decide ahead as soon as it may, and count how often one does."""
    turns(0)
    made, learn_and_decide = [], compiled.learn_and_decide

    def counted(*given):
        made.append(given)
        return learn_and_decide(*given)

    monkeypatch.setattr(compiled, "learn_and_decide", counted)
    return made


def reward_of(t):
    return float(np.random.default_rng(t).integers(2))


def in_turn(agent, rounds, **asked):
    """Decisions that are rewarded at once."""
    found = []
    for _ in range(rounds):
        found.append(agent.choose(**asked))
        agent.learn(found[-1].id, reward_of(found[-1].id))
    return found


def late(agent, count):
    """Decisions that are rewarded together, and one by one."""
    found = [*agent.choose_many(count), agent.choose(), agent.choose()]
    agent.learn([each.id for each in found[:count]], [reward_of(each.id) for each in found[:count]])
    for each in reversed(found[count:]):
        agent.learn(each.id, reward_of(each.id))
    return found


def everything(agent):
    """All that an agent with fixed arms can be asked, with turns of one decision and one reward before each."""
    yield from in_turn(agent, 5)
    yield agent.choose(among=["b", "c"])
    agent.learn(5, 1.0)
    yield from in_turn(agent, 2)
    yield from in_turn(agent, 2, among=["a", "f"])
    yield from late(agent, 3)
    if agent._live.decider.known.draws:
        yield agent.propensities()
        yield from in_turn(agent, 3, all_propensities=True)
    yield from in_turn(agent, 2)
    agent.add_arm("new", [0.5, -0.5, 1.0])
    yield from in_turn(agent, 2)
    agent.retire_arm("new")
    yield from in_turn(agent, 2)
    agent.update_arm("a", [1.0, 0.0, 0.0])
    yield from in_turn(agent, 2)
    agent.restore_arm("new")
    yield from in_turn(agent, 4)
    for name in list(agent.arms):
        agent.retire_arm(name)
    with pytest.raises(errors.InvalidArgument, match="No arm is on offer"):
        agent.choose()
    agent.restore_arm("b")
    yield from in_turn(agent, 2)
    yield from late(agent, 2)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("lin_ucb", {"draws": 0}),
        ("lin_ts", {"draws": 5}),
        ("lin_ts", {"draws": 5, "explore_floor": 0.3, "dtype": "float32"}),
        ("glm_tsl", {"draws": 0}),
        ("glm_fpl", {"draws": 0, "dtype": "float32"}),
        ("epsilon_greedy", {}),
    ],
)
def test_whatever_an_agent_is_asked(name, settings, made, turns):
    policy = make(name)
    found = list(everything(Agent(policy, arms=NAMED, **settings)))
    count = len(made)
    assert count > 10
    turns(np.inf)
    later = list(everything(Agent(policy, arms=NAMED, **settings)))
    assert [each.to_dict() for each in found] == [each.to_dict() for each in later]
    assert len(made) == count


def test_an_agent_goes_on_where_it_was_saved(made, tmp_path):
    """A snapshot knows nothing of what was made ahead."""
    agent = Agent(make("glm_tsl"), arms=NAMED, draws=3)
    in_turn(agent, 8)
    assert agent._live.now.ahead.t == 8
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz", same_ids=True)
    assert loaded._live.now.ahead is None
    assert in_turn(loaded, 5) == in_turn(agent, 5)


def test_every_thread_gets_a_decision_of_its_own(made):
    """What was made ahead is one decision, however many threads ask at the same time."""
    agent, serial = (Agent(make("lin_ts"), arms=NAMED, draws=0) for _ in range(2))
    for _ in range(20):
        for each in agent, serial:
            in_turn(each, 2)
        found, ready = [], threading.Barrier(4)

        def choose(found=found, ready=ready):
            ready.wait()
            found.append(agent.choose())

        threads = [threading.Thread(target=choose) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expected = [serial.choose() for _ in range(4)]
        assert sorted(found, key=lambda each: each.id) == expected
        for each in agent, serial:
            each.learn([made.id for made in expected], [0.0, 1.0, 1.0, 0.0])
    assert len(made) > 40


def poisoned(policy):
    """The policy with an update that leaves NaN after a reward of 0.5."""

    def update(state, arm, x, reward):
        learned = policy.update(state, arm, x, reward)
        theta = jnp.where(reward == 0.5, jnp.nan, learned.regression.theta_hat)
        return learned._replace(regression=learned.regression._replace(theta_hat=theta))

    return policy._replace(update=update)


def test_a_refused_reward_changes_nothing(made):
    agent, other = (Agent(poisoned(make("lin_ts")), arms=NAMED, draws=0) for _ in range(2))
    for each in agent, other:
        in_turn(each, 4)
    decision, now = agent.choose(), agent._live.now
    for reward, error in (np.nan, errors.InvalidReward), (0.5, errors.NotFinite):
        with pytest.raises(error):
            agent.learn(decision.id, reward)
        assert agent._live.now is now
        assert agent.pending == [decision.id]
    agent.learn(decision.id, 1.0)
    other.learn(other.choose().id, 1.0)
    assert in_turn(agent, 4) == in_turn(other, 4)
    assert len(made) == 2 * 9 + 1  # the refused one, too


@pytest.mark.parametrize("pattern", ["late", "several", "among", "every", "a table"])
def test_nothing_is_made_ahead_that_would_not_be_asked_for(pattern, made):
    table = pattern == "a table"
    agent = Agent(make("lin_ts"), **({"n_features": FEATURES} if table else {"arms": NAMED}), draws=3)
    waiting = [agent.choose(MATRIX if table else None)] if pattern in ("late", "a table") else []
    for _ in range(5):
        if pattern == "late":
            waiting.append(agent.choose())
            agent.learn(waiting.pop(0).id, 1.0)
        elif pattern == "several":
            agent.learn(list(agent.choose_many(2).ids), [0.0, 1.0])
        elif table:
            agent.learn(waiting.pop().id, 1.0)
            waiting.append(agent.choose(MATRIX))
        else:
            in_turn(agent, 1, **({"among": ["a", "b"]} if pattern == "among" else {"all_propensities": True}))
    assert not made


def test_agents_are_patient(turns, made):
    """A third program is compiled only for those who have taken turns for long."""
    turns(7)
    agent = Agent(make("lin_ts"), arms=NAMED, draws=0)
    for turns in (4, 7):
        in_turn(agent, turns)
        agent.learn(list(agent.choose_many(2).ids), [0.0, 1.0])
    assert not made
    in_turn(agent, 9)
    assert len(made) == 2


def test_nobody_waits_for_the_program(monkeypatch, made):
    """Decisions and rewards go on while a thread compiles it, and are the same."""
    works = []
    monkeypatch.setattr(ahead.Turns, "start", lambda self, work: works.append(work))
    agent, other = (Agent(make("glm_tsl"), arms=NAMED, draws=0) for _ in range(2))
    found = in_turn(agent, 4)
    assert not made
    (work,) = works
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    found += in_turn(agent, 3)
    assert len(made) == 3
    agent.add_arm("new", [0.5, -0.5, 1.0])
    agent.add_arm("newer", [0.5, 0.5, 1.0])
    agent.add_arm("newest", [-0.5, 0.5, 1.0])  # which has no room in the table: another program
    in_turn(agent, 2)
    assert len(works) == 2
    assert len(made) == 3
    assert in_turn(other, 7) == found


def test_a_program_that_cannot_be_compiled_is_not_used(monkeypatch, made):
    def start(self, work):
        with pytest.raises(MemoryError):
            work()

    def fails(*given):
        raise MemoryError

    monkeypatch.setattr(ahead.Turns, "start", start)
    monkeypatch.setattr(compiled, "together", fails)
    agent = Agent(make("lin_ts"), arms=NAMED, draws=0)
    assert len(in_turn(agent, 5)) == 5
    assert not made


def test_a_thread_compiles_the_program(monkeypatch):
    monkeypatch.setattr(ahead, "PATIENCE", 0)
    agent = Agent(make("lin_ts"), arms=NAMED, draws=0)
    in_turn(agent, 1)
    for thread in threading.enumerate():
        if thread.name == "explorax-ahead":
            thread.join()
    in_turn(agent, 1)
    assert agent._live.now.ahead.t == 2


def test_rewards_are_learned_where_no_thread_is_to_be_had(monkeypatch):
    def fails(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ahead, "PATIENCE", 0)
    monkeypatch.setattr(ahead.Thread, "start", fails)
    agent = Agent(make("lin_ts"), arms=NAMED, draws=0)
    assert len(in_turn(agent, 4)) == 4
    assert agent.pending == []
