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

With memory="constant" or "refitted" a tilted fit is one to first order (`glm.memory.summary`), so EVILL is GLM-TSL
there.  Where arms are fixed W is kept from round to round, within the error that GLM-TSL allows it (`glm.warm`), and w
errs as its draws do.

The paper's regret bound comes with a scale, but a later version of the paper (arXiv 2311.07565v3) reports an error in
the proof that changes its constants.  So there is no design="theory".

Reference: Janz, Liu, Ayoub & Szepesvári, Exploration via linearly perturbed loss minimisation, AISTATS 2024.
"""

from typing import Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, RowMemory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.glm_tsl import Numbers, sampled_scores
from explorax.policies.settings import GLMSettings


def evill(*, scale: float | None = None, **settings: Unpack[GLMSettings]) -> Policy:
    """Build EVILL."""
    model = GLMModel(**settings)
    scale = model.posterior_scale if scale is None else scale
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    rule = perturbed_scores if model.knows_rows() else sampled_scores
    return model.policy(rule, lambda arms: Numbers(scale), root_error=None)


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[RowMemory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̃ for the estimate tilted by w."""
    return state.memory.tilted(estimator, state.ridge, arms, draw_tilt(estimator, key, state))


def draw_tilt(estimator: Estimator, key: Array, state: GLMState[RowMemory, Numbers]) -> Array:
    """Draw w = a H W z."""
    noise = jax.random.normal(key, state.theta_hat.shape, state.theta_hat.dtype)
    root = state.memory.inverse_root(estimator, state.ridge)
    return curvature_times(estimator, state, state.numbers.scale * (root @ noise))


def curvature_times(estimator: Estimator, state: GLMState[RowMemory, Numbers], vector: Array) -> Array:
    """Return H v, without making H."""
    memory = state.memory
    rows, counts = memory.past.features, memory.past.counts
    slopes = estimator.family.slope(jnp.where(counts > 0, memory.scores(rows), 0))
    moved = counts * slopes * memory.scores_at(rows, vector)
    return memory.weighted_sum(moved) + state.ridge * vector
