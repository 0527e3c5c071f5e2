"""UCB-GLM: optimism on the linear score.

    pull argmax_i x_iᵀθ̄ + α ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

    α   `width`   σ in the informal design (0.5 for Bernoulli rewards),
                  (σ/μ̇min) √((d/2) log(1 + 2n/d) + log n) in the theory's

Reference: Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017.
"""

from typing import Unpack

from jax import Array

from explorax import theory
from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner, uncertainty
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import Design, GLMSettings


def ucb_glm(*, design: Design = "informal", width: float | None = None, **settings: Unpack[GLMSettings]) -> Policy:
    """Build UCB-GLM."""
    model = GLMModel(name="ucb_glm", **settings)
    strength = model.designed(
        design, "width", width, model.informal, lambda d: theory.width("ucb_glm", model.problem(d))
    )
    return model.policy(optimistic_scores, strength, whitens=True)


def optimistic_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̄ + α ‖x_i‖_{G⁻¹}."""
    return learner.scores(state, arms) + state.strength * uncertainty(state, arms), state.converged
