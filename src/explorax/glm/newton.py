"""Damped Newton steps on F (`glm.problem`), whatever curvature they are made with: one step, one line search, one loop.

A step is δ, changes the scores by xᵀδ, and is judged by its reach r = max_x |xᵀδ| over the rows seen.  As long as no
score changes by more than r, self-concordance bounds how much the curvature does, by e^{±Mr}.

**Why not plain Newton.**  Early in a bandit run, or with tilts as large as the theory's, the unpenalized optimum
does not exist and the penalized one lies far out, where the curvature is nearly flat.  An undamped step overshoots
to infinity.

**Why this converges.**  Let δ be the Newton direction.  In a family with self-concordance M the derivative of
s ↦ F(θ + sδ) is not positive up to s = log(1 + Mr) / (Mr): such a step always goes down.  For small r that is nearly
the full step, which is taken.  For larger r the minimum along δ is searched above it, at the cost of one mean per row
and trial, and no new curvature.  So F falls in every step, from any start, in every family.

**What differs** from one fit to another is a `Method`:

    aim       the curvature: where it points from a place
              (a factor of ∇²F in `glm.fit`, a kept root in `glm.warm`, elimination in registers in `glm.kernel`, a
              quadratic on a ball in `glm.ball`)
    length    how far to go there: `newton_length`, or `kept_length` with a curvature that is not that of the place
    error     what of a full step must be within the tolerance for it to be the last.  `glm.fit` and `glm.ball` are told
              how long it may be (`whole`); `glm.warm` and its kernel how wrong scores may be after it (`left_over`)
    rests     whether the gradient is nothing but rounding, so that a step would be noise.  It costs about as much as a
              gradient: `glm.fit` asks before every step, others once in a while (`patiently`)

A step that is not finite is not taken and ends the descent: from the same place the next one would be no other.

Reference: Bach, Self-concordant analysis for logistic regression, 2010 (the bound on curvature behind the damping).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

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
    """Where a curvature points."""

    direction: Array  # (d,) δ
    finite: Array  # () whether all of δ is; a largest move need not show it (XLA's maximum may drop a NaN), a sum does
    off: float | Array = 0.0  # () m: the curvature is that of the place up to e^{±m}
    note: Any = None  # arrays that the method wants to know at the next step, or after the last


class Place(NamedTuple):
    """A place on the way down, and the last step there."""

    theta: Array  # (d,) θ
    scores: Array | None  # (m,) xᵀθ of every row, carried along; None: computed anew wherever they are needed
    steps: Array  # () taken so far
    status: Array  # () int32: GOING, CONVERGED or LOST
    step: Array  # (d,) the last one; infinite where steps did not get as small as wanted, and rounding had to do
    length: Array  # () of it, as a share of the direction; 0 if none was taken
    reach: Array  # () of the whole direction
    note: Any = None  # the last `Aim.note`

    @property
    def converged(self) -> Array:
        """Return whether the last step was small enough, or no step was needed."""
        return self.status == CONVERGED

    @property
    def lost(self) -> Array:
        """Return whether the last step was not finite, and not taken."""
        return self.status == LOST

    def scores_of(self, problem: Problem) -> Array:
        """Return xᵀθ of every row."""
        return problem.rows.scores(self.theta) if self.scores is None else self.scores


class Line(NamedTuple):
    """F along a direction δ, as s ↦ F(θ + sδ)."""

    counts: Array  # (m,) N_x
    scores: Array  # (m,) xᵀθ, and 0 for rows never seen
    moves: Array  # (m,) xᵀδ, and 0 for rows never seen
    slope: Array  # () the derivative at s = 0 but for the means: λθᵀδ − Sᵀδ − Σ Y_x xᵀδ
    bend: Array  # () λδᵀδ

    def falls(self, family: Family, length: Array) -> Array:
        """Return whether the derivative is not positive at s = `length`."""
        means = family.mean(self.scores + length * self.moves)
        return self.slope + self.bend * length + jnp.sum(self.counts * means * self.moves) <= 0


class Method(NamedTuple):
    """What makes a Newton step one of a certain fit; see the head of this module."""

    aim: Callable[[Place], Aim]
    length: Callable[[Line, Array], Array]  # of the line and the reach
    error: Callable[[Aim, Array], Array]  # of the aim and the reach
    tolerance: float
    rests: Callable[[Place], Array] | None = None


def begin(theta: Array, scores: Array | None = None, note: Any = None) -> Place:
    """Return the place where a descent begins."""
    going, zero = jnp.full((), GOING, jnp.int32), jnp.zeros((), theta.dtype)
    return Place(theta, scores, jnp.zeros((), int), going, jnp.zeros_like(theta), zero, zero, note)


def step(problem: Problem, method: Method, now: Place) -> Place:
    """Return the place after one more step, which is none if it would be noise or not finite."""
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
    """Return F along a direction that changes scores by `moves`."""
    slope = jnp.sum((problem.ridge * now.theta - problem.tilt) * direction) - jnp.sum(problem.sums * moves)
    bend = problem.ridge * jnp.sum(direction * direction)
    return Line(problem.counts, problem.of_seen(now.scores_of(problem)), problem.of_seen(moves), slope, bend)


def descend(step: Callable[[Place], Place], now: Place, most: int | Array) -> Place:
    """Return the place where steps have converged, or come to no more, or are as many as that."""
    return lax.while_loop(lambda now: (now.steps < most) & (now.status == GOING), step, now)


def patiently(
    step: Callable[[Place], Place], now: Place, most: int, patience: int, rests: Callable[[Place], Array]
) -> Place:
    """Return what `descend` does, but ask after every `patience` steps, and at the end, whether the place will do."""

    def steps(now: Place) -> Place:
        now = descend(step, now, now.steps + patience)
        last = jnp.where(now.converged, now.step, jnp.inf)
        return now._replace(status=jnp.where(rests(now), CONVERGED, now.status), step=last)

    return descend(steps, now, most)


def newton_length(family: Family, line: Line, reach: Array, *, closely: bool) -> Array:
    """Return the length of a step along a Newton direction: all of it if short, else up to near the minimum of F.

    Searched `closely` or in a few trials, which are enough for a direction that the next step corrects anyway.
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
    """Return the length of a step that nearly minimizes F along a Newton direction, never past the minimum.

    The derivative along the direction is increasing.  It is not positive at the safe step log(1 + Mr) / (Mr); the first
    length where it is gets bracketed by 1, 4, 64, … and then by halving the bracket on a log scale, since the two
    ends can be many powers of ten apart.  The lower end is returned.
    """

    def narrow(low: Array, high: Array) -> tuple[Array, Array]:
        further = jnp.where(low < 1, 1, jnp.minimum(4 * low * low, 1e9 * low))
        trial = jnp.where(jnp.isinf(high), further, jnp.sqrt(low) * jnp.sqrt(high))
        falls = line.falls(family, trial)
        return jnp.where(falls, trial, low), jnp.where(falls, high, trial)

    radius = family.self_concordance * reach
    low, high = jnp.log1p(radius) / radius, jnp.full_like(radius, jnp.inf)
    if not closely:
        for _ in range(FEW_TRIALS):  # written out, because a loop in a loop is slow on a GPU
            low, high = narrow(low, high)
        return low
    return lax.while_loop(
        lambda carry: (carry[1] > SEARCH_RATIO * carry[0]) & (carry[2] < MANY_TRIALS),
        lambda carry: (*narrow(*carry[:2]), carry[2] + 1),
        (low, high, jnp.zeros((), int)),
    )[0]


def kept_length(family: Family, line: Line, reach: Array) -> Array:
    """Return the length of a step made with a kept curvature: all of it, up to a reach of `LONGEST`."""
    return jnp.minimum(1, LONGEST / jnp.maximum(family.self_concordance * reach, LONGEST))


def whole(aim: Aim, reach: Array) -> Array:
    """Return the size of a full step."""
    return reach


def left_over(family: Family, aim: Aim, reach: Array) -> Array:
    """Return by how much scores are off after a full step."""
    return reach * jnp.minimum(aim.off + family.self_concordance * reach, 1)
