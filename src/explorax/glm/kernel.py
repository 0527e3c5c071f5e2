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
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from explorax.glm.families import Family
from explorax.glm.linalg import jitter
from explorax.glm.steps import FULL_STEP, Descent, kept_length, largest, newton_length

MOST_STEPS = 300
LARGEST = 8192  # entries of the padded arms: beyond it registers run out
SMALLEST_SIDE = 16  # of a matrix product


def padded(size: int) -> int:
    """The next power of two."""
    return max(SMALLEST_SIDE, 1 << (size - 1).bit_length())


def suits(columns: Array) -> bool:
    """Whether there may be a GPU for it and the problem is small enough to stay in registers."""
    features, arms = columns.shape[-2:]
    small = padded(features + 1) * padded(arms) <= LARGEST
    return jax.default_backend() == "gpu" and columns.dtype == jnp.float32 and small


def descend(
    family: Family,
    columns: Array,
    root: Array,
    counts: Array,
    sums: Array,
    theta: Array,
    scores: Array,
    moved: Array,
    tilt: Array,
    ridge: Array,
    tolerance: float,
    interpret: bool = False,
) -> Descent:
    """Steps from θ, whose scores are off by `moved` from those where the root was built; not all need converge."""
    features, arms = columns.shape
    height, width = padded(features + 1), padded(arms)  # one feature more: room for the right-hand side of H δ = g
    high, wide, dtype = block(height), block(width), theta.dtype
    settings = triton.CompilerParams(num_warps=4 if height * width <= LARGEST // 2 else 8, num_stages=1)
    call = pl.pallas_call(
        partial(program, family=family, tolerance=tolerance, features=features, arms=arms),
        in_specs=[block(height, width), block(height, height), wide, wide, high, wide, high, block(2)],
        out_specs=[high, wide, block(2), high],
        out_shape=[
            jax.ShapeDtypeStruct((features,), dtype),
            jax.ShapeDtypeStruct((arms,), dtype),
            jax.ShapeDtypeStruct((2,), jnp.int32),
            jax.ShapeDtypeStruct((features,), dtype),
        ],
        interpret=interpret,
        compiler_params=None if interpret else settings,
    )
    numbers = jnp.stack([ridge, moved]).astype(dtype)
    given = columns, root, counts, sums, theta, scores, tilt, numbers
    theta, scores, (steps, converged), step = call(*given)
    return Descent(theta, scores, steps.astype(int), converged > 0, step)


def block(*shape: int) -> pl.BlockSpec:
    """An array that a program sees whole, padded to this shape."""
    return pl.BlockSpec(shape, lambda: (0,) * len(shape))


def program(
    columns_ref: Any,
    root_ref: Any,
    counts_ref: Any,
    sums_ref: Any,
    theta_ref: Any,
    scores_ref: Any,
    tilt_ref: Any,
    numbers_ref: Any,
    theta_out: Any,
    scores_out: Any,
    ended_out: Any,
    step_out: Any,
    *,
    family: Family,
    tolerance: float,
    features: int,
    arms: int,
) -> None:
    """What is done for one instance."""
    columns = load(columns_ref, features, arms)
    counts, sums, tilt = load(counts_ref, arms), load(sums_ref, arms), load(tilt_ref, features)
    ridge, moved = numbers_ref[0], numbers_ref[1]
    seen = counts > 0

    def gradient(theta: Array, scores: Array) -> Array:
        residuals = counts * family.mean(jnp.where(seen, scores, 0)) - sums
        return jnp.sum(columns * residuals[None, :], axis=1) - tilt + ridge * theta

    def moves_of(step: Array) -> Array:
        return jnp.sum(columns * step[:, None], axis=0)

    def kept_step(theta: Array, scores: Array) -> Descent:
        root = load(root_ref, features, features)
        half = jnp.sum(root * gradient(theta, scores)[:, None], axis=0)
        step = -jnp.sum(root * half[None, :], axis=1)
        moves = moves_of(step)
        reach = largest(seen, moves)
        length = kept_length(family, reach)
        error = reach * jnp.minimum(moved + family.self_concordance * reach, 1)
        finite = jnp.isfinite(jnp.sum(half * half))
        length = jnp.where(finite, length, 0)
        converged = (length == 1) & (error <= tolerance)
        step, moves = jnp.where(finite, step, 0), jnp.where(finite, moves, 0)
        step, moves = length * step, length * moves
        return Descent(theta + step, scores + moves, jnp.int32(1), converged, step)

    def newton_step(now: Descent) -> Descent:
        weights = counts * family.slope(jnp.where(seen, now.scores, 0))
        step = newton_direction(columns, weights, ridge, gradient(now.theta, now.scores), features)
        moves = moves_of(step)
        reach = largest(seen, moves)
        best = newton_length(family, counts, sums, tilt, ridge, now.theta, now.scores, step, moves)
        length = jnp.where(family.self_concordance * reach > FULL_STEP, best, 1)
        error = reach * jnp.minimum(family.self_concordance * reach, 1)
        finite = jnp.isfinite(length * jnp.sum(step)) & jnp.isfinite(length * reach)
        converged = finite & (length == 1) & (error <= tolerance)
        # A step that is none ends the descent: what is left is a matter for plain steps.
        steps = jnp.where(finite, now.steps + 1, MOST_STEPS)
        step, moves = jnp.where(finite, length * step, 0), jnp.where(finite, length * moves, 0)
        return Descent(now.theta + step, now.scores + moves, steps, converged, step)

    end = lax.while_loop(
        lambda now: (now.steps < MOST_STEPS) & ~now.converged,
        newton_step,
        kept_step(load(theta_ref, features), load(scores_ref, arms)),
    )
    store(theta_out, end.theta, features)
    store(scores_out, end.scores, arms)
    ended_out[0] = end.steps
    ended_out[1] = end.converged.astype(jnp.int32)
    store(step_out, end.step, features)


def newton_direction(columns: Array, weights: Array, ridge: Array, gradient: Array, features: int) -> Array:
    """−H⁻¹g for H = Σ w x xᵀ + λI; the last row and column are padding, so they have room for g."""
    height = columns.shape[0]
    row, column = (lax.broadcasted_iota(jnp.int32, (height, height), axis) for axis in (0, 1))
    place = lax.broadcasted_iota(jnp.int32, (height,), 0)
    diagonal, last = row == column, column == height - 1
    curvature = product(columns * weights[None, :], columns) + jnp.where(diagonal, ridge, 0)
    squares = jnp.where(diagonal, curvature, 0)
    scale = lax.rsqrt(jnp.sum(squares, axis=1))  # once for rows and once for columns: layouts differ
    least = jitter(features, columns.dtype)
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
