"""Records of past rounds, in arrays of fixed shape.

    Grouped   fixed arms: a count N_x and a reward sum Y_x for each arm.  Exact, and its size does not grow with time.
    Recent    fixed arms with a window: the last rewards, so that they can be taken out of `Grouped` again.
    Rows      changing arms: the rewards one by one, up to a declared capacity.  Exact within the capacity.
    Moments   Σ x xᵀ and Σ x y.  All that a linear (Gaussian) model needs, with any arms.

A GLM needs only N_x and Y_x, because its loss over t rounds depends on nothing else:

    Σ_l b(X_lᵀθ) − Y_l X_lᵀθ = Σ_x N_x b(xᵀθ) − Y_x xᵀθ.

`Rows` has one row for each reward.  To the fit, both are weighted rows (`features`, `counts`, `sums`).  A memory
(`glm.memory`) is such a history together with the estimate that it gives.

**Forgetting**, for parameters that change over time, works in one of two ways.

*A discount* γ: when a reward is recorded, the weights of all earlier ones are multiplied by γ.  After t rewards the
loss is

    Σ_l γ^{t−l} [b(X_lᵀθ) − Y_l X_lᵀθ] + ½ λ ‖θ‖².

A reward of weight w counts as w rewards everywhere: N_x, Y_x, H = Σ w_l μ̇ X_l X_lᵀ + λI and G = Σ w_l X_l X_lᵀ are
weighted sums.  The ridge is not discounted: in directions without recent rewards the prior remains, and H ⪰ λI at any
time.

*A window* W: only the last W rewards count.

References: Russac, Vernade & Cappé, Weighted Linear Bandits for Non-Stationary Environments, NeurIPS 2019 (discount);
Cheung, Simchi-Levi & Zhu, Learning to Optimize under Non-Stationarity, AISTATS 2019 (window).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import add, where_needed
from explorax.checks import is_known
from explorax.errors import HistoryFull, InvalidArgument
from explorax.glm.weighted import Weighted

MOSTLY_ROUNDING = 0.01  # share of a sum of squares below which what a subtraction leaves is counted anew


class Grouped(NamedTuple):
    """A history of fixed arms: the number of pulls and the sum of rewards of each arm.

    Attributes:
        features: The arms, of shape (K, d).
        counts: The number of rewards N_x of each arm, of shape (K,); with a discount, the sum of their weights.
        sums: The sum of rewards Y_x of each arm, of shape (K,); with a discount, weighted.

    Example:
        >>> import jax.numpy as jnp
        >>> from explorax.glm.history import Grouped
        >>> arms = jnp.eye(2)
        >>> past = Grouped.of(arms).record(0, arms[0], 1.0).record(0, arms[0], 0.0)
        >>> past.counts.tolist(), past.sums.tolist()
        ([2.0, 0.0], [1.0, 0.0])
    """

    features: Array
    counts: Array
    sums: Array

    @classmethod
    def of(cls, arms: Array) -> "Grouped":
        """Build the empty history of fixed arms, whose features are a (K, d) array of floats."""
        nothing = jnp.zeros_like(arms[:, 0])
        return cls(arms, nothing, nothing)

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike, discount: ArrayLike | None = None) -> "Grouped":
        """Record one more reward.

        Args:
            arm: The index of the arm that was pulled.
            x: The features of the arm, of shape (d,); not used, because the arms are known.
            reward: The reward.
            discount: The factor γ for the weights of all earlier rewards.  Default: no discount.

        Returns:
            The history with the reward.
        """
        counts, sums = self.counts, self.sums
        if discount is not None:
            counts, sums = discounted(counts, sums, discount)
        return self._replace(counts=add(counts, arm, 1), sums=add(sums, arm, reward))

    def computed(self) -> tuple[Array, ...]:
        """Return no arrays, because recorded rewards are checked when they come (`checks.computed`)."""
        return ()

    def gram(self) -> Array:
        """Return the Gram matrix G = Σ N_x x xᵀ, of shape (d, d)."""
        return weighted_gram(self.features, self.counts)

    def numbers(self) -> tuple[Array, Array]:
        """Return the range of numbers of each arm's rewards, (0, N_x), if the rewards of each arm are counted apart."""
        return jnp.zeros_like(self.counts), self.counts


