"""Projection of an estimate onto a ball, in the metric of the mean rewards that it predicts.

    argmin_{‖θ‖ ≤ R}  ½ ‖g(θ) − g(θ̂)‖²_{G⁻¹},    g(θ) = Σ_x N_x μ(xᵀθ) x,    G = Σ_x N_x x xᵀ

An estimate inside the ball stays.  An estimate outside is moved by damped Gauss-Newton steps: with g linearized, the
problem is a quadratic on a ball (`glm.ball`).

Reference: Filippi, Cappé, Garivier & Szepesvári, Parametric Bandits: The Generalized Linear Case, NeurIPS 2010,
equation (6).
"""

from functools import partial

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.glm.ball import minimize_quadratic, of_curvature
from explorax.glm.families import Family
from explorax.glm.linalg import factorize
from explorax.glm.problem import WeightedRows, gradient, hessian, posed

STEPS = 60
HALVINGS = 30


def project(family: Family, history: WeightedRows, theta: Array, radius: float) -> Array:
    """Project an estimate onto a ball: return the θ with ‖θ‖ ≤ R whose predictions are nearest to its own."""
    problem = posed(history, ridge=0.0)
    metric = factorize(problem.rows.gram(problem.counts))
    predicted = gradient(family, problem, theta)

    def miss(candidate: Array) -> Array:
        """Return g(θ) − g(θ̂) as a vector whose Euclidean norm is the distance."""
        return metric.whiten(gradient(family, problem, candidate) - predicted)

    def improve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        current, steps, _ = carry
        jacobian = metric.whiten(hessian(family, problem, current)).T
        missed = miss(current)
        nearest = minimize_quadratic(partial(of_curvature, jacobian.T @ jacobian), jacobian.T @ missed, current, radius)
        step = nearest.theta - current
        distance = jnp.linalg.norm(missed)
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
