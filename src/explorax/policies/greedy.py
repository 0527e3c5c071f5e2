"""Greedy: pull the arm that the estimate likes best, and never explore after the forced rounds.

    pull argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

GLM-TSL and GLM-FPL with scale a = 0; the floor that exploration has to beat.
"""

from typing import Any, Unpack

from jax import Array

from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import GLMSettings


def greedy(**settings: Unpack[GLMSettings]) -> Policy:
    """Build the greedy policy."""
    return GLMModel(**settings).policy(estimated_scores)


def estimated_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Any], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̄."""
    return state.memory.scores(arms), state.converged
