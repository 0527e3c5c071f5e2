"""A packed state: few arrays, of which one says whether the state is finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agent.compiled import LARGE, Packed, Packing
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
