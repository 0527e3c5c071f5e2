"""What a memory of a GLM policy is: the past, the estimate on it, and whatever makes the next estimate cheap.

A memory is a record of arrays of fixed shape with a few methods.  Policies use only these methods, so that another kind
of memory is one new file and no change anywhere else.

    FixedArms    a count and a reward sum for each arm; exact, at a cost that does not grow (`fixed_arms`)
    KeptRows     the rewards one by one, for arms that change; exact, up to a capacity (`kept_rows`)
    Summary      roots of H⁻¹ and G, for arms that change; constant cost, not exact (`summary`)

Every method that has to fit something is given an `Estimator`, which is known when a program is compiled, and the ridge
λ, which is a number in the state.  The symbols are those of `glm.problem`; H(θ) = Σ N_x μ̇(xᵀθ) x xᵀ + λI is the
curvature, and G = Σ N_x x xᵀ the Gram matrix.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.errors import InvalidArgument
from explorax.glm.families import Family
from explorax.glm.fit import Fit, default_tolerance, newton
from explorax.glm.history import Grouped, Recent, Rows
from explorax.glm.problem import WeightedRows
from explorax.glm.weighted import Weighted

GRAM_RIDGE = 1e-6  # what is added to G, so that it has an inverse while the rows do not span the space


class Estimate(Protocol):
    """The part of a fit's result that a memory keeps."""

    @property
    def theta(self) -> Array:
        """The estimate, of shape (d,)."""

    @property
    def converged(self) -> Array:
        """Whether the fit of the estimate converged, a scalar."""


@dataclass(frozen=True)
class Estimator:
    """The settings of a policy's fits that are fixed when a program is compiled.

    Attributes:
        family: The reward family.
        tolerance: The tolerance of fits, in scores.  Default: the best that the dtype allows.
        root_error: The largest error r of a kept curvature, as factors e^±r.  Default: what the tolerance implies.
        widths: Whether the widths of arms that are kept must be right after a reward.

    In a program that several policies share (`policies.merged`), the last two are arrays.
    """

    family: Family
    tolerance: float | None = None
    root_error: float | Array | None = None
    widths: bool | Array = True

    @property
    def numbers(self) -> tuple[Array | float, ...]:
        """The settings that are numbers in a state, which may differ in a batch: here, no settings."""
        return ()

    def having(self, numbers: tuple[Array | float, ...]) -> "Estimator":
        """Return this estimator with other numbers."""
        return self

    def last_step(self, dtype: jnp.dtype) -> float:
        """Return the largest change of a score in the last step of a fit."""
        return default_tolerance(dtype) if self.tolerance is None else self.tolerance

    def fit(self, rows: WeightedRows, ridge: Array, start: Array) -> Estimate:
        """Fit weighted rows with a ridge penalty, by Newton steps from a start.

        Args:
            rows: The weighted rows.
            ridge: The penalty λ, a scalar.
            start: The start, a (d,) vector, for example the last estimate.

        Returns:
            The estimate, and whether the fit converged.
        """
        return newton(self.family, rows, ridge, None, start, self.last_step(start.dtype))

    def fit_tilted(self, rows: WeightedRows, ridge: Array, start: Array, tilt: Array) -> Fit:
        """Fit weighted rows with a ridge penalty and a tilt S, a (d,) vector, by Newton steps from a start."""
        return newton(self.family, rows, ridge, tilt, start, self.last_step(start.dtype))


class Forgetting(NamedTuple):
    """How a memory forgets; all fields are None in a memory that does not (`glm.history` defines the two ways).

    Attributes:
        discount: The discount γ, a scalar.
        recent: The rewards in the window, for fixed arms with a window.
        floor: The multiple of I that is added to G in place of 1e-6, for optimistic policies that forget.
    """

    discount: Array | None = None
    recent: Recent | None = None
    floor: Array | None = None

    @property
    def gram_ridge(self) -> float | Array:
        """The multiple of the identity that is added to G."""
        return GRAM_RIDGE if self.floor is None else self.floor


