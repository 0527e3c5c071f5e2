"""OFUGLB-e: optimism for logistic rewards, with an ellipsoid in place of a likelihood-ratio confidence set.

    θ̂ = argmax_{‖θ‖ ≤ S} likelihood of the rewards,    H = λI + Σ μ̇(xᵀθ̂) x xᵀ,    λ = (1 + S) / (2S²)
    pull argmax_i x_iᵀθ̂ + a √(2 (1 + S) (1 + β²)) ‖x_i‖_{H⁻¹}
    β² = log(1/δ) + d log max{e, 2e S L / d},    L = (1 + S/2) t  after t rewards

    a   `scale`        1 is the paper's width
    S   `norm_bound`   of ‖θ*‖; ‖x‖ ≤ 1 is assumed
    δ   `delta`        chance that the confidence may fail: 1 / `horizon` if that is given, else 0.05

Where the constants come from: the paper's Theorem 3.2 for Bernoulli rewards, derived again.  The slope of the negative
log-likelihood is at most L on the ball, so its value at θ* exceeds that at θ̂ by no more than β² (from a uniform prior
on the ball, and a uniform law on a small copy of it around θ̂).  It exceeds it by at least
‖θ* − θ̂‖²_{H − λI} / (2 + 2S), by self-concordance, because scores differ by at most 2S and no direction into the ball
goes down from θ̂.  And λ‖θ* − θ̂‖² ≤ 4S²λ = 2(1 + S).

**Which λ.**  Every λ with 4S²λ ≤ 2(1 + S) keeps the confidence at this width, and the larger it is the smaller are the
bonuses; ours is the largest.  It is not the only one in use: 1/(8S²(1 + S)) is reported of the authors' code, a factor
of 4(1 + S)² less, with larger bonuses for arms that have been seen little.  (A version of that code which we could read
has ours.)

Rewards are kept exactly, and θ̂ is found to the tolerance (`glm.ball`).  The paper forces no exploration; here, as in
the other GLM policies, the arms of a basis come first unless warmup="none".

Reference: Lee, Yun & Jun, A Unified Confidence Sequence for Generalized Linear Models, with Applications to Bandits,
NeurIPS 2024.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.ball import BallFit, fit_on_ball
from explorax.glm.memory.base import Estimator, RowMemory
from explorax.glm.problem import WeightedRows
from explorax.policies import exploration, glm_model
from explorax.policies.base import Policy, checked_init
from explorax.policies.confidence import failure
from explorax.policies.glm_model import GLMModel, GLMState, program
from explorax.policies.settings import Capacity, Full, NFeatures, Tolerance, Warmup


class Numbers(NamedTuple):
    """How much OFUGLB-e explores."""

    scale: float | Array  # a
    norm_bound: float | Array  # S
    certainty: float | Array  # log(1/δ)


State = GLMState[RowMemory, Numbers]


def ofuglb_e(
    *,
    scale: float = 1.0,
    norm_bound: float = 1.0,
    horizon: int | None = None,
    delta: float | None = None,
    warmup: Warmup = "basis",
    capacity: Capacity = 10_000,
    when_full: Full = "error",
    tolerance: Tolerance = None,
    n_features: NFeatures = None,
) -> Policy:
    """Build OFUGLB-e."""
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    check_positive("norm_bound", norm_bound)
    exploration.check_kind(warmup, has_theory=False)
    model = GLMModel(
        ridge=(1 + norm_bound) / (2 * norm_bound**2),  # λ of H; the estimate has none
        horizon=horizon,
        warmup=warmup,
        capacity=capacity,
        when_full=when_full,
        tolerance=tolerance,
        n_features=n_features,
    )
    numbers = Numbers(scale, norm_bound, -math.log(failure(horizon, delta)))
    estimator = Estimator(model.glm, tolerance)
    return Policy(
        checked_init(lambda arms, key: model.init(arms, numbers, keeps_curvature=False)),
        *program(optimistic_scores, estimator, learn),
        extend=partial(glm_model.extend, estimator),
        adopt=lambda state, fresh: glm_model.adopt(constrained(estimator, fresh), state, fresh),
    )


@dataclass(frozen=True)
class ConstrainedEstimator(Estimator):
    """The maximum-likelihood estimate among all ‖θ‖ ≤ S."""

    radius: Array | float = 1.0  # S

    def fit(self, rows: WeightedRows, ridge: Array, start: Array) -> BallFit:
        """Fit weighted rows from a start in the ball, without a ridge."""
        return fit_on_ball(self.family, rows, self.radius, start, self.last_step(start.dtype))


def constrained(estimator: Estimator, state: State) -> ConstrainedEstimator:
    """Return the estimator for the bound that is in a state."""
    return ConstrainedEstimator(estimator.family, estimator.tolerance, None, state.numbers.norm_bound)


def learn(estimator: Estimator, state: State, arm: Array, x: Array, reward: Array) -> State:
    """Record the reward and refit θ̂ in the ball."""
    return glm_model.learn(constrained(estimator, state), state, arm, x, reward)


def optimistic_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return x_iᵀθ̂ + a √(2 (1 + S) (1 + β²)) ‖x_i‖_{H⁻¹}."""
    scale, bound, certainty = state.numbers
    size = arms.shape[1]
    steepest = (1 + bound / 2) * jnp.sum(state.memory.past.counts)
    excess = certainty + size * jnp.maximum(1, 1 + jnp.log(2 * bound * steepest / size))
    width = scale * jnp.sqrt(2 * (1 + bound) * (1 + excess))
    norms = jnp.linalg.norm(arms @ state.memory.inverse_root(estimator, state.ridge), axis=1)
    return state.memory.scores(arms) + width * norms, state.converged
