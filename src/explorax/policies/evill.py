"""EVILL: exploration via linearly perturbed loss minimisation.

    θ̄ = ridge maximum-likelihood estimate on the past,    H = Σ_l μ̇(X_lᵀθ̄) X_l X_lᵀ + λI
    w ~ N(0, a² H),    θ̃ = argmin_θ L(θ) + ½ λ ‖θ‖² − wᵀθ,    pull argmax_i x_iᵀθ̃

with L the negative log-likelihood.  It is GLM-FPL with noise of the rewards' own variance μ̇(X_lᵀθ̄) in place of a
constant one, and of the prior's too: arms whose rewards are nearly certain are perturbed little.

**How it is drawn.**  With a root W of the inverse, W Wᵀ = H⁻¹, and z ~ N(0, I), the tilt w = a H W z has that law,
and H v costs no more than a gradient.  The first Newton step from θ̄ is θ̄ + H⁻¹w = θ̄ + a W z: the very draw that
GLM-TSL makes from the same key.  The further ones are what EVILL adds to it: θ̃ follows the bend of the loss, where
GLM-TSL puts a parabola.  In the Gaussian family the loss is a parabola, and the two are the same policy.

    a   `scale`   1 (σ in the Gaussian family), as in GLM-TSL
    λ   `ridge`   the prior N(0, I/λ)

With memory="constant" or "refitted" a tilted fit is one to first order (`glm.online`), so EVILL is GLM-TSL there.
Where arms are fixed W is kept from round to round, within the error that GLM-TSL allows it (`glm.warm`), and w errs
as its draws do.

The paper's regret bound comes with a scale, but a later version of the paper (arXiv 2311.07565v3) reports an error in
the proof that changes its constants.  So there is no design="theory".

Reference: Janz, Liu, Ayoub & Szepesvári, Exploration via linearly perturbed loss minimisation, AISTATS 2024.
"""

from typing import Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.online import Online
from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner, score
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_tsl import sampled_scores
from explorax.policies.settings import GLMSettings


def evill(*, scale: float | None = None, **settings: Unpack[GLMSettings]) -> Policy:
    """Build EVILL."""
    model = GLMModel(name="evill", **settings)
    scale = model.posterior_scale if scale is None else scale
    check_positive("scale", scale, "; a policy that does not explore is 'greedy'")
    return model.policy(perturbed_scores, lambda arms: scale, root_error=None)


def perturbed_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̃ for the estimate tilted by w."""
    if isinstance(state.history, Online):
        return sampled_scores(learner, key, state, arms)
    return learner.tilted(state, arms, draw_tilt(learner, key, state))


def draw_tilt(learner: Learner, key: Array, state: GLMState) -> Array:
    """w = a H W z."""
    noise = jax.random.normal(key, state.theta_hat.shape, state.theta_hat.dtype)
    return curvature_times(learner, state, state.strength * (learner.inverse_root(state) @ noise))


def curvature_times(learner: Learner, state: GLMState, vector: Array) -> Array:
    """H v, without making H."""
    assert not isinstance(state.history, Online)
    rows, counts = state.history.features, state.history.counts
    slopes = learner.family.slope(jnp.where(counts > 0, learner.scores(state, rows), 0))
    moved = counts * slopes * score(state, rows, vector)
    pulled = moved @ rows if state.warm is None else state.warm.columns @ moved
    return pulled + state.ridge * vector
