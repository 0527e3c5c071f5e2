"""Keys whose numbers are hashed in one row: the numbers of JAX's own keys, alone and in batches of batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import keys

KEYS = jax.random.split(jax.random.key(7), 6).reshape(2, 3)
DRAWS = {
    "normal": lambda key: jax.random.normal(key, (5, 2), jnp.float32),
    "one": lambda key: jax.random.uniform(key),
    "bits of 8": lambda key: jax.random.bits(key, (3,), jnp.uint8),
    "children": lambda key: jax.random.normal(jax.random.fold_in(jax.random.split(key)[1], 3), (4,)),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("batch", [KEYS[0, 0], KEYS[0], KEYS], ids=["alone", "batch", "batch of batches"])
def test_the_numbers_are_those_of_jax(draw, batch):
    expected, found = draw, lambda key: draw(keys.in_one_row(key))
    for _ in range(batch.ndim):
        expected, found = jax.vmap(expected), jax.vmap(found)
    np.testing.assert_array_equal(jax.jit(found)(batch), jax.jit(expected)(batch))


def test_float64_has_the_numbers_of_jax_as_well():
    with jax.enable_x64(True):

        def draw(key):
            return jax.random.normal(key, (5,))

        found, expected = (jax.vmap(each)(KEYS[0]) for each in (lambda key: draw(keys.in_one_row(key)), draw))
    assert found.dtype == jnp.float64
    np.testing.assert_array_equal(found, expected)


def test_a_batch_is_hashed_in_one_row():
    bits = jax.jit(jax.vmap(lambda key: jax.random.bits(keys.in_one_row(key), (5,), jnp.uint32)))
    text = bits.lower(KEYS[0]).as_text()
    assert "tensor<15xui32>" in text


def test_other_kinds_of_keys_and_other_devices_keep_theirs(monkeypatch):
    other = jax.random.key(7, impl="rbg")
    assert keys.in_one_row(other) is other
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert keys.in_one_row(KEYS) is KEYS
