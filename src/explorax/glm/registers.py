"""Small arrays in the registers of a GPU: how kernels load, pad and store them, and a Cholesky factorization there.

A library factors a batch of small matrices by half a dozen kernels, looks at the results from outside, and cannot be
part of a recorded graph, so that every round of a simulation would wait for the host.  `factors` is one kernel, with a
program for each matrix.
"""

from functools import partial, reduce
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental import pallas as pl

SMALLEST_SIDE = 16  # of a matrix product
LARGEST_SIDE = 32  # of a matrix that a single program factors: with twice as many rows it takes twenty times as long


def padded(size: int) -> int:
    """Return a size padded to the next power of two, and to at least `SMALLEST_SIDE`."""
    return max(SMALLEST_SIDE, 1 << (size - 1).bit_length())


def block(*shape: int) -> Any:
    """Return the specification of an array that a kernel sees as one block, padded to this shape."""
    return pl.BlockSpec(shape, lambda: (0,) * len(shape))


def of_shape(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return the shape and dtype of an array that a kernel writes."""
    return jax.ShapeDtypeStruct(shape, dtype)


def triton() -> Any:
    """Return Pallas' interface to Triton, which is imported for kernels only: every other process starts sooner."""
    from jax.experimental.pallas import triton

    return triton


def load(ref: Any, *sizes: int) -> Array:
    """Load the entries of an array of these sizes, with zeros in the padding."""
    return triton().load(ref, mask=inside(ref.shape, sizes), other=0.0)


def store(ref: Any, values: Array, *sizes: int) -> None:
    """Store the entries of an array of these sizes, without the padding."""
    triton().store(ref, values, mask=inside(ref.shape, sizes))


def inside(shape: tuple[int, ...], sizes: tuple[int, ...]) -> Array:
    """Return a mask of the entries of a padded array that are not padding."""
    fits = [lax.broadcasted_iota(jnp.int32, shape, axis) < size for axis, size in enumerate(sizes)]
    return reduce(jnp.logical_and, fits)


def suits(matrix: Array) -> bool:
    """Return whether `factors` supports matrices of this dtype and size."""
    return matrix.dtype == jnp.float32 and matrix.shape[-1] <= LARGEST_SIDE


def factors(matrix: Array, least: float, interpret: bool = False) -> tuple[Array, Array]:
    """Compute the Cholesky factor L of a positive definite matrix L Lᵀ, and its inverse L⁻¹, in one kernel.

    The factorization takes one pivot after the other and updates the rest of the matrix.  Where rounding has left the
    matrix indefinite, no pivot is taken to be below `least`, and no row of L becomes longer than that of the matrix.

    Args:
        matrix: The matrix, of shape (d, d), in float32.
        least: The smallest squared pivot.
        interpret: Whether to run the kernel without a GPU, slowly.

    Returns:
        L and L⁻¹, both lower triangular.
    """
    size = matrix.shape[0]
    square, shape = block(padded(size), padded(size)), of_shape((size, size), matrix.dtype)
    settings = triton().CompilerParams(num_warps=4, num_stages=1)
    call = pl.pallas_call(
        partial(factor, size=size, least=least),
        in_specs=[square],
        out_specs=[square, square],
        out_shape=[shape, shape],
        interpret=interpret,
        compiler_params=None if interpret else settings,
    )
    lower, inverse = call(matrix)
    return lower, inverse


def factor(matrix: Any, lower: Any, inverse: Any, *, size: int, least: float) -> None:
    """Factor one matrix, given references to it, to its factor and to the inverse of that."""
    begin = load(matrix, size, size)
    side, dtype = begin.shape[0], begin.dtype
    row, column = (lax.broadcasted_iota(jnp.int32, (side, side), axis) for axis in (0, 1))
    place = lax.broadcasted_iota(jnp.int32, (side,), 0)

    def take(k: Array, carry: tuple[Array, ...]) -> tuple[Array, ...]:
        rest, room, found, solved = carry  # room: the diagonal of the rest
        unit = jnp.where(place == k, 1.0, 0.0).astype(dtype)
        pivots = jnp.sum(rest * unit[None, :], axis=1)
        pivot = jnp.sum(pivots * unit)
        root = jnp.sqrt(jnp.where(pivot < least, least, pivot))
        below, most = jnp.where(place > k, pivots / root, 0), jnp.sqrt(jnp.maximum(room - least, 0))
        below = jnp.where(jnp.abs(below) > most, jnp.sign(below) * most, below)
        entries = below + root * unit
        above = jnp.sum(solved * unit[:, None], axis=0)
        return (
            rest - below[:, None] * below[None, :],
            room - below**2,
            found + entries[:, None] * unit[None, :],
            solved - (below / root + unit * (1 - 1 / root))[:, None] * above[None, :],
        )

    diagonal = jnp.where(row == column, 1.0, 0.0).astype(dtype)
    room = jnp.sum(begin * diagonal, axis=1)
    _, _, found, solved = lax.fori_loop(0, size, take, (begin, room, jnp.zeros_like(begin), diagonal))
    store(lower, found, size, size)
    store(inverse, solved, size, size)
