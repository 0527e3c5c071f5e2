"""The settings that every GLM policy takes, and the policy that they and a rule for choosing arms make."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from explorax import theory
from explorax.checks import check_positive, check_whole
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm import families, warm
from explorax.glm.families import Family
from explorax.glm.fit import check_fit_settings
from explorax.glm.history import Grouped, Recent, Rows, check_forgetting
from explorax.glm.online import GRAM_RIDGE, Online
from explorax.policies import exploration
from explorax.policies.base import Action, Policy, Program, check_design, checked_init, compiled, size_and_dtype
from explorax.policies.glm_learner import GLMState, Learner, expected_arrays
from explorax.policies.settings import Memory

MEMORIES = ("exact", "constant", "refitted")


Rule = Callable[
    [Learner, Array, GLMState, Array], tuple[Array, Array]
]  # (learner, key, state, arms) -> scores, converged
Law = Callable[[Learner, GLMState, Array, Array], Array]  # (learner, state, arms, mask) -> P(arm)


@cache
def program(rule: Rule, learner: Learner) -> Program:
    """`act` and `update` of the policy that maximizes the scores of a rule; one for all that differ in numbers only."""

    def act(key: Array, state: GLMState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        scores, converged = rule(learner, key, state, arms)
        arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
        return Action(arm, scores, forced, converged)

    return compiled(
        act=act,
        update=learner.update,
        expected=expected_arrays,
        check=learner.check,
        families=(learner.family.name,),
        check_pulled=learner.check_pulled,
    )


@cache
def probabilities(law: Law, learner: Learner) -> Callable[[GLMState, Array, Array, Array | None], Array]:
    """P(arm) of a policy whose law has a formula: 1 for a forced arm, after the forced rounds the law's."""

    @jax.jit
    def of_arms(state: GLMState, arms: Array, t: Array, mask: Array | None) -> Array:
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        forced_arm, forced = exploration.choose(state.exploration, jnp.zeros_like(arms[:, 0]), arms, t, mask)
        certain = jnp.arange(arms.shape[0]) == forced_arm
        return jnp.where(forced, certain, law(learner, state, arms, everything))

    return of_arms


