"""Boltzmann exploration: a complete small policy, to copy when you add one.

The policy pulls an arm at random, and better arms with larger probability:

    pull arm i with probability proportional to exp(x_iᵀθ̄ / T),    θ̄ the ridge maximum-likelihood estimate

    T   `temperature`   the larger T, the more the policy explores

To add a policy, copy this file to `policies/<name>.py`, give the function the name of the file, write the rule and its
reference here, and add one line to `registry.py` and one to `__init__.pyi`.  The contract tests and the docs then
include the policy.

Reference: Sutton, Integrated Architectures for Learning, Planning, and Reacting, ICML 1990 (softmax action choice).
"""

from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import GLMSettings


class Numbers(NamedTuple):
    """The numbers of the rule.  They are part of the state, so that all temperatures share one compiled program.

    Attributes:
        temperature: The temperature T.
    """

    temperature: float | Array


def boltzmann(
    *,
    temperature: Annotated[float, "How much to explore: the temperature T, above 0."] = 0.1,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build Boltzmann exploration, which pulls arms with probabilities given by a softmax of their scores."""
    check_positive("temperature", temperature, "Use 'greedy' for a policy that does not explore.")
    return GLMModel(**settings).policy(perturbed_scores, lambda arms: Numbers(temperature), law=softmax)


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̄ / T plus Gumbel noise, whose largest entry is a draw from the softmax of x_iᵀθ̄ / T."""
    noise = jax.random.gumbel(key, arms.shape[:1], arms.dtype)
    return state.memory.scores(arms) / state.numbers.temperature + noise, state.converged


def softmax(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return the probability of each arm.

    Few policies have a formula for the probabilities; agents estimate them for all others.

    Args:
        estimator: The estimator behind the scores.
        state: The state of the policy.
        arms: The (K, d) matrix of the arms.
        mask: A Boolean vector of shape (K,), True for each arm that may be pulled.

    Returns:
        The (K,) probabilities.
    """
    return jax.nn.softmax(jnp.where(mask, state.memory.scores(arms) / state.numbers.temperature, -jnp.inf))
