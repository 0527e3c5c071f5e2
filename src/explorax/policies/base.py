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
from typing import Any, NamedTuple

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


class Policy(NamedTuple):
    """`init`, `act` and `update`, see the module's docstring; and what else a policy can tell, None where it cannot."""

    init: Callable[..., State]
    act: Callable[..., Action]
    update: Callable[..., State]
    check: Callable[[ArrayLike], None] | None = None  # raises unless all of these rewards are possible
    families: tuple[str, ...] | None = None  # of rewards it may be played on; the first is the one it models
    probabilities: Callable[..., Array] | None = None  # (state, arms, t, mask) -> (K,) P(arm) by a formula
    extend: Callable[[State, Array], State] | None = None  # the same past with further fixed arms, rows after the old
    redraw: Callable[[Array, State], State] | None = None  # (key, state): with other noise in the last training
    adopt: Callable[[State, State], State] | None = None  # (state, fresh): the past of a state made with other settings
    recipe: Recipe | None = None


class Expected(NamedTuple):
    """What a state says about the arrays that go with it; None where anything goes."""

    n_arms: int | None
    n_features: int | None
    dtype: np.dtype | None


class Program(NamedTuple):
    """`act` and `update`, which is all of a policy that gets compiled; the check of rewards, and their families."""

    act: Callable[..., Action]
    update: Callable[..., State]
    check: Callable[[ArrayLike], None]
    families: tuple[str, ...] | None


def checked(
    *,
    init: Callable[[Array | int, Array], State],
    act: Act,
    update: Callable[[State, Array, Array, Array], State],
    expected: Callable[[State], Expected],
    check: Callable[[ArrayLike], None],
    families: tuple[str, ...] | None,
) -> Policy:
    """Wrap bare functions into a `Policy`: compiled, and with every argument checked first.

    Shapes are checked always.  Values (NaN, range, capacity) are checked when they are there to be looked at, which
    they are in a plain call and are not inside a caller's own `jit`, `vmap` or `scan`.
    """
    program = compiled(act=act, update=update, expected=expected, check=check, families=families)
    return Policy(checked_init(init), *program)


def checked_init(init: Callable[[Array | int, Array], State]) -> Callable[..., State]:
    """`init` with its arguments checked first; without a key it gets that of seed 0."""

    @jax.default_matmul_precision("highest")  # GPUs would otherwise round float32 products to 10 bits
    def exact(arms: Array | int, key: Array) -> State:
        return init(arms, key)

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
    check: Callable[[ArrayLike], None],
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

    def checked_act(key: Array, state: State, arms: ArrayLike, t: ArrayLike, mask: ArrayLike | None = None) -> Action:
        check_count("t", t, "the count of decisions before this one")
        matrix = check_arms(arms, expected(state))
        return compiled_act(key, state, matrix, t, None if mask is None else check_mask(mask, matrix))

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
    mask = jnp.asarray(mask)
    if mask.shape != arms.shape[:1] or mask.dtype != bool:
        raise InvalidShape(
            f"mask has shape {mask.shape} and dtype {mask.dtype}: give one True or False for each of the "
            f"{arms.shape[0]} arms"
        )
    if is_known(mask) and not np.any(mask):
        raise InvalidArgument("mask is False for every arm: at least one must be on offer")
    return mask


def check_row(x: ArrayLike, want: Expected) -> Array:
    """The features of one arm as a vector in the state's dtype."""
    row = as_floats("x", x, want.dtype)
    check_magnitude("x", row)
    if row.ndim != 1 or want.n_features not in (None, row.shape[0]):
        wanted = "(d,)" if want.n_features is None else f"({want.n_features},)"
        raise InvalidShape(f"x has shape {row.shape} where {wanted} is needed: the features of the arm that was pulled")
    return row
