"""What all GLM policies share: settings, and the policy that these and a rule for choosing arms make."""

from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache, partial
from typing import Any, NamedTuple, Unpack

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
from explorax.glm.memory import builder_of
from explorax.glm.memory.base import Estimator, Wanted
from explorax.policies import exploration, glm_state
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Program, check_design, checked_init, compiled, size_and_dtype
from explorax.policies.glm_state import (
    AnyState,
    GLMState,
    absorb,
    adopt,
    complete,
    expected_arrays,
    extension,
    learn,
    prior,
    unrewarded,
)
from explorax.policies.settings import GLMSettings, check_forgetting

# (estimator, key, state, arms) -> scores, converged
Rule = Callable[[Estimator, Array, Any, Array], tuple[Array, Array]]
Law = Callable[[Estimator, Any, Array, Array], Array]  # (estimator, state, arms, mask) -> P(arm)
Learn = Callable[[Estimator, Any, Array, Array, Array], AnyState]  # (estimator, state, arm, x, reward) -> state


class Part(NamedTuple):
    """What distinguishes a GLM policy from others that learn alike, and may share a program with it (`merged.merge`).

    Attributes:
        rule: The rule that scores the arms.
        estimator: The estimator of θ̂.
        model: The settings.
        numbers: Returns the numbers of the rule, for the arms (or the number of features).
        widths: Whether the rule asks the memory for the widths of arms.
        roots: Whether the rule asks the memory for a root of the inverse curvature.
    """

    rule: Rule
    estimator: Estimator
    model: "GLMModel"
    numbers: Callable[[Array | int], Any]
    widths: bool
    roots: bool

    def begin(self, arms: Array | int, widths: bool, roots: bool) -> AnyState:
        """Return the state before the first reward, with a memory that can tell widths and roots as well."""
        return self.model.init(arms, self.numbers(arms), widths=widths, roots=roots)

    def kind(self, arms_change: bool) -> Hashable:
        """Return a key that is equal for policies that learn alike, and whose states differ in numbers only."""
        given = self.model.given
        settings = [given[name] for name in ("memory", "capacity", "when_full", "window", "buffer")]
        by_arm = given["memory"] == "exact" and not arms_change and not self.model.forgets
        asks = () if by_arm else (self.widths, self.roots)  # fixed arms keep what costs nothing if it is not asked for
        alike = replace(self.estimator, root_error=None)
        shapes = given["ridge"] > 0, given["discount"] < 1, given["warmup"] == "none"  # what states differ in
        return alike, *shapes, *settings, *asks


