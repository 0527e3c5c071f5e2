"""GLOC: optimism around the predictions of an online learner, at a cost that does not grow with time.

An online Newton step keeps an iterate θ_t in the ball ‖θ‖ ≤ S.  The predictions z_t = x_tᵀθ_t that it makes before each
reward are then regressed on the features, which gives the estimate θ̂_t.  The score of an arm is its estimate plus a
bonus for uncertainty:

    A_t = λI + Σ_{s≤t} x_s x_sᵀ,    g_t = μ(x_tᵀθ_t) − y_t
    θ_{t+1} = argmin_{‖θ‖ ≤ S} ‖θ − (θ_t − (g_t/κ) A_t⁻¹x_t)‖_{A_t},    θ_1 = 0
    θ̂_t = A_t⁻¹ Σ z_s x_s,    pull argmax_i x_iᵀθ̂_t + a √β_t ‖x_i‖_{A_t⁻¹}

    β = 1 + (4/κ) B + (8R²/κ²) log((2/δ) √(1 + (2/κ) B + 4R⁴/(κ⁴δ²))) + λS² − (Σ z_s² − θ̂ᵀ Σ z_s x_s)
    B = (1/2κ) Σ g_s² ‖x_s‖²_{A_s⁻¹} + 2κλS²,    κ = min μ̇(z) over |z| ≤ S L

    a   `scale`        default: 1, the width of the paper
    S   `norm_bound`   a bound on ‖θ*‖
    L   `max_norm`     a bound on ‖x‖; the paper has 1
    R   `noise_std`    rewards are R²-sub-Gaussian around their means; default: that of the family
    δ   `delta`        the probability that the confidence may fail; default: 1 / `horizon` if that is given, else 0.05

**Where the constants come from.**  β is Theorem 1 of the paper, and B its Theorem 3.  We had both from secondary
sources, and therefore derived them again.  A learner of regret B has Σ (z_s − x_sᵀθ*)² ≤ 1 + (4/κ) B + (8R²/κ²) log(…),
by strong convexity along each x and a self-normalized bound (Abbasi-Yadkori et al., AISTATS 2012).  We add
λ‖θ*‖² ≤ λS², and completing the square turns the sum into ‖θ* − θ̂‖²_A.  For θ_1 = 0 the last term of B could be
κλS²/2; we keep that of the paper.  The two ridges of the paper, of A and of θ̂, are the same here.

Reference: Jun, Bhargava, Nowak & Willett, Scalable Generalized Linear Bandits: Online Computation and Hashing,
NeurIPS 2017.
"""

import math
from functools import cache, partial
from typing import Annotated, NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.batching import where_needed
from explorax.builders import Setting
from explorax.checks import check_positive, is_known
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.ball import minimize_quadratic, of_root
from explorax.glm.families import Family
from explorax.glm.linalg import shrinkage
from explorax.policies import exploration
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled, size_and_dtype
from explorax.policies.confidence import failure
from explorax.policies.settings import Delta, PlainWarmup

FLATTEST = 1e-8  # κ below which widths are meaningless


class Numbers(NamedTuple):
    """The settings of GLOC that are numbers, each of shape ().

    Attributes:
        scale: The factor a of the bonus.
        ridge: The ridge λ.
        norm_bound: The bound S on ‖θ*‖.
        least_slope: The smallest slope κ of the mean.
        noise_std: The bound R on the noise.
        log_failure: The logarithm of the probability δ of failure.
    """

    scale: Array
    ridge: Array
    norm_bound: Array
    least_slope: Array
    noise_std: Array
    log_failure: Array


class GlocState(NamedTuple):
    """The online learner, and the regression on its predictions.

    Attributes:
        theta: The (d,) iterate θ_t in the ball.
        root: The (d, d) root W of W Wᵀ = A⁻¹.
        cross: The (d,) sum Σ z_s x_s.
        squares: The sum Σ z_s², of shape ().
        losses: The sum Σ g_s² ‖x_s‖² in the norm of A_s⁻¹, of shape ().
        exploration: The plan of the forced exploration.
        numbers: The settings that are numbers.
    """

    theta: Array
    root: Array
    cross: Array
    squares: Array
    losses: Array
    exploration: exploration.Exploration
    numbers: Numbers


