"""What the linear policies share: moments of the past and the ridge regression they give.

    V = λI + Σ_l X_l X_lᵀ,    θ̂ = V⁻¹ Σ_l X_l Y_l

With a discount γ both sums have weights γ^{t−l}, with a window only its rewards count (`glm.history`); λ stays as it
is.  Russac et al. (NeurIPS 2019) have the same V and θ̂ for a discount, but a bonus in the norm of V⁻¹ṼV⁻¹, where Ṽ has
weights γ^{2(t−l)}.  Here it is that of V⁻¹, as for rewards that count γ^{t−l} times; since Ṽ ⪯ V it is no smaller.

The memory is of constant size whatever the arms do.  Rewards may be any finite numbers; where their means are not
linear in the features these policies are misspecified.  On rewards of 0 and 1 they are played all the same, as
baselines (`FAMILIES`).
"""

from collections.abc import Callable
from typing import NamedTuple, Unpack

import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax.builders import filled
from explorax.checks import can_be_squared, check_positive, is_known
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.history import Moments, check_forgetting
from explorax.glm.linalg import Factor, factorize
from explorax.policies import exploration
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, check_design, checked, size_and_dtype
from explorax.policies.confidence import check_confidence, failure
from explorax.policies.settings import LinearSettings

# What least squares models, and what it is played on as a misspecified baseline.
FAMILIES = ("gaussian", "bernoulli")


class LinearState(NamedTuple):
    """Moments of the past, and the forced exploration."""

    history: Moments
    exploration: exploration.Exploration


class LinearModel:
    """The settings of a linear policy, checked, and the functions they fix.

    Args:
        **settings: Those that all linear policies take.
    """

    def __init__(self, **settings: Unpack[LinearSettings]) -> None:
        self.given = filled(LinearSettings, settings)
        check_positive("ridge", self.given["ridge"])
        check_positive("noise_std", self.given["noise_std"])
        exploration.check_kind(self.given["warmup"], has_theory=False)
        check_confidence(self.given["horizon"], self.given["delta"])
        check_forgetting(self.given["discount"], self.given["window"])

    def is_theory(self, design: str, name: str, given: float | None) -> bool:
        """Whether the theory chooses the scale or width; raises if it cannot or may not."""
        check_design(design, name, given)
        if design == "theory" and self.given["horizon"] is None and self.given["delta"] is None:
            raise InvalidArgument("the theory's design depends on a confidence level: give delta, or horizon=n for 1/n")
        return design == "theory"

    @property
    def failure(self) -> float:
        """Return δ, the chance that the theory's confidence may fail."""
        return failure(self.given["horizon"], self.given["delta"])

    def init(self, arms: Array | int, key: Array) -> LinearState:
        """Nothing seen yet."""
        size, dtype = size_and_dtype(arms)
        return LinearState(Moments.of(size, dtype, self.given["window"]), exploration.plan(self.given["warmup"], arms))

    def regression(self, state: LinearState) -> tuple[Array, Factor]:
        """θ̂ and a factor of V."""
        return ridge_regression(state.history, self.given["ridge"])

    def policy(self, act: Callable[[Array, LinearState, Array, Array], Array]) -> Policy:
        """The policy that maximizes the scores of `act(key, state, arms, t)`."""

        def full_act(key: Array, state: LinearState, arms: Array, t: Array, mask: Array | None = None) -> Action:
            scores = act(key, state, arms, t)
            arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
            return Action(arm, scores, forced, jnp.asarray(True))

        def update(state: LinearState, arm: Array, x: Array, reward: Array) -> LinearState:
            discount = self.given["discount"] if self.given["discount"] < 1 else None
            # A compiled loop cannot raise: what cannot be squared and summed counts as nothing.
            usable = can_be_squared(x, reward)
            x, reward = jnp.where(usable, x, 0), jnp.where(usable, reward, 0)
            return state._replace(history=state.history.record(arm, x, reward, discount))

        return checked(
            init=self.init,
            act=full_act,
            update=update,
            expected=expected_arrays,
            check=check_finite_rewards,
            families=FAMILIES,
        )


def ridge_regression(history: Moments, ridge: float) -> tuple[Array, Factor]:
    """θ̂ and a factor of V = λI + Σ x xᵀ."""
    size = history.cross.shape[0]
    factor = factorize(history.gram() + ridge * jnp.eye(size, dtype=history.cross.dtype))
    return factor.solve(history.cross), factor


def check_finite_rewards(rewards: ArrayLike) -> None:
    """Raise unless the rewards are finite numbers."""
    if is_known(rewards):
        families.check_rewards(families.gaussian, rewards)


def expected_arrays(state: LinearState) -> Expected:
    """Shapes and dtype that go with a state."""
    return Expected(None, state.history.cross.shape[-1], state.history.cross.dtype)