@dataclass(frozen=True, kw_only=True)
class GLMModel:
    """The settings, checked, and the functions they fix."""

    name: str  # of the policy, for the theory's constants
    family: str | Family = "bernoulli"
    ridge: float = 1.0
    warmup: str = "basis"
    horizon: int | None = None
    noise_std: float | None = None
    min_slope: float | None = None
    max_slope: float | None = None
    memory: Memory = "exact"
    buffer: int = 0
    capacity: int = 10_000
    when_full: Literal["error", "forget"] = "error"
    discount: float = 1.0
    window: int | None = None
    tolerance: float | None = None
    n_features: int | None = None

    def __post_init__(self) -> None:
        families.get(self.family)
        check_fit_settings(self.ridge, self.tolerance)
        exploration.check_kind(self.warmup)
        if self.ridge == 0 and (self.glm is not families.gaussian or self.warmup == "none"):
            raise InvalidArgument(
                f"ridge=0 with family={self.glm.name!r} and warmup={self.warmup!r}: the estimate need not exist, "
                "and early in a run it does not; give ridge > 0 (1e-6 is as good as none)"
            )
        for name in ("noise_std", "min_slope", "max_slope"):
            if (value := getattr(self, name)) is not None:
                check_positive(name, value)
        check_whole("capacity", self.capacity, 1)
        if self.n_features is not None:
            check_whole("n_features", self.n_features, 1)
        if self.memory not in MEMORIES:
            raise UnknownName("memory", self.memory, MEMORIES)
        if self.memory != "exact" and self.ridge == 0:
            raise InvalidArgument(
                f"ridge=0 with memory={self.memory!r}: a summary starts from the ridge; give ridge > 0"
            )
        if self.when_full not in ("error", "forget"):
            raise UnknownName("when_full", self.when_full, ("error", "forget"))
        check_forgetting(self.discount, self.window)
        if self.forgets and self.ridge == 0:
            raise InvalidArgument("ridge=0 with a discount or a window: the ridge is what stays; give ridge > 0")
        if self.window is not None and self.memory == "constant":
            raise InvalidArgument(
                f"window={self.window} with memory='constant': a summary cannot take a reward out again; "
                "give a discount in place of the window, or memory='refitted'"
            )
        check_whole("buffer", self.buffer, 0)
        if self.buffer and (self.memory != "constant" or self.discount < 1):
            raise InvalidArgument(
                f"buffer={self.buffer} with memory={self.memory!r} and discount={self.discount}: a buffer belongs to "
                "memory='constant' without a discount; leave it out"
            )
        if self.warmup == "theory":
            theory.required_eigenvalue(self.name, self.problem(1))  # complains now if the theory cannot say

    @property
    def glm(self) -> Family:
        """The reward family."""
        return families.get(self.family)

    @property
    def forgets(self) -> bool:
        """Whether the past counts less and less, or not at all after a while."""
        return self.discount < 1 or self.window is not None

    @property
    def informal(self) -> float:
        """The paper's informal width and perturbation: the standard deviation of a reward, 1 where it has no bound."""
        return self.noise_std or self.glm.noise_std or 1.0

    @property
    def posterior_scale(self) -> float:
        """What makes H⁻¹ the posterior's covariance: σ in the Gaussian family; the others have unit dispersion."""
        return self.informal if self.glm.name == "gaussian" else 1.0

    def problem(self, n_features: int) -> theory.Problem:
        """The constants of the theory for that many features."""
        if self.horizon is None:
            raise InvalidArgument("the theory's design depends on the number of rounds: give horizon=n")
        return theory.problem(
            n_features=self.n_features or n_features,
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
        floor = self.ridge if whitens and self.forgets else None
        history = self.nothing(arms, size, dtype, GRAM_RIDGE if floor is None else floor)
        eigenvalue = theory.required_eigenvalue(self.name, self.problem(size)) if self.warmup == "theory" else 0.0
        plan = exploration.plan(self.warmup, arms, eigenvalue, self.n_features, must_span=self.ridge == 0)
        ridge = jnp.asarray(self.ridge, dtype)
        # Without a ridge the first curvatures are singular: nothing to keep.
        kept, recent = None, None
        if isinstance(history, Grouped) and self.ridge > 0:
            kept = warm.start(history.features, ridge, self.forgets)
            recent = None if self.window is None else Recent.of(self.window, dtype)
        whitened = None if kept is None or not whitens or self.forgets else kept.columns / GRAM_RIDGE**0.5
        return GLMState(
            history,
            jnp.zeros(size, dtype),
            jnp.asarray(True),
            plan,
            ridge,
            jnp.asarray(strength, dtype),
            kept,
            whitened,
            jnp.asarray(self.discount, dtype) if self.discount < 1 else None,
            recent,
            None if floor is None else jnp.asarray(floor, dtype),
        )

    def nothing(self, arms: Array | int, size: int, dtype: jnp.dtype, floor: float) -> Grouped | Rows | Online:
        """A memory with nothing in it; `floor` is added to a G that is kept."""
        if self.memory == "exact" and not isinstance(arms, int):
            return Grouped.of(arms)
        rows = None
        if self.memory != "constant":
            forgets = self.when_full == "forget" or self.window is not None
            rows = Rows.of(self.window or self.capacity, size, dtype, forgets)
        if self.memory == "exact" and rows is not None:
            return rows
        return Online.of(size, dtype, self.ridge, rows, floor, self.discount < 1, self.buffer)

    def policy(
        self,
        rule: Rule,
        strength: Callable[[Array | int], float | Array] = lambda arms: 0.0,
        *,
        root_error: float | None = 0.3,
        whitens: bool = False,
        law: Law | None = None,
    ) -> Policy:
        """The policy that maximizes the scores of a rule, with the strength that its arms (or their size) ask for.

        `law` is P(arm) under that rule, where there is a formula for it.
        """
        learner = Learner(self.glm, self.tolerance, root_error)
        return Policy(
            checked_init(lambda arms, key: self.init(arms, strength(arms), whitens)),
            *program(rule, learner),
            probabilities=None if law is None else probabilities(law, learner),
            extend=learner.extend,
            adopt=learner.adopt,
        )
