"""NeuralTS: Thompson sampling of scores, with a spread that depends on the gradient of a network.

The score of each arm is drawn around the score of the network, with a larger spread for arms unlike those seen before:

    r̃_i ~ N(f(x_i; θ), ν² σ_i²) independent,    σ_i² = λ g(x_i)ᵀ U⁻¹ g(x_i) / m,    pull argmax_i r̃_i

    ν   `scale`   default: 0.1
    λ   `ridge`   default: 1

Of U = λI + Σ_l g(X_l) g(X_l)ᵀ / m only the diagonal is used.  `neural_width.py` defines f, g, U and m, and lists the
differences from the paper.

Reference: Zhang, Zhou, Li & Gu, Neural Thompson Sampling, ICLR 2021, Algorithm 1.
"""

from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.neural_width import NeuralWidthState, neural_policy
from explorax.policies.settings import DeepSettings


class Numbers(NamedTuple):
    """The numbers of NeuralTS.

    Attributes:
        scale: The scale ν of the draws.
    """

    scale: float | Array


def neural_ts(
    *,
    scale: Annotated[float, "How much to explore: the scale ν of the draws, above 0."] = 0.1,
    ridge: Annotated[float, "The ridge λ of U, above 0."] = 1.0,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build NeuralTS, Thompson sampling of scores around those of a network."""
    check_positive("scale", scale, "Use 'deep_fl' for a policy that does not explore.")
    return neural_policy(sampled_scores, Numbers(scale), ridge, settings)


def sampled_scores(key: Array, state: NeuralWidthState, values: Array, norms: Array) -> Array:
    """Return the scores f + ν σ Z with independent standard normal numbers Z."""
    scale: Array = state.numbers.scale
    noise = jax.random.normal(key, values.shape, values.dtype)
    return values + scale * jnp.sqrt(state.ridge) * norms * noise
