"""What memories compute from their rows: the estimate with a tilt, a root of the inverse curvature, widths of arms."""

import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.glm.fit import Fit, allowed_error
from explorax.glm.history import Grouped, Rows
from explorax.glm.linalg import factorize
from explorax.glm.memory.base import Estimator
from explorax.glm.problem import WeightedRows, hessian, posed


def tilted_fit(
    estimator: Estimator, past: Grouped | Rows, ridge: Array, theta: Array, converged: Array, tilt: Array
) -> Fit:
    """Fit a past with a tilt, starting from the estimate θ without it, and judge convergence as that of a draw."""
    found = estimator.fit_tilted(past, ridge, theta, tilt)
    last_step = estimator.last_step(tilt.dtype)

    def is_right(past: Grouped | Rows, move: Array, score_error: Array) -> Array:
        moved = posed(past, ridge=0.0).largest(past.features @ move)
        return score_error <= allowed_error(estimator.family, past, last_step, moved)

    # A draw around an estimate that is right itself may err by a share of its noise.
    looked_at = past, found.theta - theta, found.score_error
    right = where_needed(~found.converged & converged, is_right, looked_at, found.converged)
    return found._replace(converged=right)


def exact_root(estimator: Estimator, past: WeightedRows, ridge: Array, theta: Array) -> Array:
    """Compute a root W of the inverse curvature, W Wᵀ = H(θ)⁻¹, from the rows."""
    return factorize(hessian(estimator.family, posed(past, ridge=ridge), theta)).inverse_root()


def exact_widths(arms: Array, gram: Array, floor: float | Array) -> Array:
    """Compute ‖x_i‖ of each arm in the norm of (G + floor I)⁻¹, from the Gram matrix G."""
    return factorize(gram + floor * jnp.eye(arms.shape[1], dtype=arms.dtype)).inverse_norms(arms)
