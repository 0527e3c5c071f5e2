"""The ridge GLM fit with a linear tilt: the one optimization problem behind every GLM policy.

    θ̂ = argmin_θ  F(θ),    F(θ) = Σ_x [ N_x b(xᵀθ) − Y_x xᵀθ ] − Sᵀθ + ½ λ ‖θ‖²

with counts N_x and reward sums Y_x from a history (`glm.history`), ridge λ and tilt S.  Without a tilt it is the
penalized maximum-likelihood estimate; with S ~ N(0, a² Σ N_x x xᵀ) it is GLM-FPL's estimate on perturbed rewards.

    ∇F(θ)  = Σ_x (N_x μ(xᵀθ) − Y_x) x − S + λθ
    ∇²F(θ) = Σ_x N_x μ̇(xᵀθ) x xᵀ + λI

**Why not plain Newton.**  Early in a bandit run, or with tilts as large as the theory's, the unpenalized optimum
does not exist and the penalized one lies far out, where the curvature is nearly flat.  An undamped step overshoots
to infinity.

**Why this converges.**  Let δ be the Newton direction and r = max_x |xᵀδ| over the rows seen.  In a family with
self-concordance M the derivative of s ↦ F(θ + sδ) is not positive up to s = log(1 + Mr) / (Mr): such a step always
goes down.  For small r that is nearly the full step, which is taken.  For larger r the minimum along δ is searched
above it, at the cost of one mean per row and trial, and no new curvature.  So F falls in every step, from any
start, in every family.

**When it stops.**  After a full step with r ≤ `tolerance`; the Newton error is quadratic, so the scores then err by
about r².  Or earlier, where the gradient is nothing but rounding.  What `Fit` reports is measured afterwards, at the
answer.

**What `converged` means.**  `score_error` bounds the error of the scores xᵀθ of all rows seen, rounding included
(`glm.certificate`); `converged` says that it is at most the cube root of the dtype's precision, which is 0.005 in
float32 and 6e-6 in float64 (in the Gaussian family, that share of the largest mean reward of a row, if above 1), or at
most twice the square of the tolerance if that is more.  Where rounding makes such an answer impossible, it says no.

**What it cannot do.**  Where all rewards of an arm are the same and the ridge is small next to N x², the best score
lies so far out that N μ and Y differ in their last digits only.  In float32 that takes an N x² of about 1e4 ridges.
And a score that is a small difference of numbers beyond 1e6 is lost.  The answer is still finite there, and not
`converged`: scale the features to norms of about 1, give a larger ridge, or use float64, where both come 1e9 times
later.

Reference: Bach, Self-concordant analysis for logistic regression, 2010 (the bound on curvature behind the damping).
"""

from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import ArrayLike

from explorax import errors
from explorax.checks import as_floats, check_magnitude, is_known, is_number
from explorax.glm import certificate, families
from explorax.glm.families import Family
from explorax.glm.history import Grouped, weighted_gram
from explorax.glm.linalg import factorize, spans
from explorax.programs import bounded_jit

MAX_STEPS = 1000  # Newton steps; benchmarks/fit_stress.py prints how many are ever used
PATIENCE = 50  # steps after which a gradient that is small enough will do, where rounding keeps it from getting smaller
FULL_STEP = 0.5  # r up to which the full Newton step is taken; self-concordance proves it goes down up to 1.25 / M
SEARCH_RATIO = 1.01  # how closely the minimum along a direction is bracketed
SEARCH_TRIALS = 40

YES, NO, UNKNOWN = 1, 0, -1  # does the unpenalized maximum-likelihood estimate exist?


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


class Fit(NamedTuple):
    """An estimate and how far to trust it."""

    theta: Array  # (d,) θ̂
    converged: Array  # () whether `score_error` is at most the cube root of the precision, or what the tolerance allows
    iterations: Array  # () Newton steps taken
    gradient_error: Array  # () largest |∂F/∂θ_j| relative to the size of the terms that cancel in it
    mle_exists: Array  # () YES, NO or UNKNOWN: would there be a unique estimate without the ridge?
    score_error: Array  # () bound on the error of xᵀθ for every row seen, rounding included


class Problem(NamedTuple):
    """F, with the rows that were never seen set to zero so that they cannot overflow."""

    features: Array
    counts: Array
    sums: Array
    tilt: Array
    ridge: float | Array


def loss(family: Family, problem: Problem, theta: Array) -> Array:
    """F(θ)."""
    scores = problem.features @ theta
    terms = problem.counts * family.cumulant(scores) - problem.sums * scores
    return jnp.sum(terms) - problem.tilt @ theta + problem.ridge / 2 * theta @ theta