class Wanted(NamedTuple):
    """What a policy asks of its memory; each setting has been checked alone, but not against the others.

    Attributes:
        arms: The (K, d) matrix of fixed arms, or the number of features d if arms change.
        size: The number of features d.
        dtype: The dtype of all arrays.
        ridge: The penalty λ.
        capacity: The number of rewards to keep, if they are kept one by one.
        drops_oldest: Whether a new reward drives out the oldest one if there is no more room.
        discount: The discount γ; 1 if there is no discount.
        window: The number of rewards in the window; None if there is no window.
        buffer: The number of rewards in the buffer of a summary; 0 if there is no buffer.
        widths: Whether the policy calls `Memory.widths`.
        roots: Whether the policy calls `Memory.inverse_root`.
        keeps_curvature: Whether a kept, approximate curvature may be used in place of the exact one.
    """

    arms: Array | int
    size: int
    dtype: jnp.dtype
    ridge: float
    capacity: int
    drops_oldest: bool
    discount: float
    window: int | None
    buffer: int
    widths: bool
    roots: bool
    keeps_curvature: bool

    @property
    def forgets(self) -> bool:
        """Whether rewards lose their weight with time, by a discount or a window."""
        return self.discount < 1 or self.window is not None

    def forgetting(self, recent: Recent | None = None) -> Forgetting:
        """Build the record of how the memory forgets, with the rewards of a window if there are any."""
        floor = jnp.asarray(self.ridge, self.dtype) if self.widths and self.forgets else None
        return Forgetting(jnp.asarray(self.discount, self.dtype) if self.discount < 1 else None, recent, floor)

    def rows(self) -> Rows:
        """Build an empty history of rewards one by one."""
        return Rows.of(self.capacity, self.size, self.dtype, self.drops_oldest)


class Change(NamedTuple):
    """What the next reward does to a memory that may be full: its own weight, and the reward that it drives out.

    Attributes:
        comes: The weight of the next reward: 1, or 0 if there is no room for it.
        leaves: The weight of the reward that leaves; 0 if none leaves.
        x: The features of the reward that leaves, of shape (d,).
        ago: How many rewards ago that reward came.
    """

    comes: Array | float
    leaves: Array | float
    x: Array
    ago: int


class Memory(Protocol):
    """The attributes and methods that a GLM policy uses of its memory.

    A memory is immutable and a JAX pytree.  The methods that learn, score or draw run inside compiled code, where
    values are unknown and nothing can be raised.

    Attributes:
        theta_hat: The penalized estimate θ̂, of shape (d,).
        converged: Whether the fit of θ̂ converged, a scalar.
        forgetting: How the memory forgets.
        past: The weighted rows that θ̂ is the exact estimate of; None if there are no such rows.
        n_arms: The number of fixed arms; None if arms change.
    """

    @property
    def theta_hat(self) -> Array:
        """The penalized estimate θ̂, of shape (d,)."""

    @property
    def converged(self) -> Array:
        """Whether the fit of θ̂ converged, a scalar."""

    @property
    def forgetting(self) -> Forgetting:
        """How the memory forgets."""

    @property
    def past(self) -> Grouped | Rows | None:
        """The weighted rows that θ̂ is the exact estimate of; None if there are no such rows."""

    @property
    def n_arms(self) -> int | None:
        """The number of fixed arms; None if arms change."""

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> Self:
        """Learn from one more reward.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            arm: The index of the arm that was pulled, a scalar.
            x: The features of the arm, of shape (d,).
            reward: The reward, a scalar.
            really: Whether to learn at all; if false, the memory stays as it is.  Default: True.

        Returns:
            The memory with the reward, and with the estimate after it.
        """

    def scores(self, arms: Array) -> Array:
        """Return the score x_iᵀθ̂ of each of K arms, of shape (K,)."""

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return the score x_iᵀθ of each of K arms for any θ, of shape (K,)."""

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Fit the past with a tilt, and score the arms by that estimate.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            arms: The arms to score, of shape (K, d).
            tilt: The tilt S that is added to the sum of rewards times features, of shape (d,).

        Returns:
            The score of each arm, of shape (K,), and whether the fit converged.
        """

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return a root W of the inverse curvature, W Wᵀ = H(θ̂)⁻¹, of shape (d, d)."""

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw a tilt S ~ N(0, G + prior I), of shape (d,)."""

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ of each of K arms in the norm of G⁻¹, or of (G + λI)⁻¹ if the memory forgets."""

    def leaving(self) -> Change | None:
        """Return what the next reward drives out; None if all rewards are kept."""

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> Self:
        """Add fixed arms to the memory.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            arms: All arms, the old ones first and then the new ones, of shape (K, d).

        Returns:
            The memory of all arms with the same past; a memory without fixed arms is returned as it is.
        """

    def adopting(self, estimator: Estimator, ridge: Array, old: "Memory", old_ridge: Array) -> "Memory":
        """Take over the past of a memory that was built with other settings.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ of this memory, a scalar.
            old: The memory whose past is taken over; this memory is empty.
            old_ridge: The penalty λ of the old memory.

        Returns:
            This memory with the past of the old one.

        Raises:
            InvalidArgument: If the old memory does not know what this one needs.
            HistoryFull: If the old memory keeps more rewards than this one has room for.
        """

    def absorbed(self, estimator: Estimator, ridge: Array, rewards: Weighted) -> Self:
        """Learn rewards that have weights, all at once; not for compiled code.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            rewards: The rewards.

        Returns:
            The memory with the rewards, and with the estimate after them.

        Raises:
            InvalidArgument: If the memory has a window, out of which it could not take them again.
            HistoryFull: If there is no room for the rewards.
        """

    def unrewarded(self) -> Array | None:
        """Return a vector (K,) that is true for the fixed arms without rewards; None if nothing is kept by arm."""

    def completed(self, estimator: Estimator, ridge: Array) -> Self:
        """Compute what follows from the other arrays, which the snapshot of a former format may lack."""

    def known_rewards(self) -> Grouped | Rows | None:
        """Return the rewards that are still known, by arm or one by one; None if they are only summarized."""

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Check, before a reward is learned, that the memory can take it in.

        Args:
            arm: The index of the arm that was pulled.
            x: The features of the arm, of shape (d,).

        Raises:
            HistoryFull: If there is no room for the reward.
            InvalidArgument: If `x` is not the row of that arm, in a memory of fixed arms.
        """


