"""Greedy: pull the arm with the largest estimated score, and never explore after the forced rounds.

    pull argmax_i x_iᵀθ̄,    θ̄ the ridge maximum-likelihood estimate

The policy is GLM-TSL or GLM-FPL with scale a = 0.  It is the baseline that exploration has to beat.
"""

from typing import Any, Unpack

from jax import Array

from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import GLMSettings


def greedy(**settings: Unpack[GLMSettings]) -> Policy:
    """Build the greedy policy, which pulls the arm with the largest estimated score."""
    return GLMModel(**settings).policy(estimated_scores)


def estimated_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Any], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̄, and whether the fit converged."""
    return state.memory.scores(arms), state.converged
