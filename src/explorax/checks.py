"""Looking at arguments before using them.

Inside a caller's `jit`, `vmap` or `scan` values are not known yet: what needs one is checked only where there is one.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.errors import InvalidArgument, InvalidFeatures


def is_known(*values: object) -> bool:
    """Whether all values can be looked at, i.e. none is being traced by JAX."""
    return not any(isinstance(value, jax.core.Tracer) for value in values)


def is_number(value: object) -> bool:
    """Whether a setting is a finite real number."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


def check_positive(name: str, value: float, remedy: str = "") -> None:
    """Raise unless a setting is a finite number above zero."""
    if not (is_number(value) and value > 0):
        raise InvalidArgument(f"{name}={value!r} must be a finite number above 0{remedy}")


def check_whole(name: str, value: object, least: int, most: int | None = None) -> None:
    """Raise unless the value is a whole number of at least that, and of at most that if there is a limit."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidArgument(f"{name}={value!r} must be a whole number of at least {least}")
    if most is not None and value > most:
        raise InvalidArgument(f"{name}={value!r} must be a whole number of at most {most}")


def check_count(name: str, value: Any, meaning: str, below: int | None = None) -> None:
    """Raise unless `value` is a whole number from 0 up to, but not including, `below`."""
    dtype = getattr(value, "dtype", np.dtype(type(value)) if isinstance(value, int) else None)
    if dtype is None or not jnp.issubdtype(dtype, jnp.integer) or np.ndim(value) != 0:
        raise InvalidArgument(f"{name}={value!r} must be a whole number: {meaning}")
    if is_known(value) and not 0 <= int(value) < (below or np.inf):
        limit = "" if below is None else f" and below {below}"
        raise InvalidArgument(f"{name}={value} must be at least 0{limit}: {meaning}")


def as_floats(name: str, values: ArrayLike, dtype: Any = None) -> Array:
    """A float array without NaN or infinity, in its own dtype unless another is given."""
    try:
        array = jnp.asarray(values, dtype)
    except (TypeError, ValueError):
        raise InvalidFeatures(f"{name} cannot be read as an array of numbers: {values!r}") from None
    if not jnp.issubdtype(array.dtype, jnp.floating):
        array = array.astype(float)
    if is_known(array) and not np.all(np.isfinite(array)):
        raise InvalidFeatures(f"{name} contain NaN or infinity: clean the data first")
    return array
