"""GLM-UCB: optimism on the mean reward.

    pull argmax_i μ(x_iᵀθ̄) + ρ ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

    ρ   `width`    σ in the informal design (0.5 for Bernoulli rewards),
                   (2 μ̇max κ R_max / μ̇min) √(2 d log n · log(2 d n²)) in the theory's, κ = √(3 + 2 log(1 + 2L²))
    L   `max_norm`    largest ‖x_i‖; that of the arms on offer unless given
        `max_reward`  R_max
        `radius`      project θ̄ onto the admissible set {‖θ‖ ≤ radius} first (Filippi's eq. 6); off unless given

Reference: Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010.
"""

from dataclasses import dataclass
from typing import NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array

from explorax import theory
from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator, Memory
from explorax.glm.project import project
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import Design, GLMSettings


class Numbers(NamedTuple):
    """How much GLM-UCB explores."""

    width: float | Array  # ρ, without the κ that is still to be put in
    kappa_power: float  # 1 where κ is that of the arms on offer and must be put in, else 0


def glm_ucb(
    *,
    design: Design = "informal",
    width: float | None = None,
    radius: float | None = None,
    max_norm: float | None = None,
    max_reward: float = 1.0,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build GLM-UCB."""
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
    """μ(x_iᵀθ̄) + ρ ‖x_i‖_{G⁻¹}."""

    radius: float | None

    def __call__(
        self, estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
    ) -> tuple[Array, Array]:
        """Return the scores, and whether the fit behind them converged."""
        memory, (rho, power) = state.memory, state.numbers
        if memory.n_arms is None:
            rho = rho * kappa(longest(arms)) ** power
        scores = memory.scores(arms)
        if self.radius is not None:
            assert memory.past is not None  # which is checked when the policy is built
            scores = arms @ project(estimator.family, memory.past, state.theta_hat, self.radius)
        return estimator.family.mean(scores) + rho * memory.widths(arms), state.converged


def kappa(max_norm: float | Array) -> Array:
    """κ = √(3 + 2 log(1 + 2L²))."""
    return jnp.sqrt(3 + 2 * jnp.log1p(2 * jnp.square(max_norm)))


def longest(arms: Array | int) -> Array:
    """L, the largest norm of an arm."""
    assert not isinstance(arms, int)
    return jnp.sqrt(jnp.max(jnp.sum(arms**2, axis=1)))
