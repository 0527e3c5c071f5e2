"""GLM-FPL: follow the perturbed leader.

    θ̃ = maximum-likelihood estimate on rewards Y_l + Z_l,  Z_l ~ N(0, a²) fresh in every round,    pull argmax_i x_iᵀθ̃

Perturbing t rewards is not needed.  The loss on perturbed rewards is the loss on the real ones minus Sᵀθ,

    L(Y + Z; θ) = L(Y; θ) − Sᵀθ + const,    S = Σ_l Z_l X_l ~ N(0, a² G),    G = Σ_l X_l X_lᵀ,

so one d-vector S, drawn through a factor of G, has the same law however long the past: the same fit with a linear tilt.
(Exact for Gaussian noise only.)  Near θ̄ the spread of θ̃ is a² H⁻¹GH⁻¹.

    a   `scale`         σ in the informal design (0.5 for Bernoulli rewards), c1 μ̇max in the theory's (Theorem 2)
    λ   `ridge`         of the fit; the paper has none
        `prior_noise`   perturb the ridge's pseudo-observations too, S ~ N(0, a² (G + λI)); in the Gaussian
                        family θ̃ then has exactly GLM-TSL's law

With a discount or a window (`glm.history`) G is the weighted sum, S ~ N(0, a² Σ w_l X_l X_lᵀ): a reward of weight w has
the noise of w rewards.  In directions not seen lately θ̃ then falls back to the prior's mean without any noise, and they
are not explored again, unless `prior_noise` is given; it is recommended there.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, sections 3.2 and 3.3.
"""

from typing import NamedTuple, Unpack

from jax import Array

from explorax import theory
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import Design, GLMSettings


class Numbers(NamedTuple):
    """How much GLM-FPL explores."""

    scale: float | Array  # a


def glm_fpl(
    *,
    design: Design = "informal",
    scale: float | None = None,
    prior_noise: bool = False,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build GLM-FPL."""
    model = GLMModel(theory_of="glm_fpl", **settings)
    scale_of = model.designed(
        design, "scale", scale, model.informal, lambda d: theory.scale("glm_fpl", model.problem(d))
    )
    rule = scores_perturbed_with_prior if prior_noise else perturbed_scores
    return model.policy(rule, lambda arms: Numbers(scale_of(arms)))


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̃ for the estimate tilted by S ~ N(0, a² G)."""
    tilt = state.numbers.scale * state.memory.tilt_noise(key, 0.0)
    return state.memory.tilted(estimator, state.ridge, arms, tilt)


def scores_perturbed_with_prior(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̃ for the estimate tilted by S ~ N(0, a² (G + λI))."""
    tilt = state.numbers.scale * state.memory.tilt_noise(key, state.ridge)
    return state.memory.tilted(estimator, state.ridge, arms, tilt)
