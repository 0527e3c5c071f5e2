"""The optimization problem behind every GLM policy, with its value, gradient, curvature and the rounding in them.

    θ̂ = argmin_θ  F(θ),    F(θ) = Σ_x [ N_x b(xᵀθ) − Y_x xᵀθ ] − Sᵀθ + ½ λ ‖θ‖²

    ∇F(θ)  = Σ_x (N_x μ(xᵀθ) − Y_x) x − S + λθ
    ∇²F(θ) = Σ_x N_x μ̇(xᵀθ) x xᵀ + λI

with counts N_x and reward sums Y_x from a history (`glm.history`), ridge λ and tilt S.  The rows x come in the layout
that suits who has them: `ByRow` for a history, `ByColumn` for fixed arms, whose transpose is kept because products with
it run along memory, and one in the registers of a GPU (`glm.kernel`).

A row that was never seen has N_x = Y_x = 0, and must not matter even if its mean overflows (`of_seen`).
"""

from typing import NamedTuple, Protocol

import jax.numpy as jnp
from jax import Array

from explorax.glm.families import Family
from explorax.glm.history import weighted_gram


class WeightedRows(Protocol):
    """What the fit reads of a history."""

    @property
    def features(self) -> Array:
        """(m, d) rows."""

    @property
    def counts(self) -> Array:
        """(m,) how often each row was seen."""

    @property
    def sums(self) -> Array:
        """(m,) sum of each row's rewards."""


class Layout(Protocol):
    """Rows x, wherever they are kept."""

    def scores(self, theta: Array) -> Array:
        """Return xᵀθ of every row."""

    def pull(self, weights: Array) -> Array:
        """Return Σ w_x x."""

    def gram(self, weights: Array) -> Array:
        """Return Σ w_x x xᵀ."""

    def magnitudes(self) -> "Layout":
        """Return the rows with all entries made positive."""

    def lengths(self) -> Array:
        """Return ‖x‖ of every row."""

    def peaks(self) -> Array:
        """Return the largest |x_j| of every row."""


class ByRow(NamedTuple):
    """Rows as rows."""

    features: Array  # (m, d)

    def scores(self, theta: Array) -> Array:
        """Return xᵀθ of every row."""
        return self.features @ theta

    def pull(self, weights: Array) -> Array:
        """Return Σ w_x x."""
        return weights @ self.features

    def gram(self, weights: Array) -> Array:
        """Return Σ w_x x xᵀ."""
        return weighted_gram(self.features, weights)

    def magnitudes(self) -> "ByRow":
        """Return the rows with all entries made positive."""
        return ByRow(jnp.abs(self.features))

    def lengths(self) -> Array:
        """Return ‖x‖ of every row."""
        return jnp.sqrt(jnp.sum(self.features**2, axis=1))

    def peaks(self) -> Array:
        """Return the largest |x_j| of every row."""
        return jnp.max(jnp.abs(self.features), axis=1)


class ByColumn(NamedTuple):
    """Rows as columns."""

    columns: Array  # (d, m)

    def scores(self, theta: Array) -> Array:
        """Return xᵀθ of every row."""
        return theta @ self.columns

    def pull(self, weights: Array) -> Array:
        """Return Σ w_x x."""
        return self.columns @ weights

    def gram(self, weights: Array) -> Array:
        """Return Σ w_x x xᵀ."""
        return jnp.einsum("ik,jk->ij", self.columns * weights, self.columns)

    def magnitudes(self) -> "ByColumn":
        """Return the rows with all entries made positive."""
        return ByColumn(jnp.abs(self.columns))

    def lengths(self) -> Array:
        """Return ‖x‖ of every row."""
        return jnp.sqrt(jnp.sum(self.columns**2, axis=0))

    def peaks(self) -> Array:
        """Return the largest |x_j| of every row."""
        return jnp.max(jnp.abs(self.columns), axis=0)


class Problem(NamedTuple):
    """F: everything that it depends on but θ and the family."""

    rows: Layout
    counts: Array  # (m,) N_x
    sums: Array  # (m,) Y_x
    tilt: Array  # (d,) S
    ridge: float | Array  # () λ

    def of_seen(self, values: Array) -> Array:
        """Return the values of rows that were seen, and 0 for all others."""
        return jnp.where(self.counts > 0, values, 0)

    def largest(self, values: Array) -> Array:
        """Return the largest |value| of a row that was seen."""
        return jnp.max(self.of_seen(jnp.abs(values)))


def posed(history: WeightedRows, *, ridge: float | Array, tilt: Array | None = None) -> Problem:
    """Return the problem that a history, a ridge and a tilt make; rows that were never seen are zero in it."""
    seen = history.counts > 0
    features = jnp.where(seen[:, None], history.features, 0)
    if tilt is None:
        tilt = jnp.zeros_like(features[0])
    return Problem(ByRow(features), history.counts, jnp.where(seen, history.sums, 0), tilt, ridge)


def harmless(family: Family, problem: Problem, scores: Array) -> Array:
    """Return the scores without those that could overflow unseen, which is no danger where means have a bound."""
    return scores if family.mean_range[1] < jnp.inf else problem.of_seen(scores)


def loss(family: Family, problem: Problem, theta: Array) -> Array:
    """Return F(θ)."""
    scores = problem.rows.scores(theta)
    terms = problem.counts * family.cumulant(problem.of_seen(scores)) - problem.sums * scores
    return jnp.sum(terms) - problem.tilt @ theta + problem.ridge / 2 * theta @ theta


def gradient(family: Family, problem: Problem, theta: Array, scores: Array | None = None) -> Array:
    """Return ∇F(θ), at scores xᵀθ that need not be given."""
    scores = problem.rows.scores(theta) if scores is None else scores
    residuals = problem.counts * family.mean(harmless(family, problem, scores)) - problem.sums
    return problem.rows.pull(residuals) - problem.tilt + problem.ridge * theta


def weights(family: Family, problem: Problem, scores: Array) -> Array:
    """Return N_x μ̇ of every row at these scores: what each weighs in the curvature."""
    return problem.counts * family.slope(harmless(family, problem, scores))


def curvature(family: Family, problem: Problem, scores: Array) -> Array:
    """Return ∇²F where the rows have these scores."""
    identity = jnp.eye(problem.tilt.shape[-1], dtype=problem.tilt.dtype)
    return problem.rows.gram(weights(family, problem, scores)) + problem.ridge * identity


def hessian(family: Family, problem: Problem, theta: Array) -> Array:
    """Return ∇²F(θ)."""
    return curvature(family, problem, problem.rows.scores(theta))


def gradient_error(family: Family, problem: Problem, theta: Array) -> Array:
    """Return the largest gradient entry, relative to the size of the terms that cancel in it.

    Among these terms is what the rounding of the scores does to the means: a score that is a difference of large
    numbers is only known to a blur, and the gradient no better than the blur allows.
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
    """Return the gradient error that will do where rounding keeps steps from getting as small as the tolerance."""
    return max(float(jnp.finfo(dtype).eps) ** (2 / 3), tolerance**2)
