"""However many shapes a process meets, few programs are compiled, and fewer are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, arm_sets, make, programs

COMPILED = []  # one entry for each program, of whatever function
jax.monitoring.register_event_duration_secs_listener(
    lambda event, duration, **about: COMPILED.append(event) if "backend_compile" in event else None
)


@pytest.fixture
def kept(monkeypatch):
    """No programs at first; and it can be said how many are kept."""
    programs._programs.clear()
    return lambda most: monkeypatch.setattr(programs, "MOST", most)


def test_numbers_of_arms_and_of_decisions_share_programs():
    agent = Agent(make("uniform"), n_features=2)
    before = len(COMPILED)
    for count in range(9, 41):  # to 10, 16, 20, 32 or 50 rows; without a mask where that is the number of arms
        assert max(agent.choose_many(np.ones((3, count, 2))).rows) < count
    assert len(COMPILED) - before <= 9
    for count in range(1, 33):  # 8, 16 or 32 at a time
        assert len(agent.choose_many(np.ones((count, 8, 2)))) == count
    assert len(COMPILED) - before <= 12


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
    # Room for 11, 22 and 44 arms, each of them taken or not, and where programs are small some for the new arrays.
    assert len(COMPILED) - before <= 16


def test_points_of_a_set_share_programs():
    agent, single = (Agent(make("lin_ts"), arms=arm_sets.box([-1.0, -1.0], [1.0, 1.0]), draws=2) for _ in range(2))
    together = list(agent.choose_many(4))
    before = len(COMPILED)
    together += [each for count in range(1, 9) for each in agent.choose_many(count)]
    assert len(COMPILED) - before <= 3  # 1, 2 or 8 at a time; 4 were before
    assert together == [single.choose() for _ in together]


def test_many_agents_keep_few_programs(kept):
    kept(4)
    agents = [Agent(make("uniform"), n_features=features) for features in range(2, 9)]
    first = [agent.choose(np.ones((5, agent.n_features))).arm for agent in agents]
    assert len(programs._programs) == 4
    again = [Agent(make("uniform"), n_features=features) for features in range(2, 9)]
    assert [agent.choose(np.ones((5, agent.n_features))).arm for agent in again] == first  # compiled again
    assert len(programs._programs) == 4


def test_programs_are_dropped_when_memory_maps_are_scarce(kept, monkeypatch, tmp_path):
    for features in (2, 3, 4):
        Agent(make("uniform"), n_features=features).choose(np.ones((5, features)))
    assert len(programs._programs) == 3
    monkeypatch.setattr(programs, "IN_USE", tmp_path / "maps")
    monkeypatch.setattr(programs, "GRANTED", tmp_path / "limit")
    assert not programs.maps_are_scarce()  # a system without such a limit
    (tmp_path / "maps").write_text("a map\n" * 11)
    (tmp_path / "limit").write_text("22\n")
    assert not programs.maps_are_scarce()
    (tmp_path / "limit").write_text("21\n")
    assert programs.maps_are_scarce()
    Agent(make("uniform"), n_features=5).choose(np.ones((5, 5)))
    assert len(programs._programs) == 2  # the newer half, of which this is one
    Agent(make("uniform"), n_features=5).choose(np.ones((5, 5)))
    assert len(programs._programs) == 2


def test_functions_drop_their_programs(kept):
    kept(3)
    double = programs.bounded_jit(lambda x: 2 * x)
    before = len(COMPILED)
    for size in range(1, 9):
        np.testing.assert_array_equal(double(jnp.ones(size)), np.full(size, 2.0))
        np.testing.assert_array_equal(jax.vmap(double)(jnp.ones((1, size))), np.full((1, size), 2.0))
    assert len(COMPILED) > before
    count = len(COMPILED)
    double(jnp.ones(8))
    assert len(COMPILED) - count <= 1
