"""The fit of `glm.fit` where a nearby answer and its curvature are known: what a round of a fixed-arms bandit costs.

A Newton step costs K d² + d³ for the curvature H and only K d for the gradient.  From one round to the next H hardly
changes, so it is kept, as a root W of its inverse,

    W Wᵀ ≈ H⁻¹,    H(θ) = Σ_x N_x μ̇(xᵀθ) x xᵀ + λI,

and three cheap things keep it good:

*One more reward* of an arm adds w x xᵀ to H.  With v = √w Wᵀx the new root is W − γ (Wv) vᵀ,
γ = (1 − 1/√(1 + vᵀv)) / vᵀv (Potter's square-root update: it cannot lose positive definiteness).

*A step* δ that changed the gradient by y teaches the curvature along δ: the BFGS update, which in root form is
W − δ (Wᵀu)ᵀ with u = ρ y + √(ρ / gᵀH⁻¹g) g, ρ = 1 / δᵀy.

*A certificate* says when to build it anew.  If no score of a row seen moved by more than m since then, self-concordance
gives e^{−Mm} H ⪯ H(θ) ⪯ e^{Mm} H.

Where the past is forgotten (`glm.history`), two more do.

*A discount* γ takes H to γH + (1−γ)λI, which lies between γH and H.  W is scaled as if it were √γ H, the middle of the
two on a log scale, so each reward adds ½ log(1/γ) to the certificate: e^{−f} H ⪯ H(θ) ⪯ e^{f} H with f that sum.

*A reward that leaves* a window takes w x xᵀ out of H, with the w that it came with.  The new root is
W + (Wv) vᵀ / (r + r²), r = √(1 − vᵀv).  Where r² is so small that rounding would show, nothing is taken out, and the
certificate is void (f = ∞) until H is built anew.

The answer does not depend on any of this: steps go on until the true gradient says that scores err by less than the
tolerance.  A step of size r (in scores) with a curvature that is off by e^{Mm} leaves an error of about
r (e^{M(m+r)} − 1).  Where that does not get small in a few steps, curvature is built anew for every further one: the
damped Newton iteration of `glm.fit`.  What is told of the answer includes rounding, as it does there (`is_right`).

References: Bierman, Factorization Methods for Discrete Sequential Estimation, 1977 (Potter's update); Nocedal & Wright,
Numerical Optimization, 2006, chapter 6 (BFGS); Bach, Self-concordant analysis for logistic regression, 2010.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.batching import where_needed
from explorax.glm import certificate, kernel
from explorax.glm.families import Family
from explorax.glm.fit import gradient_error, posed
from explorax.glm.history import Grouped, Recent
from explorax.glm.linalg import factorize, shrinkage
from explorax.glm.steps import FULL_STEP, Descent, kept_length, largest, newton_length

CHEAP_STEPS, CHEAP_STEPS_ELSEWHERE = 12, 3  # on a CPU and on other devices; then every step is a Newton step
MAX_STEPS = 300
PATIENCE = 50  # Newton steps after which a gradient at the level of rounding will do
REBUILD_EVERY = 512  # rewards; rounding in the rank-one updates never gets further than that
LOOK_EVERY, LOOK_BEYOND = 256, 0.5  # rewards, and change of a score, after which rounding is looked at again
FAR = 8.0  # score up to which a tilted estimate is as certain as the one without a tilt
TRUSTED = 0.5  # f up to which cheap steps may say that they have converged
LEAST_LEFT = 0.01  # r² down to which a reward is taken out of W


class Warm(NamedTuple):
    """Fixed arms, an estimate's scores, and the curvature there."""

    columns: Array  # (d, K) the arms, transposed: products with it run along memory
    scores: Array  # (K,) xᵀθ of every arm
    root: Array  # (d, d) W
    built: Array  # (K,) the scores at which W was built
    age: Array  # () rewards since then
    faded: Array | None = None  # () f: how far W is off by what was forgotten since then; None where nothing ever is

    def computed(self) -> tuple[Array | None, ...]:
        """Return all but the arms, which were checked when they came (`checks.computed`)."""
        return self[1:]


def start(arms: Array, ridge: Array, forgets: bool = False) -> Warm:
    """Nothing seen yet: θ = 0 and H = λI."""
    zeros = jnp.zeros_like(arms[:, 0])
    root = jnp.eye(arms.shape[1], dtype=arms.dtype) / jnp.sqrt(ridge)
    return Warm(arms.T, zeros, root, zeros, jnp.zeros((), int), jnp.zeros_like(zeros[0]) if forgets else None)


