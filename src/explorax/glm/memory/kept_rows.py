"""A memory of rewards one by one, for arms that change.  It is exact within its capacity.

A fit goes over all rows that are filled.  Shapes are fixed in a compiled program, so that what goes over rows is
compiled for a few numbers of them (`on_filled`): a memory with room for many rewards costs little while it has few.

For policies that draw from N(θ̂, H⁻¹) or measure arms by H⁻¹, a root of H⁻¹ is part of the memory.  It is computed with
the estimate when a reward comes, so that decisions, of which there may be many until the next reward, only read it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.typing import ArrayLike

from explorax.checks import can_be_squared
from explorax.errors import InvalidArgument
from explorax.glm.history import Grouped, Rows, check_room
from explorax.glm.linalg import draw_tilt, factorize
from explorax.glm.memory.base import (
    Change,
    Estimate,
    Estimator,
    Forgetting,
    Memory,
    Wanted,
    check_adoptable,
)
from explorax.glm.memory.fits import exact_widths, tilted_fit
from explorax.glm.problem import hessian, posed
from explorax.glm.weighted import Weighted

SIZES = (256, 2048)  # numbers of rows, beside the capacity, that work on rows is compiled for


class KeptRows(NamedTuple):
    """A memory of rewards one by one, with the features of the arms that were pulled and the exact estimate.

    Attributes:
        past: The rewards and their features, up to the capacity.
        theta_hat: The penalized estimate θ̂, of shape (d,).
        converged: Whether the fit of θ̂ converged, a scalar.
        forgetting: How the memory forgets.
        kept_root: The root W of H(θ̂)⁻¹, of shape (d, d); None if it is not kept.
    """

    past: Rows
    theta_hat: Array
    converged: Array
    forgetting: Forgetting
    kept_root: Array | None = None

    @classmethod
    def of(cls, wanted: Wanted) -> "KeptRows":
        """Build a memory without rewards."""
        zeros, identity = jnp.zeros(wanted.size, wanted.dtype), jnp.eye(wanted.size, dtype=wanted.dtype)
        # Without a ridge H is 0 before the first reward, and `factorize` has the identity as the root of its inverse.
        root = identity / (wanted.ridge**0.5 or 1.0) if wanted.roots else None
        return cls(wanted.rows(), zeros, jnp.asarray(True), wanted.forgetting(), root)

    @property
    def n_arms(self) -> None:
        """None, because arms change."""

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> "KeptRows":
        """Learn from one more reward if `really` is true, without copying rows in either case.

        A compiled loop cannot raise.  Features and rewards that are too large to be squared and summed therefore leave
        the memory as it was.

        Returns:
            The memory with the reward and the estimate after it.
        """
        really = jnp.asarray(really) & can_be_squared(x, reward)
        past = self.past.record(0, x, reward, really, self.forgetting.discount)
        learned = self.refitted(estimator, ridge, past)

        def chosen(found: Array, known: Array) -> Array:
            return jnp.where(really, found, known)

        return learned._replace(
            theta_hat=chosen(learned.theta_hat, self.theta_hat),
            converged=chosen(learned.converged, self.converged),
            kept_root=jax.tree.map(chosen, learned.kept_root, self.kept_root),
        )

    def refitted(self, estimator: Estimator, ridge: Array, past: Rows, start: Array | None = None) -> "KeptRows":
        """Return the memory of a past, with the estimate on it and whatever is kept with the estimate.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            past: The rewards.
            start: The estimate from which the fit starts.  Default: that of this memory.

        Returns:
            The memory.
        """
        found = fit_filled(estimator, past.seen, past, ridge, self.theta_hat if start is None else start)
        fitted = self._replace(past=past, theta_hat=found.theta, converged=found.converged)
        return fitted.completed(estimator, ridge)

    def learn_rows(self, estimator: Estimator, ridge: Array, rows: Rows) -> "KeptRows":
        """Return the memory that has seen these rows and nothing else; not for a memory with a discount."""
        assert self.forgetting.discount is None
        return self.refitted(estimator, ridge, self.past.holding(rows))

    def scores(self, arms: Array) -> Array:
        """Return the score x_iᵀθ̂ of each arm."""
        return arms @ self.theta_hat

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return the score x_iᵀθ of each arm, for any θ."""
        return arms @ theta

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Return the score of each arm for the estimate with a tilt, and whether its fit converged."""
        given = self.past, ridge, self.theta_hat, self.converged, tilt
        found = on_filled(self.past.seen, partial(tilted_fit, estimator), *given)
        return arms @ found.theta, found.converged

    def scores_on(
        self, estimator: Estimator, ridge: Array, arms: Array, past: Grouped, start: Array
    ) -> tuple[Array, Array]:
        """Return the score of each arm for the estimate on another past, and whether its fit converged."""
        found = fit_filled(estimator, self.past.seen, past, ridge, start)
        return arms @ found.theta, found.converged

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return a root W of the inverse curvature, W Wᵀ = H(θ̂)⁻¹: the kept one, if there is one."""
        return self.exact_root(estimator, ridge) if self.kept_root is None else self.kept_root

    def exact_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Compute a root W of the inverse curvature, W Wᵀ = H(θ̂)⁻¹, from the rows."""

        def curvature(rows: Rows, ridge: Array, theta: Array) -> Array:
            return hessian(estimator.family, posed(rows, ridge=ridge), theta)

        # The factor does not go over rows: once is enough for all numbers of them.
        return factorize(on_filled(self.past.seen, curvature, self.past, ridge, self.theta_hat)).inverse_root()

    def columns(self) -> Array:
        """Return the rows as the columns of a matrix, of shape (d, capacity)."""
        return self.past.features.T

    def weighted_sum(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_i x_i of the rows."""
        return weights @ self.past.features

    def gram(self) -> Array:
        """Return the Gram matrix G = Σ x xᵀ."""
        return on_filled(self.past.seen, Rows.gram, self.past)

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw a tilt S ~ N(0, G + prior I)."""
        return draw_tilt(key, self.gram(), prior)

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ of each arm in the norm of G⁻¹, or of (G + λI)⁻¹ if the memory forgets."""
        return exact_widths(arms, self.gram(), self.forgetting.gram_ridge)

    def leaving(self) -> Change:
        """Return what the next reward drives out of the rows."""
        return leaving(self.past)

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> "KeptRows":
        """Return the memory as it is, because it has no fixed arms."""
        return self

    def adopting(self, estimator: Estimator, ridge: Array, old: Memory, old_ridge: Array) -> "KeptRows":
        """Return this empty memory with the rows of another memory."""
        rows = old.known_rewards()
        if rows is None:
            raise InvalidArgument(
                "memory must be 'constant', got one that keeps rows. Keep 'constant': a summary does not know its "
                "rewards any more."
            )
        if not isinstance(rows, Rows):
            raise InvalidArgument(
                "memory must be of the same kind as before, got fixed arms on one side only. Keep the memory, or give "
                "memory='constant'."
            )
        check_adoptable(old, self)
        return self.refitted(estimator, ridge, self.past.adopting(rows), old.theta_hat)

    def absorbed(self, estimator: Estimator, ridge: Array, rewards: Weighted) -> "KeptRows":
        """Return the memory with rewards that have weights; raise if there is no room for them."""
        past = self.past.appended(rewards)
        return self.refitted(estimator, ridge, past)

    def unrewarded(self) -> None:
        """Return None, because nothing is kept by arm."""

    def completed(self, estimator: Estimator, ridge: Array) -> "KeptRows":
        """Return the memory with the root computed from its rows and its estimate, if a root is kept."""
        return self if self.kept_root is None else self._replace(kept_root=self.exact_root(estimator, ridge))

    def known_rewards(self) -> Rows:
        """Return the rewards that are kept, one by one."""
        return self.past

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise `HistoryFull` if there is no room for another reward."""
        check_room(self.past)


def leaving(rows: Rows) -> Change:
    """Return what the next reward drives out of a ring of rows."""
    place = rows.seen % rows.capacity
    comes = rows.forgets | (rows.seen < rows.capacity)
    leaves = jnp.where(rows.forgets, rows.counts[place], 0)
    return Change(comes.astype(leaves.dtype), leaves, rows.features[place], rows.capacity)


def fit_filled(estimator: Estimator, filled: Array, rows: Grouped | Rows, ridge: Array, start: Array) -> Estimate:
    """Fit weighted rows as `Estimator.fit` does, from as few of them as hold all that have a weight."""

    def fit(rows: Grouped | Rows, ridge: Array, start: Array, numbers: tuple[Array | float, ...]) -> Estimate:
        return estimator.having(numbers).fit(rows, ridge, start)

    # The numbers are arguments, because a batching rule knows nothing of what a function refers to otherwise.
    found: Estimate = on_filled(filled, fit, rows, ridge, start, estimator.numbers)
    return found


def on_filled(filled: Array, function: Callable[..., Any], rows: Grouped | Rows, *others: Any) -> Any:
    """Compute a function of weighted rows from as few of them as hold all that have a weight.

    The rows are cut to the first of `SIZES` that will do.  In a batch whose elements have rows of their own, they are
    not cut: all sizes would be computed for every element.

    Args:
        filled: The number of rows, from the first one on, beyond which no row has a weight; or any larger number.
        function: A function of rows and other arguments, to which rows without a weight make no difference.
        rows: The rows.
        *others: The other arguments.

    Returns:
        `function(rows, *others)`.
    """
    capacity: int = rows.counts.shape[-1]
    sizes = [*(size for size in SIZES if size < capacity), capacity]

    def cut(size: int, rows: Any, *others: Any) -> Any:
        first = {name: getattr(rows, name)[:size] for name in ("features", "counts", "sums")}
        return function(rows._replace(**first), *others)

    @custom_vmap
    def alone(filled: Array, rows: Any, *others: Any) -> Any:
        enough = sum((filled > size).astype(int) for size in sizes[:-1])
        return lax.switch(enough, [partial(cut, size) for size in sizes], rows, *others)

    @alone.def_vmap
    def a_batch(size: int, batched: list[Any], filled: Array, *arguments: Any) -> tuple[Any, Any]:
        axes = jax.tree.map(lambda has: 0 if has else None, tuple(batched[1:]))
        each = jax.vmap(function, in_axes=axes, axis_size=size)
        own = any(jax.tree.leaves(batched[:2]))
        found = each(*arguments) if own else on_filled(filled, each, *arguments)
        return found, jax.tree.map(lambda _: True, found)

    return alone(filled, rows, *others) if len(sizes) > 1 else function(rows, *others)
