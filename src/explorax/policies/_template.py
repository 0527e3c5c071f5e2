"""Boltzmann exploration: a complete small policy, to copy when you add one.

    pull arm i with probability proportional to exp(x_iᵀθ̄ / T),    θ̄ the ridge maximum-likelihood estimate

    T   `temperature`

To add a policy: copy this file to `policies/<name>.py`, name the function like the file, write the rule and its
reference here, and add one line to `registry.py`.  The contract tests and the docs table then know it.

Reference: Sutton, Integrated Architectures for Learning, Planning, and Reacting, ICML 1990 (softmax action choice).
"""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import GLMSettings


class Numbers(NamedTuple):
    """How much Boltzmann exploration explores: in the state, so that all temperatures share one compiled program."""

    temperature: float | Array


def boltzmann(*, temperature: float = 0.1, **settings: Unpack[GLMSettings]) -> Policy:
    """Build Boltzmann exploration."""
    check_positive("temperature", temperature, "Use 'greedy' for a policy that does not explore.")
    return GLMModel(**settings).policy(perturbed_scores, lambda arms: Numbers(temperature), law=softmax)


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return scores whose largest is a draw from the softmax of x_iᵀθ̄ / T: Gumbel noise does that."""
    noise = jax.random.gumbel(key, arms.shape[:1], arms.dtype)
    return state.memory.scores(arms) / state.numbers.temperature + noise, state.converged


def softmax(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return the probability of each arm.  Few policies have a formula for it; agents estimate it for the others."""
    return jax.nn.softmax(jnp.where(mask, state.memory.scores(arms) / state.numbers.temperature, -jnp.inf))