def afresh(family: Family, arms: Array, counts: Array, theta: Array, ridge: Array) -> Warm:
    """What is kept for these arms at an estimate that was found otherwise."""
    scores = arms @ theta
    return Warm(arms.T, scores, build(family, arms.T, counts, scores, ridge), scores, jnp.zeros((), int))


def build(family: Family, columns: Array, counts: Array, scores: Array, ridge: Array) -> Array:
    """W for the curvature at these scores."""
    weights = counts * family.slope(jnp.where(counts > 0, scores, 0))
    identity = jnp.eye(columns.shape[0], dtype=columns.dtype)
    curvature = jnp.einsum("ik,jk->ij", columns * weights, columns) + ridge * identity
    return factorize(curvature).inverse_root()


def forget(family: Family, warm: Warm, recent: Recent | None, discount: Array | None) -> Warm:
    """What one more reward makes the past forget; `recent` does not have that reward yet."""
    if warm.faded is None:
        return warm
    if discount is not None:
        return warm._replace(root=warm.root * discount**-0.25, faded=warm.faded - jnp.log(discount) / 2)
    assert recent is not None
    arm, really = recent.oldest()
    pushed = jnp.sqrt(jnp.where(really, family.slope(warm.built[arm]), 0)) * (warm.columns[:, arm] @ warm.root)
    left = 1 - pushed @ pushed
    safe = left >= LEAST_LEFT
    growth = jnp.where(safe, 1 / (left + jnp.sqrt(jnp.where(safe, left, 1))), 0)
    root = warm.root + (growth * (warm.root @ pushed))[:, None] * pushed
    return warm._replace(root=root, faded=jnp.where(safe, warm.faded, jnp.inf))


def record(family: Family, warm: Warm, history: Grouped, arm: Array, x: Array) -> Warm:
    """One more reward of this arm; `history` has it already."""
    # The scores of an arm that was never pulled before do not count for the certificate until now.
    built = jnp.where(history.counts[arm] > 1, warm.built[arm], warm.scores[arm])
    pushed = jnp.sqrt(family.slope(built)) * (x @ warm.root)
    root = warm.root - (shrinkage(pushed) * (warm.root @ pushed))[:, None] * pushed
    # An update this large leaves rounding in place of the root: it must not get old.
    sound = pushed @ pushed <= float(jnp.finfo(x.dtype).eps) ** (-4 / 3)
    age = jnp.where(sound, warm.age + 1, REBUILD_EVERY + 1)
    return warm._replace(root=root, built=warm.built.at[arm].set(built), age=age)


def refit(
    family: Family,
    warm: Warm,
    history: Grouped,
    theta: Array,
    converged: Array,
    ridge: Array,
    tolerance: float,
    root_error: float,
) -> tuple[Descent, Warm]:
    """The estimate on the history, from a nearby one; and its curvature, off by e^{root_error} at the most.

    How far scores are off changes slowly.  So it is looked at after 1, 2, 4, 8, … rewards and with every 256th one,
    when scores have moved far, and as long as it was too much.  Then it has to be half of what is allowed; in between
    the last answer stands, which is `converged`.
    """
    estimate = settle(family, warm, history, theta, jnp.zeros_like(theta), ridge, tolerance)
    off = family.self_concordance * largest(history.counts > 0, estimate.scores - warm.built)
    off = off if warm.faded is None else off + warm.faded
    stale = (off > root_error) | (warm.age >= REBUILD_EVERY) | ~estimate.converged

    def rebuilt(theta: Array, columns: Array, counts: Array, ridge: Array) -> tuple[Array, Array, Array, Array]:
        scores = theta @ columns  # free of the rounding that many small steps add up
        return scores, build(family, columns, counts, scores, ridge), scores, jnp.zeros((), int)

    kept = (estimate.scores, warm.root, warm.built, warm.age)
    scores, root, built, age = where_needed(stale, rebuilt, (estimate.theta, warm.columns, history.counts, ridge), kept)
    faded = None if warm.faded is None else jnp.where(age > 0, warm.faded, 0)
    # Rewards so far, which a batch has in common; where they are forgotten, those since the curvature was built.
    clock = (jnp.sum(history.counts) if warm.faded is None else warm.age).astype(int)
    due = (jnp.bitwise_and(clock, clock - 1) == 0) | (clock % LOOK_EVERY == 0) | (off > LOOK_BEYOND) | ~converged
    check = partial(is_right, family, tolerance, share=0.5)
    right = where_needed(due, check, (warm.columns, history, ridge, estimate), converged & estimate.converged)
    estimate = estimate._replace(scores=scores, converged=right & (warm.age <= REBUILD_EVERY))
    return estimate, Warm(warm.columns, scores, root, built, age, faded)


