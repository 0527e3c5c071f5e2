"""The ridge GLM fit with a linear tilt: the one optimization problem behind every GLM policy.

    θ̂ = argmin_θ  F(θ),    F(θ) = Σ_x [ N_x b(xᵀθ) − Y_x xᵀθ ] − Sᵀθ + ½ λ ‖θ‖²

with counts N_x and reward sums Y_x from a history (`glm.history`), ridge λ and tilt S.  Without a tilt it is the
penalized maximum-likelihood estimate; with S ~ N(0, a² Σ N_x x xᵀ) it is GLM-FPL's estimate on perturbed rewards.

F, its gradient and its curvature are in `glm.problem`, the damped Newton steps in `glm.newton`.

**When it stops.**  After a full step that changes no score by more than r ≤ `tolerance`; the Newton error is quadratic,
so the scores then err by about r².  Or earlier, where the gradient is nothing but rounding.  What `Fit` reports is
measured afterwards, at the answer.

**What `converged` means.**  `score_error` bounds the error of the scores xᵀθ of all rows seen, rounding included
(`glm.certificate`); `converged` says that it is at most the cube root of the dtype's precision, which is 0.005 in
float32 and 6e-6 in float64 (in the Gaussian family, that share of the largest mean reward of a row, if above 1), or at
most twice the square of the tolerance if that is more.  Where rounding makes such an answer impossible, it says no.

**What it cannot do.**  Where all rewards of an arm are the same and the ridge is small next to N x², the best score
lies so far out that N μ and Y differ in their last digits only.  In float32 that takes an N x² of about 1e4 ridges.
And a score that is a small difference of numbers beyond 1e6 is lost.  The answer is still finite there, and not
`converged`: scale the features to norms of about 1, give a larger ridge, or use float64, where both come 1e9 times
later.
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
    """An estimate and how far to trust it."""

    theta: Array  # (d,) θ̂
    converged: Array  # () whether `score_error` is at most the cube root of the precision, or what the tolerance allows
    iterations: Array  # () Newton steps taken
    gradient_error: Array  # () largest |∂F/∂θ_j| relative to the size of the terms that cancel in it
    mle_exists: Array  # () YES, NO or UNKNOWN: would there be a unique estimate without the ridge?
    score_error: Array  # () bound on the error of xᵀθ for every row seen, rounding included


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
    """Fit a GLM to rows with counts and sums of rewards.

    Args:
        family: The family of the rewards: "bernoulli", "gaussian", "poisson", or a `Family`.
        history: The rows with their `features`, `counts` and `sums`.
        ridge: λ.  Zero asks for the plain maximum-likelihood estimate, which may not exist.
        tilt: S, a (d,) vector that is added to the sum of rewards times features.
        start: A (d,) warm start, ignored where zero is a better one.
        tolerance: The size of the last Newton step in units of the linear score xᵀθ, by default four times the square
            root of the dtype's precision.
        max_steps: Newton steps that may be made.

    Returns:
        The estimate, whether the fit has converged, and what else is known of it.

    Raises:
        NoMaximumLikelihood: If `ridge` is zero and the estimate does not provably exist; inside compiled code zero is
            possible in the Gaussian family only.
        InvalidArgument: If an argument is not in its range, or does not go with the others.
    """
    family = families.get(family)
    check_fit_settings(ridge, tolerance)
    if not (isinstance(max_steps, int) and max_steps >= 1):
        raise errors.InvalidArgument(f"max_steps={max_steps!r} must be at least 1")
    rows, tilt, start = check_arrays(history, tilt, start)
    if ridge == 0 and family is not families.gaussian and not is_known(*rows, tilt):
        raise errors.NoMaximumLikelihood(
            f"ridge=0 inside compiled code: whether the {family.name} estimate exists cannot be checked there, "
            "and early in a bandit run it never does: give ridge > 0, for example 1e-6"
        )
    tolerance = default_tolerance(rows.features.dtype) if tolerance is None else tolerance
    result = newton(family, rows, float(ridge), tilt, start, float(tolerance), max_steps)
    if ridge == 0 and is_known(result.theta) and not (result.converged and result.mle_exists == YES):
        raise errors.NoMaximumLikelihood(
            f"ridge=0: the {family.name} maximum-likelihood estimate cannot be shown to exist for this history "
            "(too few or separated observations): give ridge > 0, for example 1e-6"
        )
    return result


def default_tolerance(dtype: jnp.dtype) -> float:
    """A step this small, in scores, leaves an error at the level of rounding."""
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
    """Return the estimate that damped Newton steps lead to, until the scores of the rows seen stand still."""
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
    """Return how steps are made here: with a factor of the curvature at every place."""
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
    """Return the start if it is no worse than zero, else zero."""
    zero = jnp.zeros_like(problem.tilt)
    if start is None:
        return zero
    return jnp.where(loss(family, problem, start) <= loss(family, problem, zero), start, zero)


def allowed_error(family: Family, rows: WeightedRows, tolerance: float, perturbation: float | Array = 0.0) -> Array:
    """Return the `score_error` up to which a fit with this tolerance has converged.

    `perturbation` is what the tilt of a draw does to scores (`certificate.allowed`).
    """
    return certificate.allowed(family, rows.counts, rows.sums, 2 * tolerance**2, perturbation)


def rounding_error(family: Family, problem: Problem, theta: Array, others: float | Array = 0.0) -> Array:
    """A bound on what rounding, and other gradients of that size in the norm of H⁻¹, do to the scores of rows seen."""
    sizes = certificate.Sizes(problem.rows.magnitudes().scores(jnp.abs(theta)), problem.rows.lengths())
    return certificate.score_error(family, problem, theta, problem.rows.scores(theta), sizes, others)


def existence(family: Family, problem: Problem, theta: Array) -> Array:
    """Whether the estimate without the ridge exists and is unique, as far as the penalized one θ can tell.

    It exists if and only if the rows seen span the space and the target T = Σ Y_x x + S is Σ N_x u_x x for some u
    inside the range of means.  Two certificates, each a proof up to rounding:

    YES   one unpenalized Newton step v gives u_x = μ(xᵀθ) + μ̇(xᵀθ) xᵀv with Σ N_x u_x x = T, all inside the range
    NO    the rows do not span, or the loss falls forever along θ: Tᵀθ ≥ sup_u Σ N_x u_x xᵀθ
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
    """Raise unless ridge and tolerance can be used."""
    if not (is_number(ridge) and ridge >= 0):
        raise errors.InvalidArgument(f"ridge={ridge!r} must be a finite number of at least 0, for example 1.0")
    if tolerance is not None and not (is_number(tolerance) and tolerance > 0):
        raise errors.InvalidArgument(f"tolerance={tolerance!r} must be a finite number above 0, for example 1e-6")


def check_arrays(
    history: WeightedRows, tilt: ArrayLike | None, start: ArrayLike | None
) -> tuple[Grouped, Array | None, Array | None]:
    """All arrays in the dtype of the features; raises for shapes or values that cannot be fitted."""
    features = as_floats("features", history.features)
    check_magnitude("features", features)
    if features.ndim != 2 or 0 in features.shape:
        raise errors.InvalidShape(
            f"features have shape {features.shape}: give a matrix with one row of features for each arm"
        )

    def like_features(name: str, values: ArrayLike, length: int) -> Array:
        array = as_floats(name, values, features.dtype)
        if array.shape != (length,):
            raise errors.InvalidShape(f"{name} has shape {array.shape} where features ask for {(length,)}")
        return array

    arms, size = features.shape
    rows = Grouped(features, like_features("counts", history.counts, arms), like_features("sums", history.sums, arms))
    if is_known(rows.counts) and np.any(np.asarray(rows.counts) < 0):
        raise errors.InvalidArgument("counts must not be negative: they say how often each row was seen")
    tilt = None if tilt is None else like_features("tilt", tilt, size)
    start = None if start is None else like_features("start", start, size)
    return rows, tilt, start
