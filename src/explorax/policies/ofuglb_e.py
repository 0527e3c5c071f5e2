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

import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.ball import fit_on_ball
from explorax.glm.online import Online
from explorax.policies.base import Policy, checked_init
from explorax.policies.glm_learner import GLMState, Learner
from explorax.policies.glm_model import GLMModel, program
from explorax.policies.gloc import failure
from explorax.policies.linear_model import LinearModel
from explorax.policies.settings import Capacity, Full, NFeatures, Tolerance, Warmup


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
    check_positive("scale", scale, "; a policy that does not explore is 'greedy'")
    check_positive("norm_bound", norm_bound)
    LinearModel(warmup=warmup)  # which checks that it is not the theory's
    model = GLMModel(
        name="ofuglb_e",
        ridge=(1 + norm_bound) / (2 * norm_bound**2),  # λ of H; the estimate has none
        horizon=horizon,
        warmup=warmup,
        capacity=capacity,
        when_full=when_full,
        tolerance=tolerance,
        n_features=n_features,
    )
    numbers = scale, norm_bound, -math.log(failure(horizon, delta))
    learner = ConstrainedLearner(model.glm, tolerance, None)

    def init(arms: Array | int, key: Array) -> GLMState:
        return model.init(arms, jnp.asarray(numbers, float), whitens=False)._replace(warm=None)

    return Policy(checked_init(init), *program(optimistic_scores, learner), extend=learner.extend, adopt=learner.adopt)


class ConstrainedLearner(Learner):
    """The maximum-likelihood estimate among all ‖θ‖ ≤ S."""

    def update(self, state: GLMState, arm: Array, x: Array, reward: Array) -> GLMState:
        """Record the reward and refit θ̂."""
        assert not isinstance(state.history, Online)
        return self.estimate(state._replace(history=state.history.record(arm, x, reward)))

    def estimate(self, state: GLMState) -> GLMState:
        """The state with θ̂ fitted anew to its history."""
        assert not isinstance(state.history, Online)
        _, radius, _ = state.strength
        last_step = self.last_step(state.theta_hat.dtype)
        found = fit_on_ball(self.family, state.history, radius, state.theta_hat, last_step)
        return state._replace(theta_hat=found.theta, converged=found.converged)


def optimistic_scores(learner: Learner, key: Array, state: GLMState, arms: Array) -> tuple[Array, Array]:
    """x_iᵀθ̂ + a √(2 (1 + S) (1 + β²)) ‖x_i‖_{H⁻¹}."""
    assert not isinstance(state.history, Online)
    scale, bound, certainty = state.strength
    size = arms.shape[1]
    steepest = (1 + bound / 2) * jnp.sum(state.history.counts)
    excess = certainty + size * jnp.maximum(1, 1 + jnp.log(2 * bound * steepest / size))
    width = scale * jnp.sqrt(2 * (1 + bound) * (1 + excess))
    norms = jnp.linalg.norm(arms @ learner.inverse_root(state), axis=1)
    return learner.scores(state, arms) + width * norms, state.converged