def gradient(family: Family, problem: Problem, theta: Array) -> Array:
    """∇F(θ)."""
    residuals = problem.counts * family.mean(problem.features @ theta) - problem.sums
    return residuals @ problem.features - problem.tilt + problem.ridge * theta


def hessian(family: Family, problem: Problem, theta: Array) -> Array:
    """∇²F(θ)."""
    weights = problem.counts * family.slope(problem.features @ theta)
    identity = jnp.eye(theta.shape[-1], dtype=theta.dtype)
    return weighted_gram(problem.features, weights) + problem.ridge * identity


def posed(history: WeightedRows, *, ridge: float | Array, tilt: Array | None = None) -> Problem:
    """The optimization problem that a history, a ridge and a tilt make."""
    seen = history.counts > 0
    features = jnp.where(seen[:, None], history.features, 0)
    if tilt is None:
        tilt = jnp.zeros_like(features[0])
    return Problem(features, history.counts, jnp.where(seen, history.sums, 0), tilt, ridge)


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
    max_steps: int,
) -> Fit:
    """Damped Newton steps until the scores of the rows seen stand still."""
    problem = posed(rows, ridge=ridge, tilt=tilt)
    eps = float(jnp.finfo(problem.tilt.dtype).eps)
    rounding, enough = 16 * eps, max(eps ** (2 / 3), tolerance**2)
    zero = jnp.zeros_like(problem.tilt)
    if start is None:
        start = zero
    else:
        start = jnp.where(loss(family, problem, start) <= loss(family, problem, zero), start, zero)

    def step(carry: tuple[Array, Array, Array, Array, Array]) -> tuple[Array, Array, Array, Array, Array]:
        theta, steps, _, _, _ = carry
        factor = factorize(hessian(family, problem, theta))
        direction = -factor.solve(gradient(family, problem, theta))
        moves = problem.features @ direction
        largest = jnp.max(jnp.abs(moves))
        length = jnp.ones_like(largest)
        if family.self_concordance > 0:
            length = lax.cond(
                family.self_concordance * largest > FULL_STEP,
                lambda: step_length(family, problem, theta, direction, moves, largest),
                lambda: length,
            )
        moved = theta + length * direction
        # Where the gradient is nothing but rounding a step would be noise; one that overflows is not taken either.
        bound = jnp.where(steps < PATIENCE, rounding, enough)
        stay = (gradient_error(family, problem, theta) <= bound) | ~jnp.all(jnp.isfinite(moved))
        # A step that is not taken is what scores are off by; one taken in full leaves what the curvature changed by.
        left = jnp.where(length == 1, largest * jnp.expm1(family.self_concordance * largest), jnp.inf)
        left = jnp.where(stay, largest, left)
        imprecise = certificate.left_by_factor(factor, direction, ridge)
        return jnp.where(stay, theta, moved), steps + 1, stay | (largest <= tolerance), left, imprecise

    unknown = jnp.full_like(zero[0], jnp.inf)
    theta, steps, _, left, imprecise = lax.while_loop(
        lambda carry: (carry[1] < max_steps) & ~carry[2],
        step,
        (start, jnp.zeros((), int), jnp.asarray(False), unknown, unknown),
    )
    off = left + rounding_error(family, problem, theta, imprecise)
    converged = off <= allowed_error(family, problem, tolerance)
    error, exists = gradient_error(family, problem, theta), existence(family, problem, theta)
    return Fit(theta, converged, steps, error, exists, off)


def allowed_error(family: Family, rows: WeightedRows, tolerance: float, perturbation: float | Array = 0.0) -> Array:
    """Return the `score_error` up to which a fit with this tolerance has converged.

    `perturbation` is what the tilt of a draw does to scores (`certificate.allowed`).
    """
    return certificate.allowed(family, rows.counts, rows.sums, 2 * tolerance**2, perturbation)


def rounding_error(family: Family, problem: Problem, theta: Array, others: float | Array = 0.0) -> Array:
    """A bound on what rounding, and other gradients of that size in the norm of H⁻¹, do to the scores of rows seen."""
    rows, counts, sums, _, ridge = problem
    sizes, lengths = jnp.abs(rows) @ jnp.abs(theta), jnp.sqrt(jnp.sum(rows**2, axis=1))
    return certificate.score_error(family, counts, sums, rows @ theta, sizes, lengths, theta, ridge, others)


