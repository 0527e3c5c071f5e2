"""The descent of `glm.warm` as one GPU kernel: one program for each instance, from the kept curvature to the answer.

In lockstep, a batch takes as many steps as its slowest member, and each step is a dozen kernels that are too small to
keep a GPU busy.  Here, every instance has a program of its own.  Arms, scores and curvature stay in its registers, and
the program ends when its own answer is found.  The steps are those of `glm.warm`: one with the kept curvature, then
Newton steps, with the same stopping rule.  Instances that do not converge are continued there.

Sizes are padded to powers of two with arms that were never pulled and features that are zero, which changes nothing.

A Newton direction comes from Gauss-Jordan elimination of [RHR | Rg], R = diag(H)^−½, which needs no pivoting for a
positive definite matrix.  Pivots stay above the jitter of `glm.linalg`.
"""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl

from explorax.glm import newton
from explorax.glm.families import Family
from explorax.glm.linalg import jitter
from explorax.glm.newton import Aim, Method, Place, kept_length, left_over, newton_length
from explorax.glm.problem import ByColumn, Problem, gradient, weights
from explorax.glm.registers import block, load, of_shape, padded, store, triton

MOST_STEPS = 300
CHUNK = 32  # arms whose share of the curvature is added up at a time: the code of a larger product is slow to fetch
LARGEST = 8192  # entries of the padded arms: beyond it registers run out


class Start(NamedTuple):
    """The start of a descent, with the curvature that is kept."""

    theta: Array  # (d,) θ
    scores: Array  # (K,) xᵀθ of every arm
    root: Array  # (d, d) W, the root of the kept inverse curvature
    off: Array  # () a bound on its error: the kept curvature is that of θ up to factors e^{±off}


class Descent(NamedTuple):
    """The end of a descent."""

    theta: Array  # (d,)
    scores: Array  # (K,) xᵀθ of every arm
    steps: Array  # () taken
    converged: Array  # () bool
    step: Array  # (d,) the last step; infinite if steps did not get as small as wanted, but the gradient is rounding


class InRegisters(ByColumn):
    """A layout of padded arms as columns, with products written as sums, because a GPU kernel has no others."""

    def scores(self, theta: Array) -> Array:
        """Return the score xᵀθ of every arm."""
        return jnp.sum(self.columns * theta[:, None], axis=0)

    def pull(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_x x of the arms."""
        return jnp.sum(self.columns * weights[None, :], axis=1)

    def gram(self, weights: Array) -> Array:
        """Return the weighted Gram matrix Σ w_x x xᵀ of the arms."""
        return product(self.columns * weights[None, :], self.columns)


def suits(columns: Array) -> bool:
    """Return whether the kernel supports arms of this dtype and size, which have to stay in registers."""
    features, arms = columns.shape[-2:]
    small = padded(features + 1) * padded(arms) <= LARGEST
    return columns.dtype == jnp.float32 and small


def descend(family: Family, problem: Problem, start: Start, tolerance: float, interpret: bool = False) -> Descent:
    """Run the kernel from a start, for a problem with arms as columns; its descent need not converge."""
    features, arms, dtype = len(start.theta), len(start.scores), start.theta.dtype
    height, width = padded(features + 1), padded(arms)  # one feature more: room for the right-hand side of H δ = g
    high, wide, number = block(height), block(width), block(1)
    settings = triton().CompilerParams(num_warps=4 if height * width <= LARGEST // 2 else 8, num_stages=1)
    theta, scores, whole = of_shape((features,), dtype), of_shape((arms,), dtype), of_shape((1,), jnp.int32)
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


def program(of: Any, at: Any, out: Any, *, family: Family, tolerance: float, features: int, arms: int) -> None:
    """Run the steps of one instance, given references to its memory as a `Problem`, a `Start` and a `Descent`."""
    counts, sums, tilt = load(of.counts, arms), load(of.sums, arms), load(of.tilt, features)
    problem = Problem(InRegisters(load(of.rows.columns, features, arms)), counts, sums, tilt, of.ridge[0])

    def kept(now: Place) -> Aim:
        root, slope = load(at.root, features, features), gradient(family, problem, now.theta, now.scores_of(problem))
        half = jnp.sum(root * slope[:, None], axis=0)
        return Aim(-jnp.sum(root * half[None, :], axis=1), jnp.isfinite(jnp.sum(half * half)), at.off[0])

    def weighted_gram(now: Place) -> Array:
        height, width = of.rows.columns.shape
        size = min(CHUNK, width)

        def more(number: Array, total: Array) -> Array:
            some, left = pl.ds(number * size, size), arms - number * size
            rows = InRegisters(load(of.rows.columns.at[:, some], features, left))
            these = problem._replace(rows=rows, counts=load(of.counts.at[some], left))
            return total + rows.gram(weights(family, these, rows.scores(now.theta)))

        return lax.fori_loop(0, width // size, more, jnp.zeros((height, height), now.theta.dtype))

    def built(now: Place) -> Aim:
        slope = gradient(family, problem, now.theta, now.scores_of(problem))
        direction = newton_direction(weighted_gram(now), problem.ridge, slope, features)
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


def newton_direction(gram: Array, ridge: float | Array, gradient: Array, features: int) -> Array:
    """Return the Newton direction −H⁻¹g for H = Σ w x xᵀ + λI, using the last column, which is padding, for g."""
    height = gradient.shape[0]
    row, column = (lax.broadcasted_iota(jnp.int32, (height, height), axis) for axis in (0, 1))
    place = lax.broadcasted_iota(jnp.int32, (height,), 0)
    diagonal, last = row == column, column == height - 1
    curvature = gram + jnp.where(diagonal, ridge, 0)
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
    """Return the product A Bᵀ in full float32 precision, which GPUs do not use by default."""
    return lax.dot_general(left, right, (((1,), (1,)), ((), ())), precision=lax.Precision.HIGHEST)
