"""What a GLM policy remembers: a past, the estimate it gives, and whatever makes the next estimate cheap.

A memory is a record of arrays of fixed shape with a few methods.  Policies know these methods and nothing else, so
another kind of memory is one file and no change anywhere else.

    FixedArms    a count and a reward sum for each arm; exact, at a cost that does not grow (`fixed_arms`)
    KeptRows     the rewards one by one, for arms that change; exact, up to a capacity (`kept_rows`)
    Summary      roots of H⁻¹ and G, for arms that change; constant cost, not exact (`summary`)

Every method that has to fit something is given an `Estimator`, which is known when a program is compiled, and the ridge
λ, which is a number in the state.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.errors import InvalidArgument
from explorax.glm.families import Family
from explorax.glm.fit import Fit, allowed_error, default_tolerance, newton
from explorax.glm.history import Grouped, Recent, Rows
from explorax.glm.linalg import factorize
from explorax.glm.problem import WeightedRows, hessian, posed

GRAM_RIDGE = 1e-6  # what is added to G, so that it has an inverse while the rows do not span the space


class Estimate(Protocol):
    """What a fit gives."""

    @property
    def theta(self) -> Array:
        """Return the estimate."""

    @property
    def converged(self) -> Array:
        """Return whether its fit converged."""


@dataclass(frozen=True)
class Estimator:
    """What the fits of a policy depend on, apart from numbers: programs are compiled once for each."""

    family: Family
    tolerance: float | None = None
    root_error: float | None = None  # how far a kept curvature may be off, as e^±; None: as far as the tolerance asks

    def last_step(self, dtype: jnp.dtype) -> float:
        """Return the size of a fit's last step, in scores."""
        return default_tolerance(dtype) if self.tolerance is None else self.tolerance

    def fit(self, rows: WeightedRows, ridge: Array, start: Array) -> Estimate:
        """Fit weighted rows by Newton steps from a start."""
        return newton(self.family, rows, ridge, None, start, self.last_step(start.dtype))

    def fit_tilted(self, rows: WeightedRows, ridge: Array, start: Array, tilt: Array) -> Fit:
        """Fit weighted rows with tilted rewards by Newton steps from a start."""
        return newton(self.family, rows, ridge, tilt, start, self.last_step(start.dtype))


class Forgetting(NamedTuple):
    """How a memory forgets; all None where it does not (`glm.history` defines discount and window)."""

    discount: Array | None = None  # () γ
    recent: Recent | None = None  # fixed arms with a window: what is in it
    floor: Array | None = None  # () for optimistic policies: what is added to G in place of GRAM_RIDGE

    @property
    def gram_ridge(self) -> float | Array:
        """Return what is added to G."""
        return GRAM_RIDGE if self.floor is None else self.floor


class Wanted(NamedTuple):
    """What a policy wants of its memory, checked already."""

    arms: Array | int  # the matrix of fixed arms, or the number of features where arms change
    size: int  # d
    dtype: jnp.dtype
    ridge: float
    capacity: int  # rewards kept where they are kept one by one
    drops_oldest: bool  # whether the oldest reward makes room for a new one
    discount: float  # 1 for none
    window: int | None
    buffer: int
    widths: bool  # whether the policy asks for `widths`
    keeps_curvature: bool  # whether a kept curvature may stand in for the exact one

    @property
    def forgets(self) -> bool:
        """Return whether rewards lose weight with time."""
        return self.discount < 1 or self.window is not None

    def forgetting(self, recent: Recent | None = None) -> Forgetting:
        """Return the record of how to forget."""
        floor = jnp.asarray(self.ridge, self.dtype) if self.widths and self.forgets else None
        return Forgetting(jnp.asarray(self.discount, self.dtype) if self.discount < 1 else None, recent, floor)

    def rows(self) -> Rows:
        """Return room for rewards one by one."""
        return Rows.of(self.capacity, self.size, self.dtype, self.drops_oldest)


class Change(NamedTuple):
    """What one more reward does to the weights of others, in a memory that may be full."""

    comes: Array | float  # weight of the new reward: 1, or 0 where there is no room for it
    leaves: Array | float  # weight of the one that it drives out
    x: Array  # (d,) the features of that one
    ago: int  # how many rewards ago it came


