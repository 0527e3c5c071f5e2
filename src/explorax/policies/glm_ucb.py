"""GLM-UCB: optimism about the mean reward.

The score of an arm is its estimated mean reward plus a bonus for uncertainty:

    pull argmax_i μ(x_iᵀθ̄) + ρ ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

    ρ       `width`        σ in the informal design (0.5 for Bernoulli rewards),
                           (2 μ̇max κ R_max / μ̇min) √(2 d log n · log(2 d n²)) in the theory's,
                           κ = √(3 + 2 log(1 + 2L²))
    L       `max_norm`     the largest ‖x_i‖; default: that of the arms on offer
    R_max   `max_reward`   the largest reward
            `radius`       θ̄ is first projected onto the admissible set {‖θ‖ ≤ radius} (Filippi's eq. 6) if given

Reference: Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010.
"""

from dataclasses import dataclass
from typing import Annotated, NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array

from explorax import theory
from explorax.builders import Setting
from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, Memory
from explorax.glm.project import project
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import Design, GLMSettings


class Numbers(NamedTuple):
    """The numbers of GLM-UCB.

    Attributes:
        width: The width ρ, without the factor κ if that is still to be multiplied in.
        kappa_power: 1 if κ depends on the arms on offer and must be multiplied in, else 0.
    """

    width: float | Array
    kappa_power: float


def glm_ucb(
    *,
    design: Design = "informal",
    width: Annotated[
        float | None, Setting(None, "How much to explore: the width ρ of the bonus, above 0.", "chosen by `design`")
    ] = None,
    radius: Annotated[
        float | None,
        Setting(None, "The radius of the ball onto which the estimate is projected.", "None, no projection"),
    ] = None,
    max_norm: Annotated[
        float | None,
        Setting(None, 'The largest norm L of an arm in the design "theory".', "that of the arms on offer"),
    ] = None,
    max_reward: Annotated[float, 'The largest reward R_max in the design "theory", above 0.'] = 1.0,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build GLM-UCB, which adds a bonus for uncertainty to the estimated mean reward of an arm."""
    model = GLMModel(theory_of="glm_ucb", **settings)
    # ρ without κ, which depends on the arms: L = 0 makes κ = √3.
    width_of = model.designed(
        design,
        "width",
        width,
        model.informal,
        lambda d: theory.width("glm_ucb", model.problem(d), max_norm=0.0, max_reward=max_reward) / 3**0.5,
    )
    check_positive("max_reward", max_reward)
    for name, value in (("radius", radius), ("max_norm", max_norm)):
        if value is not None:
            check_positive(name, value)

    if radius is not None:
        model.check_knows_rows(f"a projection (radius={radius})")

    def numbers(arms: Array | int) -> Numbers:
        rho = width_of(arms)
        if design != "theory":
            return Numbers(rho, 0.0)
        if max_norm is None and isinstance(arms, int):
            return Numbers(rho, 1.0)
        return Numbers(rho * kappa(longest(arms) if max_norm is None else max_norm), 0.0)

    return model.policy(OptimismOnTheMean(radius), numbers, widths=True)


@dataclass(frozen=True)
class OptimismOnTheMean:
    """The rule of GLM-UCB, with scores μ(x_iᵀθ̄) + ρ ‖x_i‖_{G⁻¹}.

    Attributes:
        radius: The radius of the ball onto which θ̄ is projected; None for no projection.
    """

    radius: float | None

    def __call__(
        self, estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
    ) -> tuple[Array, Array]:
        """Return the scores of all arms, and whether the fit converged."""
        memory, (rho, power) = state.memory, state.numbers
        if memory.n_arms is None:
            rho = rho * kappa(longest(arms)) ** power
        scores = memory.scores(arms)
        if self.radius is not None:
            assert memory.past is not None  # which is checked when the policy is built
            scores = arms @ project(estimator.family, memory.past, state.theta_hat, self.radius)
        return estimator.family.mean(scores) + rho * memory.widths(arms), state.converged


def kappa(max_norm: float | Array) -> Array:
    """Return κ = √(3 + 2 log(1 + 2L²)) for the largest norm L of an arm."""
    return jnp.sqrt(3 + 2 * jnp.log1p(2 * jnp.square(max_norm)))


def longest(arms: Array | int) -> Array:
    """Return L, the largest norm of an arm."""
    assert not isinstance(arms, int)
    return jnp.sqrt(jnp.max(jnp.sum(arms**2, axis=1)))
