"""Records of past rounds, in arrays of fixed shape.

    Grouped   fixed arms: a count N_x and a reward sum Y_x for each arm.  Exact, and its size does not grow with time.
    Rows      changing arms: the last rewards one by one, up to a declared capacity.  Exact within the capacity.
    Moments   Σ x xᵀ and Σ x y.  All that a linear (Gaussian) model needs, whatever the arms.

A GLM needs N_x and Y_x and nothing else, because its loss over t rounds depends on them only:

    Σ_l b(X_lᵀθ) − Y_l X_lᵀθ = Σ_x N_x b(xᵀθ) − Y_x xᵀθ.

`Rows` is the same thing with one row for each reward, so both look alike to the fit: weighted rows
(`features`, `counts`, `sums`).  A memory (`glm.memory`) is such a history together with the estimate that it gives.

**Forgetting**, for parameters that change over time, in one of two ways.

*A discount* γ: when a reward is recorded, every earlier one weighs γ times what it did.  After t rewards the loss is

    Σ_l γ^{t−l} [b(X_lᵀθ) − Y_l X_lᵀθ] + ½ λ ‖θ‖².

A reward of weight w counts as w rewards everywhere: N_x, Y_x, H = Σ w_l μ̇ X_l X_lᵀ + λI and G = Σ w_l X_l X_lᵀ are
weighted sums.  The ridge is not discounted: where nothing was seen for long the prior is left, and H ⪰ λI at any time.

*A window* W: the last W rewards count, all others do not.

References: Russac, Vernade & Cappé, Weighted Linear Bandits for Non-Stationary Environments, NeurIPS 2019 (discount);
Cheung, Simchi-Levi & Zhu, Learning to Optimize under Non-Stationarity, AISTATS 2019 (window).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.checks import check_whole, is_known, is_number
from explorax.errors import HistoryFull, InvalidArgument

MOSTLY_ROUNDING = 0.01  # share of a sum of squares below which what a subtraction leaves is counted anew


class Grouped(NamedTuple):
    """Counts and reward sums of a fixed set of arms."""

    features: Array  # (K, d) the arms
    counts: Array  # (K,) N_x
    sums: Array  # (K,) Y_x

    @classmethod
    def of(cls, arms: Array) -> "Grouped":
        """Nothing seen yet of these arms."""
        nothing = jnp.zeros_like(arms[:, 0])
        return cls(arms, nothing, nothing)

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike, discount: ArrayLike | None = None) -> "Grouped":
        """One more reward of this arm; `x` is its row and not needed."""
        counts, sums = self.counts, self.sums
        if discount is not None:
            counts, sums = discounted(counts, sums, discount)
        return self._replace(counts=counts.at[arm].add(1), sums=sums.at[arm].add(reward))

    def computed(self) -> tuple[Array, ...]:
        """Return nothing: all of it was checked when it came (`checks.computed`)."""
        return ()

    def gram(self) -> Array:
        """G = Σ N_x x xᵀ."""
        return weighted_gram(self.features, self.counts)

    def numbers(self) -> tuple[Array, Array]:
        """Return the first and the last number of each arm's rewards, in a count of its own from 0 on."""
        return jnp.zeros_like(self.counts), self.counts


class Recent(NamedTuple):
    """The last W rewards of fixed arms, in a ring: what a window of a `Grouped` history needs beside it."""

    arms: Array  # (W,) the arm of each
    rewards: Array  # (W,) 0 where there is none yet
    seen: Array  # () rewards so far, kept or not

    @classmethod
    def of(cls, window: int, dtype: jnp.dtype) -> "Recent":
        """Room for so many rewards."""
        return cls(jnp.zeros(window, int), jnp.zeros(window, dtype), jnp.zeros((), int))

    @property
    def position(self) -> Array:
        """Where the next reward goes, in place of the oldest one."""
        return self.seen % self.arms.shape[-1]

    def computed(self) -> tuple[Array, ...]:
        """Return nothing: all of it was checked when it came (`checks.computed`)."""
        return ()

    def oldest(self) -> tuple[Array, Array]:
        """The arm whose reward leaves when the next one comes, and whether there is one to leave."""
        return self.arms[self.position], self.seen >= self.arms.shape[-1]

    def record(self, arm: ArrayLike, reward: ArrayLike) -> "Recent":
        """One more reward, in place of the oldest."""
        arms, rewards = self.arms.at[self.position].set(arm), self.rewards.at[self.position].set(reward)
        return Recent(arms, rewards, self.seen + 1)

    def forget(self, history: Grouped) -> Grouped:
        """The history without the reward that leaves when the next one comes."""
        arm, really = self.oldest()
        # A sum of what stays, where a difference would let rounding add up; without rewards it is exactly 0.
        stays = (self.arms == arm) & (jnp.arange(self.arms.shape[0]) != self.position)
        left = jnp.where(really, jnp.sum(jnp.where(stays, self.rewards, 0)), history.sums[arm])
        counts = history.counts.at[arm].add(-really.astype(history.counts.dtype))
        return history._replace(counts=counts, sums=history.sums.at[arm].set(left))


