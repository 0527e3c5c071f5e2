"""Boltzmann exploration: a complete small policy, to copy when you add one.

    pull arm i with probability proportional to exp(x_iᵀθ̄ / T),    θ̄ the ridge maximum-likelihood estimate

    T   `temperature`

To add a policy: copy this file to `policies/<name>.py`, name the function like the file, write the rule and its
reference here, and add one line to `registry.py` and one to `__init__.pyi`.  The contract tests and the docs table then
know it.

Reference: Sutton, Integrated Architectures for Learning, Planning, and Reacting, ICML 1990 (softmax action choice).
"""

from typing import Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import GLMSettings


def boltzmann(*, temperature: float = 0.1, **settings: Unpack[GLMSettings]) -> Policy:
    """Build Boltzmann exploration."""
    model = GLMModel(name="boltzmann", **settings)
    check_positive("temperature", temperature, "; a policy that does not explore is 'greedy'")

    # Numbers go into the state as the policy's strength, so that all temperatures share one compiled program.
    return model.policy(perturbed_scores, lambda arms: temperature, law=softmax)


def perturbed_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """Scores whose largest is a draw from the softmax of x_iᵀθ̄ / T: Gumbel noise does that."""
    noise = jax.random.gumbel(key, arms.shape[:1], arms.dtype)
    return learner.scores(state, arms) / state.strength + noise, state.converged


def softmax(learner: Learner, state: GLMState, arms: Array, mask: Array) -> Array:
    """The probability of each arm.  Few policies have a formula for it; for others agents estimate it by draws."""
    return jax.nn.softmax(jnp.where(mask, learner.scores(state, arms) / state.strength, -jnp.inf))
