"""Arms that are added to a state: as if the policy had done it alone, with one program for each room."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, make
from explorax.agent.extension import extended, filled_up, vacant
from explorax.agent.packing import Packed
from tests.helpers import COMPILED, assert_same

ARMS = np.random.default_rng(0).uniform(-1, 1, (40, 3))
EXTENDED = {  # one policy for each kind of state that is extended; forced rounds know the first arms only
    "kept curvature": partial(make, "glm_tsl", warmup="none"),
    "whitened columns": partial(make, "ucb_glm", warmup="none"),
    "ensemble": partial(make, "glm_ensemble", warmup="none", members=3),
    "constrained": partial(make, "ofuglb_e", horizon=100, warmup="none"),
    "discount": partial(make, "glm_tsl", warmup="none", discount=0.9),
    "window": partial(make, "glm_tsl", warmup="none", window=5),
}


@pytest.mark.parametrize("kind", EXTENDED)
def test_the_result_is_that_of_the_policys_own_function(kind):
    policy = EXTENDED[kind]()
    state = policy.init(ARMS[:5])
    for arm in (0, 3, 3):
        state = policy.update(state, arm, ARMS[arm], 1.0)
    more = np.zeros((8, 3), state.ridge.dtype if hasattr(state, "ridge") else jnp.zeros(0).dtype)
    more[:6] = ARMS[:6]
    found = extended(policy.extend, Packed.of(state), jnp.asarray(more)).state()
    assert_same(found, policy.extend(state, jnp.asarray(more)), rtol=1e-5, atol=1e-6)
    more[6] = ARMS[6]  # there is room for it
    again = extended(policy.extend, Packed.of(found), jnp.asarray(more)).state()
    assert_same(again, policy.extend(found, jnp.asarray(more)), rtol=1e-5, atol=1e-6)


def test_arrays_are_filled_up_with_zeros():
    filled = filled_up(np.ones((2, 1)), (3, 2))
    assert filled.tolist() == [[1, 0], [1, 0], [0, 0]]
    same = np.ones(3)
    assert filled_up(same, (3,)) is same


@pytest.mark.parametrize("kind", ["kept curvature", "whitened columns"])
def test_one_compilation_for_each_power_of_two(kind):
    agent = Agent(EXTENDED[kind](), arms=ARMS[:5, :2], draws=0)
    agent.add_arm("first", [0.5, 0.5])  # with room for 8
    before = len(COMPILED)
    for number, row in enumerate(ARMS):
        agent.add_arm(f"arm {number}", row[:2])
    assert len(COMPILED) - before <= 3  # with room for 16, 32 and 64
    before = len(COMPILED)
    for number in range(10):
        agent.retire_arm(f"arm {number}")
        agent.update_arm(f"arm {number + 20}", [0.1, number / 10])
        agent.restore_arm(f"arm {number}")
    assert len(COMPILED) == before
    other = Agent(EXTENDED[kind](), arms=ARMS[:5, :2], draws=0)
    for number, row in enumerate(ARMS):
        other.add_arm(f"arm {number}", row[:2])
    assert len(COMPILED) == before  # programs are shared


@pytest.mark.parametrize("kind", ["kept curvature", "whitened columns", "window"])
def test_arms_added_one_by_one_are_as_good_as_those_given_at_once(kind):
    """Also after rewards, if no arm is added afterwards: draws depend on how a kept root is turned."""
    names = [f"arm {number}" for number in range(12)]
    whole = Agent(EXTENDED[kind](), arms=dict(zip(names, ARMS, strict=False)), draws=0)
    grown = Agent(EXTENDED[kind](), arms=dict(zip(names[:3], ARMS, strict=False)), draws=0)
    for number in range(3, 12):
        grown.add_arm(names[number], ARMS[number])
    for t in range(20):
        made = [agent.choose(among=names[t % 5 :]) for agent in (whole, grown)]
        assert made[0].arm == made[1].arm
        for agent, decision in zip((whole, grown), made, strict=True):
            agent.learn(decision.id, float(t % 2))


@pytest.mark.parametrize("policy", ["glm_tsl", "lin_ts", "uniform"])
def test_retired_arms_keep_what_was_learned_and_still_learn(policy):
    names = [f"arm {number}" for number in range(6)]
    plain, changed = (Agent(make(policy), arms=dict(zip(names, ARMS, strict=False)), draws=0) for _ in range(2))
    waiting = {agent: [agent.choose() for _ in range(8)] for agent in (plain, changed)}
    changed.retire_arm("arm 4")
    changed.retire_arm("arm 1")
    for agent, made in waiting.items():
        agent.learn([each.id for each in made], [float(each.row % 2) for each in made])  # late, also for the retired
    left = [name for name in names if name not in ("arm 1", "arm 4")]
    assert [plain.choose(among=left).arm for _ in range(5)] == [changed.choose().arm for _ in range(5)]
    changed.restore_arm("arm 1")
    changed.restore_arm("arm 4")
    assert [plain.choose().arm for _ in range(5)] == [changed.choose().arm for _ in range(5)]
    jax.tree.map(np.testing.assert_array_equal, plain.state, changed.state)


KNOWING = ["kept curvature", "whitened columns", "ensemble", "constrained", "discount", "window"]  # what arms were paid


def going_through(agent, count, paid=False):
    """Let arms come and go, one after the other."""
    for number in range(count):
        agent.add_arm(f"arm {number}", ARMS[number % 40] + number)
        if paid:
            agent.learn(agent.choose(among=[f"arm {number}"]).id, 1.0)
        agent.retire_arm(f"arm {number}")


@pytest.mark.parametrize("kind", KNOWING)
def test_arms_that_came_and_went_without_rewards_take_no_room(kind):
    agent = Agent(EXTENDED[kind](), arms=ARMS[:5], draws=0)
    going_through(agent, 60)
    assert len(agent._live.now.arms.rows) == 8
    assert agent.arms == {**dict.fromkeys(range(5), True), **{f"arm {i}": False for i in range(60)}}
    for number in (3, 40):
        agent.restore_arm(f"arm {number}")
        features = agent.choose(among=[f"arm {number}"]).features
        np.testing.assert_array_equal(features, ARMS[number % 40] + number)


@pytest.mark.parametrize("policy", ["lin_ts", "uniform", "a summary"])
def test_states_that_have_nothing_for_each_arm_give_any_row_away(policy):
    settings = {"memory": "constant"} if policy == "a summary" else {}
    agent = Agent(make("glm_tsl" if settings else policy, **settings), arms=ARMS[:5], draws=0)
    going_through(agent, 60, paid=True)
    assert len(agent._live.now.arms.rows) == 8


@pytest.mark.parametrize("kind", KNOWING)
def test_rows_with_rewards_are_kept(kind):
    agent = Agent(EXTENDED[kind](), arms=ARMS[:5], draws=0)
    going_through(agent, 4, paid=True)
    live = agent._live
    assert live.now.arms.names[5:9] == ("arm 0", "arm 1", "arm 2", "arm 3")
    with live.decider.precision():
        assert vacant(agent.policy, live.now.packed, live.now.arms) is None


@pytest.mark.parametrize("kind", KNOWING)
def test_a_late_reward_counts_for_the_features_that_were_pulled(kind):
    """The state is that of an agent whose arms never went, but for the places of its rows."""
    agents = [Agent(EXTENDED[kind](), arms=dict(zip("abcde", ARMS, strict=False)), draws=0) for _ in range(2)]
    late = [agent.choose(among=["b"]).id for agent in agents]
    gone = agents[0]
    gone.retire_arm("b")
    gone.add_arm("f", ARMS[10])  # into the row of b
    agents[1].add_arm("f", ARMS[10])
    assert gone._live.now.arms.names == ("a", "f", "c", "d", "e")
    for agent, waiting in zip(agents, late, strict=True):
        agent.learn([waiting, agent.choose(among=["f"]).id, agent.choose(among=["c"]).id], [1.0, 0.0, 1.0])
    assert gone._live.now.arms.names[:6] == ("a", "f", "c", "d", "e", None)
    memories = [getattr(agent.state, "glm", agent.state).memory for agent in agents]
    np.testing.assert_allclose(memories[0].theta_hat, memories[1].theta_hat, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(*(each.past.gram() for each in memories), rtol=1e-12)
    np.testing.assert_array_equal(memories[0].past.features, gone._live.now.arms.rows)
    gone.restore_arm("b")
    picks = [agent.choose(among=["b"]).features for agent in agents]
    np.testing.assert_array_equal(*picks)


def test_a_policy_of_ones_own_gives_no_row_away():
    policy = make("glm_tsl", warmup="none")._replace(unrewarded=None)
    agent = Agent(policy, arms=ARMS[:5], draws=0)
    going_through(agent, 20)
    assert len(agent._live.now.arms.names) == 25


def test_updates_of_arms_without_rewards_take_no_room():
    agent = Agent(make("glm_tsl", warmup="none"), arms=ARMS[:5], draws=0)
    for number in range(30):
        agent.update_arm(number % 5, ARMS[number])
    assert len(agent._live.now.arms.rows) == 8
    assert agent.arms == dict.fromkeys(range(5), True)
