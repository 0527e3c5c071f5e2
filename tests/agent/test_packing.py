"""What is packed comes out again, to the bit, and NaN and infinity in it show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agent.packing import LARGE, TOLD, Packed, Packing
from explorax.checks import all_finite
from explorax.glm.history import Grouped, Rows

SIDE = int(LARGE**0.5) + 1  # of a square matrix that is large
STATE = {
    "vector": jnp.arange(3.0),
    "single": jnp.ones(2, jnp.float32),
    "flag": jnp.asarray(True),
    "count": jnp.asarray(7),
    "square": jnp.ones((SIDE, SIDE)),
    "rows": jnp.ones((LARGE, 2)),
}


@pytest.mark.parametrize("state", [STATE, {"vector": jnp.arange(3.0)}, {"count": jnp.asarray(7)}])
def test_what_is_packed_comes_out_again(state):
    packed = Packed.of(state)
    assert packed.is_finite()
    found = packed.state()
    assert jax.tree.map(lambda leaf: leaf.dtype, found) == jax.tree.map(lambda leaf: leaf.dtype, state)
    jax.tree.map(np.testing.assert_array_equal, found, state)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["vector", "single", "square", "rows"])
def test_nan_and_infinity_show(name, bad):
    packing = Packing.of(STATE)
    broken = STATE | {name: STATE[name].at[(-1,) * STATE[name].ndim].set(bad)}
    assert not Packed(packing, jax.jit(packing.pack)(broken)).is_finite()
    assert not all_finite(broken)


@pytest.mark.parametrize("given", [Rows.of(LARGE, 2, jnp.float32, forgets=True), Grouped.of(jnp.ones((LARGE, 2)))])
def test_what_was_checked_when_it_came_is_not_looked_at_again(given):
    state = {"history": given._replace(features=given.features.at[-1, -1].set(np.nan)), "theta": jnp.ones(2)}
    packing = Packing.of(state)
    assert Packed(packing, jax.jit(packing.pack)(state)).is_finite()
    assert all_finite(state)


def test_equal_states_share_a_packing():
    """Programs are found by it."""
    assert Packing.of(STATE) is Packing.of(jax.tree.map(jnp.zeros_like, STATE))
    assert Packing.of(STATE) is not Packing.of(STATE | {"vector": jnp.arange(4.0)})


def test_in_float64_whole_numbers_of_any_size_share_a_vector_with_floats():
    with jax.enable_x64(True):
        state = {
            "count": jnp.asarray([2**62 + 1, -1, 0, 2**53 + 1, -(2**63)]),
            "float": jnp.asarray([0.1, -0.0, 5e-324]),
            "flag": jnp.asarray([True, False]),
        }
        packed = Packed.of(state)
        assert len(packed.arrays) == 1
        assert packed.is_finite()
        again = jax.jit(lambda arrays: packed.packing.pack(packed.packing.unpack(arrays)))(packed.arrays)
        on_host = packed.packing.unpack(tuple(np.asarray(each) for each in again))
        for found in (packed.state(), Packed(packed.packing, again).state(), on_host):
            assert np.asarray(found["count"]).tolist() == [2**62 + 1, -1, 0, 2**53 + 1, -(2**63)]
            assert np.asarray(found["float"]).tobytes() == np.asarray(state["float"]).tobytes()
            assert np.asarray(found["flag"]).tolist() == [True, False]
        assert not Packed.of(state | {"float": jnp.asarray([np.nan])}).is_finite()


@pytest.mark.parametrize("wide", [False, True])
def test_whole_numbers_are_told_with_a_state(wide):
    with jax.enable_x64(wide):
        state = {"count": jnp.asarray(7), "vector": jnp.arange(3.0), "rows": jnp.ones((LARGE, 2))}
        packing = Packing.of(state)
        told = Packed(packing, jax.jit(packing.pack)(state, jnp.arange(1, 1 + TOLD)))
        assert told.told() == (True, [1, 2, 3, 4, 5])
        assert Packed.of(state).told() == (True, [0] * TOLD)
        jax.tree.map(np.testing.assert_array_equal, told.state(), state)
