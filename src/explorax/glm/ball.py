"""Minima over a ball ‖θ‖ ≤ S, for estimates that must lie inside it.

    argmin_{‖θ‖ ≤ S} F(θ) = θ(ν),    θ(ν) = argmin F(θ) + ½ ν ‖θ‖²,    with the smallest ν ≥ 0 that brings it inside

for a convex F.  A minimum inside the ball has ν = 0 and stays.  Any other minimum moves to the point of the sphere
where F is smallest, which need not be the nearest point.  So a bound on the norm is a ridge whose size the data choose.

**The multiplier.**  ‖θ(ν)‖ falls as ν grows, and 1/‖θ(ν)‖ is nearly a straight line.  For a quadratic F it is concave,
and Newton's method on it,

    ν ← ν + (‖θ‖/S − 1) ‖θ‖² / θᵀ(H + νI)⁻¹θ,    H the curvature of F at θ(ν),

goes up to the solution from ν = 0 without overshooting.  For other F, a bracket keeps the iteration safe.

**A GLM on a ball.**  The loss of a history is not quadratic, but its second-order expansion at θ is, and that has a
minimum on the ball.  A step towards it, damped as in `glm.newton`, stays in the ball and makes the loss smaller.  If
the minimum lies inside the ball, this is Newton's method.  Without a ridge the minimum need not be unique, so there is
a tiny ridge.

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
    """The minimum of a function over a ball."""

    theta: Array  # (d,)
    multiplier: Array  # () ν; 0 if the minimum without the ball lies inside


class BallFit(NamedTuple):
    """A maximum-likelihood estimate in a ball, and how accurate it is."""

    theta: Array  # (d,)
    multiplier: Array  # () ν
    converged: Array  # () whether steps have become small, and scores are as accurate as those of `glm.fit`
    steps: Array  # () Newton steps taken


class Inverse(Protocol):
    """The inverse (H + νI)⁻¹ of a shifted curvature, as an operator."""

    def solve(self, vector: Array) -> Array:
        """Return the product (H + νI)⁻¹ v."""

    def whiten(self, vectors: Array) -> Array:
        """Return a vector whose Euclidean norm is the norm of v in the metric (H + νI)⁻¹."""


class RootInverse(NamedTuple):
    """The inverse (H + νI)⁻¹ = W (I + νWᵀW)⁻¹ Wᵀ from a root W Wᵀ = H⁻¹, without H itself."""

    root: Array
    factor: Factor  # of I + νWᵀW

    def solve(self, vector: Array) -> Array:
        """Return the product (H + νI)⁻¹ v."""
        return self.root @ self.factor.solve(vector @ self.root)

    def whiten(self, vectors: Array) -> Array:
        """Return a vector whose Euclidean norm is the norm of v in the metric (H + νI)⁻¹."""
        return self.factor.whiten(vectors @ self.root)


def of_root(root: Array, multiplier: Array) -> RootInverse:
    """Build (H + νI)⁻¹ from a root W of H⁻¹ and the multiplier ν."""
    return RootInverse(root, factorize(jnp.eye(root.shape[0], dtype=root.dtype) + multiplier * (root.T @ root)))


def of_curvature(curvature: Array, multiplier: Array) -> Factor:
    """Build (H + νI)⁻¹ from the curvature H and the multiplier ν."""
    return factorize(curvature + multiplier * jnp.eye(curvature.shape[0], dtype=curvature.dtype))


def bring_inside(path: Path, radius: ArrayLike, guess: Array) -> Inside:
    """Find the smallest multiplier ν ≥ 0 whose minimum θ(ν) lies inside the ball, starting from a guess of ν."""
    enough = float(jnp.finfo(guess.dtype).eps) ** (2 / 3)

    def misses(multiplier: Array, theta: Array) -> Array:
        """Return whether θ is outside the ball, or inside it with a multiplier above 0."""
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
    """Minimize a quadratic over the ball, given its gradient `slope` at θ and (H + νI)⁻¹ of its curvature H by ν."""

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
    """Compute the maximum-likelihood estimate of a history among all ‖θ‖ ≤ S.

    Args:
        family: The reward family.
        history: The weighted rows.
        radius: The radius S of the ball.
        start: A (d,) vector in the ball to start from.
        tolerance: The size of the last step, as the largest change of a score xᵀθ.

    Returns:
        The estimate, and whether it has converged.
    """
    problem = posed(history, ridge=LEAST_RIDGE)
    bound = enough(start.dtype, tolerance)

    def on_sphere(now: Place) -> tuple[Problem, Array]:
        """Return the problem whose ridge is the multiplier that keeps θ in the ball, and θ."""
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
    """Build the method whose steps lead to the minimum over the ball of the second-order expansion of F."""

    def aim(now: Place) -> Aim:
        inverse = partial(of_curvature, hessian(family, problem, now.theta))
        best = minimize_quadratic(inverse, gradient(family, problem, now.theta), now.theta, radius)
        direction = best.theta - now.theta
        return Aim(direction, jnp.isfinite(jnp.sum(direction)), note=best.multiplier)

    def length(line: Line, reach: Array) -> Array:
        """Return a length that leads neither past the minimum of F along the step nor out of the ball."""
        return jnp.minimum(newton_length(family, line, reach, closely=True), 1)

    return Method(aim, length, whole, tolerance)
