"""A memory of rewards one by one, for arms that change.  Exact within its capacity; a fit goes over all rows."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.checks import can_be_squared
from explorax.errors import InvalidArgument
from explorax.glm.history import Grouped, Rows, check_room
from explorax.glm.linalg import draw_tilt
from explorax.glm.memory.base import (
    Change,
    Estimator,
    Forgetting,
    Memory,
    Wanted,
    check_adoptable,
    exact_root,
    exact_widths,
    tilted_fit,
)


class KeptRows(NamedTuple):
    """The last rewards with the features of the arms that were pulled, and the estimate."""

    past: Rows
    theta_hat: Array  # (d,) θ̂
    converged: Array  # () bool: whether the fit of θ̂ did
    forgetting: Forgetting

    @classmethod
    def of(cls, wanted: Wanted) -> "KeptRows":
        """Return a memory with nothing seen yet."""
        zeros = jnp.zeros(wanted.size, wanted.dtype)
        return cls(wanted.rows(), zeros, jnp.asarray(True), wanted.forgetting())

    @property
    def n_arms(self) -> None:
        """Return None: arms change."""

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> "KeptRows":
        """Take in one more reward if `really` is true; rows are not copied either way.

        A compiled loop cannot raise: what cannot be squared and summed leaves the memory as it was.
        """
        really = jnp.asarray(really) & can_be_squared(x, reward)
        return self.fitted_if(
            really, estimator, ridge, self.past.record(0, x, reward, really, self.forgetting.discount)
        )

    def fitted_if(self, really: Array, estimator: Estimator, ridge: Array, past: Rows) -> "KeptRows":
        """Return these rows with the estimate on them if `really` is true, else with the one from before."""
        found = estimator.fit(past, ridge, self.theta_hat)
        theta = jnp.where(really, found.theta, self.theta_hat)
        return self._replace(past=past, theta_hat=theta, converged=jnp.where(really, found.converged, self.converged))

    def learn_rows(self, estimator: Estimator, ridge: Array, rows: Rows) -> "KeptRows":
        """Return the memory that has seen these rows and nothing else; not for one with a discount."""
        assert self.forgetting.discount is None
        past = self.past.holding(rows)
        found = estimator.fit(past, ridge, self.theta_hat)
        return self._replace(past=past, theta_hat=found.theta, converged=found.converged)

    def scores(self, arms: Array) -> Array:
        """Return x_iᵀθ̂ of each arm."""
        return arms @ self.theta_hat

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return x_iᵀθ of each arm, for any θ."""
        return arms @ theta

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Return x_iᵀθ of each arm for the estimate on tilted rewards, and whether its fit converged."""
        found = tilted_fit(estimator, self.past, ridge, self.theta_hat, self.converged, tilt)
        return arms @ found.theta, found.converged

    def scores_on(
        self, estimator: Estimator, ridge: Array, arms: Array, past: Grouped, start: Array
    ) -> tuple[Array, Array]:
        """Return x_iᵀθ of each arm for the estimate on another past, and whether its fit converged."""
        found = estimator.fit(past, ridge, start)
        return arms @ found.theta, found.converged

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return W with W Wᵀ = H(θ̂)⁻¹."""
        return exact_root(estimator, self.past, ridge, self.theta_hat)

    def columns(self) -> Array:
        """Return the rows as columns, (d, capacity)."""
        return self.past.features.T

    def weighted_sum(self, weights: Array) -> Array:
        """Return Σ w_i x_i over the rows."""
        return weights @ self.past.features

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw S ~ N(0, G + prior I)."""
        return draw_tilt(key, self.past.gram(), prior)

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ in the norm of G⁻¹ of each arm; where the past is forgotten, in that of (G + λI)⁻¹."""
        return exact_widths(arms, self.past.gram(), self.forgetting.gram_ridge)

    def leaving(self) -> Change:
        """Return what one more reward drives out."""
        return leaving(self.past)

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> "KeptRows":
        """Return the memory as it is: it knows no fixed arms."""
        return self

    def adopting(self, estimator: Estimator, ridge: Array, old: Memory, old_ridge: Array) -> "KeptRows":
        """Return this empty memory with the rows of another one."""
        rows = old.known_rewards()
        if rows is None:
            raise InvalidArgument(
                "memory must be 'constant', got one that keeps rows. A summary does not know its rewards any more."
            )
        if not isinstance(rows, Rows):
            raise InvalidArgument(
                "memory must keep what the state knows, got fixed arms on one side. Keep the memory, or give "
                "memory='constant'."
            )
        check_adoptable(old, self)
        past = self.past.adopting(rows)
        found = estimator.fit(past, ridge, old.theta_hat)
        return self._replace(past=past, theta_hat=found.theta, converged=found.converged)

    def known_rewards(self) -> Rows:
        """Return the rewards one by one."""
        return self.past

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise `HistoryFull` if there is no room for a reward."""
        check_room(self.past)


def leaving(rows: Rows) -> Change:
    """Return what one more reward drives out of a ring of rows."""
    place = rows.seen % rows.capacity
    comes = rows.forgets | (rows.seen < rows.capacity)
    leaves = jnp.where(rows.forgets, rows.counts[place], 0)
    return Change(comes.astype(leaves.dtype), leaves, rows.features[place], rows.capacity)
