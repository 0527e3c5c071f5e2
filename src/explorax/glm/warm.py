"""The fit of `glm.fit` from a nearby answer with a kept curvature, for the rounds of a bandit with fixed arms.

A Newton step costs K d² + d³ for the curvature H and only K d for the gradient.  From one round to the next H hardly
changes, so it is kept, as a root W of its inverse,

    W Wᵀ ≈ H⁻¹,    H(θ) = Σ_x N_x μ̇(xᵀθ) x xᵀ + λI,

and three cheap operations keep it accurate:

*One more reward* of an arm adds w x xᵀ to H.  With v = √w Wᵀx the new root is W − γ (Wv) vᵀ,
γ = (1 − 1/√(1 + vᵀv)) / vᵀv (Potter's square-root update, which cannot lose positive definiteness).

*A step* δ that changed the gradient by y tells the curvature along δ.  This is the BFGS update, which in root form is
W − δ (Wᵀu)ᵀ with u = ρ y + √(ρ / gᵀH⁻¹g) g, ρ = 1 / δᵀy.

*A certificate* decides when to build the root anew.  If no score of a row seen has moved by more than m since the last
time, self-concordance gives e^{−Mm} H ⪯ H(θ) ⪯ e^{Mm} H.

If the past is forgotten (`glm.history`), there are two more operations.

*A discount* γ takes H to γH + (1−γ)λI, which lies between γH and H.  W is scaled as if the new curvature were √γ H, the
middle of the two on a log scale, so that each reward adds ½ log(1/γ) to the certificate: e^{−f} H ⪯ H(θ) ⪯ e^{f} H,
where f is the sum of these terms.

*A reward that leaves* a window takes w x xᵀ out of H, with the w that it came with.  The new root is
W + (Wv) vᵀ / (r + r²), r = √(1 − vᵀv).  If r² is so small that rounding would show, nothing is taken out, and the
certificate is void (f = ∞) until H is built anew.

The answer does not depend on any of this: steps go on until the true gradient shows that scores err by less than the
tolerance.  A step of size r (in scores) with a curvature that is off by e^{Mm} leaves an error of about
r (e^{M(m+r)} − 1).  If the error does not get small in a few steps, the curvature is built anew for every further step,
which is the damped Newton iteration of `glm.newton`.  The reported accuracy includes rounding, as it does there
(`is_right`).

References: Bierman, Factorization Methods for Discrete Sequential Estimation, 1977 (Potter's update); Nocedal & Wright,
Numerical Optimization, 2006, chapter 6 (BFGS); Bach, Self-concordant analysis for logistic regression, 2010.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.batching import alone_or_in_batch, if_any, put, where_needed
from explorax.glm import certificate, kernel, newton
from explorax.glm.families import Family
from explorax.glm.history import Grouped, Recent
from explorax.glm.kernel import Descent, Start
from explorax.glm.linalg import factorize, shrinkage
from explorax.glm.newton import Aim, Method, Place, kept_length, left_over, newton_length
from explorax.glm.problem import ByColumn, Problem, curvature, enough, gradient, gradient_error, weights

CHEAP_STEPS, CHEAP_STEPS_ELSEWHERE = 12, 3  # on a CPU and on other devices; then every step is a Newton step
CHEAP_STEPS_ALONE = 32  # on a CPU, if the other instances of a batch do not have to wait for them
MAX_STEPS = 300
PATIENCE = 50  # Newton steps after which a gradient at the level of rounding will do
REBUILD_EVERY = 512  # rewards; rounding in the rank-one updates never gets further than that
LOOK_EVERY, LOOK_BEYOND = 256, 0.5  # rewards, and change of a score, after which rounding is looked at again
FAR = 8.0  # score up to which a tilted estimate is as certain as the one without a tilt
TRUSTED = 0.5  # f up to which cheap steps may say that they have converged
MOST_ROOT_ERROR = 0.1  # how far a kept curvature may be off where the tolerance says it, as e^±
LEAST_LEFT = 0.01  # r² down to which a reward is taken out of W


class Warm(NamedTuple):
    """The scores and the curvature that are kept for fixed arms at an estimate."""

    columns: Array  # (d, K) the arms, transposed: products with it run along memory
    scores: Array  # (K,) xᵀθ of every arm
    root: Array  # (d, d) W
    built: Array  # (K,) the scores at which W was built
    age: Array  # () the number of rewards since then
    faded: Array | None = None  # () f, the error of W by what was forgotten since then; None in a memory that keeps all

    def computed(self) -> tuple[Array | None, ...]:
        """Return all arrays but the arms, which are checked when they come (`checks.computed`)."""
        return self[1:]

    def posed(self, history: Grouped, *, ridge: Array, tilt: Array | None = None) -> Problem:
        """Pose the problem F of a history of these arms, a ridge and a tilt."""
        tilt = jnp.zeros_like(self.columns[:, 0]) if tilt is None else tilt
        return Problem(ByColumn(self.columns), history.counts, history.sums, tilt, ridge)


class Kept(NamedTuple):
    """The part of what is kept that a fit may change."""

    scores: Array  # (K,) as in `Warm`
    root: Array  # (d, d)
    built: Array  # (K,)
    age: Array  # ()


def start(arms: Array, ridge: Array, forgets: bool = False) -> Warm:
    """Build what is kept for fixed arms before the first reward, where θ = 0 and H = λI."""
    zeros = jnp.zeros_like(arms[:, 0])
    root = jnp.eye(arms.shape[1], dtype=arms.dtype) / jnp.sqrt(ridge)
    return Warm(arms.T, zeros, root, zeros, jnp.zeros((), int), jnp.zeros_like(zeros[0]) if forgets else None)


def kept_error(root_error: float | Array | None, tolerance: float) -> float | Array:
    """Return the largest error of a kept curvature, as the r of factors e^±r: as given, or what a tolerance implies."""
    return min(MOST_ROOT_ERROR, 100 * tolerance) if root_error is None else root_error


def afresh(family: Family, history: Grouped, theta: Array, ridge: Array) -> Warm:
    """Build what is kept for the arms of a history at an estimate that another fit has found."""
    warm, scores = start(history.features, ridge), history.features @ theta
    root = build(family, warm.posed(history, ridge=ridge), scores)
    return warm._replace(scores=scores, root=root, built=scores)


def build(family: Family, problem: Problem, scores: Array, rarely: bool = False) -> Array:
    """Build the root W of the inverse curvature at these scores."""
    return factorize(curvature(family, problem, scores), rarely).inverse_root()


def forget(family: Family, warm: Warm, recent: Recent | None, discount: Array | None) -> Warm:
    """Forget what the next reward drives out, by a discount or a window that does not have that reward yet."""
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
    """Update the curvature after one more reward of an arm, which the history has already."""
    # The scores of an arm that was never pulled before do not count for the certificate until now.
    built = jnp.where(history.counts[arm] > 1, warm.built[arm], warm.scores[arm])
    pushed = jnp.sqrt(family.slope(built)) * (x @ warm.root)
    root = warm.root - (shrinkage(pushed) * (warm.root @ pushed))[:, None] * pushed
    # An update this large leaves rounding in place of the root: it must not get old.
    sound = pushed @ pushed <= float(jnp.finfo(x.dtype).eps) ** (-4 / 3)
    age = jnp.where(sound, warm.age + 1, REBUILD_EVERY + 1)
    return warm._replace(root=root, built=put(warm.built, arm, built), age=age)


def refit(
    family: Family,
    warm: Warm,
    problem: Problem,
    theta: Array,
    converged: Array,
    tolerance: float,
    root_error: float | Array,
) -> tuple[Descent, Warm]:
    """Fit a history from a nearby estimate, and keep its curvature accurate up to factors e^{±root_error}.

    The error of scores changes slowly.  It is therefore computed after 1, 2, 4, 8, … rewards and with every 256th one,
    if scores have moved far, and as long as the fit has not converged.  It then has to be at most half of what is
    allowed; between these times the last verdict stands.

    Args:
        family: The reward family.
        warm: What is kept of the nearby estimate.
        problem: The optimization problem F, with arms as columns.
        theta: The nearby estimate, of shape (d,).
        converged: Whether the nearby estimate has converged, a scalar.
        tolerance: The largest error of a score.
        root_error: The largest error of the kept curvature.

    Returns:
        The estimate with its scores, and what is kept for the next fit.
    """
    near = approach(family, warm, problem, theta, tolerance)
    # Rewards so far, which a batch has in common; where they are forgotten, those since the curvature was built.
    clock = (jnp.sum(problem.counts) if warm.faded is None else warm.age).astype(int)
    due = (jnp.bitwise_and(clock, clock - 1) == 0) | (clock % LOOK_EVERY == 0) | ~converged

    def moved(estimate: Descent, warm: Warm, problem: Problem) -> Array:
        off = family.self_concordance * problem.largest(estimate.scores - warm.built)
        return off if warm.faded is None else off + warm.faded

    def is_stale(estimate: Descent, warm: Warm, off: Array, root_error: float | Array) -> Array:
        return (off > root_error) | (warm.age >= REBUILD_EVERY) | ~estimate.converged

    def rebuilt(theta: Array, problem: Problem) -> Kept:
        scores = problem.rows.scores(theta)  # free of the rounding that many small steps add up
        return Kept(scores, build(family, problem, scores, rarely=True), scores, jnp.zeros((), int))

    def looked_after(
        near: Descent, warm: Warm, problem: Problem, converged: Array, due: Array, root_error: float | Array
    ) -> tuple[Descent, Kept]:
        estimate = finished(family, problem, near, tolerance, rarely=True)
        off = moved(estimate, warm, problem)
        kept = Kept(estimate.scores, warm.root, warm.built, warm.age)
        kept = where_needed(is_stale(estimate, warm, off, root_error), rebuilt, (estimate.theta, problem), kept)
        check = partial(is_right, family, tolerance, share=0.5)
        right = where_needed(due | (off > LOOK_BEYOND), check, (problem, estimate), converged & estimate.converged)
        return estimate._replace(converged=right), kept

    off = moved(near, warm, problem)
    needed = is_stale(near, warm, off, root_error) | due | (off > LOOK_BEYOND)
    kept = Kept(near.scores, warm.root, warm.built, warm.age)
    given = near, warm, problem, converged, due, root_error
    estimate, kept = if_any(needed, looked_after, given, (near, kept))
    faded = None if warm.faded is None else jnp.where(kept.age > 0, warm.faded, 0)
    estimate = estimate._replace(scores=kept.scores, converged=estimate.converged & (warm.age <= REBUILD_EVERY))
    return estimate, warm._replace(**kept._asdict(), faded=faded)


def descend(
    family: Family, warm: Warm, problem: Problem, theta: Array, tolerance: float, right: Array | None = None
) -> Descent:
    """Fit a problem with a tilt, from a nearby θ whose scores and curvature are kept.

    If θ is the estimate without the tilt and has converged, the tilted estimate is a draw around it.  Its scores may
    err by a share of what the tilt does to them (`certificate.allowed`), and the error is computed only if a score goes
    beyond `FAR`, because rounding matters only for means at the end of their range.

    Args:
        family: The reward family.
        warm: What is kept of θ.
        problem: The optimization problem F with its tilt, with arms as columns.
        theta: The nearby θ, of shape (d,).
        tolerance: The largest error of a score.
        right: Whether θ is the estimate without the tilt and has converged; None if θ is any other start.

    Returns:
        The estimate with its scores, and whether it has converged in the sense of `is_right`.
    """
    near = approach(family, warm, problem, theta, tolerance)
    found = finished(family, problem, near, tolerance, rarely=False)
    check = partial(is_right, family, tolerance)
    if right is None:
        return found._replace(converged=check(problem, found))
    far = ~right | (problem.largest(found.scores) > FAR)
    perturbation = jnp.where(right, problem.largest(found.scores - warm.scores), 0)
    looked_at = problem, found, perturbation
    return found._replace(converged=where_needed(far, check, looked_at, right & found.converged))


def is_right(
    family: Family,
    tolerance: float,
    problem: Problem,
    found: Descent,
    perturbation: float | Array = 0.0,
    share: float = 1.0,
) -> Array:
    """Return whether steps have become small, at scores whose error is within the tolerance and what is allowed.

    This is cheap, because only the largest feature of the arms is used (`glm.certificate`).

    Args:
        family: The reward family.
        tolerance: The largest error of a score that steps may leave.
        problem: The optimization problem F.
        found: The end of the descent.
        perturbation: The largest change of a score that the tilt of a draw causes.
        share: The share of the allowed error that is accepted.

    Returns:
        Whether the answer is right, a scalar truth value.
    """
    size, scores, largest = len(found.theta), problem.of_seen(found.scores), problem.largest(problem.rows.peaks())
    others = certificate.left_by_root(largest, jnp.sum(weights(family, problem, scores)), found.step, problem.ridge)
    sizes = certificate.Sizes(largest * jnp.sum(jnp.abs(found.theta)), size**0.5 * largest)
    error = certificate.score_error(family, problem, found.theta, scores, sizes, others)
    bound = certificate.allowed(family, problem.counts, problem.sums, tolerance, perturbation)
    return found.converged & (error <= tolerance + share * bound)


def approach(family: Family, warm: Warm, problem: Problem, theta: Array, tolerance: float) -> Descent:
    """Make steps until they are as small as the tolerance asks for: a few cheap ones, or the kernel if there is a GPU.

    Args:
        family: The reward family.
        warm: What is kept of the nearby θ.
        problem: The optimization problem F, with arms as columns.
        theta: The nearby θ, of shape (d,).
        tolerance: The largest error of a score.

    Returns:
        The end of the descent, with `converged` if steps have become small enough; if not, `finished` goes on.
    """
    off = family.self_concordance * problem.largest(warm.scores - warm.built)
    off = off if warm.faded is None else off + warm.faded
    given = family, problem, Start(theta, warm.scores, warm.root, off), tolerance
    cheaply, at_once = partial(cheap_steps, *given), partial(kernel.descend, *given)
    if jax.default_backend() == "gpu" and kernel.suits(warm.columns):
        # By the device that it is compiled for, which need not be JAX's first choice.
        near = lax.platform_dependent(cuda=at_once, default=cheaply)
    else:
        near = cheaply()
    if warm.faded is None:
        return near
    return near._replace(converged=near.converged & (warm.faded <= TRUSTED))


def finished(family: Family, problem: Problem, near: Descent, tolerance: float, *, rarely: bool) -> Descent:
    """Make Newton steps from the end of another descent, for those elements of a batch that have not converged.

    Args:
        family: The reward family.
        problem: The optimization problem F, with arms as columns.
        near: The end of the other descent.
        tolerance: The largest error of a score.
        rarely: Whether Newton steps are rare.  They are after one more reward, and not with the tilts of a theory.

    Returns:
        The end of the descent, with `converged` if steps have become small enough.
    """
    newtonian = partial(newton_steps, family, tolerance, rarely)
    return where_needed(~near.converged, newtonian, (problem, near), near)


class Learned(NamedTuple):
    """The root and the gradient of a cheap step, from which the next one improves the root."""

    root: Array  # (d, d) W
    gradient: Array  # (d,) before the step
    energy: Array  # () gᵀH⁻¹g there
    off: Array  # () a bound on the error of W, as factors e^{±off}


def cheap_steps(family: Family, problem: Problem, start: Start, tolerance: float) -> Descent:
    """Make a few steps with the kept curvature, each of which improves it; go back if one is not finite."""

    def as_kept(now: Place) -> Aim:
        return aim_by(start.root, gradient(family, problem, now.theta, now.scores_of(problem)), start.off)

    def as_learned(now: Place) -> Aim:
        last, slope = now.note, gradient(family, problem, now.theta, now.scores_of(problem))
        root = learn(last.root, now.step, last.gradient, last.energy, slope)
        return aim_by(root, slope, last.off + family.self_concordance * now.length * now.reach)

    kept = Method(as_kept, partial(kept_length, family), partial(left_over, family), tolerance)
    first = newton.step(problem, kept, newton.begin(start.theta, start.scores))
    on_cpu = jax.default_backend() == "cpu"
    most = alone_or_in_batch(start.theta, CHEAP_STEPS_ALONE, CHEAP_STEPS) if on_cpu else CHEAP_STEPS_ELSEWHERE
    end = newton.descend(partial(newton.step, problem, kept._replace(aim=as_learned)), first, most)
    theta, scores = (
        jnp.where(end.lost, known, found)
        for known, found in ((start.theta, end.theta), (start.scores, end.scores_of(problem)))
    )
    return Descent(theta, scores, end.steps, end.converged, end.step)


def aim_by(root: Array, slope: Array, off: Array) -> Aim:
    """Return the direction −W Wᵀg of a root W whose error is at most e^{±off}."""
    direction, energy = downhill(root, slope)
    return Aim(direction, jnp.isfinite(energy), off, Learned(root, slope, energy, off))


def newton_steps(family: Family, tolerance: float, rarely: bool, problem: Problem, near: Descent) -> Descent:
    """Make damped Newton steps from the end of another descent until they converge."""

    def aim(now: Place) -> Aim:
        root = build(family, problem, now.scores_of(problem), rarely)
        direction, _ = downhill(root, gradient(family, problem, now.theta, now.scores_of(problem)))
        return Aim(direction, jnp.isfinite(jnp.sum(direction)))

    def rests(now: Place) -> Array:
        return gradient_error(family, problem, now.theta) <= enough(now.theta.dtype, tolerance)

    method = Method(aim, partial(newton_length, family, closely=False), partial(left_over, family), tolerance)
    first = newton.begin(near.theta, near.scores)
    end = newton.patiently(partial(newton.step, problem, method), first, MAX_STEPS, PATIENCE, rests)
    return Descent(end.theta, end.scores_of(problem), end.steps, end.converged, end.step)


def downhill(root: Array, slope: Array) -> tuple[Array, Array]:
    """Return the Newton direction −H⁻¹g and its energy gᵀH⁻¹g, from a root of H⁻¹."""
    half = slope @ root
    return -(root @ half), half @ half


def learn(root: Array, step: Array, before: Array, energy: Array, after: Array) -> Array:
    """Update a root of H⁻¹ by BFGS, from a step and the gradients before and after it."""
    change = after - before
    curvature = step @ change
    usable = (curvature > 0) & (energy > 0)
    inverse = 1 / jnp.where(usable, curvature, 1)
    direction = inverse * change + jnp.sqrt(inverse / jnp.where(usable, energy, 1)) * before
    return root - jnp.where(usable, step, 0)[:, None] * (direction @ root)
