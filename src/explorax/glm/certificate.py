"""Bounds on the error of scores, which decide whether a fit has converged.

Let θ̂ be the minimum of F (`glm.problem`), θ the point where a fit has ended, g = ∇F(θ) and H = ∇²F(θ).  To first order

    |xᵀ(θ − θ̂)| = |xᵀH⁻¹g| ≤ ‖x‖ ‖g‖,    both in the norm of H⁻¹,

so that a bound on ‖g‖ bounds the error of every score.  Two things keep g from being zero.

*Rounding.*  A computed gradient has an error e = Σ_x d_x x, where d_x is the rounding error of the residual
N_x μ(xᵀθ) − Y_x: a few ε times its terms, and N_x μ̇(xᵀθ) times the rounding error of the score.  Since Σ w_x x xᵀ ⪯ H,

    ‖e‖² ≤ Σ_x d_x² / w_x,    w_x = N_x μ̇(xᵀθ) + λ / Σ_y ‖y‖².

This bound is large if means are at the end of their range: there N μ and Y are nearly equal, and their difference is
lost.

*The curvature that the last step δ was made with.*  A factor has a jitter of 4d·ε of its diagonal (`glm.linalg`), so
the step solves (H + E) δ = −g and leaves a gradient of Eδ.  The error from the curvature's change along the step is
bounded by the fit itself.

For a row that was seen, ‖x‖ is at most w_x^−½, and for any row at most λ^−½ times its Euclidean norm.

Rounding errors are counted as they occur in practice, not in the worst case: a sum of m terms errs by log₂ m roundings
of its terms (of ε/2 each), which is right for sums by halves or in many lanes, and a score by √d of them.
"""

import math
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from explorax.glm.families import Family
from explorax.glm.linalg import Factor, jitter
from explorax.glm.problem import Problem


def tolerated(tolerance: float | None, dtype: jnp.dtype) -> float:
    """Return the error of a score that steps may leave: the tolerance, or the default for the dtype if it is None."""
    return float(jnp.finfo(dtype).eps) ** (2 / 3) if tolerance is None else tolerance


def allowed(family: Family, counts: Array, sums: Array, tolerance: float, perturbation: float | Array = 0.0) -> Array:
    """Return the largest score error with which a fit counts as converged.

    It is the cube root of the dtype's precision, which is 0.005 in float32 and 6e-6 in float64, or the tolerance if
    that is larger.  In the Gaussian family scores have the unit of the rewards: there it is that share of the largest
    mean reward of an arm, if that is above 1.

    An estimate that is perturbed on purpose is a draw, and the noise sets the unit of its scores.  With the theory's
    scales the noise is in the hundreds, where float32 has fewer than three decimals.  For a draw it is therefore that
    share of the largest change of a score from the estimate to the draw, if that is above 1.

    Args:
        family: The reward family.
        counts: The counts N_x, of shape (K,).
        sums: The reward sums Y_x, of shape (K,).
        tolerance: An error that is allowed in any case.
        perturbation: The largest change of a score from the estimate to a draw; 0 for the estimate itself.

    Returns:
        The largest error, a scalar.
    """
    unit = jnp.maximum(1, jnp.asarray(perturbation, sums.dtype))
    if family.self_concordance == 0:
        unit = jnp.maximum(unit, jnp.max(jnp.abs(sums) / jnp.where(counts > 0, counts, jnp.inf)))
    return jnp.maximum(float(jnp.finfo(sums.dtype).eps) ** (1 / 3) * unit, tolerance)


class Sizes(NamedTuple):
    """The sizes of rows, or bounds on them, for each row or for all rows at once."""

    sizes: Array  # (K,) or () Σ_j |x_j θ_j|
    lengths: Array  # (K,) or () ‖x‖


def score_error(
    family: Family, problem: Problem, theta: Array, scores: Array, of_rows: Sizes, others: float | Array
) -> Array:
    """Bound the error of the score of any row seen, as far as it comes from the gradient norm ‖g‖.

    Args:
        family: The reward family.
        problem: The optimization problem F.
        theta: The point θ, of shape (d,).
        scores: The scores xᵀθ of shape (K,), with 0 for rows never seen.
        of_rows: The sizes of the rows.
        others: A scalar bound on the part of ‖g‖ that does not come from rounding, in the norm of H⁻¹.

    Returns:
        The bound, a scalar.
    """
    (sizes, lengths), (_, counts, sums, _, ridge) = of_rows, problem
    eps, seen = float(jnp.finfo(theta.dtype).eps), counts > 0
    terms, curved = counts * family.mean(scores), counts * family.slope(scores)
    blur = (theta.shape[0] ** 0.5 + 2) * sizes + jnp.abs(scores)
    # A mean that rounds to the end of its range is off by no more than it is away from there, which is about its slope.
    wrong = jnp.minimum(2 * jnp.abs(terms), 2 / eps * curved) + curved * blur
    wrong = wrong + (1 + math.log2(len(counts)) / 2) * jnp.abs(terms - sums)
    squares = jnp.sum(jnp.where(seen, lengths**2, 0))
    weights = jnp.where(seen, curved + ridge / jnp.where(squares > 0, squares, 1), 1)
    energy = jnp.sum(jnp.where(wrong > 0, wrong * (wrong / weights), 0))  # infinite where a weight is zero
    energy = eps * (jnp.sqrt(energy) + jnp.sqrt(ridge * (theta @ theta))) + others
    longest, least = jnp.max(lengths), jnp.min(jnp.where(seen, weights, jnp.inf))
    reach = jnp.minimum(1 / jnp.sqrt(least), jnp.where(ridge > 0, longest / jnp.sqrt(ridge), jnp.inf))
    return energy * reach


def left_by_factor(factor: Factor, step: Array, ridge: float | Array) -> Array:
    """Bound the gradient ‖Eδ‖ that is left after a step δ made with a factor of H.

    There are two bounds, one by the smallest eigenvalue of the scaled matrix and one by the ridge.

    Returns:
        The smaller of the two bounds, a scalar.
    """
    error = jitter(step.shape[0], step.dtype)
    moved = jnp.sqrt(jnp.sum((factor.root * step) ** 2))
    spread = jnp.sum(factor.inverse**2)  # at least one over the smallest eigenvalue, jitter included
    scaled = jnp.where(error * spread <= 0.5, jnp.sqrt(2 * spread), jnp.inf)
    largest = jnp.sqrt(jnp.sum(factor.root**2))
    return error * moved * jnp.minimum(scaled, jnp.where(ridge > 0, largest / jnp.sqrt(ridge), jnp.inf))


def left_by_root(largest: Array, weight: Array, step: Array, ridge: float | Array) -> Array:
    """Bound ‖Eδ‖ after a step δ made with a root of H⁻¹, for features up to `largest` and Σ N_x μ̇ = `weight`."""
    error = jitter(step.shape[0], step.dtype)
    return error * largest**2 * weight * jnp.sqrt(jnp.sum(step**2) / ridge)