class Rows(NamedTuple):
    """The rewards one by one, each with the features of the arm that was pulled.

    A history that may not forget keeps its first `capacity` rows.  A policy's plain `update` raises `HistoryFull`
    at the next one (`check_room`); a compiled loop cannot raise and counts what it turned away (`dropped`).
    """

    features: Array  # (capacity, d)
    counts: Array  # (capacity,) 1 where a row is filled, else 0; with a discount, its weight
    sums: Array  # (capacity,) the rewards; with a discount, times their weights
    seen: Array  # () rewards so far, kept or not
    forgets: Array  # () bool: when full, overwrite the oldest row

    @classmethod
    def of(cls, capacity: int, features: int, dtype: jnp.dtype, forgets: bool) -> "Rows":
        """Room for `capacity` rewards."""
        return cls(
            jnp.zeros((capacity, features), dtype),
            jnp.zeros(capacity, dtype),
            jnp.zeros(capacity, dtype),
            jnp.zeros((), int),
            jnp.asarray(forgets),
        )

    @property
    def capacity(self) -> int:
        """How many rewards there is room for."""
        return self.counts.shape[-1]

    @property
    def dropped(self) -> Array:
        """How many rewards found no room; always 0 in a history that forgets."""
        return jnp.where(self.forgets, 0, jnp.maximum(self.seen - self.capacity, 0))

    def record(
        self, arm: ArrayLike, x: Array, reward: ArrayLike, really: ArrayLike = True, discount: ArrayLike | None = None
    ) -> "Rows":
        """Record one more reward if `really` is true; `arm` is its index at the time and not needed."""
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
        """Return nothing: all of it was checked when it came (`checks.computed`)."""
        return ()

    def holding(self, rows: "Rows") -> "Rows":
        """These rows, which must not be more than there is room for, in place of what is kept."""
        count = rows.capacity
        return self._replace(
            features=self.features.at[:count].set(rows.features),
            counts=jnp.zeros_like(self.counts).at[:count].set(rows.counts),
            sums=self.sums.at[:count].set(rows.sums),
            seen=rows.seen,
        )

    def adopting(self, rows: "Rows") -> "Rows":
        """These empty rows with what others keep, oldest first; for plain calls.

        Where there is room for fewer, the newest are taken if the oldest may be forgotten, else `HistoryFull` is
        raised.
        """
        if (self.capacity, bool(self.forgets)) == (rows.capacity, bool(rows.forgets)):
            return rows
        count, first = min(int(rows.seen), rows.capacity), 0
        if rows.forgets and rows.seen > rows.capacity:
            first = int(rows.seen) % rows.capacity
        if count > self.capacity and not self.forgets:
            raise HistoryFull(
                f"{count} rewards are kept where there is room for {self.capacity}: give a larger capacity, or "
                "when_full='forget' to keep the newest"
            )
        taken = min(count, self.capacity)
        places = (first + jnp.arange(count - taken, count)) % rows.capacity
        return self._replace(
            features=self.features.at[..., :taken, :].set(rows.features[..., places, :]),
            counts=self.counts.at[..., :taken].set(rows.counts[..., places]),
            sums=self.sums.at[..., :taken].set(rows.sums[..., places]),
            seen=jnp.full_like(rows.seen, taken),
        )

    def resized_like(self, empty: "Rows") -> "Rows":
        """Return these rows in the room of empty ones; where some were forgotten, the room must stay as it was."""
        if self.capacity != empty.capacity and int(self.seen) > self.capacity:
            raise InvalidArgument(
                f"capacity must stay {self.capacity} once rewards have been forgotten, got {empty.capacity}. "
                "Go on with the old capacity, or start anew."
            )
        return empty.adopting(self)

    def gram(self) -> Array:
        """G = Σ x xᵀ over the rows kept."""
        return weighted_gram(self.features, self.counts)

    def numbers(self) -> tuple[Array, Array]:
        """Return the numbers of each row's reward before and after it, in a count over all rows from 0 on."""
        places = jnp.arange(self.capacity, dtype=self.counts.dtype)
        return places, places + 1


