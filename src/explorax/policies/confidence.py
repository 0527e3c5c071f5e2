"""The chance δ that a confidence interval may fail: given, or one in the number of rounds."""

from explorax.checks import is_number
from explorax.errors import InvalidArgument

USUAL = 0.05  # δ, where neither it nor the horizon is given


def check_confidence(horizon: int | None, delta: float | None) -> None:
    """Raise unless the number of rounds and the chance of failure, where they are given, can be ones."""
    if horizon is not None and not (is_number(horizon) and horizon >= 1):
        raise InvalidArgument(f"horizon={horizon!r} must be at least 1")
    if delta is not None and not (is_number(delta) and 0 < delta < 1):
        raise InvalidArgument(f"delta={delta!r} must lie between 0 and 1")


def failure(horizon: int | None, delta: float | None) -> float:
    """Return δ: the one given, else 1 / horizon, else a usual one."""
    check_confidence(horizon, delta)
    if delta is not None:
        return delta
    return USUAL if horizon is None else 1 / max(horizon, 2)
