"""Small dense linear algebra that neither fails nor hangs, alone or in a batch.

**Factors.**  All matrices are Gram matrices M = Σ w x xᵀ + λI.  Features on scales from 1e-3 to 1e3 make them
ill-conditioned, and collinear features make them singular.  Scaling rows and columns to a unit diagonal removes the
first problem; a jitter of 4d·ε on that diagonal, which is at the level of rounding, removes the second.

    M ≈ R L Lᵀ R,    R = diag(M)^½,    L the Cholesky factor of the scaled matrix

**By halves.**  The factor of a small matrix is computed from those of its halves,

    M = [A Bᵀ; B C],    L = [L_A 0; B L_A⁻ᵀ L_S],    L_S L_Sᵀ = C − B A⁻¹ Bᵀ,

which takes only small products.  For a batch of matrices that is several times faster than calls of a library.  But it
is a long program: with 20 features, a third of the time to compile a round of GLM-TSL went into two of them.  What is
needed rarely is left to the library, and so is a matrix alone, as in a single decision of an agent, unless it is small:
with 20 features GLM-FPL then decides on a table in three quarters of the time, and compiles in half.

**Rounding.**  A pivot that is nothing but rounding makes the rows below it too long, and these make the next pivots
worse: factors of nearly singular matrices would grow without bound.  But the i-th row of L has the length M_ii^½ for
every M, so rows are kept from getting longer.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.scipy.linalg import solve_triangular

from explorax.batching import batched_by, one_by_one
from explorax.glm import registers
from explorax.keys import in_one_row

LARGEST_ALONE = 12  # beyond it a matrix that is not in a batch is left to the library
LARGEST_BY_HALVES = 32  # beyond it the products no longer pay for the longer program


def cholesky_and_inverse(matrix: Array, rarely: bool = False) -> tuple[Array, Array]:
    """Compute the Cholesky factor L of a positive definite matrix L Lᵀ, and its inverse L⁻¹, as suits the device."""
    size = matrix.shape[-1]
    # Products lose a little more than substitution would: a pivot is never taken to be below the jitter.
    least = jitter(size, matrix.dtype)
    if jax.default_backend() == "gpu" and registers.suits(matrix):
        # By the device that it is compiled for, which need not be JAX's first choice.
        return lax.platform_dependent(matrix, cuda=partial(registers.factors, least=least), default=by_library)
    if rarely or size > LARGEST_BY_HALVES:
        return by_library(matrix)
    halves = partial(by_halves, least=least)
    on_cpu = halves if size <= LARGEST_ALONE else batched_by(by_library, jax.vmap(halves))
    return lax.platform_dependent(matrix, cpu=on_cpu, default=by_library)


def by_halves(matrix: Array, least: float = 0.0) -> tuple[Array, Array]:
    """Compute L and L⁻¹ from the factors of the two halves, with squared pivots of at least `least`."""
    size = matrix.shape[-1]
    if size == 1:
        root = jnp.sqrt(jnp.maximum(matrix, least))
        return root, 1 / root
    half = size // 2
    first, first_inverse = by_halves(matrix[:half, :half], least)
    below = shortened(matrix[half:, :half] @ first_inverse.T, jnp.diagonal(matrix)[half:] - least)
    second, second_inverse = by_halves(matrix[half:, half:] - below @ below.T, least)
    below_inverse = -(second_inverse @ below) @ first_inverse
    return stack_lower(first, below, second), stack_lower(first_inverse, below_inverse, second_inverse)


def shortened(rows: Array, squares: Array) -> Array:
    """Shorten rows whose squared lengths are larger than `squares`."""
    room, lengths = jnp.maximum(squares, 0), jnp.sum(rows**2, axis=1)
    factors = jnp.where(lengths > room, jnp.sqrt(room / jnp.where(lengths > 0, lengths, 1)), 1)
    return factors[:, None] * rows


def stack_lower(first: Array, below: Array, second: Array) -> Array:
    """Assemble the lower triangular matrix [first 0; below second] from its blocks."""
    top = jnp.pad(first, ((0, 0), (0, second.shape[1])))
    return jnp.concatenate([top, jnp.concatenate([below, second], axis=1)], axis=0)


@one_by_one
def by_library(matrix: Array) -> tuple[Array, Array]:
    """Compute L and L⁻¹ by LAPACK or its like, adding to the diagonal if rounding has left the matrix indefinite."""
    size, identity = matrix.shape[0], jnp.eye(matrix.shape[0], dtype=matrix.dtype)

    def try_again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        more, _ = carry
        return 10 * more, jnp.linalg.cholesky(matrix + more * identity, symmetrize_input=False)

    _, lower = lax.while_loop(
        lambda carry: (carry[0] < 20 * size) & ~jnp.isfinite(jnp.sum(carry[1])),  # no row sums up to more than size
        try_again,
        (jnp.asarray(jitter(size, matrix.dtype), matrix.dtype), jnp.linalg.cholesky(matrix, symmetrize_input=False)),
    )
    return lower, solve_triangular(lower, identity, lower=True)


@one_by_one
def eigen(matrix: Array) -> tuple[Array, Array]:
    """Compute the eigenvalues, smallest first, and the eigenvectors of a symmetric matrix."""
    values, vectors = jnp.linalg.eigh(matrix, symmetrize_input=False)
    return values, vectors


class Factor(NamedTuple):
    """The scaled Cholesky factor of a positive semi-definite matrix, M = R L Lᵀ R."""

    lower: Array  # (d, d) L
    inverse: Array  # (d, d) L⁻¹
    root: Array  # (d,) diagonal of R; zero in a direction that M does not have

    def solve(self, vector: Array) -> Array:
        """Return the solution M⁻¹ v of a linear system."""
        return self.decorrelate(self.whiten(vector))

    def correlate(self, noise: Array) -> Array:
        """Return M^½ z, which turns z ~ N(0, I) into a draw from N(0, M)."""
        return self.root * (self.lower @ noise)

    def decorrelate(self, noise: Array) -> Array:
        """Return M^−½ z, which turns z ~ N(0, I) into a draw from N(0, M⁻¹)."""
        return self.unscale(noise @ self.inverse)

    def whiten(self, vectors: Array) -> Array:
        """Return vectors whose Euclidean norms are the norms of the given vectors in the metric M⁻¹."""
        return self.unscale(vectors) @ self.inverse.T

    def inverse_root(self) -> Array:
        """Return a root W of the inverse, W Wᵀ = M⁻¹."""
        return self.unscale(self.inverse).T

    def inverse_norms(self, rows: Array) -> Array:
        """Return the norm √(xᵀM⁻¹x) of each row x."""
        return jnp.sqrt(jnp.sum(self.whiten(rows) ** 2, axis=-1))

    def unscale(self, vectors: Array) -> Array:
        """Return R⁻¹ v, leaving entries unchanged where the diagonal of R is zero."""
        return vectors / jnp.where(self.root > 0, self.root, 1)


def shrinkage(v: Array) -> Array:
    """Return γ with (I + v vᵀ)^−½ = I − γ v vᵀ, for the rank-one update of a root of an inverse."""
    size = v @ v
    return (1 - lax.rsqrt(1 + size)) / jnp.where(size > 0, size, 1)


def stretch(v: Array) -> Array:
    """Return γ with (I + v vᵀ)^½ = I + γ v vᵀ, for the rank-one update of a root."""
    return 1 / (1 + jnp.sqrt(1 + v @ v))


def grown_inverse(inverse: Array, x: Array) -> Array:
    """Return the inverse of the Cholesky factor of M + x xᵀ, given that of the Cholesky factor of M.

    M + x xᵀ = L (I + p pᵀ) Lᵀ with p = L⁻¹x, and I + p pᵀ has a Cholesky factor C with a formula.  With the sums
    s_i = 1 + Σ_{j≤i} p_j², row i of C⁻¹ has s_{i−1}^½ s_i^−½ on the diagonal and −p_i p_j (s_{i−1} s_i)^−½ before it.

    Args:
        inverse: The inverse L⁻¹, lower triangular, of shape (d, d).
        x: The vector that is added, of shape (d,).

    Returns:
        The inverse C⁻¹ L⁻¹.
    """
    p = inverse @ x
    earlier = jnp.tri(len(p), k=-1, dtype=p.dtype)  # sums over j < i
    before = 1 + earlier @ p**2
    shrunk, root = lax.rsqrt(before + p**2), jnp.sqrt(before)
    return (root * shrunk)[:, None] * inverse - (p * shrunk / root)[:, None] * (earlier @ (p[:, None] * inverse))


def jitter(size: int, dtype: jnp.dtype) -> float:
    """Return the jitter 4d·ε that is added to a unit diagonal, at the level of rounding."""
    return 4 * size * float(jnp.finfo(dtype).eps)


def factorize(matrix: Array, rarely: bool = False) -> Factor:
    """Factor a positive semi-definite matrix; the factor is finite for every finite matrix.

    Args:
        matrix: The (d, d) matrix.
        rarely: Whether few rounds need the factor, so that a program that is compiled faster is better than one that
            runs faster.

    Returns:
        The factor.
    """
    size = matrix.shape[-1]
    root = jnp.sqrt(jnp.diagonal(matrix))
    scale = 1 / jnp.where(root > 0, root, 1)
    # A direction without any entry would leave a zero pivot: give it a one, which `root` then hides again.
    diagonal = jnp.where(root > 0, jitter(size, matrix.dtype), 1)
    lower, inverse = cholesky_and_inverse(matrix * scale[:, None] * scale + jnp.diag(diagonal), rarely)
    return Factor(lower, inverse, root)


def spans(factor: Factor) -> Array:
    """Return whether a factored matrix has full rank, which means that no pivot is as small as the jitter."""
    size = factor.root.shape[0]
    pivots = jnp.diagonal(factor.lower) ** 2
    return jnp.all(factor.root > 0) & jnp.all(pivots > 16 * size * jnp.finfo(pivots.dtype).eps)


def draw_tilt(key: Array, gram: Array, prior: float | Array) -> Array:
    """Draw a tilt S ~ N(0, G + prior I), for a positive semi-definite G."""
    size = gram.shape[0]
    noise = jax.random.normal(in_one_row(key), (size,), gram.dtype)
    return factorize(gram + prior * jnp.eye(size, dtype=gram.dtype)).correlate(noise)
