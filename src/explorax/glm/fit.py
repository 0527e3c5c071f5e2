"""The ridge GLM fit with a linear tilt: the one optimization problem behind every GLM policy.

    θ̂ = argmin_θ  F(θ),    F(θ) = Σ_x [ N_x b(xᵀθ) − Y_x xᵀθ ] − Sᵀθ + ½ λ ‖θ‖²

with counts N_x and reward sums Y_x from a history (`glm.history`), ridge λ and tilt S.  Without a tilt, θ̂ is the
penalized maximum-likelihood estimate; with S ~ N(0, a² Σ N_x x xᵀ), it is GLM-FPL's estimate on perturbed rewards.

F, its gradient and its curvature are in `glm.problem`, the damped Newton steps in `glm.newton`.

**Stopping rule.**  The fit stops after a full step that changes no score by more than r ≤ `tolerance`; the Newton error
is quadratic, so the scores then err by about r².  It stops earlier if the gradient is nothing but rounding.  What `Fit`
reports is measured afterwards, at the answer.

**Convergence.**  `score_error` bounds the error of the scores xᵀθ of all rows seen, rounding included
(`glm.certificate`).  `converged` is true if this bound is at most the cube root of the dtype's precision, which is
0.005 in float32 and 6e-6 in float64 (in the Gaussian family, that share of the largest mean reward of a row, if above
1), or at most twice the square of the tolerance, if that is larger.  If rounding makes such an answer impossible,
`converged` is false.

**Limits.**  If all rewards of an arm are the same and the ridge is small compared with N x², the best score lies so far
out that N μ and Y differ only in their last digits.  In float32 this happens if N x² is about 1e4 times the ridge.  A
score that is a small difference of numbers beyond 1e6 is lost as well.  The answer is then still finite, but not
`converged`.  Scale the features to norms of about 1, give a larger ridge, or use float64, where both limits are 1e9
times farther away.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import errors
from explorax.checks import as_floats, check_magnitude, is_known, is_number
from explorax.glm import certificate, families
from explorax.glm.families import Family
from explorax.glm.history import Grouped
from explorax.glm.linalg import factorize, spans
from explorax.glm.newton import Aim, Method, Place, begin, descend, newton_length, step, whole
from explorax.glm.problem import Problem, WeightedRows, enough, gradient, gradient_error, hessian, loss, posed
from explorax.programs import bounded_jit

MAX_STEPS = 1000  # Newton steps; benchmarks/fit_stress.py prints how many are ever used
PATIENCE = 50  # steps after which a gradient that is small enough will do, where rounding keeps it from getting smaller

YES, NO, UNKNOWN = 1, 0, -1  # does the unpenalized maximum-likelihood estimate exist?


class Fit(NamedTuple):
    """The result of `explorax.fit`: an estimate, and how accurate it is.

    Attributes:
        theta: The estimate θ̂, a (d,) vector.
        converged: Whether `score_error` is small enough: at most the cube root of the dtype's precision, or twice the
            square of the tolerance.
        iterations: The number of Newton steps.
        gradient_error: The largest |∂F/∂θ_j|, relative to the size of the terms that cancel in it.
        mle_exists: Whether there is a unique maximum-likelihood estimate without the ridge: 1 if yes, 0 if no, −1 if
            this could not be decided.
        score_error: A bound on the error of the score xᵀθ̂ of every row seen, rounding included.
    """

    theta: Array
    converged: Array
    iterations: Array
    gradient_error: Array
    mle_exists: Array  # YES, NO or UNKNOWN
    score_error: Array


def fit(
    family: str | Family,
    history: WeightedRows,
    *,
    ridge: float = 1.0,
    tilt: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tolerance: float | None = None,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """Fit a generalized linear model with a ridge penalty to rows with counts and sums of rewards.

    Args:
        family: The reward family: "bernoulli", "gaussian", "poisson", or a `Family`.
        history: The past, as a record with the attributes `features` of shape (m, d), `counts` of shape (m,) and `sums`
            of shape (m,), for example a `glm.history.Grouped`.
        ridge: The penalty λ, at least 0.  Zero asks for the plain maximum-likelihood estimate, which may not exist.
            Default: 1.
        tilt: A (d,) vector S that is added to the sum of rewards times features.  Default: no tilt.
        start: A (d,) vector to start from; it is ignored if zero is a better start.  Default: zero.
        tolerance: The largest change of a score xᵀθ in the last Newton step, above 0.  Default: four times the square
            root of the dtype's precision.
        max_steps: The largest number of Newton steps.  Default: 1000.

    Returns:
        The estimate, whether the fit has converged, and how accurate it is.

    Raises:
        NoMaximumLikelihood: If `ridge` is zero and the estimate cannot be shown to exist.  Inside compiled code, a
            ridge of zero is possible in the Gaussian family only.
        UnknownName: If there is no reward family of that name.
        InvalidShape: If arrays do not have the shapes above.
        InvalidFeatures: If an array has NaN, infinity or numbers too large to be squared.
        InvalidArgument: If `ridge`, `tolerance`, `max_steps` or a count is out of its range.

    Example:
        >>> import explorax
        >>> from explorax.glm.history import Grouped
        >>> past = Grouped(features=[[1.0, 0.0], [0.0, 1.0]], counts=[4, 4], sums=[3, 1])  # two arms, four pulls each
        >>> found = explorax.fit("bernoulli", past, ridge=1.0)
        >>> [round(float(number), 2) for number in found.theta]
        [0.51, -0.51]
        >>> bool(found.converged)
        True
    """
    family = families.get(family)
    check_fit_settings(ridge, tolerance)
    if not (isinstance(max_steps, int) and max_steps >= 1):
        raise errors.InvalidArgument(
            f"max_steps must be a whole number of at least 1, got {max_steps!r}. Leave it out for {MAX_STEPS}."
        )
    rows, tilt, start = check_arrays(history, tilt, start)
    if ridge == 0 and family is not families.gaussian and not is_known(*rows, tilt):
        raise errors.NoMaximumLikelihood(
            "ridge must be above 0 inside compiled code, got 0. Whether an estimate without a ridge exists in the "
            f"{family.name} family cannot be checked there. Give ridge > 0, for example 1e-6."
        )
    tolerance = default_tolerance(rows.features.dtype) if tolerance is None else tolerance
    result = newton(family, rows, float(ridge), tilt, start, float(tolerance), max_steps)
    if ridge == 0 and is_known(result.theta) and not (result.converged and result.mle_exists == YES):
        raise errors.NoMaximumLikelihood(
            f"ridge must be above 0 for this history, got 0. Its {family.name} maximum-likelihood estimate cannot be "
            "shown to exist: observations are too few or separated. Give ridge > 0, for example 1e-6."
        )
    return result


def default_tolerance(dtype: jnp.dtype) -> float:
    """Return the default tolerance of a fit: a last step so small, in scores, that only rounding errors remain."""
    return 4 * float(jnp.finfo(dtype).eps) ** 0.5


@partial(bounded_jit, static_argnames=("family", "tolerance", "max_steps"))
@jax.default_matmul_precision("highest")
def newton(
    family: Family,
    rows: Grouped,
    ridge: float,
    tilt: Array | None,
    start: Array | None,
    tolerance: float,
    max_steps: int = MAX_STEPS,
) -> Fit:
    """Fit by damped Newton steps until the scores of the rows seen stand still; the compiled part of `fit`."""
    problem = posed(rows, ridge=ridge, tilt=tilt)
    method = with_a_factor(family, problem, tolerance)
    first = begin(better_start(family, problem, start), note=jnp.full_like(problem.tilt[0], jnp.inf))
    end = descend(partial(step, problem, method), first, max_steps)
    # A step that is not taken is what scores are off by; one taken in full leaves what the curvature changed by.
    left = jnp.where(end.length == 1, end.reach * jnp.expm1(family.self_concordance * end.reach), jnp.inf)
    left = jnp.where(end.length == 0, end.reach, left)
    off = left + rounding_error(family, problem, end.theta, end.note)
    converged = off <= allowed_error(family, rows, tolerance)
    error, exists = gradient_error(family, problem, end.theta), existence(family, problem, end.theta)
    return Fit(end.theta, converged, end.steps, error, exists, off)


def with_a_factor(family: Family, problem: Problem, tolerance: float) -> Method:
    """Build the method of exact Newton steps: the curvature ∇²F is factored at every place."""
    dtype = problem.tilt.dtype
    rounding = 16 * float(jnp.finfo(dtype).eps)

    def aim(now: Place) -> Aim:
        factor = factorize(hessian(family, problem, now.theta))
        direction = -factor.solve(gradient(family, problem, now.theta))
        imprecise = certificate.left_by_factor(factor, direction, problem.ridge)
        return Aim(direction, jnp.isfinite(jnp.sum(direction)), note=imprecise)

    def rests(now: Place) -> Array:
        bound = jnp.where(now.steps < PATIENCE, rounding, enough(dtype, tolerance))
        return gradient_error(family, problem, now.theta) <= bound

    return Method(aim, partial(newton_length, family, closely=True), whole, tolerance, rests)


def better_start(family: Family, problem: Problem, start: Array | None) -> Array:
    """Return the given start if F is no larger there than at zero, else zero."""
    zero = jnp.zeros_like(problem.tilt)
    if start is None:
        return zero
    return jnp.where(loss(family, problem, start) <= loss(family, problem, zero), start, zero)


def allowed_error(family: Family, rows: WeightedRows, tolerance: float, perturbation: float | Array = 0.0) -> Array:
    """Return the largest `score_error` with which a fit counts as converged.

    Args:
        family: The reward family.
        rows: The history of the fit.
        tolerance: The tolerance of the fit, as the size of its last step in scores.
        perturbation: The largest change of a score that the tilt of a draw causes (`certificate.allowed`).

    Returns:
        The largest error, a scalar.
    """
    return certificate.allowed(family, rows.counts, rows.sums, 2 * tolerance**2, perturbation)


def rounding_error(family: Family, problem: Problem, theta: Array, others: float | Array = 0.0) -> Array:
    """Bound the error of the scores of rows seen that comes from rounding, and from `others` added to ‖g‖ in H⁻¹."""
    sizes = certificate.Sizes(problem.rows.magnitudes().scores(jnp.abs(theta)), problem.rows.lengths())
    return certificate.score_error(family, problem, theta, problem.rows.scores(theta), sizes, others)


def existence(family: Family, problem: Problem, theta: Array) -> Array:
    """Decide whether the estimate without the ridge exists and is unique, as far as the penalized estimate θ tells.

    It exists if and only if the rows seen span the space and the target T = Σ Y_x x + S is Σ N_x u_x x for some u
    inside the range of means.  There are two certificates, each a proof up to rounding:

    YES   one unpenalized Newton step v gives u_x = μ(xᵀθ) + μ̇(xᵀθ) xᵀv with Σ N_x u_x x = T, all inside the range
    NO    the rows do not span, or the loss falls forever along θ: Tᵀθ ≥ sup_u Σ N_x u_x xᵀθ

    Args:
        family: The reward family.
        problem: The optimization problem F.
        theta: The penalized estimate, a (d,) vector.

    Returns:
        YES, NO or UNKNOWN, a scalar.
    """
    low, high = family.mean_range
    precision = jnp.finfo(theta.dtype).eps ** (2 / 3)
    seen, rows = problem.counts > 0, problem.rows
    scores = rows.scores(theta)

    unpenalized = problem._replace(ridge=0.0)
    step = factorize(hessian(family, unpenalized, theta)).solve(-gradient(family, unpenalized, theta))
    means = family.mean(scores) + family.slope(scores) * rows.scores(step)
    # The certificate holds only if the step really solved its equation.
    residual = rows.pull(problem.counts * means - problem.sums) - problem.tilt
    terms = problem.counts * jnp.abs(means) + jnp.abs(problem.sums)
    sizes = rows.magnitudes().pull(terms) + jnp.abs(problem.tilt)
    solved = jnp.all(jnp.abs(residual) <= precision * sizes)
    inside = jnp.all(jnp.where(seen, (means > low + precision) & (means < high - precision), True))

    # How far each row could still go along θ: N · sup u · score − Y · score, exactly zero at the end of the range.
    end = jnp.where(scores > 0, high, low)
    room = jnp.where(seen & (scores != 0), (problem.counts * end - problem.sums) * scores, 0)
    recedes = (problem.tilt @ theta >= jnp.sum(room)) & jnp.any(scores != 0)

    verdict = jnp.where(inside & solved, YES, jnp.where(recedes, NO, UNKNOWN))
    full_rank = spans(factorize(rows.gram(problem.counts)))
    return jnp.where(full_rank, verdict, NO)


def check_fit_settings(ridge: float, tolerance: float | None) -> None:
    """Raise `InvalidArgument` unless the ridge is at least 0 and the tolerance, if given, is above 0."""
    if not (is_number(ridge) and ridge >= 0):
        raise errors.InvalidArgument(
            f"ridge must be a finite number of at least 0, got {ridge!r}. Give, for example, 1.0."
        )
    if tolerance is not None and not (is_number(tolerance) and tolerance > 0):
        raise errors.InvalidArgument(
            f"tolerance must be a finite number above 0, got {tolerance!r}. Leave it out, or give, for example, 1e-6."
        )


def check_arrays(
    history: WeightedRows, tilt: ArrayLike | None, start: ArrayLike | None
) -> tuple[Grouped, Array | None, Array | None]:
    """Convert all arrays of a fit to the dtype of the features, and raise if their shapes or values do not fit."""
    features = as_floats("features", history.features)
    check_magnitude("features", features)
    if features.ndim != 2 or 0 in features.shape:
        raise errors.InvalidShape(
            f"features must be a matrix with one row of features for each arm, got shape {features.shape}. "
            "Stack the feature vectors of the arms."
        )

    def like_features(name: str, values: ArrayLike, length: int) -> Array:
        array = as_floats(name, values, features.dtype)
        if array.shape != (length,):
            raise errors.InvalidShape(
                f"{name} must have shape {(length,)}, got shape {array.shape}. It has to match features of shape "
                f"{features.shape}."
            )
        return array

    arms, size = features.shape
    rows = Grouped(features, like_features("counts", history.counts, arms), like_features("sums", history.sums, arms))
    if is_known(rows.counts) and np.any(np.asarray(rows.counts) < 0):
        raise errors.InvalidArgument(
            f"counts must be at least 0, got {np.min(rows.counts):g}. Count how often each row was seen."
        )
    tilt = None if tilt is None else like_features("tilt", tilt, size)
    start = None if start is None else like_features("start", start, size)
    return rows, tilt, start
