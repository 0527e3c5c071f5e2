"""NeuralUCB: the score of a network plus a bonus for what its gradient has not seen.

    pull argmax_i f(x_i; θ) + γ √(g(x_i)ᵀ U⁻¹ g(x_i) / m),    U = λI + Σ_l g(X_l) g(X_l)ᵀ / m, its diagonal

`neural_width.py` defines f, g, U and m, and says what differs from the paper.

    γ   `width`   0.1, constant, as in the paper's experiments; its theory has one that grows with time
    λ   `ridge`   1

Reference: Zhou, Li & Gu, Neural Contextual Bandits with UCB-based Exploration, ICML 2020, Algorithm 1.
"""

from typing import NamedTuple, Unpack

from jax import Array

from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.neural_width import NeuralWidthState, neural_policy
from explorax.policies.settings import DeepSettings


class Numbers(NamedTuple):
    """How much NeuralUCB explores."""

    width: float | Array  # γ


def neural_ucb(*, width: float = 0.1, ridge: float = 1.0, **settings: Unpack[DeepSettings]) -> Policy:
    """Build NeuralUCB."""
    check_positive("width", width, "Use 'deep_fl' for a policy that does not explore.")
    return neural_policy(optimistic_scores, Numbers(width), ridge, settings)


def optimistic_scores(key: Array, state: NeuralWidthState, values: Array, norms: Array) -> Array:
    """Return f + γ √(gᵀU⁻¹g/m)."""
    width: Array = state.numbers.width
    return values + width * norms
