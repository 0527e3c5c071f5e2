"""OFUGLB-e: optimism for logistic rewards, with an ellipsoid in place of a likelihood-ratio confidence set.

The score of an arm is its estimate, constrained to a ball, plus a bonus for uncertainty:

    θ̂ = argmax_{‖θ‖ ≤ S} likelihood of the rewards,    H = λI + Σ μ̇(xᵀθ̂) x xᵀ,    λ = (1 + S) / (2S²)
    pull argmax_i x_iᵀθ̂ + a √(2 (1 + S) (1 + β²)) ‖x_i‖_{H⁻¹}
    β² = log(1/δ) + d log max{e, 2e S L / d},    L = (1 + S/2) t  after t rewards

    a   `scale`        default: 1, the width of the paper
    S   `norm_bound`   a bound on ‖θ*‖; ‖x‖ ≤ 1 is assumed
    δ   `delta`        the probability that the confidence may fail; default: 1 / `horizon` if that is given, else 0.05

**Where the constants come from.**  They are those of the paper's Theorem 3.2 for Bernoulli rewards, derived again.  The
slope of the negative log-likelihood is at most L on the ball, so that its value at θ* exceeds that at θ̂ by at most β²
(from a uniform prior on the ball, and a uniform law on a small copy of the ball around θ̂).  It exceeds that value by
at least ‖θ* − θ̂‖²_{H − λI} / (2 + 2S), by self-concordance, because scores differ by at most 2S and no direction from
θ̂ into the ball goes down.  And λ‖θ* − θ̂‖² ≤ 4S²λ = 2(1 + S).

**The choice of λ.**  Every λ with 4S²λ ≤ 2(1 + S) keeps the confidence at this width, and a larger λ makes the bonuses
smaller; ours is the largest.  Another value, 1/(8S²(1 + S)), is reported of the authors' code.  It is smaller by a
factor of 4(1 + S)², and gives larger bonuses to arms that have been seen little.  (A version of that code which we
could read has our value.)

Rewards are kept exactly, and θ̂ is found to the tolerance (`glm.ball`).  The paper has no forced exploration; here, as
in the other GLM policies, the arms of a basis come first unless warmup="none".

Reference: Lee, Yun & Jun, A Unified Confidence Sequence for Generalized Linear Models, with Applications to Bandits,
NeurIPS 2024.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.ball import BallFit, fit_on_ball
from explorax.glm.memory.base import Estimator, RowMemory
from explorax.glm.problem import WeightedRows
from explorax.policies import exploration, glm_state
from explorax.policies.base import Policy
from explorax.policies.checked import checked_init
from explorax.policies.confidence import failure
from explorax.policies.glm_model import GLMModel, program
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import Capacity, Delta, Full, NFeatures, PlainWarmup, Tolerance


class Numbers(NamedTuple):
    """The numbers of OFUGLB-e.

    Attributes:
        scale: The factor a of the bonus.
        norm_bound: The bound S on ‖θ*‖.
        certainty: The logarithm log(1/δ).
    """

    scale: float | Array
    norm_bound: float | Array
    certainty: float | Array


State = GLMState[RowMemory, Numbers]


def ofuglb_e(
    *,
    scale: Annotated[float, "How much to explore: the factor a of the bonus, above 0."] = 1.0,
    norm_bound: Annotated[float, "A bound S on the norm of θ*, above 0."] = 1.0,
    horizon: Annotated[int | None, "The number n of rounds, for the default of `delta`."] = None,
    delta: Delta = None,
    warmup: PlainWarmup = "basis",
    capacity: Capacity = 10_000,
    when_full: Full = "error",
    tolerance: Tolerance = None,
    n_features: NFeatures = None,
) -> Policy:
    """Build OFUGLB-e, which is optimistic about logistic rewards within an ellipsoid."""
    check_positive("scale", scale, "; a policy that does not explore is 'greedy'")
    check_positive("norm_bound", norm_bound)
    exploration.check_kind(warmup, has_theory=False)
    model = GLMModel(
        ridge=(1 + norm_bound) / (2 * norm_bound**2),  # λ of H; the estimate has no ridge
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
        checked_init(lambda arms, key: model.init(arms, numbers, roots=True, keeps_curvature=False)),
        *program(optimistic_scores, estimator, learn),
        extend=glm_state.extension(estimator),
        unrewarded=glm_state.unrewarded,
        adopt=lambda state, fresh: glm_state.adopt(constrained(estimator, fresh), state, fresh),
        complete=partial(glm_state.complete, estimator),
    )


@dataclass(frozen=True)
class ConstrainedEstimator(Estimator):
    """The maximum-likelihood estimator among all ‖θ‖ ≤ S.

    Attributes:
        radius: The radius S of the ball.
    """

    radius: Array | float = 1.0

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        """The radius, which is a number in the state."""
        return (self.radius,)

    def having(self, numbers: tuple[Array | float, ...]) -> "ConstrainedEstimator":
        """Return this estimator with another radius."""
        return replace(self, radius=numbers[0])

    def fit(self, rows: WeightedRows, ridge: Array, start: Array) -> BallFit:
        """Fit weighted rows in the ball without a ridge, starting from a point in the ball."""
        return fit_on_ball(self.family, rows, self.radius, start, self.last_step(start.dtype))


def constrained(estimator: Estimator, state: State) -> ConstrainedEstimator:
    """Return the estimator for the bound in a state."""
    return ConstrainedEstimator(estimator.family, estimator.tolerance, radius=state.numbers.norm_bound)


def learn(estimator: Estimator, state: State, arm: Array, x: Array, reward: Array) -> State:
    """Record a reward and refit θ̂ in the ball."""
    return glm_state.learn(constrained(estimator, state), state, arm, x, reward)


def optimistic_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̂ + a √(2 (1 + S) (1 + β²)) ‖x_i‖_{H⁻¹}, and whether the fit converged."""
    scale, bound, certainty = state.numbers
    size = arms.shape[1]
    steepest = (1 + bound / 2) * jnp.sum(state.memory.past.counts)
    excess = certainty + size * jnp.maximum(1, 1 + jnp.log(2 * bound * steepest / size))
    width = scale * jnp.sqrt(2 * (1 + bound) * (1 + excess))
    norms = jnp.linalg.norm(arms @ state.memory.inverse_root(estimator, state.ridge), axis=1)
    return state.memory.scores(arms) + width * norms, state.converged
