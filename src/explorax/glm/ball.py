"""Minima over a ball ‖θ‖ ≤ S, for estimates that must not lie outside of it.

    argmin_{‖θ‖ ≤ S} F(θ) = θ(ν),    θ(ν) = argmin F(θ) + ½ ν ‖θ‖²,    with the smallest ν ≥ 0 that brings it inside

for a convex F.  A minimum inside the ball has ν = 0 and stays; any other moves to the sphere, and not along its radius
but to where F is smallest there.  So a bound on the norm is a ridge whose size the data choose.

**The multiplier.**  ‖θ(ν)‖ falls as ν grows, and 1/‖θ(ν)‖ is nearly a straight line.  For a quadratic F it is concave,
and Newton's method on it,

    ν ← ν + (‖θ‖/S − 1) ‖θ‖² / θᵀ(H + νI)⁻¹θ,    H the curvature of F at θ(ν),

goes up to the solution from ν = 0 without overshooting.  For other F a bracket makes up for that.

**A GLM on a ball.**  The loss of a history is not quadratic, but its expansion at θ is, and that has a minimum on the
ball: a step towards it, damped as in `glm.newton`, stays in the ball and makes the loss smaller.  It is Newton's method
where the minimum lies inside.  Without a ridge the minimum need not be unique, so there is a tiny one.

References: Moré & Sorensen, Computing a Trust Region Step, 1983 (the multiplier); Bach, Self-concordant analysis for
logistic regression, 2010 (the damping).
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.glm import certificate
from explorax.glm.families import Family
from explorax.glm.fit import rounding_error
from explorax.glm.linalg import Factor, factorize
from explorax.glm.newton import Aim, Line, Method, Place, begin, newton_length, patiently, step, whole
from explorax.glm.problem import Problem, WeightedRows, enough, gradient, gradient_error, hessian, posed

MULTIPLIER_STEPS = 60  # two to five are enough for a quadratic
FIT_STEPS = 200
PATIENCE = 20  # steps after which a gradient at the level of rounding will do
LEAST_RIDGE = 1e-6  # of a fit on a ball: among many minima, the one nearest to 0

Path = Callable[[Array], tuple[Array, Array]]  # ν -> θ(ν), θᵀ(H + νI)⁻¹θ


class Inside(NamedTuple):
    """A minimum over a ball."""

    theta: Array
    multiplier: Array  # () ν; 0 where the ball does not matter


class BallFit(NamedTuple):
    """An estimate in a ball and how far to trust it."""

    theta: Array
    multiplier: Array  # () ν
    converged: Array  # () whether steps have settled, and rounding leaves scores as right as those of `glm.fit`
    steps: Array


class Inverse(Protocol):
    """(H + νI)⁻¹."""

    def solve(self, vector: Array) -> Array:
        """(H + νI)⁻¹ v."""

    def whiten(self, vectors: Array) -> Array:
        """A vector whose plain norm is ‖v‖ in the norm of (H + νI)⁻¹."""


class RootInverse(NamedTuple):
    """(H + νI)⁻¹ = W (I + νWᵀW)⁻¹ Wᵀ for a root W Wᵀ = H⁻¹; needs no H."""

    root: Array
    factor: Factor  # of I + νWᵀW

    def solve(self, vector: Array) -> Array:
        """(H + νI)⁻¹ v."""
        return self.root @ self.factor.solve(vector @ self.root)

    def whiten(self, vectors: Array) -> Array:
        """A vector whose plain norm is ‖v‖ in the norm of (H + νI)⁻¹."""
        return self.factor.whiten(vectors @ self.root)


def of_root(root: Array, multiplier: Array) -> RootInverse:
    """(H + νI)⁻¹ from a root of H⁻¹."""
    return RootInverse(root, factorize(jnp.eye(root.shape[0], dtype=root.dtype) + multiplier * (root.T @ root)))


def of_curvature(curvature: Array, multiplier: Array) -> Factor:
    """(H + νI)⁻¹ from H."""
    return factorize(curvature + multiplier * jnp.eye(curvature.shape[0], dtype=curvature.dtype))


def bring_inside(path: Path, radius: ArrayLike, guess: Array) -> Inside:
    """θ(ν) for the smallest ν ≥ 0 that brings it inside the ball, searched from a guess of ν."""
    enough = float(jnp.finfo(guess.dtype).eps) ** (2 / 3)

    def misses(multiplier: Array, theta: Array) -> Array:
        """Whether θ is outside, or held back inside for no reason."""
        excess = jnp.linalg.norm(theta) / radius - 1
        return (excess > enough) | ((multiplier > 0) & (excess < -enough))

    def step(carry: Any) -> Any:
        multiplier, low, high, theta, energy, steps = carry
        norm = jnp.linalg.norm(theta)
        low, high = jnp.where(norm > radius, multiplier, low), jnp.where(norm > radius, high, multiplier)
        trial = jnp.maximum(multiplier + (norm / radius - 1) * norm**2 / energy, 0)
        middle = jnp.where(jnp.isinf(high), 2 * low + 1, (jnp.maximum(low, 0) + high) / 2)
        trial = jnp.where(jnp.isfinite(trial) & (trial > low) & (trial < high), trial, middle)
        return trial, low, high, *path(trial), steps + 1

    # Below 0 while it is not known whether ν = 0 will do.
    low, high = jnp.full_like(guess, -1), jnp.full_like(guess, jnp.inf)
    carry = guess, low, high, *path(guess), jnp.zeros((), int)
    multiplier, _, _, theta, _, _ = lax.while_loop(
        lambda carry: (carry[5] < MULTIPLIER_STEPS) & misses(carry[0], carry[3]), step, carry
    )
    norm = jnp.linalg.norm(theta)
    return Inside(theta * jnp.minimum(1, radius / jnp.where(norm > 0, norm, 1)), multiplier)


def minimize_quadratic(inverse: Callable[[Array], Inverse], slope: Array, theta: Array, radius: ArrayLike) -> Inside:
    """The minimum over the ball of a quadratic with this slope at θ; `inverse` gives (H + νI)⁻¹ of its curvature H."""

    def path(multiplier: Array) -> tuple[Array, Array]:
        shifted = inverse(multiplier)
        moved = theta - shifted.solve(slope + multiplier * theta)
        return moved, jnp.sum(shifted.whiten(moved) ** 2)

    # On the sphere, a minimum has the slope −νθ.
    square = theta @ theta
    near = square > (0.99 * radius) ** 2
    guess = jnp.where(near, jnp.maximum(-(slope @ theta) / jnp.where(near, square, 1), 0), 0)
    return bring_inside(path, radius, guess)


def fit_on_ball(family: Family, history: WeightedRows, radius: ArrayLike, start: Array, tolerance: float) -> BallFit:
    """The maximum-likelihood estimate among all ‖θ‖ ≤ S, from a start in the ball.

    `tolerance` is the size of the last step in units of the linear score xᵀθ.
    """
    problem = posed(history, ridge=LEAST_RIDGE)
    bound = enough(start.dtype, tolerance)

    def on_sphere(now: Place) -> tuple[Problem, Array]:
        """Return the problem whose ridge is what keeps θ in the ball, and θ."""
        return problem._replace(ridge=LEAST_RIDGE + now.note), now.theta

    def rests(now: Place) -> Array:
        return where_needed(
            ~now.converged, lambda *at: gradient_error(family, *at) <= bound, on_sphere(now), now.converged
        )

    method = towards_a_quadratic(family, problem, radius, tolerance)
    first = begin(start, note=jnp.zeros_like(start[0]))
    end = patiently(partial(step, problem, method), first, FIT_STEPS, PATIENCE, rests)
    off = rounding_error(family, *on_sphere(end))
    right = off <= certificate.allowed(family, problem.counts, problem.sums, tolerance)
    return BallFit(end.theta, end.note, end.converged & right, end.steps)


def towards_a_quadratic(family: Family, problem: Problem, radius: ArrayLike, tolerance: float) -> Method:
    """Return how steps are made here: towards the minimum over the ball of the expansion of F at every place."""

    def aim(now: Place) -> Aim:
        inverse = partial(of_curvature, hessian(family, problem, now.theta))
        best = minimize_quadratic(inverse, gradient(family, problem, now.theta), now.theta, radius)
        direction = best.theta - now.theta
        return Aim(direction, jnp.isfinite(jnp.sum(direction)), note=best.multiplier)

    def length(line: Line, reach: Array) -> Array:
        """Not past the minimum of F on the way, nor out of the ball."""
        return jnp.minimum(newton_length(family, line, reach, closely=True), 1)

    return Method(aim, length, whole, tolerance)
