"""Damped Newton steps on F (`glm.problem`) with any curvature: one step, one line search, one loop.

A step δ changes the scores by xᵀδ, and is judged by its reach r = max_x |xᵀδ| over the rows seen.  As long as no score
changes by more than r, self-concordance bounds the change of the curvature by factors e^{±Mr}.

**Why not plain Newton.**  Early in a bandit run, or with tilts as large as the theory's, the unpenalized optimum
does not exist and the penalized one lies far out, where the curvature is nearly flat.  An undamped step overshoots
to infinity.

**Why this converges.**  Let δ be the Newton direction.  In a family with self-concordance M the derivative of
s ↦ F(θ + sδ) is not positive up to s = log(1 + Mr) / (Mr): such a step always goes down.  For small r that is nearly
the full step, and the full step is taken.  For larger r, the minimum along δ is searched beyond it, at the cost of one
mean per row and trial, and no new curvature.  So F falls in every step, from any start, in every family.

**What differs** from one fit to another is a `Method`:

    aim       the direction from a place, which depends on the curvature that is used
              (a factor of ∇²F in `glm.fit`, a kept root in `glm.warm`, elimination in registers in `glm.kernel`, a
              quadratic on a ball in `glm.ball`)
    length    the length of the step: `newton_length`, or `kept_length` for a curvature from another place
    error     the quantity that must be within the tolerance for a full step to be the last one: the reach of the step
              in `glm.fit` and `glm.ball` (`whole`), the error of scores after it in `glm.warm` and its kernel
              (`left_over`)
    rests     whether the gradient is nothing but rounding, so that a step would be noise.  This costs about as much as
              a gradient: `glm.fit` asks before every step, others once in a while (`patiently`)

A step that is not finite is not taken and ends the descent, because the next one would be the same.

Reference: Bach, Self-concordant analysis for logistic regression, 2010 (the bound on curvature behind the damping).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.batching import where_needed
from explorax.glm.families import Family
from explorax.glm.problem import Problem

FULL_STEP = 0.5  # Mr up to which the full Newton step is taken; self-concordance proves it goes down up to 1.25
LONGEST = 4.0  # Mr that a step with a kept curvature may have
FEW_TRIALS = 6  # step lengths tried for a longer one
MANY_TRIALS, SEARCH_RATIO = 40, 1.01  # or up to so many, until the minimum is bracketed as closely as that
# How a descent stands: one number, because a kernel whose loop carries two truth values does not compile (JAX 0.11).
GOING, CONVERGED, LOST = 0, 1, 2


class Aim(NamedTuple):
    """The direction of a step, with what is known of the curvature behind it."""

    direction: Array  # (d,) δ
    finite: Array  # () whether all of δ is finite; take a sum for it, because XLA's maximum may drop a NaN
    off: float | Array = 0.0  # () m: the curvature is that of the place up to factors e^{±m}
    note: Any = None  # arrays that the method needs at the next step, or after the last one


class Place(NamedTuple):
    """A point of a descent, and the step that led there."""

    theta: Array  # (d,) θ
    scores: Array | None  # (m,) xᵀθ of every row, carried along; if None, they are computed whenever they are needed
    steps: Array  # () taken so far
    status: Array  # () int32: GOING, CONVERGED or LOST
    step: Array  # (d,) the last step; infinite if steps did not get as small as wanted, but the gradient is rounding
    length: Array  # () the length of the last step, as a share of the direction; 0 if none was taken
    reach: Array  # () the reach of the whole direction
    note: Any = None  # the last `Aim.note`

    @property
    def converged(self) -> Array:
        """Whether the last step was small enough, or no step was needed."""
        return self.status == CONVERGED

    @property
    def lost(self) -> Array:
        """Whether the last step was not finite, and therefore not taken."""
        return self.status == LOST

    def scores_of(self, problem: Problem) -> Array:
        """Return the score xᵀθ of every row at this place."""
        return problem.rows.scores(self.theta) if self.scores is None else self.scores


class Line(NamedTuple):
    """The restriction of F to a line, s ↦ F(θ + sδ)."""

    counts: Array  # (m,) N_x
    scores: Array  # (m,) xᵀθ, and 0 for rows never seen
    moves: Array  # (m,) xᵀδ, and 0 for rows never seen
    slope: Array  # () the derivative at s = 0 without the means: λθᵀδ − Sᵀδ − Σ Y_x xᵀδ
    bend: Array  # () λδᵀδ

    def falls(self, family: Family, length: Array) -> Array:
        """Return whether the derivative of F along the line is not positive at s = `length`."""
        means = family.mean(self.scores + length * self.moves)
        return self.slope + self.bend * length + jnp.sum(self.counts * means * self.moves) <= 0


class Method(NamedTuple):
    """How a fit makes its steps: direction, length and stopping rule, as the head of this module explains."""

    aim: Callable[[Place], Aim]
    length: Callable[[Line, Array], Array]  # takes the line and the reach
    error: Callable[[Aim, Array], Array]  # takes the aim and the reach
    tolerance: float
    rests: Callable[[Place], Array] | None = None


def begin(theta: Array, scores: Array | None = None, note: Any = None) -> Place:
    """Return the first place of a descent."""
    going, zero = jnp.full((), GOING, jnp.int32), jnp.zeros((), theta.dtype)
    return Place(theta, scores, jnp.zeros((), int), going, jnp.zeros_like(theta), zero, zero, note)


def step(problem: Problem, method: Method, now: Place) -> Place:
    """Make one more step, unless it would be noise or not finite, and return the place after it."""
    aim = method.aim(now)
    moves = problem.rows.scores(aim.direction)
    reach = problem.largest(moves)
    length = method.length(line(problem, now, aim.direction, moves), reach)
    goes = aim.finite & jnp.isfinite(length * reach)
    lost, converged = ~goes, goes & (length == 1) & (method.error(aim, reach) <= method.tolerance)
    if method.rests is not None:
        rests = method.rests(now)
        goes, lost, converged = goes & ~rests, lost & ~rests, converged | rests
    return Place(
        theta=jnp.where(goes, now.theta + length * aim.direction, now.theta),
        scores=None if now.scores is None else jnp.where(goes, now.scores + length * moves, now.scores),
        steps=now.steps + 1,
        # Not by `where`, of which the kernel's compiler takes small whole numbers for truth values.
        status=CONVERGED * converged.astype(jnp.int32) + LOST * (lost & ~converged).astype(jnp.int32),
        step=jnp.where(goes, length * aim.direction, 0),
        length=jnp.where(goes, length, 0),
        reach=reach,
        note=aim.note,
    )


def line(problem: Problem, now: Place, direction: Array, moves: Array) -> Line:
    """Return the restriction of F to a line along a direction that changes the scores by `moves`."""
    slope = jnp.sum((problem.ridge * now.theta - problem.tilt) * direction) - jnp.sum(problem.sums * moves)
    bend = problem.ridge * jnp.sum(direction * direction)
    return Line(problem.counts, problem.of_seen(now.scores_of(problem)), problem.of_seen(moves), slope, bend)


def descend(step: Callable[[Place], Place], now: Place, most: int | Array) -> Place:
    """Make steps until they converge, or fail, or are as many as `most`, and return the last place."""
    return lax.while_loop(lambda now: (now.steps < most) & (now.status == GOING), step, now)


def patiently(
    step: Callable[[Place], Place], now: Place, most: int, patience: int, rests: Callable[[Place], Array]
) -> Place:
    """Make steps like `descend`, and stop after any `patience` steps if the gradient there is nothing but rounding."""

    def steps(now: Place) -> Place:
        now = descend(step, now, now.steps + patience)
        last = jnp.where(now.converged, now.step, jnp.inf)
        return now._replace(status=jnp.where(rests(now), CONVERGED, now.status), step=last)

    return descend(steps, now, most)


def newton_length(family: Family, line: Line, reach: Array, *, closely: bool) -> Array:
    """Return the length of a step along a Newton direction: 1 if its reach is small, else near the minimum of F.

    Args:
        family: The reward family.
        line: F along the direction.
        reach: The largest change of a score by the whole direction.
        closely: Whether to search the minimum closely.  If not, a few trials are made, which is enough for a direction
            that the next step corrects anyway.

    Returns:
        The length as a share of the direction, a scalar.
    """
    if family.self_concordance == 0:
        return jnp.ones_like(reach)
    far = family.self_concordance * reach > FULL_STEP

    def searched(line: Line, reach: Array) -> Array:
        return search(family, line, reach, closely=closely)

    # What is searched closely takes a loop, which is skipped where it can be.
    best = where_needed(far, searched, (line, reach), reach) if closely else searched(line, reach)
    return jnp.where(far, best, 1)


def search(family: Family, line: Line, reach: Array, *, closely: bool) -> Array:
    """Search the length of a step that nearly minimizes F along a Newton direction, never past the minimum.

    The derivative along the direction is increasing, and not positive at the safe length log(1 + Mr) / (Mr).  The root
    of the derivative is bracketed by the lengths 1, 4, 64, … and then by halving the bracket on a log scale, since its
    two ends can be many powers of ten apart.

    Returns:
        The lower end of the bracket, a scalar.
    """

    def narrow(low: Array, high: Array) -> tuple[Array, Array]:
        further = jnp.where(low < 1, 1, jnp.minimum(4 * low * low, 1e9 * low))
        trial = jnp.where(jnp.isinf(high), further, jnp.sqrt(low) * jnp.sqrt(high))
        falls = line.falls(family, trial)
        return jnp.where(falls, trial, low), jnp.where(falls, high, trial)

    radius = family.self_concordance * reach
    low, high = jnp.log1p(radius) / radius, jnp.full_like(radius, jnp.inf)
    if not closely:
        if jax.default_backend() == "cpu":  # where a loop compiles faster
            return lax.fori_loop(0, FEW_TRIALS, lambda _, ends: narrow(*ends), (low, high))[0]
        for _ in range(FEW_TRIALS):  # written out, because a loop in a loop is slow on a GPU
            low, high = narrow(low, high)
        return low
    return lax.while_loop(
        lambda carry: (carry[1] > SEARCH_RATIO * carry[0]) & (carry[2] < MANY_TRIALS),
        lambda carry: (*narrow(*carry[:2]), carry[2] + 1),
        (low, high, jnp.zeros((), int)),
    )[0]


def kept_length(family: Family, line: Line, reach: Array) -> Array:
    """Return the length of a step made with a kept curvature: 1, or less if Mr would exceed `LONGEST`."""
    return jnp.minimum(1, LONGEST / jnp.maximum(family.self_concordance * reach, LONGEST))


def whole(aim: Aim, reach: Array) -> Array:
    """Return the reach of a full step as its error."""
    return reach


def left_over(family: Family, aim: Aim, reach: Array) -> Array:
    """Return the error of scores that a full step leaves, as its error."""
    return reach * jnp.minimum(aim.off + family.self_concordance * reach, 1)
