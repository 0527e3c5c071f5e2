"""ε-greedy: now and then an arm at random, else the one that the estimate likes best.

    with probability ε an arm drawn uniformly, else argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

    ε   `epsilon`   constant

The probability of each arm has a formula: ε/K, and 1 − ε more for the best.  Logged data of this policy therefore carry
exact propensities, at the price of exploring arms that are known to be bad.

Reference: Sutton & Barto, Reinforcement Learning: An Introduction, 1998, section 2.2.
"""

from typing import Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.policies.exploration import best
from explorax.policies.glm_learner import GLMState, Learner
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import GLMSettings


def epsilon_greedy(*, epsilon: float = 0.1, **settings: Unpack[GLMSettings]) -> Policy:
    """Build ε-greedy."""
    if not (is_number(epsilon) and 0 < epsilon <= 1):
        raise InvalidArgument(
            f"epsilon={epsilon!r} must be above 0 and at most 1; a policy that does not explore is 'greedy'"
        )
    return GLMModel(name="epsilon_greedy", **settings).policy(scores, lambda arms: epsilon, law=chances)


def scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̄, or with probability ε random numbers."""
    coin, lots = jax.random.split(key)
    at_random = jax.random.uniform(coin, (), arms.dtype) < state.strength
    drawn = jax.random.uniform(lots, arms.shape[:1], arms.dtype)
    return jnp.where(at_random, drawn, learner.scores(state, arms)), state.converged


def chances(learner: Learner, state: GLMState, arms: Array, mask: Array) -> Array:
    """ε/K of each arm on offer, and 1 − ε more of the best."""
    favourite = jnp.arange(arms.shape[0]) == best(learner.scores(state, arms), mask)
    return state.strength * mask / jnp.sum(mask) + (1 - state.strength) * favourite
