"""Learned features: the last hidden layer of a network, standardized, and a one.

    φ(x) = (z₁, …, z_h, 1),    z_j = (u_j(x) − m_j) / s_j,    u(x) the last hidden layer

m_j and s_j are the mean and standard deviation of u_j over the examples seen.  A unit that hardly ever moves, such as a
ReLU that is dead on all of them, would be blown up by its s_j: none is taken to be below a tenth of the largest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.glm.history import Rows
from explorax.networks import Network, Params

LEAST_SPREAD = 0.1  # of the largest


class Standard(NamedTuple):
    """How the units of a layer are standardized."""

    mean: Array  # (h,)
    spread: Array  # (h,)


def units(network: Network, params: Params, features: int, dtype: jnp.dtype) -> int:
    """h, the size of the last hidden layer."""
    assert network.embed is not None
    size: int = jax.eval_shape(network.embed, params, jnp.zeros((1, features), dtype)).shape[1]
    return size


def as_they_are(count: int, dtype: jnp.dtype) -> Standard:
    """Units that are not standardized: nothing has been seen yet."""
    return Standard(jnp.zeros(count, dtype), jnp.ones(count, dtype))


def standardize(network: Network, params: Params, rows: Rows) -> Standard:
    """By the examples kept."""
    assert network.embed is not None
    layer = network.embed(params, rows.features)
    weights = rows.counts / jnp.maximum(jnp.sum(rows.counts), 1)
    mean = weights @ layer
    spread = jnp.sqrt(weights @ (layer - mean) ** 2)
    largest = jnp.max(spread)
    return Standard(mean, jnp.where(largest > 0, jnp.maximum(spread, LEAST_SPREAD * largest), 1))


def represent(network: Network, params: Params, standard: Standard, rows: Array) -> Array:
    """φ of each row."""
    assert network.embed is not None
    layer = (network.embed(params, rows) - standard.mean) / standard.spread
    return jnp.concatenate([layer, jnp.ones((rows.shape[0], 1), layer.dtype)], axis=1)