class Memory(Protocol):
    """What a GLM policy asks of a memory."""

    @property
    def theta_hat(self) -> Array:
        """Return θ̂, the penalized estimate, of shape (d,)."""

    @property
    def converged(self) -> Array:
        """Return whether the fit of θ̂ converged."""

    @property
    def forgetting(self) -> Forgetting:
        """Return how it forgets."""

    @property
    def past(self) -> Grouped | Rows | None:
        """Return the weighted rows that θ̂ is the exact estimate of; None where it is that of none."""

    @property
    def n_arms(self) -> int | None:
        """Return the number of fixed arms; None where arms change."""

    def learn(
        self, estimator: Estimator, ridge: Array, arm: Array, x: Array, reward: Array, really: ArrayLike = True
    ) -> Self:
        """Take in one more reward of the arm with this index and these features, if `really` is true."""

    def scores(self, arms: Array) -> Array:
        """Return x_iᵀθ̂ of each arm."""

    def scores_at(self, arms: Array, theta: Array) -> Array:
        """Return x_iᵀθ of each arm, for any θ."""

    def tilted(self, estimator: Estimator, ridge: Array, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """Return x_iᵀθ of each arm for the estimate on tilted rewards, and whether its fit converged."""

    def inverse_root(self, estimator: Estimator, ridge: Array) -> Array:
        """Return W with W Wᵀ = H(θ̂)⁻¹,  H(θ̂) = Σ μ̇(xᵀθ̂) x xᵀ + λI."""

    def tilt_noise(self, key: Array, prior: float | Array) -> Array:
        """Draw S ~ N(0, G + prior I)."""

    def widths(self, arms: Array) -> Array:
        """Return ‖x_i‖ in the norm of G⁻¹ of each arm; where the past is forgotten, in that of (G + λI)⁻¹."""

    def leaving(self) -> Change | None:
        """Return what one more reward drives out; None where all are kept."""

    def extended(self, estimator: Estimator, ridge: Array, arms: Array) -> Self:
        """Return the same past with further fixed arms, which are rows after the old ones."""

    def adopting(self, estimator: Estimator, ridge: Array, old: "Memory", old_ridge: Array) -> "Memory":
        """Return this empty memory with the past of one that other settings have made."""

    def known_rewards(self) -> Grouped | Rows | None:
        """Return the rewards that are still known, one by one or by arm; None in a summary of them."""

    def check_pulled(self, arm: ArrayLike, x: ArrayLike) -> None:
        """Raise if there is no room for a reward, or the features are not those of the arm with this index."""


class RowMemory(Memory, Protocol):
    """A memory that keeps the rewards themselves, by arm or one by one: its estimate is the exact one of its rows."""

    @property
    def past(self) -> Grouped | Rows:
        """Return the weighted rows."""

    def scores_on(
        self, estimator: Estimator, ridge: Array, arms: Array, past: Grouped, start: Array
    ) -> tuple[Array, Array]:
        """Return x_iᵀθ of each arm for the estimate on another past of the same rows, and whether its fit converged."""

    def columns(self) -> Array:
        """Return the rows as columns, (d, m)."""

    def weighted_sum(self, weights: Array) -> Array:
        """Return Σ w_i x_i over the rows."""


def tilted_fit(
    estimator: Estimator, past: Grouped | Rows, ridge: Array, theta: Array, converged: Array, tilt: Array
) -> Fit:
    """Fit tilted rewards exactly, from the estimate without the tilt, which is `converged` or not."""
    found = estimator.fit_tilted(past, ridge, theta, tilt)
    last_step = estimator.last_step(tilt.dtype)

    def is_right(past: Grouped | Rows, move: Array, score_error: Array) -> Array:
        moved = posed(past, ridge=0.0).largest(past.features @ move)
        return score_error <= allowed_error(estimator.family, past, last_step, moved)

    # A draw around an estimate that is right itself may err by a share of its noise.
    looked_at = past, found.theta - theta, found.score_error
    right = where_needed(~found.converged & converged, is_right, looked_at, found.converged)
    return found._replace(converged=right)


def exact_root(estimator: Estimator, past: WeightedRows, ridge: Array, theta: Array) -> Array:
    """Return W with W Wᵀ = H(θ)⁻¹, from the rows."""
    return factorize(hessian(estimator.family, posed(past, ridge=ridge), theta)).inverse_root()


def exact_widths(arms: Array, gram: Array, floor: float | Array) -> Array:
    """Return ‖x_i‖ of each arm in the norm of (G + floor I)⁻¹."""
    return factorize(gram + floor * jnp.eye(arms.shape[1], dtype=arms.dtype)).inverse_norms(arms)


def check_adoptable(old: Memory, new: Memory) -> None:
    """Raise unless the estimates have the same shape and both forget alike.

    Raises:
        InvalidArgument: The number of features, the dtype, the discount or the window of fixed arms has changed.
    """
    if (old.theta_hat.shape, old.theta_hat.dtype) != (new.theta_hat.shape, new.theta_hat.dtype):
        raise InvalidArgument(
            f"theta_hat must have the shape {new.theta_hat.shape} in {new.theta_hat.dtype}, got {old.theta_hat.shape} "
            f"in {old.theta_hat.dtype}. Keep the number of features and the dtype."
        )
    if not same_numbers(old.forgetting.discount, new.forgetting.discount):
        raise InvalidArgument(
            f"discount must stay as it was, got {new.forgetting.discount}. Rewards are weighed when they come."
        )
    windows = [None if each.forgetting.recent is None else each.forgetting.recent.arms.shape for each in (old, new)]
    if windows[0] != windows[1]:
        raise InvalidArgument(
            "window of fixed arms must stay as it was, got another one. Only what is in the window is known."
        )


def same_numbers(first: Array | None, second: Array | None) -> bool:
    """Return whether two settings are equal, or both missing."""
    return first is second or (first is not None and second is not None and np.array_equal(first, second))
