"""UCB-GLM: optimism on the linear score.

    pull argmax_i x_iᵀθ̄ + α ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

    α   `width`   σ in the informal design (0.5 for Bernoulli rewards),
                  (σ/μ̇min) √((d/2) log(1 + 2n/d) + log n) in the theory's

Reference: Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017.
"""

from typing import Unpack

import jax.numpy as jnp
from jax import Array

from explorax import theory
from explorax.glm.linalg import factorize
from explorax.policies.base import Policy
from explorax.policies.glm_model import Design, GLMModel, GLMSettings, GLMState

GRAM_RIDGE = 1e-6  # keeps ‖x‖_{G⁻¹} finite while rewards of the first d arms are still to come


def ucb_glm(*, design: Design = "informal", width: float | None = None, **settings: Unpack[GLMSettings]) -> Policy:
    """Build UCB-GLM; see `GLMSettings` for what all GLM policies take."""
    model = GLMModel(name="ucb_glm", **settings)
    width_of = model.designed(
        design, "width", width, model.informal, lambda d: theory.width("ucb_glm", model.problem(d))
    )

    def act(key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
        bonus = width_of(arms.shape[1]) * uncertainty(state.history.gram(), arms)
        return arms @ state.theta_mle + bonus, state.converged

    return model.policy(act)


def uncertainty(gram: Array, arms: Array) -> Array:
    """‖x_i‖_{G⁻¹} of each arm."""
    return factorize(gram + GRAM_RIDGE * jnp.eye(gram.shape[0], dtype=gram.dtype)).inverse_norms(arms)
