"""The settings that every GLM policy takes, and the policy that they and a rule for choosing arms make."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Unpack

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.builders import filled
from explorax.checks import check_positive, check_whole, is_known
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import check_fit_settings
from explorax.glm.history import check_forgetting
from explorax.glm.memory import builder_of
from explorax.glm.memory.base import Estimator, Wanted
from explorax.policies import exploration, glm_state
from explorax.policies.base import Action, Policy, Program, check_design, checked_init, compiled, size_and_dtype
from explorax.policies.glm_state import AnyState, GLMState, expected_arrays
from explorax.policies.settings import GLMSettings

# (estimator, key, state, arms) -> scores, converged
Rule = Callable[[Estimator, Array, Any, Array], tuple[Array, Array]]
Law = Callable[[Estimator, Any, Array, Array], Array]  # (estimator, state, arms, mask) -> P(arm)
Learn = Callable[[Estimator, Any, Array, Array, Array], AnyState]  # (estimator, state, arm, x, reward) -> state


@cache
def program(rule: Rule, estimator: Estimator, learn: Learn = glm_state.learn) -> Program:
    """Return `act` and `update` of the policy that maximizes the scores of a rule.

    There is one program for all policies that differ in numbers only.
    """

    def act(key: Array, state: AnyState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        scores, converged = rule(estimator, key, state, arms)
        arm, forced = exploration.choose(state.exploration, scores, arms, t, mask)
        return Action(arm, scores, forced, converged)

    def check(rewards: ArrayLike) -> None:
        if is_known(rewards):
            families.check_rewards(estimator.family, rewards)

    return compiled(
        act=act,
        update=partial(learn, estimator),
        expected=expected_arrays,
        check=check,
        families=(estimator.family.name,),
        check_pulled=lambda state, arm, x: state.memory.check_pulled(arm, x),
    )


@cache
def probabilities(law: Law, estimator: Estimator) -> Callable[[AnyState, Array, Array, Array | None], Array]:
    """Return P(arm) of a policy whose law has a formula: 1 for a forced arm, after the forced rounds the law's."""

    @jax.jit
    def of_arms(state: AnyState, arms: Array, t: Array, mask: Array | None) -> Array:
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        forced_arm, forced = exploration.choose(state.exploration, jnp.zeros_like(arms[:, 0]), arms, t, mask)
        certain = jnp.arange(arms.shape[0]) == forced_arm
        return jnp.where(forced, certain, law(estimator, state, arms, everything))

    return of_arms


