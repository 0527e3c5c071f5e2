"""A Cholesky factor that does not fail: scaled to unit diagonal, with a jitter at rounding level.

Matrices here are Gram matrices M = Σ w x xᵀ + λI.  Features on scales from 1e-3 to 1e3 ruin their condition, and
collinear features make them singular.  Scaling rows and columns to a unit diagonal removes the first problem; a
jitter of 4d·ε on that diagonal, below which nothing can be told apart anyway, removes the second.

    M ≈ R L Lᵀ R,    R = diag(M)^½,    L the Cholesky factor of the scaled matrix
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular


class Factor(NamedTuple):
    """M = R L Lᵀ R."""

    lower: Array  # (d, d) L
    root: Array  # (d,) diagonal of R; zero in a direction that M does not have

    def solve(self, vector: Array) -> Array:
        """M⁻¹ v."""
        return self.unscale(cho_solve((self.lower, True), self.unscale(vector)))

    def correlate(self, noise: Array) -> Array:
        """M^½ z: turns z ~ N(0, I) into a draw from N(0, M)."""
        return self.root * (self.lower @ noise)

    def decorrelate(self, noise: Array) -> Array:
        """M^−½ z: turns z ~ N(0, I) into a draw from N(0, M⁻¹)."""
        return self.unscale(solve_triangular(self.lower, noise, trans=1, lower=True))

    def whiten(self, vector: Array) -> Array:
        """The vector whose plain norm is ‖v‖ in the norm of M⁻¹."""
        return solve_triangular(self.lower, self.unscale(vector), lower=True)

    def inverse_norms(self, rows: Array) -> Array:
        """‖x‖ in the norm of M⁻¹, for each row x."""
        return jnp.sqrt(jnp.sum(solve_triangular(self.lower, self.unscale(rows).T, lower=True) ** 2, axis=0))

    def unscale(self, vectors: Array) -> Array:
        """R⁻¹ v, leaving directions alone that M does not have."""
        return vectors / jnp.where(self.root > 0, self.root, 1)


def factorize(matrix: Array) -> Factor:
    """Factor a positive semi-definite matrix; finite for every finite one."""
    size = matrix.shape[-1]
    root = jnp.sqrt(jnp.diagonal(matrix))
    scale = 1 / jnp.where(root > 0, root, 1)
    jitter = 4 * size * jnp.finfo(matrix.dtype).eps
    scaled = matrix * scale[:, None] * scale + jitter * jnp.eye(size, dtype=matrix.dtype)
    # A direction without any entry would leave a zero pivot: give it a one, which `root` then hides again.
    scaled = scaled + jnp.diag(jnp.where(root > 0, 0, 1).astype(matrix.dtype))
    return Factor(jnp.linalg.cholesky(scaled, symmetrize_input=False), root)
