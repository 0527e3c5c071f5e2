"""The probability δ that a confidence interval may fail: the given one, or 1 in the number of rounds."""

from explorax.checks import is_number
from explorax.errors import InvalidArgument

USUAL = 0.05  # δ if neither `delta` nor `horizon` is given


def check_confidence(horizon: int | None, delta: float | None) -> None:
    """Check the number of rounds and the probability of failure, if they are given.

    Args:
        horizon: The number n of rounds; None if not given.
        delta: The probability δ; None if not given.

    Raises:
        InvalidArgument: If `horizon` is below 1, or `delta` is not between 0 and 1.
    """
    if horizon is not None and not (is_number(horizon) and horizon >= 1):
        raise InvalidArgument(f"horizon must be a number of rounds of at least 1, got {horizon!r}.")
    if delta is not None and not (is_number(delta) and 0 < delta < 1):
        raise InvalidArgument(f"delta must be a probability between 0 and 1, got {delta!r}. Give 0.05, for example.")


def failure(horizon: int | None, delta: float | None) -> float:
    """Return δ: `delta` if it is given, else 1 / horizon if that is given, else 0.05."""
    check_confidence(horizon, delta)
    if delta is not None:
        return delta
    return USUAL if horizon is None else 1 / max(horizon, 2)
