import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.agent.unrolled import UNROLLED, wrapped


def both(seed):
    """JAX's own key, and the same as it is wrapped for decisions."""
    own = jax.random.key(seed)
    return own, jax.random.wrap_key_data(jax.random.key_data(own), impl=UNROLLED)


def test_decisions_draw_by_written_out_rounds():
    assert jax.random.key_impl(wrapped(jnp.zeros(2, jnp.uint32))) == UNROLLED


@pytest.mark.parametrize("setting", [{"jax_threefry_partitionable": False}, {"jax_default_prng_impl": "rbg"}])
def test_other_generators_stay_what_they_are(setting):
    ((name, value),) = setting.items()
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        own = jax.random.key(3)
        assert wrapped(jax.random.key_data(own)).dtype == own.dtype
    finally:
        jax.config.update(name, before)


@functools.cache
def draws(dtype):
    """What there is to draw, compiled once for all seeds."""
    some = (
        lambda key: jax.random.normal(key, (20,), dtype),
        lambda key: jax.random.normal(key, (3, 5), dtype),
        lambda key: jax.random.uniform(key, (), dtype),
        lambda key: jax.random.gumbel(key, (7,), dtype),
        lambda key: jax.random.randint(key, (9,), 0, 1000),
        lambda key: jax.random.bernoulli(key, 0.3, (11,)),
        lambda key: jax.random.permutation(key, 12),
        *(lambda key, width=width: jax.random.bits(key, (5,), f"uint{width}") for width in (8, 16, 32)),
        lambda key: jax.random.key_data(jax.random.split(key, (2, 3))),
        lambda key: jax.random.key_data(jax.random.fold_in(key, 2**32 - 1)),
        lambda key: jax.vmap(lambda each: jax.random.normal(each, (4,), dtype))(jax.random.split(key, 6)),
        lambda key: jax.random.uniform(key, (0,), dtype),
    )
    return [jax.jit(draw) for draw in some]


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("seed", [0, 7, 2**31 - 1])
def test_numbers_are_those_of_jax(seed, wide):
    with jax.enable_x64(wide):
        for draw in draws("float64" if wide else "float32"):
            own, unrolled = map(draw, both(seed))
            np.testing.assert_array_equal(own, unrolled)


@pytest.mark.parametrize("t", [0, 1, 12_345, 2**31 - 1])
def test_keys_of_decisions_are_those_of_jax(t):
    own, unrolled = (jax.jit(jax.random.fold_in)(key, t) for key in both(5))
    np.testing.assert_array_equal(jax.random.key_data(own), jax.random.key_data(unrolled))
    np.testing.assert_array_equal(
        jax.random.key_data(both(5)[0]), jax.random.key_data(jax.random.key(5, impl=UNROLLED))
    )
