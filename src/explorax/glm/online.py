"""An estimate that costs the same to keep up with every reward: for arms that change, and long runs.

With arms that change, the exact estimate needs all rows of the past: there is no summary of constant size that gives it
(only a linear model has one).  The next best is a proximal step for each reward: θ moves to the minimum of

    ½ (θ − θ_t)ᵀ H (θ − θ_t) + b(xᵀθ) − y xᵀθ,

the loss of the new reward plus a parabola in place of the loss of all former ones.  The minimum lies on a line,
θ = θ_t + c H⁻¹x, and c is the root of an increasing function of one variable:

    c = y − μ(xᵀθ_t + c q),    q = xᵀH⁻¹x

It lies between 0 and the residual r = y − μ(xᵀθ_t), whatever the family and however large the reward.  Then H grows by
μ̇(xᵀθ) x xᵀ, and G = Σ x xᵀ by x xᵀ.  What is kept of them are square roots,

    W Wᵀ = H⁻¹,    R Rᵀ = G + εI,    R⁻¹,

which rank-one updates carry along (`glm.warm` has the formula): d² operations, and they cannot lose positive
definiteness.  So GLM-TSL draws from N(0, H⁻¹) by one product with W, and GLM-FPL its tilt S ~ N(0, G) by one with R.

Each step takes the past's curvature from where the past was seen, so the estimate drifts off the exact one.  Where rows
are kept, it is refitted whenever as many rewards as half of those kept have come, which costs little per reward and
takes the drift away; it starts from exact roots then, too.  (As long as all are kept, that is a growth by a half.)

**A buffer** of the last B rewards makes the drift small at a cost that is still constant.  Their losses are kept as
they are, and only what leaves the buffer becomes a parabola, at the θ of that time, which has seen B rewards more.  The
estimate is the minimum of

    ½ θᵀAθ − aᵀθ + Σ_{l in the buffer} b(X_lᵀθ) − Y_l X_lᵀθ,    A and a the sums of these parabolas and the prior,

by `PASSES` damped Newton steps for each reward, from the last one: O(B d² + d³) in place of O(d²).  How much nearer to
the exact estimate that is, `benchmarks/memory_errors.py` prints.

**A discount** γ (`glm.history`) takes H to γH + (1−γ)λI.  The first term scales the roots.  The second is not of rank
one, so the prior is put back in one coordinate after the other: with every reward comes a pseudo-observation of value
0, the prior's mean, and weight d(1−γ)λ along e_j, j = 0, 1, …, d−1, 0, ….  What is left of the prior in H is then some
diagonal P in place of λI.  An entry p is λ at first; with each reward it shrinks to γp, and with each d-th it gains
d(1−γ)λ.  From 1 − γ^d ≤ d(1−γ) and γ + d(1−γ) ≤ γ^{1−d} (Bernoulli's inequality) it follows by induction that after
every reward

    γ^{d−1} λ  ≤  p  ≤  (1 + (d−1)(1−γ)) λ.

So H is as if the ridge were off by these factors: little, for a memory 1/(1−γ) of many times d rewards.  The ε in
R Rᵀ is kept up alike.

References: Kulis & Bartlett, Implicit Online Learning, ICML 2010; Faury et al., Jointly Efficient and Optimal
Algorithms for Logistic Bandits, AISTATS 2022 (this step for logistic bandits).
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.glm.families import Family
from explorax.glm.fit import MAX_STEPS, Fit, newton
from explorax.glm.history import Rows, weighted_gram
from explorax.glm.linalg import factorize, shrinkage, stretch
from explorax.glm.problem import hessian, posed

GRAM_RIDGE = 1e-6  # ε: keeps R⁻¹ finite while the rows do not span the space
ROOT_STEPS = 200  # safeguarded Newton steps for c; three or four are enough, unless a reward is huge


PASSES = 2  # Newton steps for each reward, with a buffer


class Buffer(NamedTuple):
    """The last rewards as they are, and parabolas for those before them."""

    curvature: Array  # (d, d) A
    slope: Array  # (d,) a
    rows: Rows  # the last B rewards, in a ring

    @classmethod
    def of(cls, size: int, features: int, dtype: jnp.dtype, ridge: ArrayLike) -> "Buffer":
        """Nothing seen yet."""
        prior = jnp.asarray(ridge, dtype) * jnp.eye(features, dtype=dtype)
        return cls(prior, jnp.zeros(features, dtype), Rows.of(size, features, dtype, forgets=True))

    def after(self, root: Array, theta: Array) -> "Buffer":
        """This empty buffer after a past that is known as θ and W only."""
        curvature = jnp.linalg.inv(root @ root.T)
        return self._replace(curvature=curvature, slope=curvature @ theta)

    def record(self, family: Family, theta: Array, x: Array, reward: Array, really: ArrayLike) -> "Buffer":
        """One more reward; the one that it drives out becomes a parabola at θ."""
        place = self.rows.seen % self.rows.capacity
        oldest, weight, past = self.rows.features[place], self.rows.counts[place], self.rows.sums[place]
        weight = jnp.where(really, weight, 0)
        score = oldest @ theta
        bend = weight * family.slope(score)
        pull = bend * score - weight * (family.mean(score) - past)
        rows = self.rows.record(0, x, reward, really)
        return Buffer(self.curvature + bend * jnp.outer(oldest, oldest), self.slope + pull * oldest, rows)

    def descend(self, family: Family, theta: Array) -> tuple[Array, Array]:
        """θ after a few damped Newton steps, and W there."""
        rows = self.rows

        def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            theta = carry[0]
            scores = jnp.where(rows.counts > 0, rows.features @ theta, 0)
            residuals = rows.counts * family.mean(scores) - rows.sums
            slope = self.curvature @ theta - self.slope + residuals @ rows.features
            factor = factorize(self.curvature + weighted_gram(rows.features, rows.counts * family.slope(scores)))
            direction = -factor.solve(slope)
            reach = family.self_concordance * jnp.max(jnp.abs(rows.features @ direction))
            length = jnp.where(reach > 0, jnp.log1p(reach) / jnp.where(reach > 0, reach, 1), 1)
            return (theta + length * direction, factor.inverse_root()), None

        return lax.scan(step, (theta, self.curvature), None, length=PASSES)[0]


class Online(NamedTuple):
    """A summary of constant size, and the rows for refits where they are kept."""

    root: Array  # (d, d) W
    gram_root: Array  # (d, d) R
    gram_inverse: Array  # (d, d) R⁻¹
    rows: Rows | None
    refit_at: Array  # () number of rewards at the next refit
    turn: Array | None = None  # () with a discount: the coordinate j whose prior is put back next
    buffer: Buffer | None = None

    @classmethod
    def of(
        cls,
        features: int,
        dtype: jnp.dtype,
        ridge: ArrayLike,
        rows: Rows | None,
        floor: float = GRAM_RIDGE,
        discounts: bool = False,
        buffer: int = 0,
    ) -> "Online":
        """Nothing seen yet; `floor` is ε."""
        identity = jnp.eye(features, dtype=dtype)
        roots = identity / jnp.sqrt(jnp.asarray(ridge, dtype)), floor**0.5 * identity, identity / floor**0.5
        recent = Buffer.of(buffer, features, dtype, ridge) if buffer else None
        return cls(*roots, rows, jnp.asarray(2), jnp.asarray(0) if discounts else None, recent)


class Kept(NamedTuple):
    """The estimate and what is kept with it."""

    theta: Array
    online: Online
    converged: Array


def record(
    family: Family,
    online: Online,
    theta: Array,
    converged: ArrayLike,
    x: Array,
    reward: Array,
    ridge: Array,
    last_step: float,
    really: ArrayLike = True,
    discount: Array | None = None,
    floor: Array | None = None,
) -> Kept:
    """Take in one more reward if `really` is true: a proximal step, and a refit where it is due.

    `converged` is that of the last refit, and stays so up to the next one.  `floor` is ε, where it is another.
    """
    if online.buffer is not None:
        return record_in_buffer(family, online, online.buffer, theta, converged, x, reward, really)
    before = Kept(theta, online._replace(rows=None), jnp.asarray(converged))
    if discount is not None:
        theta, online = fade(theta, online, ridge, GRAM_RIDGE if floor is None else floor, discount)
    projected = x @ online.root
    score, q = x @ theta, projected @ projected
    pull = residual_after(family, score, q, reward)
    theta = theta + pull * (online.root @ projected)
    pushed = jnp.sqrt(family.slope(score + pull * q)) * projected
    moved = grown(online, pushed, x)
    # An update this large leaves rounding in place of the root.
    sound = pushed @ pushed <= float(jnp.finfo(x.dtype).eps) ** (-4 / 3)
    # The rows themselves need not pass through what follows.
    after = Kept(theta, moved._replace(rows=None), before.converged & jnp.all(jnp.isfinite(theta)) & sound)
    kept = jax.tree.map(partial(jnp.where, really), after, before)
    if online.rows is None:
        return kept
    rows = online.rows.record(0, x, reward, really, discount)
    due = jnp.asarray(really) & (rows.seen >= online.refit_at)

    def again(due: Array, kept: Kept, rows: Rows, ridge: Array, floor: Array | None) -> Kept:
        found = refit(family, rows, kept.theta, ridge, last_step, floor)
        summary = found.online._replace(rows=None, turn=kept.online.turn)
        return jax.tree.map(partial(jnp.where, due), found._replace(online=summary), kept)

    kept = where_needed(due, again, (due, kept, rows, ridge, floor), kept)
    return kept._replace(online=kept.online._replace(rows=rows))


def record_in_buffer(
    family: Family,
    online: Online,
    buffer: Buffer,
    theta: Array,
    converged: ArrayLike,
    x: Array,
    reward: Array,
    really: ArrayLike,
) -> Kept:
    """Take in one more reward if `really` is true, in a summary with a buffer."""
    buffer = buffer.record(family, theta, x, reward, really)
    moved, root = buffer.descend(family, theta)
    finite = jnp.isfinite(jnp.sum(moved)) & jnp.isfinite(jnp.sum(root))
    moved, root = jnp.where(finite & really, moved, theta), jnp.where(finite & really, root, online.root)
    summary = grown(online, jnp.zeros_like(x), jnp.where(really, x, 0))._replace(root=root, buffer=buffer)
    return Kept(moved, summary, jnp.asarray(converged) & finite)


def grown(online: Online, pushed: Array, x: Array) -> Online:
    """The roots once w x xᵀ has been added to H, `pushed` being √w Wᵀx, and x xᵀ to G."""
    root = online.root - jnp.outer(shrinkage(pushed) * (online.root @ pushed), pushed)
    whitened = online.gram_inverse @ x
    gram_root = online.gram_root + jnp.outer(stretch(whitened) * x, whitened)
    gram_inverse = online.gram_inverse - jnp.outer(shrinkage(whitened) * whitened, whitened @ online.gram_inverse)
    return online._replace(root=root, gram_root=gram_root, gram_inverse=gram_inverse)


def fade(theta: Array, online: Online, ridge: Array, floor: ArrayLike, discount: Array) -> tuple[Array, Online]:
    """The estimate and the roots once the past is discounted and the prior of one coordinate put back."""
    assert online.turn is not None
    size, scale = theta.shape[0], jnp.sqrt(discount)
    faded = online._replace(
        root=online.root / scale,
        gram_root=online.gram_root * scale,
        gram_inverse=online.gram_inverse / scale,
        turn=(online.turn + 1) % size,
    )
    weight = size * (1 - discount)
    projected = jnp.sqrt(weight * ridge) * faded.root[online.turn]
    pull = jnp.sqrt(weight * ridge) * theta[online.turn] / (1 + projected @ projected)
    theta = theta - pull * (faded.root @ projected)
    x = jnp.sqrt(weight * floor) * (jnp.arange(size) == online.turn)
    return theta, grown(faded, projected, x.astype(theta.dtype))


def refit(family: Family, rows: Rows, theta: Array, ridge: Array, last_step: float, floor: Array | None = None) -> Kept:
    """The exact estimate on the rows kept, from a nearby one, with exact roots."""
    found: Fit = newton(family, rows, ridge, None, theta, last_step, MAX_STEPS)
    root = factorize(hessian(family, posed(rows, ridge=ridge), found.theta)).inverse_root()
    identity = jnp.eye(theta.shape[0], dtype=theta.dtype)
    gram = factorize(rows.gram() + (GRAM_RIDGE if floor is None else floor) * identity)
    gram_root = gram.root[:, None] * gram.lower
    gram_inverse = gram.inverse_root().T
    refit_at = rows.seen + jnp.maximum(1, jnp.ceil(jnp.sum(rows.counts) / 2)).astype(rows.seen.dtype)
    return Kept(found.theta, Online(root, gram_root, gram_inverse, rows, refit_at), found.converged)


def residual_after(family: Family, score: Array, q: Array, reward: Array) -> Array:
    """The root c of c + μ(score + c q) − reward, between 0 and the residual.

    Newton's step where it stays in the bracket and is at most half as long as the last one; else the middle.  The
    latter is that of asinh(c q), so that a bracket many powers of ten wide gets narrow soon.
    """
    largest, eps = jnp.finfo(score.dtype).max / 4, float(jnp.finfo(score.dtype).eps)
    residual = jnp.clip(reward - family.mean(score), -largest, largest)

    def middle(low: Array, high: Array) -> Array:
        ends = jnp.arcsinh(jnp.clip(jnp.stack([low, high]) * q, -largest, largest))
        return jnp.where(q > 0, jnp.clip(jnp.sinh(jnp.mean(ends)) / q, low, high), (low + high) / 2)

    def step(c: Array, excess: Array, low: Array, high: Array, last: Array) -> tuple[Array, Array, Array]:
        """The next c, how far it is from this one, and whether that is near enough."""
        slope = 1 + q * family.slope(score + c * q)
        trial = c - excess / slope
        good = jnp.isfinite(slope) & (trial >= low) & (trial <= high) & (jnp.abs(trial - c) <= last / 2)
        trial = jnp.where(good, trial, middle(low, high))
        moved = jnp.abs(trial - c)
        # Newton's last step squares the error, a halving does not.
        return trial, moved, moved <= jnp.where(good, eps ** (2 / 3), 2 * eps) * jnp.abs(trial)

    def narrow(carry: Any) -> Any:
        low, high, c, last, _, steps = carry
        excess = c + family.mean(score + c * q) - reward
        low, high = jnp.where(excess > 0, low, c), jnp.where(excess > 0, c, high)
        return low, high, *step(c, excess, low, high, last), steps + 1

    low, high, far = jnp.minimum(residual, 0), jnp.maximum(residual, 0), jnp.full_like(score, jnp.inf)
    start, _, _ = step(jnp.zeros_like(score), -residual, low, high, far)
    carry = low, high, start, far, jnp.asarray(False), jnp.zeros((), int)
    return lax.while_loop(lambda carry: (carry[5] < ROOT_STEPS) & ~carry[4], narrow, carry)[2]


def tilt_noise(key: Array, online: Online, prior: ArrayLike) -> Array:
    """S ~ N(0, G + prior I)."""
    first, second = jax.random.split(key)
    size, dtype = online.root.shape[0], online.root.dtype
    noise = online.gram_root @ jax.random.normal(first, (size,), dtype)
    return noise + jnp.sqrt(jnp.asarray(prior, dtype)) * jax.random.normal(second, (size,), dtype)
