"""A prior of the parameters as rewards: those that leave a fit where an earlier model was.

A prior has a mean θ₀ and a precision Λ₀, for example the estimate of an earlier model and its curvature.  It is brought
into a fit as d rewards with weights, one along each eigenvector u_i of Λ₀ − λI with eigenvalue e_i:

    weight  w_i = e_i / μ̇(u_iᵀθ₀),    sum of rewards  w_i y_i = w_i μ(u_iᵀθ₀) + λ u_iᵀθ₀

Before any other reward the penalized loss then has its minimum exactly at θ₀ and the curvature exactly Λ₀ there: the
gradient Σ (w_i μ(u_iᵀθ₀) − w_i y_i) u_i + λθ₀ is zero, and the curvature Σ w_i μ̇(u_iᵀθ₀) u_i u_iᵀ + λI is Λ₀.  For
least squares that is the Gaussian prior N(θ₀, Λ₀⁻¹) itself.  In other families it has the same mode and curvature, and
the shape of the family's own likelihood: a prior like the past that the earlier model had learned.

Reference: Bedrick, Christensen & Johnson, A New Perspective on Priors for Generalized Linear Models, JASA 1996.
"""

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from explorax.errors import InvalidArgument, InvalidShape
from explorax.glm.families import Family
from explorax.glm.weighted import Weighted

SMALLEST = 1e-9  # the least share of an eigenvalue of the precision that must be left beside the ridge


def rewards_of_prior(family: Family, ridge: float, mean: ArrayLike, precision: ArrayLike) -> Weighted:
    """Return the rewards with weights that stand for a prior.

    Args:
        family: The reward family.
        ridge: The penalty λ of the fit.
        mean: The mean θ₀, of shape (d,).
        precision: The precision Λ₀, a symmetric matrix of shape (d, d) that is larger than λI in every direction.

    Returns:
        The rewards, one for each direction, whose arms are numbered from 0 on.

    Raises:
        InvalidArgument: If the precision is not a symmetric matrix that is larger than λI.
        InvalidShape: If the shapes do not fit.
    """
    center, matrix = np.asarray(mean, float), np.asarray(precision, float)
    if center.ndim != 1 or matrix.shape != (len(center), len(center)):
        raise InvalidShape(
            f"precision must be a matrix with a row and a column for each number of mean, got shape {matrix.shape} "
            f"with a mean of shape {center.shape}. Give arrays of shapes (d,) and (d, d)."
        )
    if not (np.isfinite(center).all() and np.isfinite(matrix).all()):
        raise InvalidArgument("mean and precision must be finite, got NaN or infinity. Fit the earlier model again.")
    if not np.allclose(matrix, matrix.T, rtol=1e-6, atol=1e-12 * np.abs(matrix).max(initial=0.0)):
        raise InvalidArgument("precision must be a symmetric matrix, got another one. Give the inverse covariance.")
    sizes, directions = np.linalg.eigh((matrix + matrix.T) / 2)
    left = sizes - ridge
    if not np.all(left > SMALLEST * np.abs(sizes).max(initial=0.0)):
        raise InvalidArgument(
            f"precision must be larger than the ridge {ridge:g} in every direction, got an eigenvalue of "
            f"{sizes.min():g}. The ridge is a prior, too: give the policy a smaller ridge."
        )
    scores = directions.T @ center
    means, slopes = (np.asarray(function(scores), float) for function in (family.mean, family.slope))
    with np.errstate(divide="ignore"):
        weights = left / slopes
    if not np.isfinite(weights).all():
        raise InvalidArgument(
            f"mean must give scores at which rewards vary, got scores up to {np.abs(scores).max():g}, where the family "
            f"{family.name!r} has none that do. Give a mean of moderate size."
        )
    found = np.arange(len(center)), directions.T, weights, means + ridge * scores / weights
    return Weighted(*map(jnp.asarray, found))
