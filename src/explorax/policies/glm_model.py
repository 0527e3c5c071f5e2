"""What every GLM policy shares: settings, a state that holds the estimate θ̄, and the update that refits it.

The estimate is refitted in `update`, the only function that may write, from the last one.  A decision then starts from
θ̄ and only adds its own exploration.  With fixed arms the curvature is kept from round to round (`glm.warm`).

**Numbers live in the state.**  Ridge, scale and width are arrays there, so what gets compiled depends on the algorithm,
the family and the tolerance only (`Learner`): all designs of a policy share one program, and one batch can mix them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal, NamedTuple, TypedDict

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.checks import check_positive, check_whole, is_known
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm import families, online, warm
from explorax.glm.families import Family
from explorax.glm.fit import MAX_STEPS, check_fit_settings, default_tolerance, hessian, newton, posed
from explorax.glm.history import Grouped, Rows, check_room
from explorax.glm.linalg import factorize, shrinkage
from explorax.glm.online import GRAM_RIDGE, Online
from explorax.glm.warm import Warm
from explorax.policies import exploration
from explorax.policies.base import (
    Action,
    Expected,
    Policy,
    Program,
    check_design,
    checked_init,
    compiled,
    size_and_dtype,
)

Design = Literal["informal", "theory"]
Memory = Literal["exact", "constant", "refitted"]
MEMORIES = ("exact", "constant", "refitted")


class GLMSettings(TypedDict, total=False):
    """Settings that all GLM policies take, with their defaults.

    family        "bernoulli" (rewards in [0, 1]), "gaussian" or "poisson"             "bernoulli"
    ridge         λ of the fit, an N(0, I/λ) prior; 0 only in the Gaussian family      1.0
    explore       forced rounds first: "basis", "first", "theory" or "none"            "basis"
    horizon       n, the number of rounds; only the theory's designs need it           None
    noise_std     σ of the rewards                                                     the family's
    min_slope     μ̇min in the theory's designs                                         max_slope, as in the paper
    max_slope     μ̇max in the theory's designs                                         the family's
    memory        "exact"; "constant": a summary, for arms that change (`glm.online`);
                  "refitted": that, and now and then an exact fit to the rewards kept  "exact"
    capacity      rewards kept when arms change                                        10 000
    when_full     then raise an "error", or "forget" the oldest                        "error"
    tolerance     error of a score xᵀθ that a fit may leave                            (precision of the dtype)^⅔
    features      d, the dimensions that the arms span, where that is fewer            the length of an arm
    """

    family: str | Family
    ridge: float
    explore: str
    horizon: int | None
    noise_std: float | None
    min_slope: float | None
    max_slope: float | None
    memory: Memory
    capacity: int
    when_full: Literal["error", "forget"]
    tolerance: float | None
    features: int | None


class GLMState(NamedTuple):
    """The past, the estimate it gives, and the settings that are numbers."""

    history: Grouped | Rows | Online
    theta_mle: Array  # (d,) θ̄
    converged: Array  # () bool: whether the fit of θ̄ did
    exploration: exploration.Exploration
    ridge: Array  # () λ
    strength: Array  # how much the policy explores: its scale a, or what makes the width of its bonus
    warm: Warm | None  # fixed arms: what makes the next fit cheap
    whitened: Array | None  # fixed arms, optimistic policies: (d, K) columns G^−½ x


@dataclass(frozen=True)
class Learner:
    """What the compiled program of a policy depends on, apart from its rule."""

    family: Family
    tolerance: float | None
    root_error: float | None  # how far the kept curvature may be off, as e^±; None: as far as the tolerance asks for

    def update(self, state: GLMState, arm: Array, x: Array, reward: Array) -> GLMState:
        """Record the reward and refit θ̄."""
        if not isinstance(state.history, Grouped):
            return self.update_if(jnp.asarray(True), state, x, reward)
        history = state.history.record(arm, x, reward)
        if state.warm is None:
            last_step = self.last_step(x.dtype)
            estimate = newton(self.family, history, state.ridge, None, state.theta_mle, last_step, MAX_STEPS)
            return state._replace(history=history, theta_mle=estimate.theta, converged=estimate.converged)
        tolerance = self.score_error(x.dtype)
        root_error = min(0.1, 100 * tolerance) if self.root_error is None else self.root_error
        grown = warm.record(self.family, state.warm, history, arm, x)
        fitted, grown = warm.refit(self.family, grown, history, state.theta_mle, state.ridge, tolerance, root_error)
        state = state._replace(history=history, theta_mle=fitted.theta, converged=fitted.converged, warm=grown)
        return state if state.whitened is None else state._replace(whitened=whiten_more(state.whitened, arm))

    def update_if(self, really: Array, state: GLMState, x: Array, reward: Array) -> GLMState:
        """That, or nothing at all; rows kept are not copied either way.  Not for fixed arms."""
        history, theta, last_step = state.history, state.theta_mle, self.last_step(x.dtype)
        assert not isinstance(history, Grouped)
        if isinstance(history, Online):
            so_far, ridge = state.converged, state.ridge
            kept = online.record(self.family, history, theta, so_far, x, reward, ridge, last_step, really)
            return state._replace(history=kept.online, theta_mle=kept.theta, converged=kept.converged)
        history = history.record(0, x, reward, really)
        found = newton(self.family, history, state.ridge, None, theta, last_step, MAX_STEPS)
        converged = jnp.where(really, found.converged, state.converged)
        return state._replace(history=history, theta_mle=jnp.where(really, found.theta, theta), converged=converged)

    def learn_rows(self, state: GLMState, rows: Rows) -> GLMState:
        """The state that has seen these rows and nothing else; not for fixed arms."""
        history, last_step = state.history, self.last_step(state.theta_mle.dtype)
        assert not isinstance(history, Grouped)
        room = history.rows if isinstance(history, Online) else history
        rows = rows if room is None else room.holding(rows)
        kept = online.refit(self.family, rows, state.theta_mle, state.ridge, last_step)
        memory: Rows | Online = rows
        if isinstance(history, Online):
            memory = kept.online if room is not None else kept.online._replace(rows=None)
        return state._replace(history=memory, theta_mle=kept.theta, converged=kept.converged)

    def score_error(self, dtype: jnp.dtype) -> float:
        """The tolerance, or what the dtype can do."""
        return float(jnp.finfo(dtype).eps) ** (2 / 3) if self.tolerance is None else self.tolerance

    def last_step(self, dtype: jnp.dtype) -> float:
        """The size of a fit's last step, in scores."""
        return default_tolerance(dtype) if self.tolerance is None else self.tolerance

    def scores(self, state: GLMState, arms: Array) -> Array:
        """x_iᵀθ̄ of each arm."""
        return arms @ state.theta_mle if state.warm is None else state.warm.scores

    def tilted(self, state: GLMState, arms: Array, tilt: Array) -> tuple[Array, Array]:
        """x_iᵀθ of each arm for the estimate on tilted rewards, and whether its fit converged."""
        if isinstance(state.history, Online):  # to first order, which is all that a summary can tell
            root = state.history.root
            return arms @ (state.theta_mle + root @ (tilt @ root)), state.converged
        if state.warm is None or isinstance(state.history, Rows):
            last_step = self.last_step(tilt.dtype)
            found = newton(self.family, state.history, state.ridge, tilt, state.theta_mle, last_step, MAX_STEPS)
            return arms @ found.theta, found.converged
        tolerance = self.score_error(tilt.dtype)
        fitted = warm.descend(self.family, state.warm, state.history, state.theta_mle, tilt, state.ridge, tolerance)
        return fitted.scores, fitted.converged

    def inverse_root(self, state: GLMState) -> Array:
        """W with W Wᵀ = H(θ̄)⁻¹,  H(θ̄) = Σ μ̇(xᵀθ̄) x xᵀ + λI."""
        if isinstance(state.history, Online):
            return state.history.root
        if state.warm is not None:
            return state.warm.root
        problem = posed(state.history, ridge=state.ridge)
        return factorize(hessian(self.family, problem, state.theta_mle)).inverse_root()

    def check_update(self, state: GLMState, arm: ArrayLike, x: ArrayLike, reward: ArrayLike) -> None:
        """Raise if the reward is impossible, has no room, or belongs to features the state does not know."""
        if is_known(reward):
            families.check_rewards(self.family, reward)
        rows = state.history.rows if isinstance(state.history, Online) else state.history
        if isinstance(rows, Rows):
            check_room(rows)
        elif (
            isinstance(state.history, Grouped)
            and is_known(state.history.features, arm, x)
            and not np.array_equal(state.history.features[arm], x)
        ):
            raise InvalidArgument(
                f"x is not the row of arm {arm} that the state was made with: arms that change need "
                f"init({np.shape(x)[0]}), the number of features, in place of init(arms)"
            )