class GLMModel:
    """The settings of a GLM policy, checked, and the functions they fix.

    Args:
        theory_of: The policy whose theorem says how long to explore; None where there is none.
        **settings: Those that all GLM policies take.
    """

    def __init__(self, theory_of: str | None = None, **settings: Unpack[GLMSettings]) -> None:
        self.theory_of, self.given = theory_of, filled(GLMSettings, settings)
        self.check()

    def check(self) -> None:
        """Raise unless the settings can be used, and do not contradict each other."""
        families.get(self.given["family"])
        check_fit_settings(self.given["ridge"], self.given["tolerance"])
        exploration.check_kind(self.given["warmup"])
        if self.given["ridge"] == 0 and (self.glm is not families.gaussian or self.given["warmup"] == "none"):
            raise InvalidArgument(
                f"ridge=0 with family={self.glm.name!r} and warmup={self.given['warmup']!r}: the estimate need not "
                "exist, and early in a run it does not; give ridge > 0 (1e-6 is as good as none)"
            )
        for name in ("noise_std", "min_slope", "max_slope"):
            if (value := self.given[name]) is not None:
                check_positive(name, value)
        check_whole("capacity", self.given["capacity"], 1)
        if self.given["n_features"] is not None:
            check_whole("n_features", self.given["n_features"], 1)
        if self.given["when_full"] not in ("error", "forget"):
            raise UnknownName("when_full", self.given["when_full"], ("error", "forget"))
        check_forgetting(self.given["discount"], self.given["window"])
        if self.forgets and self.given["ridge"] == 0:
            raise InvalidArgument("ridge=0 with a discount or a window: the ridge is what stays; give ridge > 0")
        check_whole("buffer", self.given["buffer"], 0)
        self.knows_rows()  # complains now about what the memory cannot do
        if self.given["warmup"] == "theory":
            self.required_eigenvalue(1)  # complains now if the theory cannot say

    @property
    def glm(self) -> Family:
        """The reward family."""
        return families.get(self.given["family"])

    @property
    def forgets(self) -> bool:
        """Whether the past counts less and less, or not at all after a while."""
        return self.given["discount"] < 1 or self.given["window"] is not None

    @property
    def informal(self) -> float:
        """The paper's informal width and perturbation: the standard deviation of a reward, 1 where it has no bound."""
        return self.given["noise_std"] or self.glm.noise_std or 1.0

    @property
    def posterior_scale(self) -> float:
        """What makes H⁻¹ the posterior's covariance: σ in the Gaussian family; the others have unit dispersion."""
        return self.informal if self.glm.name == "gaussian" else 1.0

    def problem(self, n_features: int) -> theory.Problem:
        """The constants of the theory for that many features."""
        if self.given["horizon"] is None:
            raise InvalidArgument("the theory's design depends on the number of rounds: give horizon=n")
        return theory.problem(
            n_features=self.given["n_features"] or n_features,
            rounds=self.given["horizon"],
            family=self.glm,
            noise_std=self.given["noise_std"],
            min_slope=self.given["min_slope"],
            max_slope=self.given["max_slope"],
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

    def required_eigenvalue(self, features: int) -> float:
        """Return what λ_min(G) must reach in the forced rounds; 0 where the theory does not choose their number."""
        if self.given["warmup"] != "theory":
            return 0.0
        if self.theory_of is None:
            raise InvalidArgument("warmup='theory' needs a theorem, and this policy has none: use warmup='basis'")
        return theory.required_eigenvalue(self.theory_of, self.problem(features))

    def init(self, arms: Array | int, numbers: Any = (), dtype: jnp.dtype | None = None, **wants: bool) -> AnyState:
        """Return a state with nothing seen yet, whose dtype is that of the arms, or JAX's default.

        `numbers` are those of the rule, and `wants` what it wants of the memory (`Wanted`).
        """
        wanted = self.wanted(arms, dtype, **wants)
        eigenvalue = self.required_eigenvalue(wanted.size)
        plan = exploration.plan(
            self.given["warmup"], arms, eigenvalue, self.given["n_features"], must_span=self.given["ridge"] == 0
        )
        as_arrays = jax.tree.map(lambda number: jnp.asarray(number, wanted.dtype), numbers)
        return GLMState(
            builder_of(self.given["memory"])(wanted), plan, jnp.asarray(self.given["ridge"], wanted.dtype), as_arrays
        )

    def wanted(
        self, arms: Array | int, dtype: jnp.dtype | None = None, widths: bool = False, keeps_curvature: bool = True
    ) -> Wanted:
        """Return what the settings, and a rule that may want `widths`, ask of the memory."""
        size, dtype = size_and_dtype(arms, dtype)
        return Wanted(
            arms,
            size,
            dtype,
            self.given["ridge"],
            capacity=self.given["window"] or self.given["capacity"],
            drops_oldest=self.given["when_full"] == "forget" or self.given["window"] is not None,
            discount=self.given["discount"],
            window=self.given["window"],
            buffer=self.given["buffer"],
            widths=widths,
            keeps_curvature=keeps_curvature,
        )

    def knows_rows(self) -> bool:
        """Return whether the memory keeps the rewards that its estimate is the exact one of."""
        return jax.eval_shape(lambda: builder_of(self.given["memory"])(self.wanted(1))).past is not None

    def check_knows_rows(self, purpose: str, otherwise: str = "") -> None:
        """Raise unless the memory keeps the rewards themselves, for a purpose; `otherwise` is another remedy."""
        if not self.knows_rows():
            raise InvalidArgument(
                f"memory must keep the rewards themselves for {purpose}, got {self.given['memory']!r}. Use "
                f"memory='exact'{otherwise}."
            )

    def policy(
        self,
        rule: Rule,
        numbers: Callable[[Array | int], Any] = lambda arms: (),
        *,
        root_error: float | None = 0.3,
        widths: bool = False,
        law: Law | None = None,
        learn: Learn = glm_state.learn,
    ) -> Policy:
        """Return the policy that maximizes the scores of a rule.

        Args:
            rule: The scores of all arms, and whether the fit behind them converged.
            numbers: A record of the numbers that the rule reads, for the arms (or their size).
            root_error: How far a kept curvature may be off, as e^±; None for as far as the tolerance asks.
            widths: Whether the rule asks the memory for the widths of arms.
            law: P(arm) under the rule, where there is a formula for it.
            learn: What a reward does to the state.
        """
        estimator = Estimator(self.glm, self.given["tolerance"], root_error)
        return Policy(
            checked_init(lambda arms, key: self.init(arms, numbers(arms), widths=widths)),
            *program(rule, estimator, learn),
            probabilities=None if law is None else probabilities(law, estimator),
            extend=partial(glm_state.extend, estimator),
            adopt=partial(glm_state.adopt, estimator),
        )
