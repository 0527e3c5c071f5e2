"""What a policy remembers of past rounds, in arrays of fixed shape.

    Grouped   fixed arms: a count N_x and a reward sum Y_x for each arm.  Exact, and its size does not grow with time.
    Rows      changing arms: the last rewards one by one, up to a declared capacity.  Exact within the capacity.
    Moments   Σ x xᵀ and Σ x y.  All that a linear (Gaussian) model needs, whatever the arms.

A GLM needs N_x and Y_x and nothing else, because its loss over t rounds depends on them only:

    Σ_l b(X_lᵀθ) − Y_l X_lᵀθ = Σ_x N_x b(xᵀθ) − Y_x xᵀθ.

`Rows` is the same thing with one row for each reward, so both look alike to the fit: weighted rows
(`features`, `counts`, `sums`).  Policies touch a history only through

    history.record(arm, x, reward) -> history        fit(family, history, …)        history.gram() = Σ X_l X_lᵀ

so another kind of memory, such as a constant-size summary of a GLM, needs these three and no change of any policy.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.checks import is_known
from explorax.errors import HistoryFull


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

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike) -> "Grouped":
        """One more reward of this arm; `x` is its row and not needed."""
        return self._replace(counts=self.counts.at[arm].add(1), sums=self.sums.at[arm].add(reward))

    def gram(self) -> Array:
        """G = Σ N_x x xᵀ."""
        return weighted_gram(self.features, self.counts)


class Rows(NamedTuple):
    """The rewards one by one, each with the features of the arm that was pulled.

    A history that may not forget keeps its first `capacity` rows.  A policy's plain `update` raises `HistoryFull`
    at the next one (`check_room`); a compiled loop cannot raise and counts what it turned away (`dropped`).
    """

    features: Array  # (capacity, d)
    counts: Array  # (capacity,) 1 where a row is filled, else 0
    sums: Array  # (capacity,) the rewards
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

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike, really: ArrayLike = True) -> "Rows":
        """One more reward, unless not `really`; `arm` is its index at the time and not needed."""
        # A position past the end is dropped by JAX, which is what a history that may not forget wants.
        position = jnp.where(self.forgets, self.seen % self.capacity, self.seen)
        position = jnp.where(really, position, self.capacity)
        return self._replace(
            features=self.features.at[position].set(x, mode="drop"),
            counts=self.counts.at[position].set(1, mode="drop"),
            sums=self.sums.at[position].set(reward, mode="drop"),
            seen=self.seen + jnp.asarray(really, self.seen.dtype),
        )

    def holding(self, rows: "Rows") -> "Rows":
        """These rows, which must not be more than there is room for, in place of what is kept."""
        count = rows.capacity
        return self._replace(
            features=self.features.at[:count].set(rows.features),
            counts=jnp.zeros_like(self.counts).at[:count].set(rows.counts),
            sums=self.sums.at[:count].set(rows.sums),
            seen=rows.seen,
        )

    def gram(self) -> Array:
        """G = Σ x xᵀ over the rows kept."""
        return weighted_gram(self.features, self.counts)


class Moments(NamedTuple):
    """First and second moments of the past: constant size, exact for a linear model."""

    second: Array  # (d, d) Σ x xᵀ
    cross: Array  # (d,) Σ x y

    @classmethod
    def of(cls, features: int, dtype: jnp.dtype) -> "Moments":
        """Nothing seen yet."""
        return cls(jnp.zeros((features, features), dtype), jnp.zeros(features, dtype))

    def record(self, arm: ArrayLike, x: Array, reward: ArrayLike) -> "Moments":
        """One more reward."""
        return Moments(self.second + jnp.outer(x, x), self.cross + x * reward)

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


def weighted_gram(features: Array, weights: Array) -> Array:
    """Σ w_i x_i x_iᵀ."""
    return (features * weights[:, None]).T @ features
