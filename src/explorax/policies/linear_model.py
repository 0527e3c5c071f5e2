"""What the linear policies share: moments of the past and their ridge regression.

    V = λI + Σ_l X_l X_lᵀ,    θ̂ = V⁻¹ Σ_l X_l Y_l

With a discount γ both sums have weights γ^{t−l}; with a window only the rewards in the window count (`glm.history`).
The ridge λ is not discounted.  Russac et al. (NeurIPS 2019) have the same V and θ̂ for a discount, but a bonus in the
norm of V⁻¹ṼV⁻¹, where Ṽ has weights γ^{2(t−l)}.  Here the bonus is in the norm of V⁻¹, as for rewards that count
γ^{t−l} times.  Since Ṽ ⪯ V, it is at least as large.

The inverse L⁻¹ of the Cholesky factor of V = L Lᵀ is part of the state.  One more reward takes d² operations to update
it (`linalg.grown_inverse`), and it is computed anew from the moments every `REBUILD_EVERY` rewards, so that rounding
does not add up.  With a discount or a window it is computed anew with every reward.

The memory has constant size for fixed and for changing arms.  Rewards may be any finite numbers.  If their means are
not linear in the features, these policies are misspecified.  They are still played on rewards of 0 and 1, as baselines
(`FAMILIES`).
"""

from collections.abc import Callable
from typing import NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.batching import where_needed
from explorax.builders import filled
from explorax.checks import can_be_squared, check_positive, is_known
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.history import Moments, weighted_gram
from explorax.glm.linalg import Factor, factorize, grown_inverse
from explorax.glm.prior import rewards_of_prior
from explorax.glm.weighted import Weighted
from explorax.policies import exploration
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, check_design, checked, size_and_dtype
from explorax.policies.confidence import check_confidence, failure
from explorax.policies.settings import LinearSettings, check_forgetting

# The family that least squares models, and one on which it is played as a misspecified baseline.
FAMILIES = ("gaussian", "bernoulli")
REBUILD_EVERY = 512  # rewards after which the inverse factor is computed anew


class Regression(NamedTuple):
    """The ridge regression on a past, with what makes the next one cheap.

    Attributes:
        theta_hat: The estimate θ̂, of shape (d,).
        inverse: The inverse L⁻¹ of the Cholesky factor of V, lower triangular, of shape (d, d).
        age: The number of rewards since L⁻¹ was computed anew, of shape ().
    """

    theta_hat: Array
    inverse: Array
    age: Array

    @classmethod
    def of(cls, history: Moments, ridge: Array) -> "Regression":
        """Compute the ridge regression from the moments of a past."""
        theta, factor = ridge_regression(history, ridge)
        return cls(theta, factor.inverse_root().T, jnp.zeros((), int))

    def grown(self, history: Moments, ridge: Array, x: Array) -> "Regression":
        """Return the regression after one more reward of an arm x, given the moments that have it."""
        inverse = grown_inverse(self.inverse, x)
        grown = Regression((inverse @ history.cross) @ inverse, inverse, self.age + 1)
        return where_needed(grown.age >= REBUILD_EVERY, Regression.of, (history, ridge), grown)

    def widths(self, arms: Array) -> Array:
        """Return the norm ‖x_i‖ of each of K arms in the metric V⁻¹, of shape (K,)."""
        return jnp.sqrt(jnp.sum((arms @ self.inverse.T) ** 2, axis=-1))

    def draw(self, noise: Array) -> Array:
        """Return V^−½ z, which turns z ~ N(0, I) into a draw from N(0, V⁻¹)."""
        return noise @ self.inverse

    def half_log_det(self) -> Array:
        """Return log det(V)^½."""
        return -jnp.sum(jnp.log(jnp.diagonal(self.inverse)))


class LinearState(NamedTuple):
    """Moments of the past with their ridge regression, and the forced exploration.

    Attributes:
        history: The moments Σ X Xᵀ and Σ X Y.
        exploration: The plan of the forced exploration.
        ridge: The ridge λ, of shape ().
        regression: The ridge regression on the moments.
    """

    history: Moments
    exploration: exploration.Exploration
    ridge: Array
    regression: Regression

    @property
    def theta_hat(self) -> Array:
        """The (d,) estimate θ̂."""
        return self.regression.theta_hat

    def completed(self) -> "LinearState":
        """Return the state with the regression computed from the moments, as a snapshot without it needs."""
        return self._replace(regression=Regression.of(self.history, self.ridge))