class Recent(NamedTuple):
    """The last W rewards of fixed arms, in a ring buffer, which a `Grouped` history with a window needs.

    Attributes:
        arms: The index of the arm of each reward, of shape (W,).
        rewards: The rewards, of shape (W,), with 0 in places that are still empty.
        seen: The number of all rewards so far, kept or not.
    """

    arms: Array
    rewards: Array
    seen: Array

    @classmethod
    def of(cls, window: int, dtype: jnp.dtype) -> "Recent":
        """Build an empty ring buffer for the rewards of a window."""
        return cls(jnp.zeros(window, int), jnp.zeros(window, dtype), jnp.zeros((), int))

    @property
    def position(self) -> Array:
        """The index in the ring where the next reward goes, which is that of the oldest one."""
        return self.seen % self.arms.shape[-1]

    def computed(self) -> tuple[Array, ...]:
        """Return no arrays, because recorded rewards are checked when they come (`checks.computed`)."""
        return ()

    def oldest(self) -> tuple[Array, Array]:
        """Return the arm whose reward leaves the window when the next one comes, and whether the window is full."""
        return self.arms[self.position], self.seen >= self.arms.shape[-1]

    def record(self, arm: ArrayLike, reward: ArrayLike) -> "Recent":
        """Record one more reward in place of the oldest one."""
        arms, rewards = self.arms.at[self.position].set(arm), self.rewards.at[self.position].set(reward)
        return Recent(arms, rewards, self.seen + 1)

    def forget(self, history: Grouped) -> Grouped:
        """Return a history without the reward that leaves the window when the next one comes."""
        arm, really = self.oldest()
        # A sum of what stays, where a difference would let rounding add up; without rewards it is exactly 0.
        stays = (self.arms == arm) & (jnp.arange(self.arms.shape[0]) != self.position)
        left = jnp.where(really, jnp.sum(jnp.where(stays, self.rewards, 0)), history.sums[arm])
        counts = history.counts.at[arm].add(-really.astype(history.counts.dtype))
        return history._replace(counts=counts, sums=history.sums.at[arm].set(left))


