"""ε-greedy: now and then an arm at random, else the one that the estimate likes best.

    with probability ε an arm drawn uniformly, else argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

    ε   `epsilon`   constant

The probability of each arm has a formula: ε/K, and 1 − ε more for the best.  Logged data of this policy therefore carry
exact propensities, at the price of exploring arms that are known to be bad.

Reference: Sutton & Barto, Reinforcement Learning: An Introduction, 1998, section 2.2.
"""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.exploration import best
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import GLMSettings


class Numbers(NamedTuple):
    """How much ε-greedy explores."""

    epsilon: float | Array


def epsilon_greedy(*, epsilon: float = 0.1, **settings: Unpack[GLMSettings]) -> Policy:
    """Build ε-greedy."""
    if not (is_number(epsilon) and 0 < epsilon <= 1):
        raise InvalidArgument(
            f"epsilon={epsilon!r} must be above 0 and at most 1; a policy that does not explore is 'greedy'"
        )
    return GLMModel(**settings).policy(scores, lambda arms: Numbers(epsilon), law=chances)


def scores(estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array) -> tuple[Array, Array]:
    """Return x_iᵀθ̄, or with probability ε random numbers."""
    coin, lots = jax.random.split(key)
    at_random = jax.random.uniform(coin, (), arms.dtype) < state.numbers.epsilon
    drawn = jax.random.uniform(lots, arms.shape[:1], arms.dtype)
    return jnp.where(at_random, drawn, state.memory.scores(arms)), state.converged


def chances(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return ε/K for each arm on offer, and 1 − ε more for the best."""
    epsilon = state.numbers.epsilon
    favourite = jnp.arange(arms.shape[0]) == best(state.memory.scores(arms), mask)
    return epsilon * mask / jnp.sum(mask) + (1 - epsilon) * favourite