@cache
def program(rule: Rule, estimator: Estimator, learn: Learn = learn) -> Program:
    """Return the compiled `act` and `update` of the policy that maximizes the scores of a rule.

    All policies that differ in numbers only share one program.

    Args:
        rule: Returns the scores of all arms, and whether the fit behind them converged.
        estimator: The estimator of θ̂.
        learn: Returns the state after a reward.

    Returns:
        The program.
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
    """Return the function that computes the probability of each arm, for a rule whose law has a formula.

    The probability is 1 for a forced arm, and after the forced rounds what the law says.

    Args:
        law: Returns the probability of each arm under the rule.
        estimator: The estimator of θ̂.

    Returns:
        The function, with the arguments of `ProbabilitiesFn`.
    """

    @jax.jit
    def of_arms(state: AnyState, arms: Array, t: Array, mask: Array | None) -> Array:
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        forced_arm, forced = exploration.choose(state.exploration, jnp.zeros_like(arms[:, 0]), arms, t, mask)
        certain = jnp.arange(arms.shape[0]) == forced_arm
        return jnp.where(forced, certain, law(estimator, state, arms, everything))

    return of_arms


class GLMModel:
    """The settings of a GLM policy, checked, and the functions that they determine.

    Args:
        theory_of: The policy whose theorem says how long to explore; None if there is no such theorem.
        **settings: The settings that all GLM policies take (`GLMSettings`).

    Raises:
        InvalidArgument: If a setting is out of its range or contradicts another setting.
        UnknownName: If a setting, or the name that is given for one, is unknown.
    """

    def __init__(self, theory_of: str | None = None, **settings: Unpack[GLMSettings]) -> None:
        self.theory_of, self.given = theory_of, filled(GLMSettings, settings)
        self.check()

    def check(self) -> None:
        """Check that the settings can be used and do not contradict each other.

        Raises:
            InvalidArgument: If a setting is out of its range or contradicts another setting.
            UnknownName: If the name that is given for a setting is unknown.
        """
        families.get(self.given["family"])
        check_fit_settings(self.given["ridge"], self.given["tolerance"])
        exploration.check_kind(self.given["warmup"])
        if self.given["ridge"] == 0 and (self.glm is not families.gaussian or self.given["warmup"] == "none"):
            raise InvalidArgument(
                f"ridge must be above 0 with family {self.glm.name!r} and warmup {self.given['warmup']!r}, since the "
                "estimate may not exist otherwise, got 0. Give ridge=1e-6 for nearly no ridge."
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
            raise InvalidArgument(
                "ridge must be above 0 with a discount or a window, which forget all but the ridge, got 0."
            )
        check_whole("buffer", self.given["buffer"], 0)
        self.knows_rows()  # raises now if the memory cannot do what the settings say
        if self.given["warmup"] == "theory":
            self.required_eigenvalue(1)  # raises now if the theory does not apply

    @property
    def glm(self) -> Family:
        """The reward family."""
        return families.get(self.given["family"])

    @property
    def forgets(self) -> bool:
        """Whether rewards are discounted, or dropped after a window."""
        return self.given["discount"] < 1 or self.given["window"] is not None

    @property
    def informal(self) -> float:
        """The paper's informal width and perturbation: the standard deviation of a reward, or 1 if it is unbounded."""
        return self.given["noise_std"] or self.glm.noise_std or 1.0

    @property
    def posterior_scale(self) -> float:
        """The scale with which H⁻¹ is the covariance of the posterior: σ in the Gaussian family, else 1."""
        return self.informal if self.glm.name == "gaussian" else 1.0

    def problem(self, n_features: int) -> theory.Problem:
        """Return the constants of the theory for a number of features; raise if the horizon is not given."""
        if self.given["horizon"] is None:
            raise InvalidArgument(
                "horizon must be the number of rounds for the theory, got None. Give horizon=1000, for example."
            )
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
        """Return the function that chooses a scale or width: the given one, the informal one, or that of the theory.

        Args:
            design: "informal" or "theory".
            name: The name of the setting: "scale" or "width".
            given: The value of the setting; None if the design chooses it.
            informal: The value in the informal design.
            theory_value: Returns the value in the design of the theory for d features.

        Returns:
            The function, which maps a (K, d) matrix of arms or the number d of features to the scale or width.
        """
        check_design(design, name, given, "Use 'greedy' for a policy that does not explore.")
        if given is not None:
            return lambda arms: float(given)
        if design == "theory":
            self.problem(1)
            return lambda arms: theory_value(size_and_dtype(arms)[0])
        return lambda arms: informal

    def required_eigenvalue(self, features: int) -> float:
        """Return the value that λ_min(G) must reach in the forced rounds; 0 unless warmup is "theory"."""
        if self.given["warmup"] != "theory":
            return 0.0
        if self.theory_of is None:
            raise InvalidArgument(
                "warmup must be 'basis', 'first' or 'none' for a policy without a theorem, got 'theory'."
            )
        return theory.required_eigenvalue(self.theory_of, self.problem(features))

    def init(self, arms: Array | int, numbers: Any = (), dtype: jnp.dtype | None = None, **wants: bool) -> AnyState:
        """Return the state of a policy that has seen no rewards yet.

        Args:
            arms: The (K, d) matrix of fixed arms, or the number d of features if arms change.
            numbers: The numbers of the rule.
            dtype: The dtype of the state if arms change.  Default: JAX's default.
            **wants: What the rule needs of the memory, as in `wanted`.

        Returns:
            The state.
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
        self,
        arms: Array | int,
        dtype: jnp.dtype | None = None,
        widths: bool = False,
        roots: bool = False,
        keeps_curvature: bool = True,
    ) -> Wanted:
        """Return what the settings, and a rule that may need `widths` or `roots`, require of the memory."""
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
            roots=roots,
            keeps_curvature=keeps_curvature,
        )

    def knows_rows(self) -> bool:
        """Return whether the memory keeps rewards of which its estimate is the exact fit."""
        return jax.eval_shape(lambda: builder_of(self.given["memory"])(self.wanted(1))).past is not None

    def check_knows_rows(self, purpose: str, otherwise: str = "") -> None:
        """Raise unless the memory keeps the rewards themselves; `otherwise` ends the sentence with another remedy."""
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
        roots: bool = False,
        law: Law | None = None,
        learn: Learn = learn,
    ) -> Policy:
        """Return the policy that maximizes the scores of a rule.

        Args:
            rule: Returns the scores of all arms, and whether the fit behind them converged.
            numbers: Returns the record of the numbers that the rule reads, for the arms (or the number of features).
            root_error: The relative error of a kept curvature, as e^±; None for what the tolerance requires.
            widths: Whether the rule asks the memory for the widths of arms.
            roots: Whether the rule asks the memory for a root of the inverse curvature.
            law: Returns the probability of each arm under the rule, if there is a formula for it.
            learn: Returns the state after a reward.

        Returns:
            The policy.
        """
        estimator = Estimator(self.glm, self.given["tolerance"], root_error)
        shares = learn is glm_state.learn and isinstance(self.given["memory"], str)
        return Policy(
            checked_init(lambda arms, key: self.init(arms, numbers(arms), widths=widths, roots=roots)),
            *program(rule, estimator, learn),
            probabilities=None if law is None else probabilities(law, estimator),
            extend=extension(estimator),
            unrewarded=unrewarded,
            adopt=partial(adopt, estimator),
            complete=partial(complete, estimator),
            absorb=partial(absorb, estimator) if learn is glm_state.learn else None,
            prior=partial(prior, estimator) if learn is glm_state.learn else None,
            part=Part(rule, estimator, self, numbers, widths, roots) if shares else None,
            stationary=True,  # a rule is not told t
        )
