"""The one abstraction: a policy is three pure functions.

    init(arms, key)                -> state    `arms` is the (K, d) matrix of fixed arms, or the number d of
                                               features when arms change from round to round; `key` may be left out
    act(key, state, arms, t)       -> Action   reads the state, never changes it; `t` counts decisions from 0
                                               (a fifth argument, `mask`, says which of the arms may be pulled now)
    update(state, arm, x, reward)  -> state    the only write; `x` is the row of the arm that was pulled

Randomness is an argument (`key`; where it is a network's first weights or noise in its training, that of `init`), and
so is time: rewards may come late, in any order, and forced exploration still
ends after its τ decisions.  States are arrays of fixed shape, so the same functions run one decision in production,
a `lax.scan` over a million rounds, or a `vmap` over a thousand instances.  Ties go to the arm of lowest index.

An agent (`explorax.Agent`) can do more with a policy that tells more: `Policy` lists what, all of it optional.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.checks import (
    all_finite,
    as_floats,
    check_count,
    check_magnitude,
    check_positive,
    check_reward_size,
    is_known,
)
from explorax.errors import InvalidArgument, InvalidShape, NotFinite, UnknownName
from explorax.programs import bounded_jit

State = Any  # a pytree of arrays; each policy has its own
Function = TypeVar("Function", bound=Callable[..., Any])
Act = Callable[[Array, State, Array, Array, Array | None], "Action"]


class Action(NamedTuple):
    """A decision and what it rests on."""

    arm: Array  # () index of the arm to pull
    scores: Array  # (K,) what the arm maximizes, unless it was forced
    forced: Array  # () bool: chosen by the initial exploration and not by the scores
    converged: Array  # () bool: whether the fit behind the scores converged


class Recipe(NamedTuple):
    """How a policy was made: `make(name, **settings)`."""

    name: str
    settings: dict[str, Any]


class Hashed(Protocol):
    """What can be hashed, as functions can: compiled programs are kept by the functions that they are made of."""

    def __hash__(self) -> int: ...


class InitFn(Protocol):
    """`init` of a policy."""

    def __call__(self, arms: ArrayLike, key: Array | None = None) -> State:
        """Return the state of a policy that has seen nothing.

        Args:
            arms: The (K, d) matrix of fixed arms, one row for each; or the number d of features, if arms change from
                round to round.  The state has the dtype of the matrix, or JAX's default.
            key: What a network's first weights and the noise of its training are drawn from, as
                `jax.random.key(seed)`; that of seed 0 unless given.  Most policies do not read it.

        Returns:
            The state, a pytree of arrays of fixed shape.

        Raises:
            InvalidArgument: If `arms` is a number below 1, or `key` is not a single key.
            InvalidShape: If `arms` is not a matrix, or does not go with the policy's settings.
            InvalidFeatures: If `arms` has NaN, infinity or numbers too large to be squared, or does not span the space
                where the policy needs that.
        """


class ActFn(Hashed, Protocol):
    """`act` of a policy."""

    def __call__(
        self, key: Array, state: State, arms: ArrayLike, t: ArrayLike, mask: ArrayLike | None = None
    ) -> Action:
        """Return which arm to pull; the state stays as it is.

        Args:
            key: The randomness of this decision, as `jax.random.key(seed)`; the same key makes the same decision.
            state: What `init` or the last `update` returned.
            arms: The (K, d) matrix of the arms, one row for each; that of `init` if arms are fixed.
            t: How many decisions have been made before this one.  Forced exploration ends by it.
            mask: One True or False for each arm: whether it may be pulled now.  All may unless given.

        Returns:
            An `Action`: the index of the arm and what the decision rests on.  Ties go to the lowest index.

        Raises:
            InvalidShape: If `arms` or `mask` does not have the shape that goes with the state.
            InvalidArgument: If `t` is negative or not a whole number, or `mask` is False for every arm.
            InvalidFeatures: If `arms` has NaN, infinity or numbers too large to be squared.
        """


class UpdateFn(Protocol):
    """`update` of a policy."""

    def __call__(self, state: State, arm: ArrayLike, x: ArrayLike, reward: ArrayLike) -> State:
        """Return the state after one more reward; the state that is given stays as it is.

        Rewards may come late and in any order.

        Args:
            state: What `init` or the last `update` returned.
            arm: The index of the arm that was pulled.
            x: The (d,) features of that arm, its row of the matrix at the time.
            reward: The reward that it paid, one number.

        Returns:
            The new state.

        Raises:
            InvalidShape: If `x` is not a row of d features, or `reward` is not one number.
            InvalidArgument: If `arm` is no index of an arm.
            InvalidFeatures: If `x` has NaN, infinity or numbers too large to be squared.
            InvalidReward: If the policy's reward family has no such reward.
            HistoryFull: If the policy keeps rewards one by one, has no room for another, and may not forget.
            NotFinite: If the update would leave NaN or infinity in the state.
        """


class CheckFn(Protocol):
    """`check` of a policy."""

    def __call__(self, rewards: ArrayLike, /) -> None:
        """Raise unless all of these rewards are possible in the policy's family.

        Args:
            rewards: One or more rewards.

        Raises:
            InvalidReward: If one of them is not.
        """


class ProbabilitiesFn(Hashed, Protocol):
    """`probabilities` of a policy."""

    def __call__(self, state: State, arms: Array, t: Any, mask: Array | None, /) -> Array:
        """Return the probability with which `act` pulls each arm, by a formula.

        Args:
            state: The state of the policy.
            arms: The (K, d) matrix of the arms.
            t: How many decisions have been made before this one.
            mask: One True or False for each arm: whether it may be pulled now; None if all may.

        Returns:
            The (K,) probabilities, which add up to 1.
        """


class ExtendFn(Protocol):
    """`extend` of a policy."""

    def __call__(self, state: State, arms: Array, /) -> State:
        """Return the state with the same past and further fixed arms.

        Args:
            state: The state of the policy.
            arms: The matrix of all arms: the old rows, then the new ones.
        """


class RedrawFn(Hashed, Protocol):
    """`redraw` of a policy."""

    def __call__(self, key: Array, state: State, /) -> State:
        """Return the state as it would be with other noise in its last training.

        Args:
            key: What that noise is drawn from.
            state: The state of the policy.
        """


class AdoptFn(Protocol):
    """`adopt` of a policy."""

    def __call__(self, state: State, fresh: State, /) -> State:
        """Return the state with which this policy goes on from what the same algorithm learned with other settings.

        Args:
            state: What the policy with the other settings has learned.
            fresh: What `init` of this policy returns for the same arms.

        Raises:
            InvalidArgument: If the past that this policy needs is not in `state`.
            HistoryFull: If this policy has room for fewer rewards than `state` keeps, and may not forget.
        """


class Policy(NamedTuple):
    """A bandit algorithm: `init`, `act` and `update`, and what else it can tell, None where it cannot."""

    init: InitFn
    act: ActFn
    update: UpdateFn
    check: CheckFn | None = None
    families: tuple[str, ...] | None = None  # of rewards it may be played on; the first is the one it models
    probabilities: ProbabilitiesFn | None = None
    extend: ExtendFn | None = None
    redraw: RedrawFn | None = None
    adopt: AdoptFn | None = None
    recipe: Recipe | None = None


class Expected(NamedTuple):
    """What a state says about the arrays that go with it; None where anything goes."""

    n_arms: int | None
    n_features: int | None
    dtype: np.dtype | None


class Program(NamedTuple):
    """`act` and `update`, which is all of a policy that gets compiled; the check of rewards, and their families."""

    act: ActFn
    update: UpdateFn
    check: CheckFn
    families: tuple[str, ...] | None


def explained_by(protocol: type) -> Callable[[Function], Function]:
    """Decorate a function of a policy, so that `help` of it shows what the protocol says."""

    def named(function: Function) -> Function:
        function.__doc__ = protocol.__call__.__doc__
        function.__name__ = protocol.__name__.removesuffix("Fn").lower()
        function.__qualname__ = f"Policy.{function.__name__}"
        return function

    return named


def checked(
    *,
    init: Callable[[Array | int, Array], State],
    act: Act,
    update: Callable[[State, Array, Array, Array], State],
    expected: Callable[[State], Expected],
    check: CheckFn,
    families: tuple[str, ...] | None,
) -> Policy:
    """Wrap bare functions into a `Policy`: compiled, and with every argument checked first.

    Shapes are checked always.  Values (NaN, range, capacity) are checked when they are there to be looked at, which
    they are in a plain call and are not inside a caller's own `jit`, `vmap` or `scan`.
    """
    program = compiled(act=act, update=update, expected=expected, check=check, families=families)
    return Policy(checked_init(init), *program)


def checked_init(init: Callable[[Array | int, Array], State]) -> InitFn:
    """`init` with its arguments checked first; without a key it gets that of seed 0."""

    @jax.default_matmul_precision("highest")  # GPUs would otherwise round float32 products to 10 bits
    def exact(arms: Array | int, key: Array) -> State:
        return init(arms, key)

    @explained_by(InitFn)
    def checking(arms: ArrayLike, key: Array | None = None) -> State:
        key = jax.random.key(0) if key is None else key
        if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
            raise InvalidArgument(f"key={key!r} must be a single key, as jax.random.key(seed) makes it")
        if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
            if arms < 1:
                raise InvalidArgument(f"n_features={arms} must be at least 1")
            return exact(int(arms), key)
        return exact(check_arms(arms, Expected(None, None, None)), key)

    return checking


def compiled(
    *,
    act: Act,
    update: Callable[[State, Array, Array, Array], State],
    expected: Callable[[State], Expected],
    check: CheckFn,
    families: tuple[str, ...] | None,
    check_pulled: Callable[[State, ArrayLike, ArrayLike], None] = lambda state, arm, x: None,
) -> Program:
    """`act` and `update` compiled, and with every argument checked first; `families` are those of `Policy`."""

    @bounded_jit
    @jax.default_matmul_precision("highest")
    def compiled_act(key: Array, state: State, arms: Array, t: Array, mask: Array | None) -> Action:
        return act(key, state, arms, t, mask)

    @bounded_jit
    @jax.default_matmul_precision("highest")
    def compiled_update(state: State, arm: Array, x: Array, reward: Array) -> State:
        return update(state, arm, x, reward)

    @explained_by(ActFn)
    def checked_act(key: Array, state: State, arms: ArrayLike, t: ArrayLike, mask: ArrayLike | None = None) -> Action:
        check_count("t", t, "the count of decisions before this one")
        matrix = check_arms(arms, expected(state))
        return compiled_act(key, state, matrix, t, None if mask is None else check_mask(mask, matrix))

    @explained_by(UpdateFn)
    def checked_update(state: State, arm: ArrayLike, x: ArrayLike, reward: ArrayLike) -> State:
        want = expected(state)
        x = check_row(x, want)
        check_count("arm", arm, "the index of the arm that was pulled", want.n_arms)
        if np.ndim(reward) != 0:
            raise InvalidShape(f"reward has shape {np.shape(reward)}: give one number for each update")
        check(reward)
        check_pulled(state, arm, x)
        check_reward_size(reward, x.dtype)
        learned = compiled_update(state, arm, x, jnp.asarray(reward, x.dtype))
        if is_known(*jax.tree.leaves(learned)) and not all_finite(learned) and all_finite(state):
            raise NotFinite(
                f"reward={reward} of an arm x={x} would leave NaN or infinity in the state, which stays as it was. "
                "Scale features and rewards to sizes of about 1, or use float64."
            )
        return learned

    return Program(checked_act, checked_update, check, families)


def size_and_dtype(arms: Array | int, dtype: jnp.dtype | None = None) -> tuple[int, jnp.dtype]:
    """d, and the dtype of a state: that of fixed arms; where arms change the one given, or JAX's default."""
    return (arms, dtype or jnp.zeros(0).dtype) if isinstance(arms, int) else (arms.shape[1], arms.dtype)