class Point(NamedTuple):
    """A place on the way down, and the last step there."""

    theta: Array
    scores: Array
    root: Array  # W that the step was made with
    step: Array
    gradient: Array  # before the step
    energy: Array  # () gᵀH⁻¹g there
    moved: Array  # () a bound on how far scores are from where W was built
    converged: Array
    steps: Array


def descend(
    family: Family,
    warm: Warm,
    history: Grouped,
    theta: Array,
    tilt: Array,
    ridge: Array,
    tolerance: float,
    right: Array | None = None,
) -> Descent:
    """The tilted estimate, from θ whose scores and curvature are in `warm`; `converged` as `is_right` means it.

    Where θ is the estimate without the tilt, and `right`, the tilted one is a draw around it: its scores may err by a
    share of what the tilt does to them (`certificate.allowed`).  And it is looked at only if a score goes beyond `FAR`:
    rounding is a matter of means at the end of their range.
    """
    found = settle(family, warm, history, theta, tilt, ridge, tolerance)
    check = partial(is_right, family, tolerance)
    if right is None:
        return found._replace(converged=check(warm.columns, history, ridge, found))
    seen = history.counts > 0
    far = ~right | (largest(seen, found.scores) > FAR)
    perturbation = jnp.where(right, largest(seen, found.scores - warm.scores), 0)
    looked_at = warm.columns, history, ridge, found, perturbation
    return found._replace(converged=where_needed(far, check, looked_at, right & found.converged))


def is_right(
    family: Family,
    tolerance: float,
    columns: Array,
    history: Grouped,
    ridge: Array,
    found: Descent,
    perturbation: float | Array = 0.0,
    share: float = 1.0,
) -> Array:
    """Whether steps have settled, at scores that err by no more than a share of what is allowed, and the tolerance.

    For the price of a look at the arms: of their features only the largest is used (`glm.certificate`).
    """
    seen, size = history.counts > 0, columns.shape[0]
    scores, largest = jnp.where(seen, found.scores, 0), jnp.max(jnp.where(seen, jnp.abs(columns), 0))
    others = certificate.left_by_root(largest, jnp.sum(history.counts * family.slope(scores)), found.step, ridge)
    sizes, lengths = largest * jnp.sum(jnp.abs(found.theta)), size**0.5 * largest
    given = history.counts, history.sums, scores, sizes, lengths, found.theta, ridge, others
    error = certificate.score_error(family, *given)
    bound = certificate.allowed(family, history.counts, history.sums, tolerance, perturbation)
    return found.converged & (error <= tolerance + share * bound)


def settle(
    family: Family, warm: Warm, history: Grouped, theta: Array, tilt: Array, ridge: Array, tolerance: float
) -> Descent:
    """The tilted estimate; `converged` says that steps have become as small as the tolerance asks for.

    Cheap steps first, a few, or the kernel where there is a GPU; then, only for those that need more, Newton steps.
    """
    counts, sums, columns = history.counts, history.sums, warm.columns
    seen = counts > 0
    # Overflow is no danger in families whose means have a bound.
    safe = family.mean if family.mean_range[1] < jnp.inf else lambda scores: family.mean(jnp.where(seen, scores, 0))

    def gradient(point: Point) -> Array:
        return columns @ (counts * safe(point.scores) - sums) - tilt + ridge * point.theta

    def cheap_step(point: Point, root: Array, slope: Array) -> Point:
        half = slope @ root
        downhill, energy = -(root @ half), half @ half
        moves = downhill @ columns
        reach = largest(seen, moves)
        length = kept_length(family, reach)
        error = reach * jnp.minimum(point.moved + family.self_concordance * reach, 1)
        return Point(
            point.theta + length * downhill,
            point.scores + length * moves,
            root,
            length * downhill,
            slope,
            energy,
            point.moved + family.self_concordance * length * reach,
            # A largest move need not show that one is not a number (XLA's maximum may drop it); a sum does.
            (length == 1) & (error <= tolerance) & jnp.isfinite(energy),
            point.steps + 1,
        )

    def learning_step(point: Point) -> Point:
        slope = gradient(point)
        return cheap_step(point, learn(point.root, point.step, point.gradient, point.energy, slope), slope)

    moved = family.self_concordance * largest(seen, warm.scores - warm.built)
    moved = moved if warm.faded is None else moved + warm.faded

    def cheap_steps() -> Descent:
        zero = jnp.zeros_like(theta)
        begin = Point(theta, warm.scores, warm.root, zero, zero, moved, moved, jnp.asarray(False), jnp.zeros((), int))
        first = cheap_step(begin, warm.root, gradient(begin))
        most = CHEAP_STEPS if jax.default_backend() == "cpu" else CHEAP_STEPS_ELSEWHERE
        end = lax.while_loop(lambda now: (now.steps < most) & ~now.converged, learning_step, first)
        return Descent(end.theta, end.scores, end.steps, end.converged, end.step)

    def all_steps() -> Descent:
        numbers = theta, warm.scores, moved, tilt, ridge
        return kernel.descend(family, columns, warm.root, counts, sums, *numbers, tolerance)

    # By the device that it is compiled for, which need not be JAX's first choice.
    near = lax.platform_dependent(cuda=all_steps, default=cheap_steps) if kernel.suits(columns) else cheap_steps()
    if warm.faded is not None:
        near = near._replace(converged=near.converged & (warm.faded <= TRUSTED))
    return where_needed(
        ~near.converged,
        partial(newton_descent, family, tolerance),
        (columns, counts, sums, tilt, ridge, (theta, warm.scores), (near.theta, near.scores)),
        near,
    )


