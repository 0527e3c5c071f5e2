"""Checks of arguments before they are used.

Inside a caller's `jit`, `vmap` or `scan` values are not known yet: there shapes and types are checked, and values are
not.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidReward, shown

# The most that a run may ask for.
MOST_ROUNDS = 2_000_000_000  # rounds are counted in 32 bits, and the last chunk may be a little longer than the run
MOST_INSTANCES = 1_000_000  # in one call or study; what is recorded of more would not fit into memory
MOST_FIRST = 2_000_000_000  # instances are numbered in 32 bits, too
MOST_SEED = 2**32 - 1  # JAX silently uses the last 32 bits of a larger one
MOST_CHECKPOINTS = 1_000_000
MOST_NUMBERS = 2**31 - 1  # in an array, which has 32-bit indices


def is_known(*values: object) -> bool:
    """Return whether the values of all arguments are known, i.e. JAX is tracing none of them."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def is_number(value: object) -> bool:
    """Return whether a value is a finite real number; booleans and arrays are not."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number that no float can hold
        return False


def check_positive(name: str, value: float, remedy: str = "") -> None:
    """Raise unless a setting is a finite number above zero.

    Args:
        name: What the setting is called in the error.
        value: The setting.
        remedy: A sentence for the end of the error that says what to do, if more than giving a positive number.

    Raises:
        InvalidArgument: If the value is not a number, not finite or not above zero.
    """
    if not (is_number(value) and value > 0):
        remedy = f" {remedy}" if remedy else ""
        raise InvalidArgument(f"{name} must be a finite number above 0, got {shown(value)}.{remedy}")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise unless a value is a whole number from `least` to `most`; without an upper limit if `most` is None."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidArgument(f"{name} must be a whole number of at least {least}, got {shown(value)}.")
    if most is not None and value > most:
        raise InvalidArgument(f"{name} must be a whole number from {least} to {most}, got {value}. Give a smaller one.")


def check_size(n_arms: int, n_features: int) -> None:
    """Raise if a table of arms has more numbers than an array can have."""
    if n_arms * n_features > MOST_NUMBERS:
        raise InvalidArgument(
            f"arms times features must be at most {MOST_NUMBERS}, got {n_arms} times {n_features}. "
            "Give fewer arms or features."
        )


def check_count(name: str, value: Any, meaning: str, below: int | None = None) -> None:
    """Raise unless a value is a whole number from 0 up to, but not including, `below`.

    Args:
        name: What the argument is called in the error.
        value: The argument; inside compiled code only its type is checked.
        meaning: What the argument is, for example "the index of the arm that was pulled".
        below: The limit.  Default: None, for no limit.

    Raises:
        InvalidArgument: If the value is not a whole number, or not in that range.
    """
    dtype = getattr(value, "dtype", np.dtype(type(value)) if isinstance(value, int) else None)
    whole = dtype is not None and jnp.issubdtype(dtype, jnp.integer) and np.ndim(value) == 0
    if not whole or (is_known(value) and not 0 <= int(value) < (below or np.inf)):
        limits = "of at least 0" if below is None else f"from 0 to {below - 1}"
        found = value if whole else shown(value)
        raise InvalidArgument(f"{name} must be a whole number {limits}, {meaning}, got {found}.")


def as_floats(name: str, values: ArrayLike | Sequence[Any], dtype: Any = None) -> Array:
    """Return values as a float array that holds neither NaN nor infinity.

    Args:
        name: What the values are called in an error.
        values: Anything that JAX makes an array of.
        dtype: The dtype of the result.  Default: that of the values if it is a floating one, else JAX's default.

    Returns:
        The array; inside compiled code it is not checked for NaN and infinity.

    Raises:
        InvalidFeatures: If the values are not numbers, or not finite.
    """
    try:
        array = jnp.asarray(values, dtype)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"{name} must be an array of numbers, got {shown(values)}.") from None
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(float)
    if is_known(array) and not np.all(np.isfinite(array)):
        raise InvalidFeatures(f"{name} must be finite, got NaN or infinity. Clean the data first.")
    return array


@cache
def largest_size(dtype: Any) -> float:
    """Return the largest number whose squares a dtype can sum by the million: 2.6e15 in float32, 1.6e123 in float64."""
    return float(jnp.finfo(dtype).max) ** 0.4


def check_magnitude(name: str, values: np.ndarray | Array) -> None:
    """Raise unless features are finite, and small enough to be squared and summed in their dtype.

    Args:
        name: What the features are called in the error.
        values: A float array of any shape; inside compiled code it is not checked.

    Raises:
        InvalidFeatures: If there is NaN, infinity, or a value beyond `largest_size`.
    """
    if not is_known(values) or values.size == 0:
        return
    most = largest_size(values.dtype)
    if np.vdot(values, values) <= most**2:  # the quickest look; it may overflow, silently, where nothing is wrong
        return
    size = np.abs(values).max()
    if size <= most:  # which NaN is not
        return
    if not np.isfinite(size):
        raise InvalidFeatures(f"{name} must be finite, got NaN or infinity. Clean the data first.")
    raise InvalidFeatures(
        f"{name} must be at most {most:.1e} in {values.dtype}, so that their squares can be summed, got {size:g}. "
        "Scale the features to sizes of about 1."
    )


def can_be_squared(x: Array, reward: Array) -> Array:
    """Return whether features and a reward can be squared and summed, for compiled code, which cannot raise errors."""
    size = jnp.maximum(jnp.max(jnp.abs(x)), jnp.abs(reward))
    return size <= largest_size(x.dtype)


def check_reward_size(rewards: Any, dtype: Any) -> None:
    """Raise `InvalidReward` unless rewards are small enough to be squared and summed in a dtype."""
    most = largest_size(dtype)
    if (type(rewards) is float and abs(rewards) <= most) or not is_known(rewards):
        return  # a single number, in a fraction of the time
    size = np.max(np.abs(np.asarray(rewards, float)), initial=0)
    if not size <= most:
        raise InvalidReward(
            f"reward must be at most {most:.1e} in {np.dtype(dtype)}, so that its square can be summed, got {size:g}. "
            "Rescale the rewards to sizes of about 1."
        )


def computed(state: Any) -> list[Any]:
    """Return the arrays of a state that updates compute, which may therefore become NaN or infinite.

    Arms, rows and rewards are checked when they are given.  A record that holds some of them has a method `computed`
    that returns its other arrays; of all other records every array counts.

    Args:
        state: A pytree of arrays and records.

    Returns:
        The arrays.
    """
    parts = jax.tree.leaves(state, is_leaf=lambda part: hasattr(part, "computed"))
    return [
        leaf for part in parts for leaf in (jax.tree.leaves(part.computed()) if hasattr(part, "computed") else [part])
    ]


def all_finite(state: Any) -> bool:
    """Return whether all float arrays of a state that updates compute are free of NaN and infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        for leaf in computed(state):
            if leaf.dtype.kind != "f":
                continue
            flat = np.asarray(leaf).reshape(-1)
            # A sum of squares is the quickest look; it may overflow where nothing is wrong.
            if not math.isfinite(flat.dot(flat)) and not np.isfinite(flat).all():
                return False
    return True