class RowMemory(Memory, Protocol):
    """A memory that keeps the rewards, by arm or one by one, and whose estimate is exact for these rows.

    Policies such as PG-TS, which go over the rows themselves, need a memory of this kind.
    """

    @property
    def past(self) -> Grouped | Rows:
        """The weighted rows that θ̂ is the exact estimate of."""

    def scores_on(
        self, estimator: Estimator, ridge: Array, arms: Array, past: Grouped, start: Array
    ) -> tuple[Array, Array]:
        """Fit the same rows with other counts and sums, and score the arms by that estimate.

        Args:
            estimator: The family and the tolerances of fits.
            ridge: The penalty λ, a scalar.
            arms: The arms to score, of shape (K, d).
            past: The rows of the memory with other counts and sums.
            start: The estimate to start from, of shape (d,).

        Returns:
            The score of each arm, of shape (K,), and whether the fit converged.
        """

    def columns(self) -> Array:
        """Return the rows as the columns of a matrix, of shape (d, m)."""

    def weighted_sum(self, weights: Array) -> Array:
        """Return the weighted sum Σ w_i x_i of the rows, of shape (d,)."""


def check_adoptable(old: Memory, new: Memory) -> None:
    """Check that a memory can take over the past of another one: same shape of estimates, same way to forget.

    Args:
        old: The memory whose past is taken over.
        new: The memory that takes it over.

    Raises:
        InvalidArgument: If the number of features, the dtype, the discount or the window of fixed arms differs.
    """
    if (old.theta_hat.shape, old.theta_hat.dtype) != (new.theta_hat.shape, new.theta_hat.dtype):
        raise InvalidArgument(
            f"theta_hat must have the shape {new.theta_hat.shape} in {new.theta_hat.dtype}, got {old.theta_hat.shape} "
            f"in {old.theta_hat.dtype}. Keep the number of features and the dtype."
        )
    if not same_numbers(old.forgetting.discount, new.forgetting.discount):
        raise InvalidArgument(
            f"discount must stay as it was, got {new.forgetting.discount}. Keep it: rewards have the old weights."
        )
    windows = [None if each.forgetting.recent is None else each.forgetting.recent.arms.shape for each in (old, new)]
    if windows[0] != windows[1]:
        raise InvalidArgument(
            "window of fixed arms must stay as it was, got another one. Keep it: only rewards in the window are known."
        )


def same_numbers(first: Array | None, second: Array | None) -> bool:
    """Return whether two settings are equal numbers, or both None."""
    return first is second or (first is not None and second is not None and np.array_equal(first, second))
