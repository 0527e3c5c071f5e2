"""GLM-TSL: Thompson sampling from the Laplace approximation of the posterior.

In each round a parameter θ̃ is drawn from a normal approximation of the posterior, and the best arm under θ̃ is pulled:

    θ̄ = ridge maximum-likelihood estimate on the past,    H = Σ_l μ̇(X_lᵀθ̄) X_l X_lᵀ + λI
    θ̃ ~ N(θ̄, a² H⁻¹),    pull argmax_i x_iᵀθ̃

    a   `scale`   1 in the informal design (σ in the Gaussian family), c1 √μ̇max in the theory's (Theorem 1)
    λ   `ridge`   the prior N(0, I/λ); the paper has none

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 3.1.
"""

from typing import Annotated, NamedTuple, Unpack

import jax
from jax import Array

from explorax import theory
from explorax.builders import Setting
from explorax.glm.memory.base import Estimator, Memory
from explorax.keys import in_one_row
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import Design, GLMSettings


class Numbers(NamedTuple):
    """The numbers of GLM-TSL.

    Attributes:
        scale: The scale a of the draws.
    """

    scale: float | Array


def glm_tsl(
    *,
    design: Design = "informal",
    scale: Annotated[
        float | None, Setting(None, "How much to explore: the scale a of the draws, above 0.", "chosen by `design`")
    ] = None,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build GLM-TSL, Thompson sampling from the Laplace approximation of the posterior."""
    model = GLMModel(theory_of="glm_tsl", **settings)
    scale_of = model.designed(
        design, "scale", scale, model.posterior_scale, lambda d: theory.scale("glm_tsl", model.problem(d))
    )
    return model.policy(sampled_scores, lambda arms: Numbers(scale_of(arms)), root_error=None, roots=True)


def sampled_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for a draw θ̃ ~ N(θ̄, a² H⁻¹), and whether the fit converged."""
    root = state.memory.inverse_root(estimator, state.ridge)
    theta = sample(key, state.theta_hat, root, state.numbers.scale)
    return state.memory.scores_at(arms, theta), state.converged


def sample(key: Array, center: Array, root: Array, scale: float | Array) -> Array:
    """Draw from N(center, scale² W Wᵀ), where W is the root."""
    return center + scale * (root @ jax.random.normal(in_one_row(key), center.shape, center.dtype))
