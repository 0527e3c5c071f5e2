"""NeuralTS: Thompson sampling of scores, around those of a network and as wide as its gradient is new.

    r̃_i ~ N(f(x_i; θ), ν² σ_i²) independent,    σ_i² = λ g(x_i)ᵀ U⁻¹ g(x_i) / m,    pull argmax_i r̃_i

with the diagonal of U = λI + Σ_l g(X_l) g(X_l)ᵀ / m.  `neural_width.py` defines f, g, U and m, and says what differs
from the paper.

    ν   `scale`   0.1
    λ   `ridge`   1

Reference: Zhang, Zhou, Li & Gu, Neural Thompson Sampling, ICLR 2021, Algorithm 1.
"""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.neural_width import NeuralWidthState, neural_policy
from explorax.policies.settings import DeepSettings


class Numbers(NamedTuple):
    """How much NeuralTS explores."""

    scale: float | Array  # ν


def neural_ts(*, scale: float = 0.1, ridge: float = 1.0, **settings: Unpack[DeepSettings]) -> Policy:
    """Build NeuralTS."""
    check_positive("scale", scale, "Use 'deep_fl' for a policy that does not explore.")
    return neural_policy(sampled_scores, Numbers(scale), ridge, settings)


def sampled_scores(key: Array, state: NeuralWidthState, values: Array, norms: Array) -> Array:
    """Return f + ν σ Z."""
    scale: Array = state.numbers.scale
    noise = jax.random.normal(key, values.shape, values.dtype)
    return values + scale * jnp.sqrt(state.ridge) * norms * noise
