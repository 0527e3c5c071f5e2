"""UCB-GLM: optimism about the linear score.

The score of an arm is its estimate plus a bonus for uncertainty:

    pull argmax_i x_iᵀθ̄ + α ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

    α   `width`   σ in the informal design (0.5 for Bernoulli rewards),
                  (σ/μ̇min) √((d/2) log(1 + 2n/d) + log n) in the theory's

Reference: Li, Lu & Zhou, Provably Optimal Algorithms for Generalized Linear Contextual Bandits, ICML 2017.
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
    """The numbers of UCB-GLM.

    Attributes:
        width: The width α of the bonus.
    """

    width: float | Array


def ucb_glm(
    *,
    design: Design = "informal",
    width: Annotated[
        float | None, Setting(None, "How much to explore: the width α of the bonus, above 0.", "chosen by `design`")
    ] = None,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build UCB-GLM, which adds a bonus for uncertainty to the estimated linear score of an arm."""
    model = GLMModel(theory_of="ucb_glm", **settings)
    width_of = model.designed(
        design, "width", width, model.informal, lambda d: theory.width("ucb_glm", model.problem(d))
    )
    return model.policy(optimistic_scores, lambda arms: Numbers(width_of(arms)), widths=True)


def optimistic_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̄ + α ‖x_i‖_{G⁻¹}, and whether the fit converged."""
    return state.memory.scores(arms) + state.numbers.width * state.memory.widths(arms), state.converged
