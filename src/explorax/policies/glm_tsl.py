"""GLM-TSL: Thompson sampling from the Laplace approximation of the posterior.

    θ̄ = ridge maximum-likelihood estimate on the past,    H = Σ_l μ̇(X_lᵀθ̄) X_l X_lᵀ + λI
    θ̃ ~ N(θ̄, a² H⁻¹),    pull argmax_i x_iᵀθ̃

    a   `scale`   1 in the informal design (σ in the Gaussian family), c1 √μ̇max in the theory's (Theorem 1)
    λ   `ridge`   the prior N(0, I/λ); the paper has none

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 3.1.
"""

from typing import Unpack

import jax
from jax import Array

from explorax import theory
from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner, score
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import Design, GLMSettings


def glm_tsl(*, design: Design = "informal", scale: float | None = None, **settings: Unpack[GLMSettings]) -> Policy:
    """Build GLM-TSL."""
    model = GLMModel(name="glm_tsl", **settings)
    strength = model.designed(
        design, "scale", scale, model.posterior_scale, lambda d: theory.scale("glm_tsl", model.problem(d))
    )
    return model.policy(sampled_scores, strength, root_error=None)


def sampled_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̃."""
    theta = sample(key, state.theta_hat, learner.inverse_root(state), state.strength)
    return score(state, arms, theta), state.converged


def sample(key: Array, center: Array, root: Array, scale: float | Array) -> Array:
    """A draw from N(center, scale² W Wᵀ) for a root W."""
    return center + scale * (root @ jax.random.normal(key, center.shape, center.dtype))
