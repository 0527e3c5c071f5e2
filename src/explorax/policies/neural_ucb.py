"""NeuralUCB: the score of a network plus a bonus that depends on the gradient of the network.

The bonus is larger for arms unlike those seen before:

    pull argmax_i f(x_i; θ) + γ √(g(x_i)ᵀ U⁻¹ g(x_i) / m),    U = λI + Σ_l g(X_l) g(X_l)ᵀ / m, its diagonal

    γ   `width`   default: 0.1; constant, as in the paper's experiments, while its theory has one that grows with time
    λ   `ridge`   default: 1

`neural_width.py` defines f, g, U and m, and lists the differences from the paper.

Reference: Zhou, Li & Gu, Neural Contextual Bandits with UCB-based Exploration, ICML 2020, Algorithm 1.
"""

from typing import Annotated, NamedTuple, Unpack

from jax import Array

from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.neural_width import NeuralWidthState, neural_policy
from explorax.policies.settings import DeepSettings


class Numbers(NamedTuple):
    """The numbers of NeuralUCB.

    Attributes:
        width: The width γ of the bonus.
    """

    width: float | Array


def neural_ucb(
    *,
    width: Annotated[float, "How much to explore: the width γ of the bonus, above 0."] = 0.1,
    ridge: Annotated[float, "The ridge λ of U, above 0."] = 1.0,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build NeuralUCB, which adds a bonus for uncertainty to the score that a network gives an arm."""
    check_positive("width", width, "Use 'deep_fl' for a policy that does not explore.")
    return neural_policy(optimistic_scores, Numbers(width), ridge, settings)


def optimistic_scores(key: Array, state: NeuralWidthState, values: Array, norms: Array) -> Array:
    """Return the scores f + γ √(gᵀU⁻¹g/m)."""
    width: Array = state.numbers.width
    return values + width * norms