def newton_descent(
    family: Family,
    tolerance: float,
    columns: Array,
    counts: Array,
    sums: Array,
    tilt: Array,
    ridge: Array,
    safe: tuple[Array, Array],
    near: tuple[Array, Array],
) -> Descent:
    """The tilted estimate by damped Newton steps from a θ and its scores nearby, or if not finite from safe ones."""
    seen = counts > 0
    eps = float(jnp.finfo(columns.dtype).eps)
    finite = jnp.isfinite(jnp.sum(near[0]) + jnp.sum(jnp.where(seen, near[1], 0)))
    theta, scores = (jnp.where(finite, found, known) for found, known in zip(near, safe, strict=True))

    def newton_step(now: Descent) -> Descent:
        residuals = counts * family.mean(jnp.where(seen, now.scores, 0)) - sums
        root = build(family, columns, counts, now.scores, ridge)
        step = -(root @ ((columns @ residuals - tilt + ridge * now.theta) @ root))
        moves = step @ columns
        reach = largest(seen, moves)
        best = newton_length(family, counts, sums, tilt, ridge, now.theta, now.scores, step, moves)
        length = jnp.where(family.self_concordance * reach > FULL_STEP, best, 1)
        error = reach * jnp.minimum(family.self_concordance * reach, 1)
        # A largest move need not show that one is not a number (XLA's maximum may drop it); a sum does.
        finite = jnp.isfinite(length * reach) & jnp.isfinite(jnp.sum(step))
        step, moves = jnp.where(finite, length * step, 0), jnp.where(finite, length * moves, 0)
        converged = finite & (length == 1) & (error <= tolerance)
        return Descent(now.theta + step, now.scores + moves, now.steps + 1, converged, step)

    def newton_steps(now: Descent) -> Descent:
        end = now.steps + PATIENCE
        now = lax.while_loop(lambda now: (now.steps < end) & ~now.converged, newton_step, now)
        # Where rounding keeps steps from getting that small, a gradient that is nothing but rounding will do.
        problem = posed(Grouped(columns.T, counts, sums), ridge=ridge, tilt=tilt)
        error = gradient_error(family, problem, now.theta)
        step = jnp.where(now.converged, now.step, jnp.inf)
        return now._replace(converged=now.converged | (error <= max(eps ** (2 / 3), tolerance**2)), step=step)

    begin = Descent(theta, scores, jnp.zeros((), int), jnp.asarray(False), jnp.zeros_like(theta))
    return lax.while_loop(lambda now: (now.steps < MAX_STEPS) & ~now.converged, newton_steps, begin)


def learn(root: Array, step: Array, before: Array, energy: Array, after: Array) -> Array:
    """The root after a BFGS update with the step and the gradients before and after it."""
    change = after - before
    curvature = step @ change
    usable = (curvature > 0) & (energy > 0)
    inverse = 1 / jnp.where(usable, curvature, 1)
    direction = inverse * change + jnp.sqrt(inverse / jnp.where(usable, energy, 1)) * before
    return root - jnp.where(usable, step, 0)[:, None] * (direction @ root)
