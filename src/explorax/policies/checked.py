"""What surrounds the functions of every policy: arguments are checked, and the rest is compiled.

Shapes are always checked.  Values (NaN, range, capacity) are checked when they are known: in a plain call they are, and
inside a caller's own `jit`, `vmap` or `scan` they are not.
"""

import reprlib
from collections.abc import Callable
from typing import NamedTuple

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
from explorax.policies.base import ActFn, Action, CheckFn, InitFn, Policy, State, UpdateFn, explained_by
from explorax.programs import bounded_jit

Act = Callable[[Array, State, Array, Array, Array | None], Action]


class Expected(NamedTuple):
    """The sizes and the dtype of the arrays that go with a state; None if anything is allowed.

    Attributes:
        n_arms: The number K of fixed arms.
        n_features: The number d of features.
        dtype: The dtype of arms and features.
    """

    n_arms: int | None
    n_features: int | None
    dtype: np.dtype | None


class Program(NamedTuple):
    """The compiled part of a policy: `act` and `update`, with the check of rewards and their families.

    Attributes:
        act: As in `Policy`.
        update: As in `Policy`.
        check: As in `Policy`.
        families: As in `Policy`.
    """

    act: ActFn
    update: UpdateFn
    check: CheckFn
    families: tuple[str, ...] | None


def checked(
    *,
    init: Callable[[Array | int, Array], State],
    act: Act,
    update: Callable[[State, Array, Array, Array], State],
    expected: Callable[[State], Expected],
    check: CheckFn,
    families: tuple[str, ...] | None,
) -> Policy:
    """Wrap the bare functions of a policy into a `Policy` that checks every argument and compiles the rest.

    Args:
        init: Returns the first state for a (K, d) matrix of arms or the number d of features, and a key.
        act: Chooses an arm, with the arguments of `ActFn`.
        update: Returns the state after a reward, with the arguments of `UpdateFn`.
        expected: Returns the sizes and the dtype of the arrays that go with a state.
        check: Raises for rewards that are impossible.
        families: The reward families that the policy may be played on; None for any.

    Returns:
        The policy.
    """
    program = compiled(act=act, update=update, expected=expected, check=check, families=families)
    return Policy(checked_init(init), *program)


def checked_init(init: Callable[[Array | int, Array], State]) -> InitFn:
    """Wrap a bare `init` so that its arguments are checked first; the default key is that of seed 0."""

    @jax.default_matmul_precision("highest")  # GPUs would otherwise round float32 products to 10 bits
    def exact(arms: Array | int, key: Array) -> State:
        return init(arms, key)

    @explained_by(InitFn)
    def checking(arms: ArrayLike, key: Array | None = None) -> State:
        key = jax.random.key(0) if key is None else key
        if not (isinstance(key, Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key) and key.shape == ()):
            raise InvalidArgument(
                f"key must be a single key, got {reprlib.repr(key)}. Make one with jax.random.key(seed)."
            )
        if isinstance(arms, int | np.integer) and not isinstance(arms, bool):
            if arms < 1:
                raise InvalidArgument(
                    f"arms must be a matrix or a number of features of at least 1, got {arms}. "
                    "Give init(5), say, for 5 features."
                )
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
    """Compile bare functions `act` and `update`, and check every argument before the compiled code is called.

    Args:
        act: Chooses an arm, with the arguments of `ActFn`.
        update: Returns the state after a reward, with the arguments of `UpdateFn`.
        expected: Returns the sizes and the dtype of the arrays that go with a state.
        check: Raises for rewards that are impossible.
        families: The reward families that the policy may be played on; None for any.
        check_pulled: Raises if an arm and its features do not fit the state.

    Returns:
        The program.

    Raises:
        InvalidShape: From `update`, if a reward is not one number.
        NotFinite: From `update`, if NaN or infinity would be left in the state.
    """

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
            raise InvalidShape(
                f"reward must be one number, got shape {np.shape(reward)}. Call update once for each reward."
            )
        check(reward)
        check_pulled(state, arm, x)
        check_reward_size(reward, x.dtype)
        learned = compiled_update(state, arm, x, jnp.asarray(reward, x.dtype))
        if is_known(*jax.tree.leaves(learned)) and not all_finite(learned) and all_finite(state):
            raise NotFinite(
                f"The reward {reward} of an arm x = {reprlib.repr(np.asarray(x).tolist())} would leave NaN or infinity "
                "in the state, which stays as it was. Scale features and rewards to sizes of about 1, or use float64."
            )
        return learned

    return Program(checked_act, checked_update, check, families)


