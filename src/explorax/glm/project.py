"""Projection of an estimate onto a ball, in the metric of the mean rewards that it predicts.

    argmin_{‖θ‖ ≤ R}  ½ ‖g(θ) − g(θ̂)‖²_{G⁻¹},    g(θ) = Σ_x N_x μ(xᵀθ) x,    G = Σ_x N_x x xᵀ

An estimate inside the ball stays.  One outside moves by damped Gauss-Newton steps: with g linearized the problem is a
quadratic on a ball, solved exactly through its one multiplier.

Reference: Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010,
equation (6).
"""

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.glm.families import Family
from explorax.glm.fit import WeightedRows, gradient, hessian, posed
from explorax.glm.history import weighted_gram
from explorax.glm.linalg import eigen, factorize

STEPS = 60
HALVINGS = 30
BISECTIONS = 80


def project(family: Family, history: WeightedRows, theta: Array, radius: float) -> Array:
    """The admissible parameter whose predictions are nearest to those of `theta`."""
    problem = posed(history, ridge=0.0)
    metric = factorize(weighted_gram(problem.features, problem.counts))
    predicted = gradient(family, problem, theta)

    def miss(candidate: Array) -> Array:
        """g(θ) − g(θ̂), as a vector whose plain norm is the distance."""
        return metric.whiten(gradient(family, problem, candidate) - predicted)

    def improve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        current, steps, _ = carry
        jacobian = metric.whiten(hessian(family, problem, current)).T
        nearest = least_squares_on_ball(jacobian, jacobian @ current - miss(current), radius)
        step = nearest - current
        distance = jnp.linalg.norm(miss(current))
        lengths = 0.5 ** jnp.arange(HALVINGS, dtype=theta.dtype)
        closer = jax.vmap(lambda length: jnp.linalg.norm(miss(current + length * step)) < distance)(lengths)
        length = jnp.where(jnp.any(closer), lengths[jnp.argmax(closer)], 0)
        still = length * jnp.linalg.norm(step) <= 10 * jnp.finfo(theta.dtype).eps * radius
        return current + length * step, steps + 1, still

    norm = jnp.linalg.norm(theta)
    start = theta * jnp.minimum(1, radius / jnp.where(norm > 0, norm, 1))
    projected, _, _ = lax.while_loop(
        lambda carry: (carry[1] < STEPS) & ~carry[2], improve, (start, jnp.zeros((), int), norm <= radius)
    )
    return projected


def least_squares_on_ball(matrix: Array, target: Array, radius: float) -> Array:
    """argmin ‖Aθ − b‖ over ‖θ‖ ≤ R: θ = (AᵀA + νI)⁻¹ Aᵀb with the smallest ν ≥ 0 that brings it inside."""
    values, vectors = eigen(matrix.T @ matrix)
    values = jnp.maximum(values, jnp.finfo(values.dtype).eps * values[-1])
    pull = vectors.T @ (matrix.T @ target)

    def coordinates(multiplier: Array) -> Array:
        shifted = values + multiplier
        return pull / jnp.where(shifted > 0, shifted, 1)

    def halve(_: int, bracket: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bracket
        middle = (low + high) / 2
        outside = jnp.linalg.norm(coordinates(middle)) > radius
        return jnp.where(outside, middle, low), jnp.where(outside, high, middle)

    zero = jnp.zeros((), values.dtype)
    _, high = lax.fori_loop(0, BISECTIONS, halve, (zero, jnp.linalg.norm(pull) / radius))
    inside = jnp.linalg.norm(coordinates(zero)) <= radius
    return vectors @ coordinates(jnp.where(inside, zero, high))
