"""Learned features: the standardized last hidden layer of a network, and a constant 1.

    φ(x) = (z₁, …, z_h, 1),    z_j = (u_j(x) − m_j) / s_j,    u(x) the last hidden layer

m_j and s_j are the mean and the standard deviation of u_j over the examples seen.  A unit that hardly ever changes,
such as a ReLU that is dead on all examples, would be magnified by a tiny s_j: therefore every s_j is at least a tenth
of the largest.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.glm.history import Rows
from explorax.networks import Network, Params

LEAST_SPREAD = 0.1  # relative to the largest


class Standard(NamedTuple):
    """The means and spreads by which the units of a layer are standardized.

    Attributes:
        mean: The (h,) means.
        spread: The (h,) standard deviations.
    """

    mean: Array
    spread: Array


def units(network: Network, params: Params, features: int, dtype: jnp.dtype) -> int:
    """Return h, the number of units in the last hidden layer."""
    assert network.embed is not None
    size: int = jax.eval_shape(network.embed, params, jnp.zeros((1, features), dtype)).shape[1]
    return size


def as_they_are(count: int, dtype: jnp.dtype) -> Standard:
    """Return the standardization that leaves units unchanged, for a network that has seen no examples."""
    return Standard(jnp.zeros(count, dtype), jnp.ones(count, dtype))


def standardize(network: Network, params: Params, rows: Rows) -> Standard:
    """Compute the means and spreads of the units of a network over the examples that are kept."""
    assert network.embed is not None
    layer = network.embed(params, rows.features)
    weights = rows.counts / jnp.maximum(jnp.sum(rows.counts), 1)
    mean = weights @ layer
    spread = jnp.sqrt(weights @ (layer - mean) ** 2)
    largest = jnp.max(spread)
    return Standard(mean, jnp.where(largest > 0, jnp.maximum(spread, LEAST_SPREAD * largest), 1))


def represent(network: Network, params: Params, standard: Standard, rows: Array) -> Array:
    """Return the (n, h + 1) features φ of n rows."""
    assert network.embed is not None
    layer = (network.embed(params, rows) - standard.mean) / standard.spread
    return jnp.concatenate([layer, jnp.ones((rows.shape[0], 1), layer.dtype)], axis=1)