def size_and_dtype(arms: Array | int, dtype: jnp.dtype | None = None) -> tuple[int, jnp.dtype]:
    """Return d and the dtype of a state: that of fixed arms, or for changing arms the given one or JAX's default."""
    return (arms, dtype or jnp.zeros(0).dtype) if isinstance(arms, int) else (arms.shape[1], arms.dtype)


def check_design(design: str, name: str, given: float | None, remedy: str = "") -> None:
    """Check that a design is known, and that the given scale or width does not contradict it.

    Args:
        design: "informal" or "theory".
        name: The setting that the design chooses: "scale" or "width".
        given: The value of that setting; None if the design chooses it.
        remedy: A sentence for the error that refuses a value which is not above 0.

    Raises:
        UnknownName: If there is no such design.
        InvalidArgument: If a value is given with design="theory", or is not above 0.
    """
    if design not in ("informal", "theory"):
        raise UnknownName("design", design, ("informal", "theory"))
    if given is not None and design == "theory":
        raise InvalidArgument(
            f"{name} must be left out with design='theory', which chooses it, got {given!r}. "
            f"Leave out the {name} or the design."
        )
    if given is not None:
        check_positive(name, given, remedy)


def check_arms(arms: ArrayLike, want: Expected) -> Array:
    """Return the arms as a (K, d) matrix in the dtype of the state.

    Args:
        arms: The arms that a caller gave.
        want: The sizes and the dtype that go with the state.

    Returns:
        The matrix.

    Raises:
        InvalidShape: If the arms are not a matrix, or do not have the expected number of rows or features.
    """
    matrix = as_floats("arms", arms, want.dtype)
    check_magnitude("arms", matrix)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidShape(f"arms must be a matrix, got shape {matrix.shape}. Give one row of features for each arm.")
    if want.n_features not in (None, matrix.shape[1]):
        raise InvalidShape(
            f"arms must have the {want.n_features} features that the state was made for, got {matrix.shape[1]}. "
            "Give the features that were given to init."
        )
    if want.n_arms not in (None, matrix.shape[0]):
        raise InvalidShape(
            f"arms must be the {want.n_arms} fixed arms that the state was made for, got {matrix.shape[0]} arms. "
            f"For arms that change, start from init({matrix.shape[1]}), the number of features."
        )
    return matrix


def check_mask(mask: ArrayLike, arms: Array) -> Array:
    """Return the mask of the arms on offer as a Boolean vector of shape (K,).

    Args:
        mask: The mask that a caller gave.
        arms: The (K, d) matrix of the arms.

    Returns:
        The mask.

    Raises:
        InvalidShape: If the mask is not a Boolean vector with one entry for each arm.
        InvalidArgument: If the mask is False for every arm.
    """
    allowed = jnp.asarray(mask)
    if allowed.shape != arms.shape[:1] or allowed.dtype != bool:
        raise InvalidShape(
            f"mask must have one True or False for each of the {arms.shape[0]} arms, got shape {allowed.shape} "
            f"and dtype {allowed.dtype}. Give a Boolean vector."
        )
    if is_known(allowed) and not np.any(allowed):
        raise InvalidArgument(
            "mask must be True for at least one arm, got False for every arm. Offer at least one arm."
        )
    return allowed


def check_row(x: ArrayLike, want: Expected) -> Array:
    """Return the features of one arm as a vector in the dtype of the state.

    Args:
        x: The features that a caller gave.
        want: The sizes and the dtype that go with the state.

    Returns:
        The (d,) features.

    Raises:
        InvalidShape: If the features are not a vector of the expected length.
    """
    row = as_floats("x", x, want.dtype)
    check_magnitude("x", row)
    if row.ndim != 1 or want.n_features not in (None, row.shape[0]):
        wanted = "(d,)" if want.n_features is None else f"({want.n_features},)"
        raise InvalidShape(
            f"x must have shape {wanted}, got {row.shape}. Give the features of the arm that was pulled."
        )
    return row
