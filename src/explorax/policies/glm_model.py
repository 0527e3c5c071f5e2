"""What every GLM policy shares: settings, a state that holds the estimate θ̄, and the update that refits it.

The estimate is refitted in `update`, the only function that may write, warm-started from the last one.  A decision then
starts from θ̄ and only adds its own exploration.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.checks import check_positive, is_known
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import Fit, check_fit_settings, fit, hessian, posed
from explorax.glm.history import Grouped, Rows, check_room
from explorax.policies import exploration
from explorax.policies.base import Action, Expected, Policy, check_design, checked

Design = Literal["informal", "theory"]


class GLMSettings(TypedDict, total=False):
    """Settings that all GLM policies take, with their defaults.

    family        "bernoulli" (rewards in [0, 1]), "gaussian" or "poisson"             "bernoulli"
    ridge         λ of the fit, an N(0, I/λ) prior; 0 only in the Gaussian family      1.0
    explore       forced rounds first: "basis", "first", "theory" or "none"            "basis"
    horizon       n, the number of rounds; only the theory's designs need it           None
    noise_std     σ of the rewards                                                     the family's
    min_slope     μ̇min in the theory's designs                                         max_slope, as in the paper
    max_slope     μ̇max in the theory's designs                                         the family's
    capacity      rewards kept when arms change                                        10 000
    when_full     then raise an "error", or "forget" the oldest                        "error"
    tolerance     last Newton step of a fit, in units of the score xᵀθ                 4 √(precision of the dtype)
    """

    family: str | Family
    ridge: float
    explore: str
    horizon: int | None
    noise_std: float | None
    min_slope: float | None
    max_slope: float | None
    capacity: int
    when_full: Literal["error", "forget"]
    tolerance: float | None


class GLMState(NamedTuple):
    """The past, the estimate it gives, and the forced exploration."""

    history: Grouped | Rows
    theta_mle: Array  # (d,) θ̄
    converged: Array  # () bool: whether the fit of θ̄ did
    exploration: exploration.Exploration


@dataclass(frozen=True, kw_only=True)
class GLMModel:
    """The settings, checked, and the functions they fix."""

    name: str  # of the policy, for the theory's constants
    family: str | Family = "bernoulli"
    ridge: float = 1.0
    explore: str = "basis"
    horizon: int | None = None
    noise_std: float | None = None
    min_slope: float | None = None
    max_slope: float | None = None
    capacity: int = 10_000
    when_full: Literal["error", "forget"] = "error"
    tolerance: float | None = None

    def __post_init__(self) -> None:
        families.get(self.family)
        check_fit_settings(self.ridge, self.tolerance)
        exploration.check_kind(self.explore)
        if self.ridge == 0 and (self.glm is not families.gaussian or self.explore == "none"):
            raise InvalidArgument(
                f"ridge=0 with family={self.glm.name!r} and explore={self.explore!r}: the estimate need not exist, "
                "and early in a run it does not; give ridge > 0 (1e-6 is as good as none)"
            )
        for name in ("noise_std", "min_slope", "max_slope"):
            if (value := getattr(self, name)) is not None:
                check_positive(name, value)
        if isinstance(self.capacity, bool) or not isinstance(self.capacity, int) or self.capacity < 1:
            raise InvalidArgument(f"capacity={self.capacity!r} must be a whole number of at least 1")
        if self.when_full not in ("error", "forget"):
            raise UnknownName("when_full", self.when_full, ("error", "forget"))
        if self.explore == "theory":
            theory.required_eigenvalue(self.name, self.problem(1))  # complains now if the theory cannot say

    @property
    def glm(self) -> Family:
        """The reward family."""
        return families.get(self.family)

    @property
    def informal(self) -> float:
        """The paper's informal width and perturbation: the standard deviation of a reward, 1 where it has no bound."""
        return self.noise_std or self.glm.noise_std or 1.0

    def problem(self, features: int) -> theory.Problem:
        """The constants of the theory for that many features."""
        if self.horizon is None:
            raise InvalidArgument("the theory's design depends on the number of rounds: give horizon=n")
        return theory.problem(
            features=features,
            rounds=self.horizon,
            family=self.glm,
            noise_std=self.noise_std,
            min_slope=self.min_slope,
            max_slope=self.max_slope,
        )

    def designed(
        self, design: str, name: str, given: float | None, informal: float, theory_value: Callable[[int], float]
    ) -> Callable[[int], float]:
        """The scale or width as a function of the number of features: given, informal, or the theory's."""
        check_design(design, name, given, "; a policy that does not explore is 'greedy'")
        if given is not None:
            return lambda features: float(given)
        if design == "theory":
            self.problem(1)
            return theory_value
        return lambda features: informal

    def init(self, arms: Array | int) -> GLMState:
        """Nothing seen yet."""
        if isinstance(arms, int):
            size, dtype = arms, jnp.zeros(0).dtype
            history: Grouped | Rows = Rows.of(self.capacity, arms, dtype, forgets=self.when_full == "forget")
        else:
            size, dtype = arms.shape[1], arms.dtype
            history = Grouped.of(arms)
        eigenvalue = theory.required_eigenvalue(self.name, self.problem(size)) if self.explore == "theory" else 0.0
        plan = exploration.plan(self.explore, arms, eigenvalue)
        return GLMState(history, jnp.zeros(size, dtype), jnp.asarray(True), plan)

    def update(self, state: GLMState, arm: Array, x: Array, reward: Array) -> GLMState:
        """Record the reward and refit θ̄."""
        history = state.history.record(arm, x, reward)
        estimate = self.fit(history, start=state.theta_mle)
        return state._replace(history=history, theta_mle=estimate.theta, converged=estimate.converged)

    def fit(self, history: Grouped | Rows, *, start: Array, tilt: Array | None = None) -> Fit:
        """The estimate on a history, tilted if asked."""
        return fit(self.glm, history, ridge=self.ridge, tilt=tilt, start=start, tolerance=self.tolerance)

    def hessian(self, state: GLMState) -> Array:
        """H(θ̄) = Σ μ̇(xᵀθ̄) x xᵀ + λI."""
        return hessian(self.glm, posed(state.history, ridge=self.ridge), state.theta_mle)

    def policy(self, act: Callable[[Array, GLMState, Array], tuple[Array, Array]]) -> Policy:
        """The policy that maximizes the scores of `act(key, state, arms) -> scores, converged`."""

        def full_act(key: Array, state: GLMState, arms: Array, t: Array) -> Action:
            scores, converged = act(key, state, arms)
            arm, forced = exploration.choose(state.exploration, scores, arms, t)
            return Action(arm, scores, forced, converged)

        return checked(
            init=self.init, act=full_act, update=self.update, expected=expected_arrays, check_update=self.check_update
        )

    def check_update(self, state: GLMState, arm: ArrayLike, x: ArrayLike, reward: ArrayLike) -> None:
        """Raise if the reward is impossible, has no room, or belongs to features the state does not know."""
        if is_known(reward):
            families.check_rewards(self.glm, reward)
        if isinstance(state.history, Rows):
            check_room(state.history)
        elif is_known(state.history.features, arm, x) and not np.array_equal(state.history.features[arm], x):
            raise InvalidArgument(
                f"x is not the row of arm {arm} that the state was made with: arms that change need "
                f"init({np.shape(x)[0]}), the number of features, in place of init(arms)"
            )


def expected_arrays(state: GLMState) -> Expected:
    """Shapes and dtype that go with a state."""
    arms = state.history.features.shape[-2] if isinstance(state.history, Grouped) else None
    return Expected(arms, state.theta_mle.shape[-1], state.theta_mle.dtype)
