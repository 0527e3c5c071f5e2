"""EVILL: exploration via linearly perturbed loss minimisation.

The policy adds a random linear term to the loss, and plays the minimizer θ̃ as if it were the true parameter:

    θ̄ = ridge maximum-likelihood estimate on the past,    H = Σ_l μ̇(X_lᵀθ̄) X_l X_lᵀ + λI
    w ~ N(0, a² H),    θ̃ = argmin_θ L(θ) + ½ λ ‖θ‖² − wᵀθ,    pull argmax_i x_iᵀθ̃

    a   `scale`   default: 1 (σ in the Gaussian family), as in GLM-TSL
    λ   `ridge`   the prior N(0, I/λ)

Here L is the negative log-likelihood.  EVILL is GLM-FPL with noise that has the variance μ̇(X_lᵀθ̄) of the rewards in
place of a constant one, and with noise in the prior: arms whose rewards are nearly certain are perturbed little.

**How w is drawn.**  Let W be a root of the inverse, W Wᵀ = H⁻¹, and z ~ N(0, I).  The tilt w = a H W z has the law
above, and a product H v costs no more than a gradient.  The first Newton step from θ̄ is θ̄ + H⁻¹w = θ̄ + a W z, which
is exactly the draw that GLM-TSL makes from the same key.  The further steps are what EVILL adds: θ̃ follows the loss
itself, where GLM-TSL uses a quadratic approximation.  In the Gaussian family the loss is quadratic, and the two
policies are the same.

With memory="constant" or "refitted" a tilted fit is known to first order only (`glm.memory.summary`), so EVILL is
GLM-TSL there.  If arms are fixed, W is kept from round to round, within the error that GLM-TSL allows (`glm.warm`), and
the error of w is that of GLM-TSL's draws.

The regret bound of the paper comes with a scale, but a later version of the paper (arXiv 2311.07565v3) reports an error
in the proof that changes its constants.  Therefore there is no design="theory".

Reference: Janz, Liu, Ayoub & Szepesvári, Exploration via linearly perturbed loss minimisation, AISTATS 2024.
"""

from typing import Annotated, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.builders import Setting
from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, RowMemory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.glm_tsl import Numbers, sampled_scores
from explorax.policies.settings import GLMSettings


def evill(
    *,
    scale: Annotated[
        float | None,
        Setting(None, "How much to explore: the scale a of the perturbation, above 0.", "1 (σ in the Gaussian family)"),
    ] = None,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build EVILL, which adds a random linear term to the loss and plays the minimizer."""
    model = GLMModel(**settings)
    scale = model.posterior_scale if scale is None else scale
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    rule = perturbed_scores if model.knows_rows() else sampled_scores
    return model.policy(rule, lambda arms: Numbers(scale), root_error=None, roots=True)


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[RowMemory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for the estimate tilted by w, and whether the fit converged."""
    return state.memory.tilted(estimator, state.ridge, arms, draw_tilt(estimator, key, state))


def draw_tilt(estimator: Estimator, key: Array, state: GLMState[RowMemory, Numbers]) -> Array:
    """Draw the tilt w = a H W z."""
    noise = jax.random.normal(key, state.theta_hat.shape, state.theta_hat.dtype)
    root = state.memory.inverse_root(estimator, state.ridge)
    return curvature_times(estimator, state, state.numbers.scale * (root @ noise))


def curvature_times(estimator: Estimator, state: GLMState[RowMemory, Numbers], vector: Array) -> Array:
    """Return the product H v of the curvature and a vector, without forming H."""
    memory = state.memory
    rows, counts = memory.past.features, memory.past.counts
    slopes = estimator.family.slope(jnp.where(counts > 0, memory.scores(rows), 0))
    moved = counts * slopes * memory.scores_at(rows, vector)
    return memory.weighted_sum(moved) + state.ridge * vector
