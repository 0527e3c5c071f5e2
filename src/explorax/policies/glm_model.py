"""The settings that every GLM policy takes, and the policy that they and a rule for choosing arms make."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal, TypedDict

import jax
import jax.numpy as jnp
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.checks import check_positive, check_whole, is_known
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import check_fit_settings
from explorax.glm.history import check_forgetting
from explorax.glm.memory import Builder, builder_of
from explorax.glm.memory.base import Estimator, Wanted
from explorax.policies import exploration, glm_state
from explorax.policies.base import Action, Policy, Program, check_design, checked_init, compiled, size_and_dtype
from explorax.policies.glm_state import AnyState, GLMState, expected_arrays

Design = Literal["informal", "theory"]
MemoryName = Literal["exact", "constant", "refitted"]


class GLMSettings(TypedDict, total=False):
    """Settings that all GLM policies take, with their defaults.

    family        "bernoulli" (rewards in [0, 1]), "gaussian" or "poisson"             "bernoulli"
    ridge         λ of the fit, an N(0, I/λ) prior; 0 only in the Gaussian family      1.0
    warmup        forced rounds first: "basis", "first", "theory" or "none"            "basis"
    horizon       n, the number of rounds; only the theory's designs need it           None
    noise_std     σ of the rewards                                                     the family's
    min_slope     μ̇min in the theory's designs                                         max_slope, as in the paper
    max_slope     μ̇max in the theory's designs                                         the family's
    memory        "exact"; "constant": a summary, for arms that change
                  (`glm.memory.summary`); "refitted": that, and now and then an exact
                  fit to the rewards kept; or a builder of your own (`glm.memory`)     "exact"
    buffer        with memory="constant": how many of the last rewards are kept as they
                  are, for an estimate nearer to the exact one (`glm.memory.buffer`)   0
    capacity      rewards kept when arms change                                        10 000
    when_full     then raise an "error", or "forget" the oldest                        "error"
    discount      γ: with each reward every earlier one weighs γ times what it did     1, no discount
    window        W: only the last W rewards count; give it or a discount              None, all count
    tolerance     error of a score xᵀθ that a fit may leave                            (precision of the dtype)^⅔
    n_features    d, the dimensions that the arms span, where that is fewer            the length of an arm

    `glm.history` defines discount and window.  Both leave the ridge as it is: where nothing was seen lately, a policy
    falls back to the prior.  A window takes the place of `capacity` and `when_full`; with a discount and arms that
    change, when_full="forget" is right, since what is that old weighs nothing.  The theory's designs know of neither.
    """

    family: str | Family
    ridge: float
    warmup: str
    horizon: int | None
    noise_std: float | None
    min_slope: float | None
    max_slope: float | None
    memory: MemoryName | Builder
    buffer: int
    capacity: int
    when_full: Literal["error", "forget"]
    discount: float
    window: int | None
    tolerance: float | None
    n_features: int | None


Rule = Callable[
    [Estimator, Array, Any, Array], tuple[Array, Array]
]  # (estimator, key, state, arms) -> scores, converged
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


@dataclass(frozen=True, kw_only=True)
class GLMModel:
    """The settings, checked, and the functions they fix."""

    theory_of: str | None = None  # the policy whose theorem says how long to explore; None where there is none
    family: str | Family = "bernoulli"
    ridge: float = 1.0
    warmup: str = "basis"
    horizon: int | None = None
    noise_std: float | None = None
    min_slope: float | None = None
    max_slope: float | None = None
    memory: MemoryName | Builder = "exact"
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
        if self.when_full not in ("error", "forget"):
            raise UnknownName("when_full", self.when_full, ("error", "forget"))
        check_forgetting(self.discount, self.window)
        if self.forgets and self.ridge == 0:
            raise InvalidArgument("ridge=0 with a discount or a window: the ridge is what stays; give ridge > 0")
        check_whole("buffer", self.buffer, 0)
        self.knows_rows()  # complains now about what the memory cannot do
        if self.warmup == "theory":
            self.required_eigenvalue(1)  # complains now if the theory cannot say

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

    def required_eigenvalue(self, features: int) -> float:
        """Return what λ_min(G) must reach in the forced rounds; 0 where the theory does not choose their number."""
        if self.warmup != "theory":
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
        plan = exploration.plan(self.warmup, arms, eigenvalue, self.n_features, must_span=self.ridge == 0)
        as_arrays = jax.tree.map(lambda number: jnp.asarray(number, wanted.dtype), numbers)
        return GLMState(builder_of(self.memory)(wanted), plan, jnp.asarray(self.ridge, wanted.dtype), as_arrays)

    def wanted(
        self, arms: Array | int, dtype: jnp.dtype | None = None, widths: bool = False, keeps_curvature: bool = True
    ) -> Wanted:
        """Return what the settings, and a rule that may want `widths`, ask of the memory."""
        size, dtype = size_and_dtype(arms, dtype)
        return Wanted(
            arms,
            size,
            dtype,
            self.ridge,
            capacity=self.window or self.capacity,
            drops_oldest=self.when_full == "forget" or self.window is not None,
            discount=self.discount,
            window=self.window,
            buffer=self.buffer,
            widths=widths,
            keeps_curvature=keeps_curvature,
        )

    def knows_rows(self) -> bool:
        """Return whether the memory keeps the rewards that its estimate is the exact one of."""
        return jax.eval_shape(lambda: builder_of(self.memory)(self.wanted(1))).past is not None

    def check_knows_rows(self, purpose: str, otherwise: str = "") -> None:
        """Raise unless the memory keeps the rewards themselves, for a purpose; `otherwise` is another remedy."""
        if not self.knows_rows():
            raise InvalidArgument(
                f"memory must keep the rewards themselves for {purpose}, got {self.memory!r}. Use memory='exact'"
                f"{otherwise}."
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
        estimator = Estimator(self.glm, self.tolerance, root_error)
        return Policy(
            checked_init(lambda arms, key: self.init(arms, numbers(arms), widths=widths)),
            *program(rule, estimator, learn),
            probabilities=None if law is None else probabilities(law, estimator),
            extend=partial(glm_state.extend, estimator),
            adopt=partial(glm_state.adopt, estimator),
        )