class LinearModel:
    """The settings of a linear policy, checked, and the functions that they determine.

    Args:
        **settings: The settings that all linear policies take (`LinearSettings`).

    Raises:
        InvalidArgument: If a setting is out of its range or contradicts another setting.
        UnknownName: If a setting, or the name that is given for one, is unknown.
    """

    def __init__(self, **settings: Unpack[LinearSettings]) -> None:
        self.given = filled(LinearSettings, settings)
        check_positive("ridge", self.given["ridge"])
        check_positive("noise_std", self.given["noise_std"])
        exploration.check_kind(self.given["warmup"], has_theory=False)
        check_confidence(self.given["horizon"], self.given["delta"])
        check_forgetting(self.given["discount"], self.given["window"])

    def is_theory(self, design: str, name: str, given: float | None) -> bool:
        """Return whether the theory chooses the scale or width.

        Args:
            design: "informal" or "theory".
            name: The name of the setting: "scale" or "width".
            given: The value of the setting; None if the design chooses it.

        Returns:
            True for the design "theory".

        Raises:
            InvalidArgument: If the theory cannot choose, or the value that is given contradicts it.
        """
        check_design(design, name, given)
        if design == "theory" and self.given["horizon"] is None and self.given["delta"] is None:
            raise InvalidArgument(
                "delta or horizon must be given with design='theory', got None. Give delta=0.05, or horizon=n for 1/n."
            )
        return design == "theory"

    @property
    def failure(self) -> float:
        """The probability δ that a confidence interval of the theory may fail."""
        return failure(self.given["horizon"], self.given["delta"])

    def init(self, arms: Array | int, key: Array) -> LinearState:
        """Return the state of a policy that has seen no rewards yet."""
        size, dtype = size_and_dtype(arms)
        history, ridge = Moments.of(size, dtype, self.given["window"]), jnp.asarray(self.given["ridge"], dtype)
        plan = exploration.plan(self.given["warmup"], arms)
        return LinearState(history, plan, ridge, Regression.of(history, ridge))

    def policy(self, act: Callable[[Array, LinearState, Array, Array], Array], stationary: bool) -> Policy:
        """Return the policy that maximizes the scores of a rule.

        Args:
            act: Returns the (K,) scores for the arguments (key, state, arms, t).
            stationary: Whether the scores do not depend on t.

        Returns:
            The policy.
        """

        def full_act(key: Array, state: LinearState, arms: Array, t: Array, mask: Array | None = None) -> Action:
            scores = act(key, state, arms, t)
            arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
            return Action(arm, scores, forced, jnp.asarray(True))

        discount = self.given["discount"] if self.given["discount"] < 1 else None
        forgets = discount is not None or self.given["window"] is not None

        def update(state: LinearState, arm: Array, x: Array, reward: Array) -> LinearState:
            # A compiled loop cannot raise: what cannot be squared and summed counts as nothing.
            usable = can_be_squared(x, reward)
            x, reward = jnp.where(usable, x, 0), jnp.where(usable, reward, 0)
            history = state.history.record(arm, x, reward, discount)
            given = history, state.ridge
            regression = Regression.of(*given) if forgets else state.regression.grown(*given, x)
            return state._replace(history=history, regression=regression)

        return checked(
            init=self.init,
            act=full_act,
            update=update,
            expected=expected_arrays,
            check=check_finite_rewards,
            families=FAMILIES,
        )._replace(complete=LinearState.completed, absorb=absorbed, prior=prior, stationary=stationary)


def absorbed(state: LinearState, rewards: Weighted) -> LinearState:
    """Return the state after rewards that have weights, learned all at once; raise if there is a window."""
    if state.history.recent is not None:
        raise InvalidArgument(
            "window must be None to learn rewards with weights, because they cannot be taken out again, got a window. "
            "Give a discount in place of the window."
        )
    history = state.history._replace(
        second=state.history.second + weighted_gram(rewards.features, rewards.weights),
        cross=state.history.cross + (rewards.weights * rewards.rewards) @ rewards.features,
    )
    return state._replace(history=history, regression=Regression.of(history, state.ridge))


def prior(state: LinearState, mean: ArrayLike, precision: ArrayLike) -> Weighted:
    """Return the rewards that stand for a prior of the parameters."""
    return rewards_of_prior(families.gaussian, float(state.ridge), mean, precision)


def ridge_regression(history: Moments, ridge: float | Array) -> tuple[Array, Factor]:
    """Return the ridge regression θ̂, and a factor of V = λI + Σ x xᵀ."""
    size = history.cross.shape[0]
    factor = factorize(history.gram() + ridge * jnp.eye(size, dtype=history.cross.dtype))
    return factor.solve(history.cross), factor


def check_finite_rewards(rewards: ArrayLike) -> None:
    """Check that rewards are finite numbers, if their values are known."""
    if is_known(rewards):
        families.check_rewards(families.gaussian, rewards)


def expected_arrays(state: LinearState) -> Expected:
    """Return the number of features and the dtype that go with a state."""
    return Expected(None, state.history.cross.shape[-1], state.history.cross.dtype)
