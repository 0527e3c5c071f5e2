"""JAX's own random numbers, drawn by programs that make a few of them faster.

On a CPU, JAX compiles Threefry to a loop of five turns, which is quick to compile.  In a decision, the two loops that
draw its noise cost more than the rest of the arithmetic.  Here all rounds are written out, and XLA makes one operation
of them.  The numbers are those of JAX to the bit.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.extend.random import define_prng_impl

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA


def wrapped(key_data: Array) -> Array:
    """Return key data as a key that draws JAX's numbers, by the program that is fastest for a decision."""
    settings: Any = jax.config
    alike = settings.jax_default_prng_impl == "threefry2x32" and settings.jax_threefry_partitionable
    if jax.default_backend() != "cpu" or not alike:
        return jax.random.wrap_key_data(key_data)
    return jax.random.wrap_key_data(key_data, impl=UNROLLED)


def threefry(key: Array, high: Array, low: Array) -> tuple[Array, Array]:
    """Return the two words that Threefry-2x32 with 20 rounds makes of the two words of a counter."""
    parts = key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY)
    one, other = high + parts[0], low + parts[1]
    for i in range(5):
        for places in ROTATIONS[i % 2]:
            one = one + other
            other = one ^ ((other << jnp.uint32(places)) | (other >> jnp.uint32(32 - places)))
        one, other = one + parts[(i + 1) % 3], other + parts[(i + 2) % 3] + jnp.uint32(i + 1)
    return one, other


def counted(key: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Return the two words for each of the counters 0, 1, 2, … in an array of that shape."""
    low = lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
    return threefry(key, jnp.zeros_like(low), low)


def as_key(words: tuple[Array, Array]) -> Array:
    """Return key data; XLA must not compute it anew for each number that is drawn from it."""
    return lax.optimization_barrier(jnp.stack(words, axis=-1))


def seed(number: Array) -> Array:
    """Return the key data of a seed."""
    return jax.random.key_data(jax.random.key(number, impl="threefry2x32"))


def split(key: Array, shape: tuple[int, ...]) -> Array:
    """Return the data of several keys that are made of one."""
    return as_key(counted(key, shape))


def fold_in(key: Array, number: Array | int) -> Array:
    """Return the data of a key that is made of another one and a number."""
    return as_key(threefry(key, jnp.uint32(0), jnp.asarray(number).astype(jnp.uint32)))


def random_bits(key: Array, width: int, shape: tuple[int, ...]) -> Array:
    """Return random whole numbers of 8, 16, 32 or 64 bits."""
    high, low = counted(key, shape)
    if width == 64:
        return (high.astype(jnp.uint64) << jnp.uint64(32)) | low.astype(jnp.uint64)
    return (high ^ low).astype(f"uint{width}")


UNROLLED: Any = define_prng_impl(
    key_shape=(2,), seed=seed, split=split, random_bits=random_bits, fold_in=fold_in, name="unrolled", tag="unr"
)