class Rows(NamedTuple):
    """A history of rewards one by one, each with the features of the arm that was pulled.

    A history that may not forget keeps its first `capacity` rows.  A policy's plain `update` raises `HistoryFull`
    at the next one (`check_room`); a compiled loop cannot raise, and counts the rewards that it turned away
    (`dropped`).

    Attributes:
        features: The rows, of shape (capacity, d).
        counts: 1 for a row that is filled, else 0, of shape (capacity,); with a discount, the weight of the row.
        sums: The rewards, of shape (capacity,); with a discount, times their weights.
        seen: The number of all rewards so far, kept or not.
        forgets: Whether a full history overwrites its oldest row.

    Example:
        >>> import jax.numpy as jnp
        >>> from explorax.glm.history import Rows
        >>> past = Rows.of(capacity=3, features=2, dtype=jnp.float32, forgets=False)
        >>> past = past.record(0, jnp.array([0.5, 1.0], jnp.float32), 1.0)
        >>> past.counts.tolist(), int(past.seen)
        ([1.0, 0.0, 0.0], 1)
    """

    features: Array
    counts: Array
    sums: Array
    seen: Array
    forgets: Array

    @classmethod
    def of(cls, capacity: int, features: int, dtype: jnp.dtype, forgets: bool) -> "Rows":
        """Build an empty history with room for `capacity` rewards.

        Args:
            capacity: The number of rewards that are kept.
            features: The number of features d.
            dtype: The dtype of all arrays.
            forgets: Whether a full history overwrites its oldest row.

        Returns:
            A history without rewards.
        """
        return cls(
            jnp.zeros((capacity, features), dtype),
            jnp.zeros(capacity, dtype),
            jnp.zeros(capacity, dtype),
            jnp.zeros((), int),
            jnp.asarray(forgets),
        )

    @property
    def capacity(self) -> int:
        """The number of rewards that can be kept."""
        return self.counts.shape[-1]

    @property
    def dropped(self) -> Array:
        """The number of rewards that found no room; always 0 in a history that forgets."""
        return jnp.where(self.forgets, 0, jnp.maximum(self.seen - self.capacity, 0))

    def record(
        self, arm: ArrayLike, x: Array, reward: ArrayLike, really: ArrayLike = True, discount: ArrayLike | None = None
    ) -> "Rows":
        """Record one more reward.

        Args:
            arm: The index of the arm that was pulled; not used.
            x: The features of the arm, of shape (d,).
            reward: The reward.
            really: Whether to record the reward at all, for compiled code.  Default: True.
            discount: The factor γ for the weights of all earlier rewards.  Default: no discount.

        Returns:
            The history with the reward, if there is room for it.
        """
        # A position past the end is dropped by JAX, which is what a history that may not forget wants.
        position = jnp.where(self.forgets, self.seen % self.capacity, self.seen)
        position = jnp.where(really, position, self.capacity)
        counts, sums = self.counts, self.sums
        if discount is not None:
            counts, sums = discounted(counts, sums, jnp.where(position < self.capacity, discount, 1))
        return self._replace(
            features=self.features.at[position].set(x, mode="drop"),
            counts=counts.at[position].set(1, mode="drop"),
            sums=sums.at[position].set(reward, mode="drop"),
            seen=self.seen + jnp.asarray(really, self.seen.dtype),
        )

    def computed(self) -> tuple[Array, ...]:
        """Return no arrays, because recorded rewards are checked when they come (`checks.computed`)."""
        return ()

    def holding(self, rows: "Rows") -> "Rows":
        """Return this history with other rows in place of its own; they must not be more than its capacity."""
        count = rows.capacity
        return self._replace(
            features=self.features.at[:count].set(rows.features),
            counts=jnp.zeros_like(self.counts).at[:count].set(rows.counts),
            sums=self.sums.at[:count].set(rows.sums),
            seen=rows.seen,
        )

    def adopting(self, rows: "Rows") -> "Rows":
        """Copy the rows of another history into this empty one, oldest first; not for compiled code.

        Returns:
            This history with all rows of the other one, or the newest of them if it has less room and forgets.

        Raises:
            HistoryFull: If this history has less room and may not forget.
        """
        if (self.capacity, bool(self.forgets)) == (rows.capacity, bool(rows.forgets)):
            return rows
        count, first = min(int(rows.seen), rows.capacity), 0
        if rows.forgets and rows.seen > rows.capacity:
            first = int(rows.seen) % rows.capacity
        if count > self.capacity and not self.forgets:
            raise HistoryFull(
                f"capacity must be at least {count}, the number of rewards that are kept, got {self.capacity}. Give a "
                "larger capacity, or when_full='forget' to keep the newest."
            )
        taken = min(count, self.capacity)
        places = (first + jnp.arange(count - taken, count)) % rows.capacity
        return self._replace(
            features=self.features.at[..., :taken, :].set(rows.features[..., places, :]),
            counts=self.counts.at[..., :taken].set(rows.counts[..., places]),
            sums=self.sums.at[..., :taken].set(rows.sums[..., places]),
            seen=jnp.full_like(rows.seen, taken),
        )

    def appended(self, rewards: Weighted) -> "Rows":
        """Return this history with rewards that have weights; not for compiled code.  Raises like `check_room`."""
        count = len(rewards.weights)
        check_room(self, count)
        last = jnp.arange(max(0, count - self.capacity), count)  # the others would be overwritten
        places = (int(self.seen) + last) % self.capacity
        return self._replace(
            features=self.features.at[places].set(rewards.features[last]),
            counts=self.counts.at[places].set(rewards.weights[last]),
            sums=self.sums.at[places].set((rewards.weights * rewards.rewards)[last]),
            seen=self.seen + count,
        )

    def resized_like(self, empty: "Rows") -> "Rows":
        """Return this history with the capacity of an empty one; raise if rewards were forgotten and it differs."""
        if self.capacity != empty.capacity and int(self.seen) > self.capacity:
            raise InvalidArgument(
                f"capacity must stay {self.capacity} once rewards have been forgotten, got {empty.capacity}. "
                "Keep the old capacity, or start with an empty state."
            )
        return empty.adopting(self)

    def gram(self) -> Array:
        """Return the Gram matrix G = Σ x xᵀ of the rows kept, of shape (d, d)."""
        return weighted_gram(self.features, self.counts)

    def numbers(self) -> tuple[Array, Array]:
        """Return the range of numbers of each row's reward, (i, i + 1), if rewards are counted over all rows."""
        places = jnp.arange(self.capacity, dtype=self.counts.dtype)
        return places, places + 1