Rule = Callable[
    [Learner, Array, GLMState, Array], tuple[Array, Array]
]  # (learner, key, state, arms) -> scores, converged


@cache
def program(rule: Rule, learner: Learner) -> Program:
    """`act` and `update` of the policy that maximizes the scores of a rule; one for all that differ in numbers only."""

    def act(key: Array, state: GLMState, arms: Array, t: Array) -> Action:
        scores, converged = rule(learner, key, state, arms)
        arm, forced = exploration.choose(state.exploration, scores, arms, t)
        return Action(arm, scores, forced, converged)

    return compiled(act=act, update=learner.update, expected=expected_arrays, check_update=learner.check_update)


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
    memory: Memory = "exact"
    capacity: int = 10_000
    when_full: Literal["error", "forget"] = "error"
    tolerance: float | None = None
    features: int | None = None

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
        check_whole("capacity", self.capacity, 1)
        if self.features is not None:
            check_whole("features", self.features, 1)
        if self.memory not in MEMORIES:
            raise UnknownName("memory", self.memory, MEMORIES)
        if self.memory != "exact" and self.ridge == 0:
            raise InvalidArgument(
                f"ridge=0 with memory={self.memory!r}: a summary starts from the ridge; give ridge > 0"
            )
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
            features=self.features or features,
            rounds=self.horizon,
            family=self.glm,
            noise_std=self.noise_std,
            min_slope=self.min_slope,
            max_slope=self.max_slope,
        )

    def designed(
        self, design: str, name: str, given: float | None, informal: float, theory_value: Callable[[int], float]
    ) -> Callable[[Array | int], float]:
        """The scale or width for the arms (or their size): given, informal, or the theory's for d features."""
        check_design(design, name, given, "; a policy that does not explore is 'greedy'")
        if given is not None:
            return lambda arms: float(given)
        if design == "theory":
            self.problem(1)
            return lambda arms: theory_value(size_and_dtype(arms)[0])
        return lambda arms: informal

    def init(
        self, arms: Array | int, strength: float | Array, whitens: bool, dtype: jnp.dtype | None = None
    ) -> GLMState:
        """Nothing seen yet; the dtype is that of the arms, or JAX's default."""
        size, dtype = size_and_dtype(arms, dtype)
        history = self.nothing(arms, size, dtype)
        eigenvalue = theory.required_eigenvalue(self.name, self.problem(size)) if self.explore == "theory" else 0.0
        plan = exploration.plan(self.explore, arms, eigenvalue, self.features)
        ridge = jnp.asarray(self.ridge, dtype)
        # Without a ridge the first curvatures are singular: nothing to keep.
        kept = warm.start(history.features, ridge) if isinstance(history, Grouped) and self.ridge > 0 else None
        whitened = None if kept is None or not whitens else kept.columns / GRAM_RIDGE**0.5
        return GLMState(
            history,
            jnp.zeros(size, dtype),
            jnp.asarray(True),
            plan,
            ridge,
            jnp.asarray(strength, dtype),
            kept,
            whitened,
        )

    def nothing(self, arms: Array | int, size: int, dtype: jnp.dtype) -> Grouped | Rows | Online:
        """A memory with nothing in it."""
        if self.memory == "exact" and not isinstance(arms, int):
            return Grouped.of(arms)
        if self.memory == "constant":
            return Online.of(size, dtype, self.ridge, None)
        rows = Rows.of(self.capacity, size, dtype, forgets=self.when_full == "forget")
        return rows if self.memory == "exact" else Online.of(size, dtype, self.ridge, rows)

    def policy(
        self,
        rule: Rule,
        strength: Callable[[Array | int], float | Array] = lambda arms: 0.0,
        *,
        root_error: float | None = 0.3,
        whitens: bool = False,
    ) -> Policy:
        """The policy that maximizes the scores of a rule, with the strength that its arms (or their size) ask for."""
        act, update = program(rule, Learner(self.glm, self.tolerance, root_error))
        return Policy(checked_init(lambda arms, key: self.init(arms, strength(arms), whitens)), act, update)


