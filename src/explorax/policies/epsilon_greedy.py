"""ε-greedy: pull a random arm with probability ε, and otherwise the arm with the largest estimated score.

    with probability ε an arm drawn uniformly, else argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

    ε   `epsilon`   constant over time

The probability of each arm has a formula: ε/K, and 1 − ε more for the best arm.  Data that this policy logs therefore
have exact propensities.  The price is that arms which are known to be bad are still explored.

Reference: Sutton & Barto, Reinforcement Learning: An Introduction, 1998, section 2.2.
"""

from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.exploration import best
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import GLMSettings


class Numbers(NamedTuple):
    """The numbers of ε-greedy.

    Attributes:
        epsilon: The probability ε of a random arm.
    """

    epsilon: float | Array


def epsilon_greedy(
    *,
    epsilon: Annotated[float, "How much to explore: the probability ε of a random arm, in (0, 1]."] = 0.1,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build ε-greedy, which pulls a random arm with probability ε and otherwise the best arm of the estimate."""
    if not (is_number(epsilon) and 0 < epsilon <= 1):
        raise InvalidArgument(
            f"epsilon must be above 0 and at most 1, got {epsilon!r}. Use 'greedy' for a policy that does not explore."
        )
    return GLMModel(**settings).policy(scores, lambda arms: Numbers(epsilon), law=chances)


def scores(estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̄, or with probability ε random scores; and whether the fit converged."""
    coin, lots = jax.random.split(key)
    at_random = jax.random.uniform(coin, (), arms.dtype) < state.numbers.epsilon
    drawn = jax.random.uniform(lots, arms.shape[:1], arms.dtype)
    return jnp.where(at_random, drawn, state.memory.scores(arms)), state.converged


def chances(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return the probability of each arm: ε/K for each arm on offer, and 1 − ε more for the best arm."""
    epsilon = state.numbers.epsilon
    favorite = jnp.arange(arms.shape[0]) == best(state.memory.scores(arms), mask)
    return epsilon * mask / jnp.sum(mask) + (1 - epsilon) * favorite