def check_design(design: str, name: str, given: float | None, remedy: str = "") -> None:
    """Raise unless the design is known and does not contradict the scale or width that was given."""
    if design not in ("informal", "theory"):
        raise UnknownName("design", design, ("informal", "theory"))
    if given is not None and design == "theory":
        raise InvalidArgument(f"design='theory' chooses the {name}: leave {name}={given!r} out, or the design")
    if given is not None:
        check_positive(name, given, remedy)


def check_arms(arms: ArrayLike, want: Expected) -> Array:
    """The arms as a (K, d) matrix in the state's dtype."""
    matrix = as_floats("arms", arms, want.dtype)
    check_magnitude("arms", matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidShape(f"arms have shape {matrix.shape}: give a matrix with one row of features for each arm")
    if want.n_features not in (None, matrix.shape[1]):
        raise InvalidShape(f"arms have {matrix.shape[1]} features where the state was made for {want.n_features}")
    if want.n_arms not in (None, matrix.shape[0]):
        raise InvalidShape(
            f"{matrix.shape[0]} arms where the state was made for {want.n_arms} fixed ones: "
            f"for arms that change, start from init({matrix.shape[1]}), the number of features"
        )
    return matrix


def check_mask(mask: ArrayLike, arms: Array) -> Array:
    """Which arms may be pulled, as a (K,) vector with at least one True."""
    allowed = jnp.asarray(mask)
    if allowed.shape != arms.shape[:1] or allowed.dtype != bool:
        raise InvalidShape(
            f"mask has shape {allowed.shape} and dtype {allowed.dtype}: give one True or False for each of the "
            f"{arms.shape[0]} arms"
        )
    if is_known(allowed) and not np.any(allowed):
        raise InvalidArgument("mask is False for every arm: at least one must be on offer")
    return allowed


def check_row(x: ArrayLike, want: Expected) -> Array:
    """The features of one arm as a vector in the state's dtype."""
    row = as_floats("x", x, want.dtype)
    check_magnitude("x", row)
    if row.ndim != 1 or want.n_features not in (None, row.shape[0]):
        wanted = "(d,)" if want.n_features is None else f"({want.n_features},)"
        raise InvalidShape(f"x has shape {row.shape} where {wanted} is needed: the features of the arm that was pulled")
    return row