def gloc(
    *,
    scale: Annotated[float, "How much to explore: the factor a of the bonus, above 0."] = 1.0,
    family: Annotated[
        str | Family,
        'The reward family: "bernoulli", "gaussian", or "poisson" if `noise_std` is given, or a `Family` of your own.',
    ] = "bernoulli",
    norm_bound: Annotated[float, "A bound S on the norm of θ*, above 0."] = 1.0,
    max_norm: Annotated[float, "A bound L on the norm of an arm, above 0."] = 1.0,
    noise_std: Annotated[
        float | None,
        Setting(None, "The R for which rewards are R²-sub-Gaussian around their means.", "that of the family"),
    ] = None,
    ridge: Annotated[float, "The ridge λ, above 0."] = 1.0,
    warmup: PlainWarmup = "none",
    horizon: Annotated[int | None, "The number n of rounds, for the default of `delta`."] = None,
    delta: Delta = None,
) -> Policy:
    """Build GLOC, which is optimistic around a regression on the predictions of an online learner."""
    glm = families.get(family)
    exploration.check_kind(warmup, has_theory=False)
    noise_std = glm.noise_std if noise_std is None else noise_std
    if noise_std is None:
        raise InvalidArgument(
            f"noise_std must be given with family {glm.name!r}, whose rewards are not sub-Gaussian, got None. "
            "Give noise_std=B/2 if your rewards are bounded by B."
        )
    positive = {"scale": scale, "norm_bound": norm_bound, "max_norm": max_norm, "ridge": ridge, "noise_std": noise_std}
    for name, value in positive.items():
        check_positive(name, value)
    slope = theory.min_slope_near(glm, 0.0, norm_bound * max_norm)
    if slope < FLATTEST:
        raise InvalidArgument(
            f"norm_bound times max_norm must be small enough for a slope of the mean of at least {FLATTEST:g}, got "
            f"{norm_bound} times {max_norm} and a slope of {slope:.1g}. Give smaller bounds."
        )
    numbers = scale, ridge, norm_bound, slope, noise_std, math.log(failure(horizon, delta))

    def init(arms: Array | int, key: Array) -> GlocState:
        size, dtype = size_and_dtype(arms)
        zero, zeros = jnp.zeros((), dtype), jnp.zeros(size, dtype)
        root = jnp.eye(size, dtype=dtype) / jnp.sqrt(jnp.asarray(ridge, dtype))
        plan = exploration.plan(warmup, arms)
        settings = Numbers(*(jnp.asarray(number, dtype) for number in numbers))
        return GlocState(zeros, root, zeros, zero, zero, plan, settings)

    return Policy(checked_init(init), *program(glm))


@cache
def program(family: Family) -> Program:
    """Return the compiled `act` and `update`, which all policies share that differ in numbers only."""

    def act(key: Array, state: GlocState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        center = state.root @ (state.cross @ state.root)
        norms = jnp.linalg.norm(arms @ state.root, axis=1)
        scores = arms @ center + state.numbers.scale * jnp.sqrt(radius_squared(state, center)) * norms
        arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
        return Action(arm, scores, forced, jnp.isfinite(jnp.sum(scores)))

    def update(state: GlocState, arm: Array, x: Array, reward: Array) -> GlocState:
        numbers = state.numbers
        prediction = x @ state.theta
        residual = family.mean(prediction) - reward
        pushed = x @ state.root
        root = state.root - jnp.outer(shrinkage(pushed) * (state.root @ pushed), pushed)
        step, slope = root @ (x @ root), residual / numbers.least_slope * x
        moved = state.theta - residual / numbers.least_slope * step
        outside = jnp.linalg.norm(moved) > numbers.norm_bound
        return state._replace(
            theta=where_needed(outside, step_in_ball, (root, state.theta, slope, numbers.norm_bound), moved),
            root=root,
            cross=state.cross + prediction * x,
            squares=state.squares + prediction**2,
            losses=state.losses + residual**2 * (x @ step),
        )

    def check(rewards: ArrayLike) -> None:
        if is_known(rewards):
            families.check_rewards(family, rewards)

    return compiled(act=act, update=update, expected=expected_arrays, check=check, families=(family.name,))


def step_in_ball(root: Array, theta: Array, slope: Array, radius: Array) -> Array:
    """Return the point of the ball that is nearest to θ − A⁻¹(slope) in the norm of A."""
    return minimize_quadratic(partial(of_root, root), slope, theta, radius).theta


def radius_squared(state: GlocState, center: Array) -> Array:
    """Return β, with the logarithm of its largest term in a form that does not overflow."""
    at = state.numbers
    regret = state.losses / (2 * at.least_slope) + 2 * at.least_slope * at.norm_bound**2 * at.ridge
    ratio = at.noise_std / at.least_slope
    inner = jnp.logaddexp(jnp.log1p(2 * regret / at.least_slope), math.log(4) + 4 * jnp.log(ratio) - 2 * at.log_failure)
    noise = 8 * ratio**2 * (math.log(2) - at.log_failure + inner / 2)
    misfit = jnp.maximum(state.squares - center @ state.cross, 0)
    return jnp.maximum(1 + 4 * regret / at.least_slope + noise + at.ridge * at.norm_bound**2 - misfit, 0)


def expected_arrays(state: GlocState) -> Expected:
    """Return the number of features and the dtype that go with a state."""
    return Expected(None, state.theta.shape[-1], state.theta.dtype)
