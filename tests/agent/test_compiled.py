"""What an agent computes: packed states, programs for few shapes, and learning that is a fold of `update`."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, arm_sets, errors, make
from explorax.agent import compiled
from explorax.agent.packing import Packed
from explorax.agent.pulled import Pulled
from explorax.glm.history import Rows
from tests.helpers import COMPILED, assert_same

# Batches


@pytest.mark.parametrize("number", [1, 7, 8, 9, 1023, 1024, 1025, 3000])
def test_pieces_have_all_decisions_once_in_arrays_of_few_sizes(number):
    found, sizes = [], set()
    for start, room, piece in compiled.pieces(number):
        chosen = np.arange(number)[piece]
        assert len(chosen) == room
        assert chosen[0] == start
        found += chosen[: min(room, number - start)].tolist()
        sizes.add(room)
    assert found == list(range(number))
    assert sizes <= {8, 16, 32, 64, 128, 256, 512, 1024}


def test_numbers_of_arms_and_of_decisions_share_programs():
    agent = Agent(make("uniform"), n_features=2)
    before = len(COMPILED)
    for count in range(9, 41):  # to 16, 32 or 64 rows
        assert max(agent.choose_many(np.ones((3, count, 2))).rows) < count
    assert len(COMPILED) - before <= 3
    for count in range(1, 33):  # 8, 16 or 32 at a time
        assert len(agent.choose_many(np.ones((count, 8, 2)))) == count
    assert len(COMPILED) - before <= 6


def test_an_array_and_a_list_of_tables_are_decided_alike():
    tables = np.random.default_rng(0).normal(size=(5, 11, 2))
    alike = [Agent(make("uniform"), n_features=2).choose_many(given) for given in (tables, list(tables))]
    assert list(alike[0]) == list(alike[1])
    assert (alike[0].propensities == 1 / 11).all()


def test_arms_that_are_added_share_programs():
    agent = Agent(make("uniform"), arms=np.ones((3, 2)))
    before = len(COMPILED)
    for name in range(3, 40):
        agent.add_arm(name, [1.0, 0.5])
        agent.choose()
    assert len(COMPILED) - before <= 4  # with room for 8, 16, 32 and 64 arms


def test_points_of_a_set_share_programs():
    agent, single = (Agent(make("lin_ts"), arms=arm_sets.box([-1.0, -1.0], [1.0, 1.0]), draws=2) for _ in range(2))
    together = list(agent.choose_many(4))
    before = len(COMPILED)
    together += [each for count in range(1, 9) for each in agent.choose_many(count)]
    assert len(COMPILED) - before <= 3  # 1, 2 or 8 at a time; 4 were before
    assert together == [single.choose() for _ in together]


# Learning


def counting(state, arm, x, reward):
    """The order of rewards shows in the last number."""
    count, total, mixed = state
    return count + 1, total + reward * x, 0.9 * mixed + arm * reward


START = (jnp.zeros((), int), jnp.zeros(2), jnp.zeros(()))


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 145, 1200])
def test_learning_in_pieces_is_one_update_after_the_other(count):
    rng = np.random.default_rng(count)
    rows, features, rewards = rng.integers(0, 5, count), rng.normal(size=(count, 2)), rng.normal(size=count)
    learned = compiled.learn(counting, Packed.of(START), Pulled.of(rows, features).paid(rewards))
    state = tuple(np.array(part) for part in START)
    for each in zip(rows, features, rewards, strict=True):
        state = counting(state, *each)
    assert learned.packing is Packed.of(START).packing
    assert_same(learned.state(), state, rtol=1e-12, atol=1e-12)


def test_learning_what_is_not_finite_raises_but_not_for_what_was_so_before():
    rows, features = np.zeros(1, int), np.ones((1, 2))
    with pytest.raises(errors.NotFinite, match=r"reward must leave a finite state, got \[nan\] .* Scale features"):
        compiled.learn(counting, Packed.of(START), Pulled.of(rows, features).paid(np.nan))
    broken = Packed.of((START[0], START[1] * np.nan, START[2]))
    assert int(compiled.learn(counting, broken, Pulled.of(rows, features).paid(1.0)).state()[0]) == 1


def test_rewards_are_one_for_each_decision():
    assert [compiled.as_rewards(each, 1, True) for each in (1, 1.0, np.float32(1))] == [1.0] * 3
    assert compiled.as_rewards([1.0, 0.0], 2, False).tolist() == [1.0, 0.0]
    assert compiled.as_rewards([], 0, False).shape == (0,)
    for given, count, single in ([1.0], 1, True), (1.0, 1, False), ([1.0], 2, False):
        with pytest.raises(
            errors.InvalidShape, match=r"reward must have shape .*, got .* Give one number for each decision"
        ):
            compiled.as_rewards(given, count, single)


def test_room_for_rewards():
    kept, forgetting = (Rows.of(3, 2, jnp.float64, forgets=forgets) for forgets in (False, True))
    assert compiled.room({"a": kept, "b": jnp.ones(2)}) == 3
    assert compiled.room({"a": kept._replace(seen=jnp.asarray(2)), "b": kept}) == 1
    assert compiled.room(forgetting) == compiled.room({"b": jnp.ones(2)}) == np.inf
    policy = make("glm_tsl", capacity=3)
    compiled.check_room_for(policy, kept, 3)
    with pytest.raises(errors.HistoryFull, match=r"Agent.load\(path, make\('glm_tsl', capacity=6\)\)"):
        compiled.check_room_for(policy, kept, 4)
