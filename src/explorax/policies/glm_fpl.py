"""GLM-FPL: follow the perturbed leader.

In each round the model is fitted to rewards with fresh noise, and the best arm of that fit is pulled:

    θ̃ = maximum-likelihood estimate on rewards Y_l + Z_l,  Z_l ~ N(0, a²) fresh in every round,    pull argmax_i x_iᵀθ̃

    a   `scale`         σ in the informal design (0.5 for Bernoulli rewards), c1 μ̇max in the theory's (Theorem 2)
    λ   `ridge`         of the fit; the paper has none
        `prior_noise`   perturb the ridge's pseudo-observations, too

**A tilt.**  It is not necessary to perturb t rewards.  The loss on perturbed rewards is the loss on the real rewards
minus Sᵀθ,

    L(Y + Z; θ) = L(Y; θ) − Sᵀθ + const,    S = Σ_l Z_l X_l ~ N(0, a² G),    G = Σ_l X_l X_lᵀ,

so that one d-vector S, drawn through a factor of G, has the same law for a past of any length: the same fit with a
linear tilt.  (This is exact for Gaussian noise only.)  Near θ̄ the covariance of θ̃ is a² H⁻¹GH⁻¹.

**Noise in the prior.**  With `prior_noise` the tilt is S ~ N(0, a² (G + λI)); in the Gaussian family θ̃ then has
exactly the law of GLM-TSL.  With a discount or a window (`glm.history`) G is the weighted sum,
S ~ N(0, a² Σ w_l X_l X_lᵀ): a reward of weight w has the noise of w rewards.  In directions that were not seen lately,
θ̃ then returns to the mean of the prior without any noise, and these directions are not explored again.  `prior_noise`
avoids that, and is recommended with a discount or a window.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, sections 3.2 and 3.3.
"""

from typing import Annotated, NamedTuple, Unpack

from jax import Array

from explorax import theory
from explorax.builders import Setting
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import Design, GLMSettings


class Numbers(NamedTuple):
    """The numbers of GLM-FPL.

    Attributes:
        scale: The standard deviation a of the noise in a reward.
    """

    scale: float | Array


def glm_fpl(
    *,
    design: Design = "informal",
    scale: Annotated[
        float | None,
        Setting(
            None,
            "How much to explore: the standard deviation a of the noise in a reward, above 0.",
            "chosen by `design`",
        ),
    ] = None,
    prior_noise: Annotated[bool, "Whether to perturb the pseudo-observations of the ridge, too."] = False,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build GLM-FPL, which fits the model to perturbed rewards in each round and pulls the best arm of the fit."""
    model = GLMModel(theory_of="glm_fpl", **settings)
    scale_of = model.designed(
        design, "scale", scale, model.informal, lambda d: theory.scale("glm_fpl", model.problem(d))
    )
    rule = scores_perturbed_with_prior if prior_noise else perturbed_scores
    return model.policy(rule, lambda arms: Numbers(scale_of(arms)))


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for the estimate tilted by S ~ N(0, a² G), and whether the fit converged."""
    tilt = state.numbers.scale * state.memory.tilt_noise(key, 0.0)
    return state.memory.tilted(estimator, state.ridge, arms, tilt)


def scores_perturbed_with_prior(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for the estimate tilted by S ~ N(0, a² (G + λI)), and whether the fit converged."""
    tilt = state.numbers.scale * state.memory.tilt_noise(key, state.ridge)
    return state.memory.tilted(estimator, state.ridge, arms, tilt)
