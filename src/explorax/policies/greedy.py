"""Greedy: pull the arm that the estimate likes best, and never explore after the forced rounds.

    pull argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

GLM-TSL and GLM-FPL with scale a = 0; the floor that exploration has to beat.
"""

from typing import Unpack

from jax import Array

from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import GLMSettings


def greedy(**settings: Unpack[GLMSettings]) -> Policy:
    """Build the greedy policy."""
    return GLMModel(name="greedy", **settings).policy(estimated_scores)


def estimated_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̄."""
    return learner.scores(state, arms), state.converged
