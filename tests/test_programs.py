"""However many programs a process compiles, few are kept."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Agent, make, programs
from tests.helpers import COMPILED


@pytest.fixture
def kept(monkeypatch):
    """No programs at first; and it can be said how many are kept."""
    programs.forget()
    return lambda most: monkeypatch.setattr(programs, "MOST", most)


def test_many_agents_keep_few_programs(kept):
    kept(4)
    agents = [Agent(make("uniform"), n_features=features) for features in range(2, 9)]
    first = [agent.choose(np.ones((5, agent.n_features))).arm for agent in agents]
    assert programs.count() == 4
    again = [Agent(make("uniform"), n_features=features) for features in range(2, 9)]
    assert [agent.choose(np.ones((5, agent.n_features))).arm for agent in again] == first  # compiled again
    assert programs.count() == 4


def test_programs_are_dropped_when_memory_maps_are_scarce(kept, monkeypatch, tmp_path):
    for features in (2, 3, 4):
        Agent(make("uniform"), n_features=features).choose(np.ones((5, features)))
    assert programs.count() == 3
    monkeypatch.setattr(programs, "IN_USE", tmp_path / "maps")
    monkeypatch.setattr(programs, "GRANTED", tmp_path / "limit")
    assert not programs.maps_are_scarce()  # a system without such a limit
    (tmp_path / "maps").write_text("a map\n" * 11)
    (tmp_path / "limit").write_text("22\n")
    assert not programs.maps_are_scarce()
    (tmp_path / "limit").write_text("21\n")
    assert programs.maps_are_scarce()
    Agent(make("uniform"), n_features=5).choose(np.ones((5, 5)))
    assert programs.count() == 2  # the newer half, of which this is one
    Agent(make("uniform"), n_features=5).choose(np.ones((5, 5)))
    assert programs.count() == 2


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


@pytest.mark.parametrize("name", ["lin_ts", "uniform", "greedy", "epsilon_greedy"])
def test_agents_of_one_shape_share_programs(name):
    """However many agents there are, all alive, with fixed arms and with arms that change."""
    random, agents = np.random.default_rng(0), []
    counts = []
    for number in range(20):
        arms = random.uniform(-1, 1, (6, 2))
        kind, given = ({"arms": arms}, ()) if number % 2 else ({"n_features": 2}, (arms,))
        before = len(COMPILED)
        agent = Agent(make(name), **kind, seed=number, draws=0)
        agent.learn(agent.choose(*given).id, 1.0)
        agents.append((agent, given))
        counts.append(len(COMPILED) - before)
    assert counts[2:] == [0] * 18
    for agent, given in agents:
        assert agent.choose(*given).row < 6
    assert sum(counts) == sum(counts[:2])
