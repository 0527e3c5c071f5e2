"""Small dense linear algebra that neither fails nor hangs.

**Factors.**  Matrices here are Gram matrices M = Σ w x xᵀ + λI.  Features on scales from 1e-3 to 1e3 ruin their
condition, and collinear features make them singular.  Scaling rows and columns to a unit diagonal removes the first
problem; a jitter of 4d·ε on that diagonal, below which nothing can be told apart anyway, removes the second.

    M ≈ R L Lᵀ R,    R = diag(M)^½,    L the Cholesky factor of the scaled matrix

**One by one.**  On a CPU, JAX hands a batch of matrices to LAPACK on threads of XLA's pool, and the call waits there
for other threads of the same pool.  With as many such calls under way as the pool has threads (two, on a small machine)
all wait forever.  Under `vmap` these functions therefore take one matrix at a time on a CPU, which never waits.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.scipy.linalg import solve_triangular


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which `vmap` on a CPU maps over the batch one element at a time."""
    mapped = custom_vmap(function)

    @mapped.def_vmap
    def rule(size: int, batched: list[bool], *args: Array) -> tuple[Any, Any]:
        full = [
            arg if has else jnp.broadcast_to(arg, (size, *arg.shape)) for arg, has in zip(args, batched, strict=True)
        ]
        result = lax.platform_dependent(
            *full, cpu=lambda *each: lax.map(lambda one: mapped(*one), each), default=jax.vmap(function)
        )
        return result, jax.tree.map(lambda _: True, result)

    return mapped


@one_by_one
def cholesky_and_inverse(matrix: Array) -> tuple[Array, Array]:
    """L and L⁻¹ of a positive definite matrix L Lᵀ."""
    lower = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    return lower, solve_triangular(lower, jnp.eye(matrix.shape[0], dtype=matrix.dtype), lower=True)


@one_by_one
def eigen(matrix: Array) -> tuple[Array, Array]:
    """Eigenvalues, smallest first, and eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors


class Factor(NamedTuple):
    """M = R L Lᵀ R."""

    lower: Array  # (d, d) L
    inverse: Array  # (d, d) L⁻¹
    root: Array  # (d,) diagonal of R; zero in a direction that M does not have

    def solve(self, vector: Array) -> Array:
        """M⁻¹ v."""
        return self.decorrelate(self.whiten(vector))

    def correlate(self, noise: Array) -> Array:
        """M^½ z: turns z ~ N(0, I) into a draw from N(0, M)."""
        return self.root * (self.lower @ noise)

    def decorrelate(self, noise: Array) -> Array:
        """M^−½ z: turns z ~ N(0, I) into a draw from N(0, M⁻¹)."""
        return self.unscale(noise @ self.inverse)

    def whiten(self, vectors: Array) -> Array:
        """The vectors whose plain norms are ‖v‖ in the norm of M⁻¹."""
        return self.unscale(vectors) @ self.inverse.T

    def inverse_norms(self, rows: Array) -> Array:
        """‖x‖ in the norm of M⁻¹, for each row x."""
        return jnp.sqrt(jnp.sum(self.whiten(rows) ** 2, axis=-1))

    def unscale(self, vectors: Array) -> Array:
        """R⁻¹ v, leaving directions alone that M does not have."""
        return vectors / jnp.where(self.root > 0, self.root, 1)


def factorize(matrix: Array) -> Factor:
    """Factor a positive semi-definite matrix; finite for every finite one."""
    size = matrix.shape[-1]
    root = jnp.sqrt(jnp.diagonal(matrix))
    scale = 1 / jnp.where(root > 0, root, 1)
    # A direction without any entry would leave a zero pivot: give it a one, which `root` then hides again.
    diagonal = jnp.where(root > 0, 4 * size * jnp.finfo(matrix.dtype).eps, 1)
    lower, inverse = cholesky_and_inverse(matrix * scale[:, None] * scale + jnp.diag(diagonal))
    return Factor(lower, inverse, root)


def spans(factor: Factor) -> Array:
    """Whether the matrix has full rank: no pivot is down at the jitter."""
    size = factor.root.shape[0]
    pivots = jnp.diagonal(factor.lower) ** 2
    return jnp.all(factor.root > 0) & jnp.all(pivots > 16 * size * jnp.finfo(pivots.dtype).eps)
