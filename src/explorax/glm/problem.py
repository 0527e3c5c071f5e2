"""The optimization problem behind every GLM policy: its value, gradient, curvature, and the rounding in them.

    θ̂ = argmin_θ  F(θ),    F(θ) = Σ_x [ N_x b(xᵀθ) − Y_x xᵀθ ] − Sᵀθ + ½ λ ‖θ‖²

    ∇F(θ)  = Σ_x (N_x μ(xᵀθ) − Y_x) x − S + λθ
    ∇²F(θ) = Σ_x N_x μ̇(xᵀθ) x xᵀ + λI

with counts N_x and reward sums Y_x from a history (`glm.history`), ridge λ and tilt S.  There are several layouts of
the rows x: `ByRow` for a history, `ByColumn` for fixed arms, whose transpose is kept because products with it run along
memory, and one in the registers of a GPU (`glm.kernel`).

A row that was never seen has N_x = Y_x = 0, and must not matter even if its mean overflows (`of_seen`).
"""

from typing import NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array

from explorax.glm.families import Family
from explorax.glm.history import weighted_gram


class WeightedRows(Protocol):
    """The rows, counts and sums of rewards that `explorax.fit` reads from a history.

    Any record with these three attributes will do: `glm.history.Grouped`, `glm.history.Rows`, or one of your own.

    Attributes:
        features: The rows of features, of shape (m, d).
        counts: How often each row was seen, of shape (m,).  Weights that are not whole numbers are allowed.
        sums: The sum of the rewards of each row, of shape (m,).
    """

    @property
    def features(self) -> Array:
        """The rows of features, of shape (m, d)."""

    @property
    def counts(self) -> Array:
        """How often each row was seen, of shape (m,)."""

    @property
    def sums(self) -> Array:
        """The sum of the rewards of each row, of shape (m,)."""


