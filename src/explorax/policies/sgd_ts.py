"""SGD-TS: Thompson sampling around the average of few gradient steps.

After the first τ rewards θ̂ is their (ridge) maximum-likelihood estimate, and θ̃_1 = θ̄_1 = θ̂.  After jτ rewards, j ≥ 2,

    θ̃_j = Π(θ̃_{j−1} − (η₀/j) ∇_j),    ∇_j = Σ (μ(xᵀθ̃_{j−1}) − y) x over the last τ rewards
    θ̄_j = (θ̃_1 + … + θ̃_j) / j,    pull argmax_i x_iᵀθ',    θ' ~ N(θ̄_j, a² (2g₁² + 2g₂²)/j I)

where Π projects onto the ball of radius 2 around θ̂.  Memory is O(τd), a decision costs O(Kd) and a reward O(d).

    a        `scale`           1 unless given
    τ        `batch`           5d unless given; the paper's experiments try C max(d, log n) for C = 1, …, 10
    η₀       `learning_rate`   1 unless given; the paper's experiments try 0.01 to 10
    g₁, g₂   `g1`, `g2`        0.2 unless given; the paper's experiments try 0.01 to 10 for each
    λ        `ridge`           of the estimate θ̂; the paper has none, and then it need not exist

In the paper's theorem η₀, g₁ and g₂ depend on unknown constants, and its experiments search a grid for the best of
them in each problem.  Our defaults are a point of a coarse grid that does well in logistic problems of 5 and 10
features; elsewhere other values may do much better.

The rule is that of the authors' code.  What is ours: the first τ decisions go round the arms of a basis (`warmup`),
where the paper pulls at random.  Rewards are counted and not decisions, so late ones do no harm; before the first τ,
decisions that are not forced are made with θ̄ = 0 and j = 1.  The paper draws θ' once for each batch, we for each
decision, so that the state holds no noise.

Reference: Ding, Hsieh & Sharpnack, An Efficient Algorithm for Generalized Linear Bandit: Online Stochastic Gradient
Descent and Thompson Sampling, AISTATS 2021.
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.checks import check_positive, check_whole, is_known
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import default_tolerance, newton
from explorax.glm.history import Rows
from explorax.policies import exploration
from explorax.policies.base import Action, Expected, Policy, Program, checked_init, compiled, size_and_dtype
from explorax.policies.settings import RewardFamily, Warmup

RADIUS = 2.0  # of the ball around θ̂
BATCHES = 5  # τ over d


class Path(NamedTuple):
    """Where the gradient steps have led."""

    theta_hat: Array  # (d,) θ̂; 0 before there is one
    theta: Array  # (d,) θ̃_j
    mean: Array  # (d,) θ̄_j
    converged: Array  # () bool: whether the fit of θ̂ did


class SgdState(NamedTuple):
    """The last τ rewards, the path, and the settings that are numbers."""

    history: Rows
    path: Path
    exploration: exploration.Exploration
    spread: Array  # () standard deviation a √(2g₁² + 2g₂²) of θ' for j = 1
    learning_rate: Array  # () η₀
    ridge: Array  # () λ

    @property
    def batches(self) -> Array:
        """j."""
        return self.history.seen // self.history.capacity


def sgd_ts(
    *,
    scale: float = 1.0,
    family: RewardFamily = "bernoulli",
    batch: int | None = None,
    learning_rate: float = 1.0,
    g1: float = 0.2,
    g2: float = 0.2,
    ridge: float = 1.0,
    warmup: Warmup = "basis",
) -> Policy:
    """Build SGD-TS."""
    glm = families.get(family)
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    for name, value in (("learning_rate", learning_rate), ("g1", g1), ("g2", g2), ("ridge", ridge)):
        check_positive(name, value)
    if batch is not None:
        check_whole("batch", batch, 1)
    exploration.check_kind(warmup, has_theory=False)
    spread = scale * (2 * g1**2 + 2 * g2**2) ** 0.5

    def init(arms: Array | int, key: Array) -> SgdState:
        size, dtype = size_and_dtype(arms)
        first = BATCHES * size if batch is None else batch
        plan = exploration.plan(warmup, arms)
        if warmup != "none":
            plan = plan._replace(rounds=jnp.full_like(plan.rounds, first))
        zeros = jnp.zeros(size, dtype)
        numbers = (jnp.asarray(number, dtype) for number in (spread, learning_rate, ridge))
        history = Rows.of(first, size, dtype, forgets=True)
        return SgdState(history, Path(zeros, zeros, zeros, jnp.asarray(True)), plan, *numbers)

    return Policy(checked_init(init), *program(glm))


@cache
def program(family: Family) -> Program:
    """`act` and `update`; one for all numbers."""

    def act(key: Array, state: SgdState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        center = state.path.mean
        deviation = state.spread / jnp.sqrt(jnp.maximum(state.batches, 1).astype(center.dtype))
        scores = arms @ (center + deviation * jax.random.normal(key, center.shape, center.dtype))
        arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
        return Action(arm, scores, forced, state.path.converged)

    def update(state: SgdState, arm: Array, x: Array, reward: Array) -> SgdState:
        state = state._replace(history=state.history.record(arm, x, reward))
        due = state.history.seen % state.history.capacity == 0
        return state._replace(path=where_needed(due, partial(learn, family), (state, due), state.path))

    def check(rewards: ArrayLike) -> None:
        if is_known(rewards):
            families.check_rewards(family, rewards)

    return compiled(act=act, update=update, expected=expected_arrays, check=check, families=(family.name,))


def learn(family: Family, state: SgdState, due: Array) -> Path:
    """The path after a batch of rewards, if there is one: θ̂ after the first, else a gradient step."""
    path, count = state.path, state.batches
    first = due & (count == 1)
    begun = where_needed(first, partial(begin, family), (state.history, state.ridge), path)
    moved = gradient_step(family, path, state.history, state.learning_rate / jnp.maximum(count, 1))
    mean = path.mean + (moved - path.mean) / jnp.maximum(count, 1)
    later = path._replace(theta=moved, mean=mean)
    return jax.tree.map(
        lambda old, at_first, then: jnp.where(first, at_first, jnp.where(due, then, old)), path, begun, later
    )


def begin(family: Family, history: Rows, ridge: Array) -> Path:
    """θ̂ on the first batch, where everything starts."""
    found = newton(family, history, ridge, None, None, default_tolerance(history.features.dtype))
    return Path(found.theta, found.theta, found.theta, found.converged)


def gradient_step(family: Family, path: Path, history: Rows, rate: Array) -> Array:
    """θ̃ after a step on the rewards kept, projected onto the ball around θ̂; one that overflows is not taken."""
    residuals = family.mean(history.features @ path.theta) - history.sums
    offset = path.theta - rate * (residuals @ history.features) - path.theta_hat
    distance = jnp.linalg.norm(offset)
    moved = path.theta_hat + offset * jnp.minimum(1, RADIUS / jnp.where(distance > 0, distance, 1))
    return jnp.where(jnp.isfinite(jnp.sum(moved)), moved, path.theta)


def expected_arrays(state: SgdState) -> Expected:
    """Shapes and dtype that go with a state."""
    return Expected(None, state.path.mean.shape[-1], state.path.mean.dtype)
