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
from typing import Unpack

import jax.numpy as jnp
from jax import Array

from explorax import theory
from explorax.checks import check_positive
from explorax.errors import InvalidArgument
from explorax.glm.history import Grouped
from explorax.glm.online import Online
from explorax.glm.project import project
from explorax.policies.base import Policy
from explorax.policies.glm_learner import GLMState, Learner, uncertainty
from explorax.policies.glm_model import GLMModel
from explorax.policies.settings import Design, GLMSettings


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
    model = GLMModel(name="glm_ucb", **settings)
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

    if radius is not None and model.memory != "exact":
        raise InvalidArgument(f"radius={radius} with memory={model.memory!r}: a projection needs the exact memory")

    def strength(arms: Array | int) -> Array:
        """ρ and, for arms that change, the power of the κ of those on offer that still has to be put in."""
        rho: float | Array = width_of(arms)
        power = 0.0
        if design == "theory" and (max_norm is not None or not isinstance(arms, int)):
            rho = rho * kappa(longest(arms) if max_norm is None else max_norm)
        elif design == "theory":
            power = 1.0
        return jnp.stack([jnp.asarray(rho, float), jnp.asarray(power, float)])

    return model.policy(OptimismOnTheMean(radius), strength, whitens=True)


@dataclass(frozen=True)
class OptimismOnTheMean:
    """μ(x_iᵀθ̄) + ρ ‖x_i‖_{G⁻¹}."""

    radius: float | None

    def __call__(self, learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
        """The scores, and whether the fit behind them converged."""
        rho, power = state.strength
        if not isinstance(state.history, Grouped):
            rho = rho * kappa(longest(arms)) ** power
        scores = learner.scores(state, arms)
        if self.radius is not None:
            assert not isinstance(state.history, Online)  # which is refused when the policy is built
            scores = arms @ project(learner.family, state.history, state.theta_hat, self.radius)
        return learner.family.mean(scores) + rho * uncertainty(state, arms), state.converged


def kappa(max_norm: float | Array) -> Array:
    """κ = √(3 + 2 log(1 + 2L²))."""
    return jnp.sqrt(3 + 2 * jnp.log1p(2 * jnp.square(max_norm)))


def longest(arms: Array | int) -> Array:
    """L, the largest norm of an arm."""
    assert not isinstance(arms, int)
    return jnp.sqrt(jnp.max(jnp.sum(arms**2, axis=1)))
