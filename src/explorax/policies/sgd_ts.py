"""SGD-TS: Thompson sampling around the average of a few gradient steps.

After the first τ rewards θ̂ is their (ridge) maximum-likelihood estimate, and θ̃_1 = θ̄_1 = θ̂.  After jτ rewards,
j ≥ 2, a gradient step is made on the last τ rewards, and decisions are made with a draw around the average of all
steps:

    θ̃_j = Π(θ̃_{j−1} − (η₀/j) ∇_j),    ∇_j = Σ (μ(xᵀθ̃_{j−1}) − y) x over the last τ rewards
    θ̄_j = (θ̃_1 + … + θ̃_j) / j,    pull argmax_i x_iᵀθ',    θ' ~ N(θ̄_j, a² (2g₁² + 2g₂²)/j I)

    a        `scale`           default: 1
    τ        `batch`           default: 5d; the paper's experiments try C max(d, log n) for C = 1, …, 10
    η₀       `learning_rate`   default: 1; the paper's experiments try 0.01 to 10
    g₁, g₂   `g1`, `g2`        default: 0.2; the paper's experiments try 0.01 to 10 for each
    λ        `ridge`           of the estimate θ̂; the paper has none, and then θ̂ need not exist

Here Π projects onto the ball of radius 2 around θ̂.  Memory is O(τd), a decision costs O(Kd) and a reward O(d).

In the paper's theorem η₀, g₁ and g₂ depend on unknown constants, and its experiments search a grid for the best values
in each problem.  Our defaults are a point of a coarse grid that does well in logistic problems with 5 and 10 features;
in other problems other values may do much better.

The rule is that of the authors' code, with three differences.  The first τ decisions cycle through the arms of a basis
(`warmup`), where the paper pulls arms at random.  Rewards are counted in place of decisions, so that late rewards do no
harm; before the first τ rewards, decisions that are not forced are made with θ̄ = 0 and j = 1.  The paper draws θ' once
for each batch; we draw it for each decision, so that the state holds no noise.

Reference: Ding, Hsieh & Sharpnack, An Efficient Algorithm for Generalized Linear Bandit: Online Stochastic Gradient
Descent and Thompson Sampling, AISTATS 2021.
"""

from functools import cache, partial
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.builders import Setting
from explorax.checks import check_positive, check_whole, is_known
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import default_tolerance, newton
from explorax.glm.history import Rows
from explorax.policies import exploration
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled, size_and_dtype
from explorax.policies.settings import PlainWarmup

RADIUS = 2.0  # of the ball around θ̂
BATCHES = 5  # the default of τ/d


class Path(NamedTuple):
    """The points to which the gradient steps have led.

    Attributes:
        theta_hat: The (d,) estimate θ̂; 0 before the first τ rewards.
        theta: The (d,) iterate θ̃_j.
        mean: The (d,) average θ̄_j.
        converged: Whether the fit of θ̂ converged, of shape ().
    """

    theta_hat: Array
    theta: Array
    mean: Array
    converged: Array


class SgdState(NamedTuple):
    """The last τ rewards, the gradient steps, and the settings that are numbers.

    Attributes:
        history: The last τ rewards.
        path: The points to which the gradient steps have led.
        exploration: The plan of the forced exploration.
        spread: The standard deviation a √(2g₁² + 2g₂²) of θ' for j = 1, of shape ().
        learning_rate: The learning rate η₀, of shape ().
        ridge: The ridge λ, of shape ().
    """

    history: Rows
    path: Path
    exploration: exploration.Exploration
    spread: Array
    learning_rate: Array
    ridge: Array

    @property
    def batches(self) -> Array:
        """The number j of full batches of τ rewards."""
        return self.history.seen // self.history.capacity


def sgd_ts(
    *,
    scale: Annotated[float, "How much to explore: the scale a of the draws, above 0."] = 1.0,
    family: Annotated[
        str | Family, 'The reward family: "bernoulli", "gaussian" or "poisson", or a `Family` of your own.'
    ] = "bernoulli",
    batch: Annotated[int | None, Setting(None, "The number τ of rewards in a batch, at least 1.", "5 d")] = None,
    learning_rate: Annotated[float, "The learning rate η₀ of the gradient steps, above 0."] = 1.0,
    g1: Annotated[float, "The factor g₁ of the spread, above 0."] = 0.2,
    g2: Annotated[float, "The factor g₂ of the spread, above 0."] = 0.2,
    ridge: Annotated[float, "The ridge λ of the first estimate, above 0."] = 1.0,
    warmup: PlainWarmup = "basis",
) -> Policy:
    """Build SGD-TS, Thompson sampling around the average of a few gradient steps."""
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
    """Return the compiled `act` and `update`, which all policies share that differ in numbers only."""

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
    """Return the path after a reward: θ̂ after the first batch, and a gradient step after each later batch."""
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
    """Fit θ̂ to the first batch, and return the path that starts there."""
    found = newton(family, history, ridge, None, None, default_tolerance(history.features.dtype))
    return Path(found.theta, found.theta, found.theta, found.converged)


def gradient_step(family: Family, path: Path, history: Rows, rate: Array) -> Array:
    """Return θ̃ after a gradient step on the rewards kept, projected onto the ball around θ̂.

    A step that overflows is not made.

    Args:
        family: The reward family.
        path: The path before the step.
        history: The last τ rewards.
        rate: The learning rate η₀/j.

    Returns:
        The (d,) iterate.
    """
    residuals = family.mean(history.features @ path.theta) - history.sums
    offset = path.theta - rate * (residuals @ history.features) - path.theta_hat
    distance = jnp.linalg.norm(offset)
    moved = path.theta_hat + offset * jnp.minimum(1, RADIUS / jnp.where(distance > 0, distance, 1))
    return jnp.where(jnp.isfinite(jnp.sum(moved)), moved, path.theta)


def expected_arrays(state: SgdState) -> Expected:
    """Return the number of features and the dtype that go with a state."""
    return Expected(None, state.path.mean.shape[-1], state.path.mean.dtype)