def score(state: GLMState, arms: Array, theta: Array) -> Array:
    """x_iᵀθ of each arm."""
    return arms @ theta if state.warm is None else theta @ state.warm.columns


def gram(state: GLMState) -> Array:
    """G = Σ X_l X_lᵀ, where not a root of it is kept."""
    assert not isinstance(state.history, Online)
    if state.warm is None:
        return state.history.gram()
    return jnp.einsum("ik,jk->ij", state.warm.columns * state.history.counts, state.warm.columns)


def uncertainty(state: GLMState, arms: Array) -> Array:
    """‖x_i‖_{G⁻¹} of each arm."""
    if state.whitened is not None:
        return jnp.sqrt(jnp.sum(state.whitened**2, axis=0))
    if isinstance(state.history, Online):
        return jnp.sqrt(jnp.sum((arms @ state.history.gram_inverse.T) ** 2, axis=1))
    ridge = GRAM_RIDGE * jnp.eye(arms.shape[1], dtype=arms.dtype)
    return factorize(gram(state) + ridge).inverse_norms(arms)


def whiten_more(whitened: Array, arm: Array) -> Array:
    """The columns G^−½ x_i once x of this arm has been added to G: Potter's update, applied to the arms themselves."""
    pulled = whitened[:, arm]
    return whitened - pulled[:, None] * (shrinkage(pulled) * (pulled @ whitened))


def expected_arrays(state: GLMState) -> Expected:
    """Shapes and dtype that go with a state."""
    arms = state.history.features.shape[-2] if isinstance(state.history, Grouped) else None
    return Expected(arms, state.theta_mle.shape[-1], state.theta_mle.dtype)
