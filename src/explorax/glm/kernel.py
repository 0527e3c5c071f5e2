"""The descent of `glm.warm` as one GPU kernel: a program for each instance, from the kept curvature to the answer.

In lockstep a batch takes as many steps as its slowest member, and each step is a dozen kernels too small to keep a GPU
busy.  Here every instance has a program of its own.  Arms, scores and curvature stay in its registers, and it ends when
its own answer is there.  The steps are those of `glm.warm`: one with the kept curvature, then Newton steps, until the
same rule ends them.  What does not converge goes on there.

Sizes are padded to powers of two with arms that nobody pulled and features that are zero: both change nothing.

A Newton direction comes from Gauss-Jordan elimination of [RHR | Rg], R = diag(H)^−½, which takes no pivoting for a
positive definite matrix.  Pivots stay above the jitter of `glm.linalg`.
"""

from functools import partial, reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from explorax.glm import newton
from explorax.glm.families import Family
from explorax.glm.linalg import jitter
from explorax.glm.newton import Aim, Method, Place, kept_length, left_over, newton_length
from explorax.glm.problem import ByColumn, Problem, gradient, weights

MOST_STEPS = 300
LARGEST = 8192  # entries of the padded arms: beyond it registers run out
SMALLEST_SIDE = 16  # of a matrix product


class Start(NamedTuple):
    """Where a descent starts."""

    theta: Array  # (d,) θ
    scores: Array  # (K,) xᵀθ of every arm
    root: Array  # (d, d) W: the curvature that is kept
    off: Array  # () which is that of θ up to e^{±off}


class Descent(NamedTuple):
    """Where a descent has ended."""

    theta: Array  # (d,)
    scores: Array  # (K,) xᵀθ of every arm
    steps: Array  # () taken
    converged: Array  # () bool
    step: Array  # (d,) the last one; infinite where steps did not get as small as wanted, and rounding had to do


class InRegisters(ByColumn):
    """Arms as columns, padded, with products as sums: a GPU's program has no others for vectors."""

    def scores(self, theta: Array) -> Array:
        """Return xᵀθ of every arm."""
        return jnp.sum(self.columns * theta[:, None], axis=0)

    def pull(self, weights: Array) -> Array:
        """Return Σ w_x x."""
        return jnp.sum(self.columns * weights[None, :], axis=1)

    def gram(self, weights: Array) -> Array:
        """Return Σ w_x x xᵀ."""
        return product(self.columns * weights[None, :], self.columns)


def padded(size: int) -> int:
    """The next power of two."""
    return max(SMALLEST_SIDE, 1 << (size - 1).bit_length())


def suits(columns: Array) -> bool:
    """Return whether the kernel knows the dtype, and the problem is small enough to stay in registers."""
    features, arms = columns.shape[-2:]
    small = padded(features + 1) * padded(arms) <= LARGEST
    return columns.dtype == jnp.float32 and small


