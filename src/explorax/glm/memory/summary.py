"""A memory whose cost is the same with every reward, for arms that change and long runs.

With arms that change, the exact estimate needs all rows of the past: there is no summary of constant size that gives it
(only a linear model has one).  The next best is a proximal step for each reward (`glm.proximal`): θ moves to the
minimum of the loss of the new reward plus a parabola, which stands for the loss of all earlier ones,

    ½ (θ − θ_t)ᵀ H (θ − θ_t) + b(xᵀθ) − y xᵀθ.

Then H grows by μ̇(xᵀθ) x xᵀ, and G = Σ x xᵀ by x xᵀ.  The memory keeps square roots of them,

    W Wᵀ = H⁻¹,    R Rᵀ = G + εI,    R⁻¹,

which rank-one updates carry along (`glm.warm` has the formula): they take d² operations and cannot lose positive
definiteness.  GLM-TSL draws from N(0, H⁻¹) by one product with W, and GLM-FPL draws its tilt S ~ N(0, G) by one product
with R.

Each step uses the curvature of the past at earlier estimates, so that the estimate drifts off the exact one.  If rows
are kept (memory="refitted"), the estimate is fitted exactly, and the roots are computed exactly, each time that half as
many rewards as are kept have come since the last refit.  This costs little per reward and removes the drift.  (As long
as all rewards are kept, their number grows by a half from one refit to the next.)  A buffer of the last rewards
(`buffer`) makes the drift small at a cost that is still constant.

**A discount** γ (`glm.history`) takes H to γH + (1−γ)λI.  The first term scales the roots.  The second is not of rank
one, so the prior is put back in one coordinate after the other: with every reward comes a pseudo-observation of value
0, the prior's mean, and weight d(1−γ)λ along e_j, j = 0, 1, …, d−1, 0, ….  The share of the prior in H is then a
diagonal matrix P in place of λI.  An entry p is λ at first; with each reward it shrinks to γp, and with each d-th
reward it grows by d(1−γ)λ.  From 1 − γ^d ≤ d(1−γ) and γ + d(1−γ) ≤ γ^{1−d} (Bernoulli's inequality) it follows by
induction that after every reward

    γ^{d−1} λ  ≤  p  ≤  (1 + (d−1)(1−γ)) λ.

So H is as if the ridge were off by these factors, which are near 1 if the memory 1/(1−γ) is many times d rewards.  The
ε in R Rᵀ is kept up in the same way.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.checks import can_be_squared
from explorax.errors import InvalidArgument
from explorax.glm.history import Grouped, Rows, check_room
from explorax.glm.linalg import factorize, shrinkage, stretch
from explorax.glm.memory.base import (
    Change,
    Estimator,
    Forgetting,
    Memory,
    Wanted,
    check_adoptable,
)
from explorax.glm.memory.buffer import Buffer
from explorax.glm.memory.fits import exact_root
from explorax.glm.memory.kept_rows import leaving
from explorax.glm.proximal import residual_after
from explorax.glm.weighted import Weighted


class Summary(NamedTuple):
    """A memory of constant size: an estimate and roots of its curvature, with rows for refits if they are kept.

    Attributes:
        root: The root W of H⁻¹, of shape (d, d).
        gram_root: The root R of G + εI, of shape (d, d).
        gram_inverse: R⁻¹, of shape (d, d).
        theta_hat: The estimate θ̂, of shape (d,).
        converged: Whether the last refit converged and all steps since then were sound, a scalar.
        rows: The rewards for refits; None if they are not kept.
        refit_at: The number of rewards at the next refit.
        turn: The coordinate whose prior is put back next; None if there is no discount.
        buffer: The buffer of the last rewards; None if there is no buffer.
        forgetting: How the memory forgets.
    """

    root: Array
    gram_root: Array
    gram_inverse: Array
    theta_hat: Array
    converged: Array
    rows: Rows | None
    refit_at: Array
    turn: Array | None
    buffer: Buffer | None
    forgetting: Forgetting

    @classmethod
    def of(cls, wanted: Wanted, rows: Rows | None = None) -> "Summary":
        """Build a memory without rewards, which keeps rows for refits if an empty history of them is given."""
        forgetting, identity = wanted.forgetting(), jnp.eye(wanted.size, dtype=wanted.dtype)
        floor = wanted.ridge if forgetting.floor is not None else forgetting.gram_ridge
        return cls(
            identity / jnp.sqrt(jnp.asarray(wanted.ridge, wanted.dtype)),
            floor**0.5 * identity,
            identity / floor**0.5,
            jnp.zeros(wanted.size, wanted.dtype),
            jnp.asarray(True),
            rows,
            jnp.asarray(2),
            jnp.asarray(0) if wanted.discount < 1 else None,
            Buffer.of(wanted.buffer, wanted.size, wanted.dtype, wanted.ridge) if wanted.buffer else None,
            forgetting,
        )

    @property
    def past(self) -> None:
        """None, because the estimate is not exact for any rows."""

    @property
    def n_arms(self) -> None:
        """None, because arms change."""

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> "Summary":
        """Learn from one more reward if `really` is true, by a proximal step, and by a refit if one is due.

        A compiled loop cannot raise.  Features and rewards that are too large to be squared and summed therefore leave
        the memory as it was.

        Returns:
            The memory with the reward and the estimate after it.
        """
        really = jnp.asarray(really) & can_be_squared(x, reward)
        if self.buffer is not None:
            return self.learn_in_buffer(estimator, self.buffer, x, reward, really)
        # The rows and settings need not pass through what follows.
        before = self._replace(rows=None, forgetting=Forgetting())
        after = self.faded(ridge).stepped(estimator, x, reward)._replace(rows=None, forgetting=Forgetting())
        kept = jax.tree.map(partial(jnp.where, really), after, before)
        if self.rows is None:
            return kept._replace(forgetting=self.forgetting)
        rows = self.rows.record(0, x, reward, really, self.forgetting.discount)
        due = really & (rows.seen >= self.refit_at)

        def again(due: Array, kept: Summary, rows: Rows, ridge: Array, forgetting: Forgetting) -> Summary:
            found = kept._replace(forgetting=forgetting).refitted(estimator, ridge, rows)
            found = found._replace(rows=None, forgetting=Forgetting())
            return jax.tree.map(partial(jnp.where, due), found, kept)

        kept = where_needed(due, again, (due, kept, rows, ridge, self.forgetting), kept)
        return kept._replace(rows=rows, forgetting=self.forgetting)

    def learn_in_buffer(
        self, estimator: Estimator, buffer: Buffer, x: Array, reward: Array, really: Array
    ) -> "Summary":
        """Learn from one more reward if `really` is true, by recording it in the buffer."""
        buffer = buffer.record(estimator.family, self.theta_hat, x, reward, really)
        moved, root = buffer.descend(estimator.family, self.theta_hat)
        finite = jnp.isfinite(jnp.sum(moved)) & jnp.isfinite(jnp.sum(root))
        taken = finite & really
        return self.grown(jnp.zeros_like(x), jnp.where(really, x, 0))._replace(
            theta_hat=jnp.where(taken, moved, self.theta_hat),
            root=jnp.where(taken, root, self.root),
            buffer=buffer,
            converged=self.converged & finite,
        )

    def learn_rows(self, estimator: Estimator, ridge: Array, rows: Rows) -> "Summary":
        """Return the memory that has seen these rows and nothing else; not for a memory with discount or buffer."""
        assert self.forgetting.discount is None
        assert self.buffer is None
        if self.rows is None:
            return self.refitted(estimator, ridge, rows)._replace(rows=None)
        return self.refitted(estimator, ridge, self.rows.holding(rows))

    def stepped(self, estimator: Estimator, x: Array, reward: Array) -> "Summary":
        """Make the proximal step on one reward; the rows for refits stay as they are."""
        projected = x @ self.root
        score, q = x @ self.theta_hat, projected @ projected
        pull = residual_after(estimator.family, score, q, reward)
        theta = self.theta_hat + pull * (self.root @ projected)
        pushed = jnp.sqrt(estimator.family.slope(score + pull * q)) * projected
        # An update this large leaves rounding in place of the root.
        sound = pushed @ pushed <= float(jnp.finfo(x.dtype).eps) ** (-4 / 3)
        converged = self.converged & jnp.all(jnp.isfinite(theta)) & sound
        return self.grown(pushed, x)._replace(theta_hat=theta, converged=converged)

    def grown(self, pushed: Array, x: Array) -> "Summary":
        """Add w x xᵀ to H and x xᵀ to G by updates of their roots, given `pushed` = √w Wᵀx and x."""
        root = self.root - jnp.outer(shrinkage(pushed) * (self.root @ pushed), pushed)
        whitened = self.gram_inverse @ x
        gram_root = self.gram_root + jnp.outer(stretch(whitened) * x, whitened)
        gram_inverse = self.gram_inverse - jnp.outer(shrinkage(whitened) * whitened, whitened @ self.gram_inverse)
        return self._replace(root=root, gram_root=gram_root, gram_inverse=gram_inverse)

    def faded(self, ridge: Array) -> "Summary":
        """Discount the past if there is a discount, and put back the prior of one coordinate."""
        discount = self.forgetting.discount
        if discount is None:
            return self
        assert self.turn is not None
        theta, size, scale = self.theta_hat, self.theta_hat.shape[0], jnp.sqrt(discount)
        faded = self._replace(
            root=self.root / scale,
            gram_root=self.gram_root * scale,
            gram_inverse=self.gram_inverse / scale,
            turn=(self.turn + 1) % size,
        )
        weight = size * (1 - discount)
        projected = jnp.sqrt(weight * ridge) * faded.root[self.turn]
        pull = jnp.sqrt(weight * ridge) * theta[self.turn] / (1 + projected @ projected)
        x = jnp.sqrt(weight * self.forgetting.gram_ridge) * (jnp.arange(size) == self.turn)
        theta = theta - pull * (faded.root @ projected)
        return faded.grown(projected, x.astype(theta.dtype))._replace(theta_hat=theta)

    def refitted(self, estimator: Estimator, ridge: Array, rows: Rows) -> "Summary":
        """Return the memory with the exact estimate and the exact roots of these rows."""
        found = estimator.fit(rows, ridge, self.theta_hat)
        identity = jnp.eye(self.theta_hat.shape[0], dtype=self.theta_hat.dtype)
        gram = factorize(rows.gram() + self.forgetting.gram_ridge * identity)
        return self._replace(
            root=exact_root(estimator, rows, ridge, found.theta),
            gram_root=gram.root[:, None] * gram.lower,
            gram_inverse=gram.inverse_root().T,
            theta_hat=found.theta,
            converged=found.converged,
            rows=rows,
            refit_at=rows.seen + jnp.maximum(1, jnp.ceil(jnp.sum(rows.counts) / 2)).astype(rows.seen.dtype),
        )

    def scores(self, arms: Array) -> Array:
        """Return the score x_iᵀθ̂ of each arm."""
        return arms @ self.theta_hat

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return the score x_iᵀθ of each arm, for any θ."""
        return arms @ theta

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Return the score of each arm for the estimate with a tilt, to first order, and whether θ̂ converged."""
        return arms @ (self.theta_hat + self.root @ (tilt @ self.root)), self.converged

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return the kept root W of the inverse curvature H⁻¹."""
        return self.root

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw a tilt S ~ N(0, G + prior I), by the kept root of G."""
        first, second = jax.random.split(key)
        size, dtype = self.root.shape[0], self.root.dtype
        noise = self.gram_root @ jax.random.normal(first, (size,), dtype)
        return noise + jnp.sqrt(jnp.asarray(prior, dtype)) * jax.random.normal(second, (size,), dtype)

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ of each arm in the norm of G⁻¹, or of (G + λI)⁻¹ if the memory forgets."""
        return jnp.sqrt(jnp.sum((arms @ self.gram_inverse.T) ** 2, axis=1))

    def leaving(self) -> Change | None:
        """Return what the next reward drives out of the rows; None if no rows are kept."""
        return None if self.rows is None else leaving(self.rows)

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> "Summary":
        """Return the memory as it is, because it has no fixed arms."""
        return self

    def adopting(self, estimator: Estimator, ridge: Array, old: Memory, old_ridge: Array) -> "Summary":
        """Return this empty memory with the past of another memory."""
        rows = old.known_rewards()
        if rows is None:
            if self.rows is not None:
                raise InvalidArgument(
                    "memory must be 'constant', got one that keeps rows. Keep 'constant': a summary does not know its "
                    "rewards any more."
                )
            assert isinstance(old, Summary)
            if not np.array_equal(old_ridge, ridge):
                raise InvalidArgument(
                    f"ridge must stay {float(old_ridge):g}, got {float(ridge)}. Keep it: a summary cannot take its "
                    "ridge out again."
                )
            check_adoptable(old, self)
            return old._replace(forgetting=self.forgetting).with_buffer(self.buffer)
        if isinstance(rows, Grouped):
            if self.rows is not None:
                raise InvalidArgument(
                    "memory must be of the same kind as before, got fixed arms on one side only. Keep the memory, or "
                    "give memory='constant'."
                )
            rows = Rows(*rows, jnp.sum(rows.counts).astype(int), jnp.asarray(True))
        check_adoptable(old, self)
        rows = rows if self.rows is None else self.rows.adopting(rows)
        adopted = self._replace(theta_hat=old.theta_hat).refitted(estimator, ridge, rows)
        return adopted._replace(rows=None if self.rows is None else rows).with_buffer(self.buffer)

    def with_buffer(self, empty: Buffer | None) -> "Summary":
        """Return the memory with an empty buffer that starts from its estimate, or without a buffer."""
        return self._replace(buffer=empty and empty.after(self.root, self.theta_hat))

    def absorbed(self, estimator: Estimator, ridge: Array, rewards: Weighted) -> "Summary":
        """Return the memory with rewards that have weights, by a refit if rows are kept, else around its parabola."""
        if self.rows is not None:
            rows = self.rows.appended(rewards)
            return self.refitted(estimator, ridge, rows)
        size, dtype = len(self.theta_hat), self.theta_hat.dtype
        rows = Rows.of(len(rewards.weights), size, dtype, forgets=True).appended(rewards)
        parabola = Buffer.of(1, size, dtype, ridge).after(self.root, self.theta_hat)
        found = parabola._replace(rows=rows).minimized(estimator, self.theta_hat)
        gram = factorize(self.gram_root @ self.gram_root.T + rows.gram())
        absorbed = self._replace(
            root=found.root,
            gram_root=gram.root[:, None] * gram.lower,
            gram_inverse=gram.inverse_root().T,
            theta_hat=found.theta,
            converged=self.converged & found.converged,
        )
        return absorbed.with_buffer(self.buffer and Buffer.of(self.buffer.rows.capacity, size, dtype, ridge))

    def unrewarded(self) -> None:
        """Return None, because nothing is kept by arm."""

    def completed(self, estimator: Estimator, ridge: Array) -> "Summary":
        """Return the memory as it is, because snapshots of all formats have all of it."""
        return self

    def known_rewards(self) -> Rows | None:
        """Return the rewards that are kept for refits; None if they are not kept."""
        return self.rows

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise `HistoryFull` if rows are kept and there is no room for another one."""
        if self.rows is not None:
            check_room(self.rows)
