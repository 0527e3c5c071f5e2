"""A packed state: few arrays, of which one says whether the state is finite."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agent.packing import LARGE, packing_of

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
    packing = packing_of(state)
    packed = packing.pack(state)
    assert packing.is_finite(packed)
    found = packing.unpack(packed)
    assert jax.tree.map(lambda leaf: leaf.dtype, found) == jax.tree.map(lambda leaf: leaf.dtype, state)
    jax.tree.map(np.testing.assert_array_equal, found, state)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["vector", "single", "square"])
def test_one_number_that_is_none_shows(name, bad):
    packing = packing_of(STATE)
    broken = STATE | {name: STATE[name].at[(-1,) * STATE[name].ndim].set(bad)}
    assert not packing.is_finite(jax.jit(packing.pack)(broken))