def descend(family: Family, problem: Problem, start: Start, tolerance: float, interpret: bool = False) -> Descent:
    """Return where steps lead to from a start; not all need converge.  The problem has its arms as columns."""
    features, arms, dtype = len(start.theta), len(start.scores), start.theta.dtype
    height, width = padded(features + 1), padded(arms)  # one feature more: room for the right-hand side of H δ = g
    high, wide, number = block(height), block(width), block(1)
    settings = triton.CompilerParams(num_warps=4 if height * width <= LARGEST // 2 else 8, num_stages=1)
    theta, scores, whole = of_shape(features, dtype), of_shape(arms, dtype), of_shape(1, jnp.int32)
    call = pl.pallas_call(
        partial(program, family=family, tolerance=tolerance, features=features, arms=arms),
        in_specs=[
            Problem(ByColumn(block(height, width)), wide, wide, high, number),
            Start(high, wide, block(height, height), number),
        ],
        out_specs=[Descent(high, wide, number, number, high)],
        out_shape=[Descent(theta, scores, whole, whole, theta)],
        interpret=interpret,
        compiler_params=None if interpret else settings,
    )
    ridge, off = (jnp.asarray(one, dtype)[None] for one in (problem.ridge, start.off))
    (end,) = call(problem._replace(ridge=ridge), start._replace(off=off))
    return end._replace(steps=end.steps[0].astype(int), converged=end.converged[0] > 0)


def block(*shape: int) -> Any:
    """An array that a program sees whole, padded to this shape."""
    return pl.BlockSpec(shape, lambda: (0,) * len(shape))


def of_shape(size: int, dtype: Any) -> Any:
    """A vector of that size that a program writes."""
    return jax.ShapeDtypeStruct((size,), dtype)


def program(of: Any, at: Any, out: Any, *, family: Family, tolerance: float, features: int, arms: int) -> None:
    """Do the steps of one instance; a `Problem`, a `Start` and a `Descent` of references to its memory are given."""
    counts, sums, tilt = load(of.counts, arms), load(of.sums, arms), load(of.tilt, features)
    problem = Problem(InRegisters(load(of.rows.columns, features, arms)), counts, sums, tilt, of.ridge[0])

    def kept(now: Place) -> Aim:
        root, slope = load(at.root, features, features), gradient(family, problem, now.theta, now.scores_of(problem))
        half = jnp.sum(root * slope[:, None], axis=0)
        return Aim(-jnp.sum(root * half[None, :], axis=1), jnp.isfinite(jnp.sum(half * half)), at.off[0])

    def built(now: Place) -> Aim:
        slope = gradient(family, problem, now.theta, now.scores_of(problem))
        direction = newton_direction(problem, weights(family, problem, now.scores_of(problem)), slope, features)
        return Aim(direction, jnp.isfinite(jnp.sum(direction)))

    error = partial(left_over, family)
    first = newton.step(
        problem,
        Method(kept, partial(kept_length, family), error, tolerance),
        newton.begin(load(at.theta, features), load(at.scores, arms)),
    )
    method = Method(built, partial(newton_length, family, closely=False), error, tolerance)
    first = first._replace(
        status=newton.CONVERGED * first.converged.astype(jnp.int32)
    )  # a lost one may go on from here
    end = newton.descend(partial(newton.step, problem, method), first, MOST_STEPS)
    store(out.theta, end.theta, features)
    store(out.scores, end.scores_of(problem), arms)
    out.steps[0] = end.steps.astype(jnp.int32)
    out.converged[0] = end.converged.astype(jnp.int32)
    store(out.step, end.step, features)


def newton_direction(problem: Problem, weights: Array, gradient: Array, features: int) -> Array:
    """−H⁻¹g for H = Σ w x xᵀ + λI; the last row and column are padding, so they have room for g."""
    height = gradient.shape[0]
    row, column = (lax.broadcasted_iota(jnp.int32, (height, height), axis) for axis in (0, 1))
    place = lax.broadcasted_iota(jnp.int32, (height,), 0)
    diagonal, last = row == column, column == height - 1
    curvature = problem.rows.gram(weights) + jnp.where(diagonal, problem.ridge, 0)
    squares = jnp.where(diagonal, curvature, 0)
    scale = lax.rsqrt(jnp.sum(squares, axis=1))  # once for rows and once for columns: layouts differ
    least = jitter(features, gradient.dtype)
    system = curvature * scale[:, None] * lax.rsqrt(jnp.sum(squares, axis=0))[None, :] + jnp.where(diagonal, least, 0)
    system = jnp.where(last, (gradient * scale)[:, None], system)

    def eliminate(k: Array, system: Array) -> Array:
        pivot_row = jnp.sum(jnp.where(row == k, system, 0), axis=0)
        pivot_column = jnp.sum(jnp.where(column == k, system, 0), axis=1)
        pivot = jnp.maximum(jnp.sum(jnp.where(place == k, pivot_row, 0)), least)
        return system - jnp.where(place == k, 0, pivot_column / pivot)[:, None] * pivot_row[None, :]

    system = lax.fori_loop(0, features, eliminate, system)
    pivots = jnp.maximum(jnp.sum(jnp.where(diagonal, system, 0), axis=1), least)
    solved = jnp.sum(jnp.where(last, system, 0), axis=1) / pivots
    return jnp.where(place < features, -scale * solved, 0)


def product(left: Array, right: Array) -> Array:
    """A Bᵀ in full float32: GPUs would round it to fewer bits by default."""
    return lax.dot_general(left, right, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)


def load(ref: Any, *sizes: int) -> Array:
    """The entries of an array of these sizes, zero in the padding."""
    return triton.load(ref, mask=inside(ref.shape, sizes), other=0.0)


def store(ref: Any, values: Array, *sizes: int) -> None:
    """Write the entries of an array of these sizes."""
    triton.store(ref, values, mask=inside(ref.shape, sizes))


def inside(shape: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Which entries of a padded array are no padding."""
    fits = [lax.broadcasted_iota(jnp.int32, shape, axis) < size for axis, size in enumerate(sizes)]
    return reduce(jnp.logical_and, fits)