class Layout(Protocol):
    """The m rows x of a problem, in any arrangement in memory."""

    def scores(self, theta: Array) -> Array:
        """Return the score xᵀθ of every row."""

    def pull(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_x x of the rows."""

    def gram(self, weights: Array) -> Array:
        """Return the weighted Gram matrix Σ w_x x xᵀ of the rows."""

    def magnitudes(self) -> "Layout":
        """Return the rows with the absolute values |x_j| as entries."""

    def lengths(self) -> Array:
        """Return the norm ‖x‖ of every row."""

    def peaks(self) -> Array:
        """Return the largest entry |x_j| of every row."""


class ByRow(NamedTuple):
    """A layout in which each row x is a row of a matrix."""

    features: Array  # (m, d)

    def scores(self, theta: Array) -> Array:
        """Return the score xᵀθ of every row."""
        return self.features @ theta

    def pull(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_x x of the rows."""
        return weights @ self.features

    def gram(self, weights: Array) -> Array:
        """Return the weighted Gram matrix Σ w_x x xᵀ of the rows."""
        return weighted_gram(self.features, weights)

    def magnitudes(self) -> "ByRow":
        """Return the rows with the absolute values |x_j| as entries."""
        return ByRow(jnp.abs(self.features))

    def lengths(self) -> Array:
        """Return the norm ‖x‖ of every row."""
        return jnp.sqrt(jnp.sum(self.features**2, axis=1))

    def peaks(self) -> Array:
        """Return the largest entry |x_j| of every row."""
        return jnp.max(jnp.abs(self.features), axis=1)


class ByColumn(NamedTuple):
    """A layout in which each row x is a column of a matrix."""

    columns: Array  # (d, m)

    def scores(self, theta: Array) -> Array:
        """Return the score xᵀθ of every row."""
        return theta @ self.columns

    def pull(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_x x of the rows."""
        return self.columns @ weights

    def gram(self, weights: Array) -> Array:
        """Return the weighted Gram matrix Σ w_x x xᵀ of the rows."""
        return jnp.einsum("ik,jk->ij", self.columns * weights, self.columns)

    def magnitudes(self) -> "ByColumn":
        """Return the rows with the absolute values |x_j| as entries."""
        return ByColumn(jnp.abs(self.columns))

    def lengths(self) -> Array:
        """Return the norm ‖x‖ of every row."""
        return jnp.sqrt(jnp.sum(self.columns**2, axis=0))

    def peaks(self) -> Array:
        """Return the largest entry |x_j| of every row."""
        return jnp.max(jnp.abs(self.columns), axis=0)


class Problem(NamedTuple):
    """All that F depends on, apart from θ and the family."""

    rows: Layout  # x
    counts: Array  # (m,) N_x
    sums: Array  # (m,) Y_x
    tilt: Array  # (d,) S
    ridge: float | Array  # () λ

    def of_seen(self, values: Array) -> Array:
        """Return the values of all rows, with 0 in place of those of rows that were never seen."""
        return jnp.where(self.counts > 0, values, 0)

    def largest(self, values: Array) -> Array:
        """Return the largest absolute value among those of rows that were seen."""
        return jnp.max(self.of_seen(jnp.abs(values)))


def posed(history: WeightedRows, *, ridge: float | Array, tilt: Array | None = None) -> Problem:
    """Pose the problem F of a history, a ridge and a tilt, with zeros in place of rows that were never seen."""
    seen = history.counts > 0
    features = jnp.where(seen[:, None], history.features, 0)
    if tilt is None:
        tilt = jnp.zeros_like(features[0])
    return Problem(ByRow(features), history.counts, jnp.where(seen, history.sums, 0), tilt, ridge)


def harmless(family: Family, problem: Problem, scores: Array) -> Array:
    """Return the scores, with 0 for rows never seen if the mean is unbounded and could overflow there."""
    return scores if family.mean_range[1] < jnp.inf else problem.of_seen(scores)


def loss(family: Family, problem: Problem, theta: Array) -> Array:
    """Return the penalized loss F(θ)."""
    scores = problem.rows.scores(theta)
    terms = problem.counts * family.cumulant(problem.of_seen(scores)) - problem.sums * scores
    return jnp.sum(terms) - problem.tilt @ theta + problem.ridge / 2 * theta @ theta


def gradient(family: Family, problem: Problem, theta: Array, scores: Array | None = None) -> Array:
    """Return the gradient ∇F(θ), computing the scores xᵀθ if they are not given."""
    scores = problem.rows.scores(theta) if scores is None else scores
    residuals = problem.counts * family.mean(harmless(family, problem, scores)) - problem.sums
    return problem.rows.pull(residuals) - problem.tilt + problem.ridge * theta


def weights(family: Family, problem: Problem, scores: Array) -> Array:
    """Return N_x μ̇ at the scores of all rows, the weight of each row in the curvature."""
    return problem.counts * family.slope(harmless(family, problem, scores))


def curvature(family: Family, problem: Problem, scores: Array) -> Array:
    """Return the curvature ∇²F at the scores of all rows."""
    identity = jnp.eye(problem.tilt.shape[-1], dtype=problem.tilt.dtype)
    return problem.rows.gram(weights(family, problem, scores)) + problem.ridge * identity


def hessian(family: Family, problem: Problem, theta: Array) -> Array:
    """Return the curvature ∇²F(θ)."""
    return curvature(family, problem, problem.rows.scores(theta))


def gradient_error(family: Family, problem: Problem, theta: Array) -> Array:
    """Return the largest entry of the gradient ∇F(θ), relative to the size of the terms that cancel in it.

    Among these terms is what the rounding of the scores does to the means.  A score that is a small difference of large
    numbers has a large rounding error, and the gradient cannot be more accurate than that.

    Args:
        family: The reward family.
        problem: The optimization problem F.
        theta: The point θ, a (d,) vector.

    Returns:
        The relative error, a scalar; infinite if it is not finite.
    """
    eps = jnp.finfo(theta.dtype).eps
    sizes = problem.rows.magnitudes()
    scores = problem.of_seen(problem.rows.scores(theta))
    blur = problem.of_seen(theta.shape[-1] * eps * sizes.scores(jnp.abs(theta)))
    blurred = (family.mean(scores + blur) - family.mean(scores - blur)) / eps
    terms = problem.counts * (jnp.abs(family.mean(scores)) + blurred) + jnp.abs(problem.sums)
    terms = jnp.minimum(terms, jnp.finfo(theta.dtype).max ** 0.5)  # so that none is infinite times zero
    total = sizes.pull(terms) + jnp.abs(problem.tilt) + problem.ridge * jnp.abs(theta)
    error = jnp.abs(gradient(family, problem, theta)) / jnp.where(total > 0, total, 1)
    return jnp.where(jnp.all(jnp.isfinite(error)), jnp.max(error), jnp.inf)


def enough(dtype: jnp.dtype, tolerance: float) -> float:
    """Return the gradient error that is accepted if rounding keeps steps from getting as small as the tolerance."""
    return max(float(jnp.finfo(dtype).eps) ** (2 / 3), tolerance**2)