class Moments(NamedTuple):
    """A history as first and second moments: of constant size, and exact for a linear model.

    Attributes:
        second: Σ x xᵀ, of shape (d, d).
        cross: Σ x y, of shape (d,).
        recent: The rewards in the window, if there is a window; else None.
    """

    second: Array
    cross: Array
    recent: Rows | None = None

    @classmethod
    def of(cls, features: int, dtype: jnp.dtype, window: int | None = None) -> "Moments":
        """Build an empty history of moments, with a window of that many rewards if one is given."""
        recent = None if window is None else Rows.of(window, features, dtype, forgets=True)
        return cls(jnp.zeros((features, features), dtype), jnp.zeros(features, dtype), recent)

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike, discount: ArrayLike | None = None) -> "Moments":
        """Record one more reward, after discounting all earlier ones if there is a discount."""
        second, cross = self.second, self.cross
        if discount is not None:
            second, cross = second * discount, cross * discount
        more = Moments(second + jnp.outer(x, x), cross + x * reward, self.recent)
        return more if self.recent is None else more.forget(self.recent, self.recent.record(arm, x, reward))

    def forget(self, before: Rows, rows: Rows) -> "Moments":
        """Subtract the row that has left the window, which had the rows `before` the last reward and has `rows` now.

        A subtraction leaves rounding behind.  Therefore all moments are summed up anew each time that the ring of rows
        starts over, and whenever nearly nothing is left of a feature's squares.

        Returns:
            The moments of the rows in the window.
        """
        position = before.seen % before.capacity
        x, weight, reward = before.features[position], before.counts[position], before.sums[position]
        second, cross = self.second - weight * jnp.outer(x, x), self.cross - x * reward
        little = jnp.diagonal(second) < MOSTLY_ROUNDING * jnp.diagonal(self.second)
        stale = (rows.seen % rows.capacity == 0) | jnp.any(little)
        second, cross = where_needed(
            stale, lambda rows: (rows.gram(), rows.sums @ rows.features), (rows,), (second, cross)
        )
        return Moments(second, cross, rows)

    def gram(self) -> Array:
        """Return the Gram matrix G = Σ x xᵀ, of shape (d, d)."""
        return self.second


def check_room(rows: Rows, more: int = 1) -> None:
    """Raise `HistoryFull` if `more` further rewards would find no room in a history that may not forget."""
    if is_known(rows.seen, rows.forgets) and not rows.forgets and int(rows.seen) + more > rows.capacity:
        taken = "All" if rows.seen >= rows.capacity else f"{int(rows.seen)} of"
        raise HistoryFull(
            f"{taken} {rows.capacity} rows are taken. Give a larger capacity, or when_full='forget' to keep the newest."
        )


def limited_rows(state: Any) -> list[Rows]:
    """Return the histories in the state of a policy that may get full, because they do not forget."""
    parts = jax.tree.leaves(state, is_leaf=lambda part: isinstance(part, Rows))
    return [part for part in parts if isinstance(part, Rows) and not np.any(part.forgets)]


def discounted(counts: Array, sums: Array, discount: ArrayLike) -> tuple[Array, Array]:
    """Discount the counts and reward sums of rows, before one more reward is recorded.

    A row that weighs less than the square of the precision is forgotten: its terms are lost in the rounding of the
    others, and a weight that goes to zero would let e^{xᵀθ} of its row grow until it overflows.

    Returns:
        The discounted counts and sums.
    """
    fewer = counts * discount
    kept = fewer > jnp.finfo(counts.dtype).eps ** 2
    return jnp.where(kept, fewer, 0), jnp.where(kept, sums * discount, 0)


def weighted_gram(features: Array, weights: Array) -> Array:
    """Return the weighted Gram matrix Σ w_i x_i x_iᵀ of the rows of a matrix."""
    return (features * weights[:, None]).T @ features
