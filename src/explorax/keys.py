"""Random keys whose numbers a CPU hashes in one row, for programs that are compiled faster.

A random number is a hash of its key and its place.  For a batch of keys JAX hashes a matrix, one row for each key.  On
a CPU, XLA writes out every entry of short rows, so that 10 numbers for each of 50 keys take eleven thousand
instructions and half a second to compile.  One row of 500 takes a tenth of both, and the numbers are the same.
"""

import math

import jax
import jax.numpy as jnp
from jax import Array
from jax.custom_batching import custom_vmap
from jax.extend.random import define_prng_impl, threefry2x32_p, threefry_prng_impl

BY_PLACE = "jax_threefry_partitionable"  # the setting of JAX with which a number depends on its key and place alone
BITS = 32  # of the numbers that are hashed in one row; others are rare


def in_one_row(key: Array) -> Array:
    """Return a key with the same random numbers, which a batch of keys computes in one row on a CPU.

    Args:
        key: A key of any kind.

    Returns:
        The key, which is the given one if it is not of JAX's default kind, or if JAX computes on another device.
    """
    usual = str(jax.random.key_impl(key)) == USUAL and getattr(jax.config, BY_PLACE)
    if jax.default_backend() != "cpu" or not usual:
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=ROW)


def hashed(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    """Return the random bits of a key, of `width` bits each: those of JAX's default keys."""
    if width != BITS:
        return threefry_prng_impl.random_bits(key, width, shape)
    size = math.prod(shape)

    def of_keys(keys: Array) -> Array:
        matrix = len(keys), size
        places = jnp.broadcast_to(jnp.arange(size, dtype=jnp.uint32), matrix).ravel()
        first, second = (jnp.broadcast_to(half[:, None], matrix).ravel() for half in keys.T)
        words = threefry2x32_p.bind(first, second, jnp.zeros_like(places), places)
        return (words[0] ^ words[1]).reshape(len(keys), *shape)

    one, many = custom_vmap(lambda key: of_keys(key[None])[0]), custom_vmap(of_keys)

    @one.def_vmap
    def a_batch(count: int, batched: list[bool], keys: Array) -> tuple[Array, bool]:
        return many(keys), True

    @many.def_vmap
    def a_batch_of_batches(count: int, batched: list[bool], keys: Array) -> tuple[Array, bool]:
        return many(keys.reshape(-1, 2)).reshape(count, -1, *shape), True

    return one(key)


USUAL = threefry_prng_impl.name
ROW = define_prng_impl(
    key_shape=threefry_prng_impl.key_shape,
    seed=threefry_prng_impl.seed,
    split=threefry_prng_impl.split,
    random_bits=hashed,
    fold_in=threefry_prng_impl.fold_in,
    name="explorax_threefry_in_one_row",
    tag="row",
)