class Moments(NamedTuple):
    """First and second moments of the past: constant size, exact for a linear model."""

    second: Array  # (d, d) Σ x xᵀ
    cross: Array  # (d,) Σ x y
    recent: Rows | None = None  # with a window: what is in it

    @classmethod
    def of(cls, features: int, dtype: jnp.dtype, window: int | None = None) -> "Moments":
        """Nothing seen yet."""
        recent = None if window is None else Rows.of(window, features, dtype, forgets=True)
        return cls(jnp.zeros((features, features), dtype), jnp.zeros(features, dtype), recent)

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike, discount: ArrayLike | None = None) -> "Moments":
        """One more reward."""
        second, cross = self.second, self.cross
        if discount is not None:
            second, cross = second * discount, cross * discount
        more = Moments(second + jnp.outer(x, x), cross + x * reward, self.recent)
        return more if self.recent is None else more.forget(self.recent, self.recent.record(arm, x, reward))

    def forget(self, before: Rows, rows: Rows) -> "Moments":
        """Without the row that was there before and is no more.

        Subtracting it leaves rounding behind.  So all is summed up anew each time that the ring of rows starts over,
        and where nearly nothing is left of a feature's squares.
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
        """G = Σ x xᵀ."""
        return self.second


def check_room(rows: Rows, more: int = 1) -> None:
    """Raise `HistoryFull` if so many more rewards would find no room."""
    if is_known(rows.seen, rows.forgets) and not rows.forgets and int(rows.seen) + more > rows.capacity:
        taken = "all" if rows.seen >= rows.capacity else f"{int(rows.seen)} of"
        raise HistoryFull(
            f"{taken} {rows.capacity} rows are taken: give a larger capacity, or when_full='forget' to keep the newest"
        )


def limited_rows(state: Any) -> list[Rows]:
    """Return the rows in a state of any policy that may get full."""
    parts = jax.tree.leaves(state, is_leaf=lambda part: isinstance(part, Rows))
    return [part for part in parts if isinstance(part, Rows) and not np.any(part.forgets)]


def check_forgetting(discount: object, window: object) -> None:
    """Raise unless at most one of them forgets, and in a way that there is."""
    if not (isinstance(discount, int | float) and is_number(discount) and 0 < discount <= 1):
        raise InvalidArgument(
            f"discount={discount!r} must be a number above 0 and at most 1: 0.999 remembers about 1000 rewards, 1 all"
        )
    if window is not None:
        check_whole("window", window, 1)
        if discount < 1:
            raise InvalidArgument(f"discount={discount!r} and window={window!r} are two ways to forget: give only one")


def discounted(counts: Array, sums: Array, discount: ArrayLike) -> tuple[Array, Array]:
    """Weights and weighted rewards when one more reward comes.

    What weighs less than the square of the precision is forgotten: its terms are lost in the rounding of the others,
    and a weight that dwindles would let e^{xᵀθ} of its row grow until it overflows.
    """
    fewer = counts * discount
    kept = fewer > jnp.finfo(counts.dtype).eps ** 2
    return jnp.where(kept, fewer, 0), jnp.where(kept, sums * discount, 0)


def weighted_gram(features: Array, weights: Array) -> Array:
    """Σ w_i x_i x_iᵀ."""
    return (features * weights[:, None]).T @ features