def step_length(
    family: Family, problem: Problem, theta: Array, direction: Array, moves: Array, largest: Array
) -> Array:
    """The step along a Newton direction that all but minimizes F there, never past the minimum.

    The derivative φ'(s) = Σ N_x μ(xᵀθ + s xᵀδ) xᵀδ − … is increasing in s.  It is not positive at the safe step
    log(1 + Mr) / (Mr); the first s where it is gets bracketed by 1, 4, 64, … and then by halving the bracket on
    a log scale, since the two ends can be many powers of ten apart.  The lower end is returned.
    """
    scores = problem.features @ theta
    constant = problem.ridge * theta @ direction - problem.sums @ moves - problem.tilt @ direction
    growth = problem.ridge * direction @ direction

    def goes_down(length: Array) -> Array:
        means = family.mean(scores + length * moves)
        return constant + growth * length + jnp.sum(problem.counts * means * moves) <= 0

    def narrow(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        low, high, trials = carry
        further = jnp.where(low < 1, 1, jnp.minimum(4 * low**2, 1e9 * low))
        trial = jnp.where(jnp.isinf(high), further, jnp.sqrt(low) * jnp.sqrt(high))
        down = goes_down(trial)
        return jnp.where(down, trial, low), jnp.where(down, high, trial), trials + 1

    radius = family.self_concordance * largest
    low, _, _ = lax.while_loop(
        lambda carry: (carry[1] > SEARCH_RATIO * carry[0]) & (carry[2] < SEARCH_TRIALS),
        narrow,
        (jnp.log1p(radius) / radius, jnp.full_like(radius, jnp.inf), jnp.zeros((), int)),
    )
    return low


def gradient_error(family: Family, problem: Problem, theta: Array) -> Array:
    """The largest gradient entry, relative to the size of the terms that cancel in it.

    Among these terms is what the rounding of the scores does to the means: a score that is a difference of large
    numbers is only known to a blur, and the gradient no better than the blur allows.
    """
    eps = jnp.finfo(theta.dtype).eps
    sizes = jnp.abs(problem.features)
    scores = problem.features @ theta
    blur = theta.shape[-1] * eps * (sizes @ jnp.abs(theta))
    blurred = (family.mean(scores + blur) - family.mean(scores - blur)) / eps
    terms = problem.counts * (jnp.abs(family.mean(scores)) + blurred) + jnp.abs(problem.sums)
    terms = jnp.minimum(terms, jnp.finfo(theta.dtype).max ** 0.5)  # so that none is infinite times zero
    total = terms @ sizes + jnp.abs(problem.tilt) + problem.ridge * jnp.abs(theta)
    error = jnp.abs(gradient(family, problem, theta)) / jnp.where(total > 0, total, 1)
    return jnp.where(jnp.all(jnp.isfinite(error)), jnp.max(error), jnp.inf)


def existence(family: Family, problem: Problem, theta: Array) -> Array:
    """Whether the estimate without the ridge exists and is unique, as far as the penalized one θ can tell.

    It exists if and only if the rows seen span the space and the target T = Σ Y_x x + S is Σ N_x u_x x for some u
    inside the range of means.  Two certificates, each a proof up to rounding:

    YES   one unpenalized Newton step v gives u_x = μ(xᵀθ) + μ̇(xᵀθ) xᵀv with Σ N_x u_x x = T, all inside the range
    NO    the rows do not span, or the loss falls forever along θ: Tᵀθ ≥ sup_u Σ N_x u_x xᵀθ
    """
    low, high = family.mean_range
    precision = jnp.finfo(theta.dtype).eps ** (2 / 3)
    seen = problem.counts > 0
    scores = problem.features @ theta

    unpenalized = problem._replace(ridge=0.0)
    step = factorize(hessian(family, unpenalized, theta)).solve(-gradient(family, unpenalized, theta))
    means = family.mean(scores) + family.slope(scores) * (problem.features @ step)
    # The certificate holds only if the step really solved its equation.
    residual = (problem.counts * means - problem.sums) @ problem.features - problem.tilt
    terms = problem.counts * jnp.abs(means) + jnp.abs(problem.sums)
    sizes = terms @ jnp.abs(problem.features) + jnp.abs(problem.tilt)
    solved = jnp.all(jnp.abs(residual) <= precision * sizes)
    inside = jnp.all(jnp.where(seen, (means > low + precision) & (means < high - precision), True))

    # How far each row could still go along θ: N · sup u · score − Y · score, exactly zero at the end of the range.
    end = jnp.where(scores > 0, high, low)
    room = jnp.where(seen & (scores != 0), (problem.counts * end - problem.sums) * scores, 0)
    recedes = (problem.tilt @ theta >= jnp.sum(room)) & jnp.any(scores != 0)

    verdict = jnp.where(inside & solved, YES, jnp.where(recedes, NO, UNKNOWN))
    full_rank = spans(factorize(weighted_gram(problem.features, problem.counts)))
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
