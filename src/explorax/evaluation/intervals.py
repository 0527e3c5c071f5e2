"""Intervals for the value of a target, and for the difference of two, by name.

    anytime      holds for all numbers of rows at once: look at it after every row, and stop at will
    bernstein    holds for a number of rows that was fixed in advance
    betting      the same, and narrower where rewards vary little
    asymptotic   holds for many rows

The first three need the range of rewards and one of the estimators ips and dr: their scores are bounded below.  The
interval is not around the estimate, but both come from the same scores.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from explorax.checks import is_number
from explorax.errors import InvalidArgument, NotFinite, UnknownName
from explorax.evaluation.anytime import Path, anytime_path
from explorax.evaluation.asymptotic import asymptotic
from explorax.evaluation.bounded import BOUNDED, Bounded
from explorax.evaluation.estimate import Estimate
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.fixed_n import bernstein, betting
from explorax.evaluation.scores import Scores

LEVEL = 0.95


class Interval(NamedTuple):
    """An interval in units of rewards.

    Bounds that have crossed are given in order.  That has a small probability unless the value drifts or propensities
    are wrong.

    Attributes:
        low: The lower bound.
        high: The upper bound.
        kind: The name of the method.
    """

    low: float
    high: float
    kind: str


def anytime(bounded: Bounded, level: float) -> tuple[float, float]:
    """Return the last of the running intersections of the anytime intervals.

    Args:
        bounded: The scores.
        level: The probability with which all intervals hold.

    Returns:
        The bounds, in units of rewards.
    """
    running = anytime_path(bounded, level).running()
    return float(running.low[-1]), float(running.high[-1])


class Kind(NamedTuple):
    """What is known of a kind of interval.

    Attributes:
        bounded: The function of scores that are bounded below and of a level, or None.
        normal: The function of an estimate and a level, or None.
        promise: What it promises, in a sentence.
    """

    bounded: Callable[[Bounded, float], tuple[float, float]] | None
    normal: Callable[[Estimate, float], tuple[float, float]] | None
    promise: str


INTERVALS: dict[str, Kind] = {
    "anytime": Kind(anytime, None, "Holds for all numbers of rows at once, whatever the policy of the log learns."),
    "bernstein": Kind(bernstein, None, "Holds for the number of rows if that was fixed before looking at the log."),
    "betting": Kind(betting, None, "Holds for the number of rows if that was fixed before looking at the log."),
    "asymptotic": Kind(None, asymptotic, "Holds for many rows, if no few of them carry most of the weight."),
}


def interval(kind: str, estimator: str, scores: Scores, level: float = LEVEL) -> Interval:
    """Return an interval for the value of a target.

    Args:
        kind: The name of the kind of interval, one of `INTERVALS`.
        estimator: The name of the estimator, one of `ESTIMATORS`.
        scores: What the log says of the target.
        level: The probability with which the interval holds.  Default: 0.95.

    Returns:
        The interval, within the range of rewards if that is known.

    Raises:
        UnknownName: If there is no such kind or estimator.
        InvalidArgument: If the kind does not fit the estimator, the range of rewards is needed and unknown, or `level`
            is not between 0 and 1.

    Example:
        >>> from explorax.evaluation.scores import scored
        >>> log = scored([1, 0, 1, 1], [0, 1, 0, 0], [0.5] * 4, [[0.9, 0.1]] * 4, reward_range=(0, 1))
        >>> found = interval("asymptotic", "snips", log)
        >>> print(f"{found.low:.2f} to {found.high:.2f}")
        0.87 to 1.00
    """
    method = _checked(kind, estimator, scores, level)
    if method.bounded:
        found = method.bounded(BOUNDED[estimator](scores), level)
    else:
        found = _normal(method, ESTIMATORS[estimator].estimate(scores), level, scores.reward_range)
    return _finite(found, kind)


def interval_of_difference(kind: str, estimator: str, scores: Scores, others: Scores, level: float = LEVEL) -> Interval:
    """Return an interval for the value of a target minus that of another one, from the same log.

    It is narrower than what two intervals would give: both estimates see the same rewards.

    Args:
        kind: The name of the kind of interval, one of `INTERVALS`.
        estimator: The name of the estimator, one of `ESTIMATORS`.
        scores: What the log says of the target.
        others: What the same rows say of the other target.
        level: The probability with which the interval holds.  Default: 0.95.

    Returns:
        The interval.

    Raises:
        UnknownName: If there is no such kind or estimator.
        InvalidArgument: If the scores are not those of the same rows, the kind does not fit the estimator, the range of
            rewards is needed and unknown, or `level` is not between 0 and 1.
    """
    method = _checked(kind, estimator, scores, level)
    if scores.reward_range != others.reward_range or not np.array_equal(scores.rewards, others.rewards):
        raise InvalidArgument(
            f"others must be scores of the same rows, got {others.size} rows that differ from the {scores.size} of "
            "scores. Score both targets on one log, with the same reward_range."
        )
    if method.bounded:
        found = method.bounded(BOUNDED[estimator](scores).minus(BOUNDED[estimator](others)), level)
    else:
        estimate = ESTIMATORS[estimator].estimate
        width = None if scores.reward_range is None else scores.reward_range[1] - scores.reward_range[0]
        limits = None if width is None else (-width, width)
        found = _normal(method, estimate(scores).minus(estimate(others)), level, limits)
    return _finite(found, kind)


def path(estimator: str, scores: Scores, level: float = LEVEL) -> Path:
    """Return the anytime intervals after every row.

    Args:
        estimator: The name of the estimator, "ips" or "dr".
        scores: What the log says of the target.
        level: The probability with which all intervals hold at once.  Default: 0.95.

    Returns:
        The bounds after every row; `running()` gives their running intersection.

    Raises:
        UnknownName: If there is no such estimator.
        InvalidArgument: If anytime intervals do not fit the estimator, the range of rewards is unknown, or `level` is
            not between 0 and 1.
    """
    _checked("anytime", estimator, scores, level)
    return anytime_path(BOUNDED[estimator](scores), level)


def _checked(kind: str, estimator: str, scores: Scores, level: float) -> Kind:
    """Return a kind of interval, or raise unless it fits the estimator."""
    if kind not in INTERVALS:
        raise UnknownName("interval", kind, INTERVALS)
    if estimator not in ESTIMATORS:
        raise UnknownName("estimator", estimator, ESTIMATORS)
    fitting = ESTIMATORS[estimator].intervals
    if kind not in fitting:
        raise InvalidArgument(
            f"interval must be one of {', '.join(fitting)} for the estimator {estimator}, got {kind!r}. The estimators "
            f"that it fits are {', '.join(name for name, each in ESTIMATORS.items() if kind in each.intervals)}."
        )
    if not (is_number(level) and 0 < level < 1):
        raise InvalidArgument(f"level must be a number between 0 and 1, got {level!r}. Give, for example, 0.95.")
    if not scores.size:
        raise InvalidArgument("scores must have at least one row, got 0. Give a log with rewards.")
    return INTERVALS[kind]


def _normal(method: Kind, estimate: Estimate, level: float, limits: tuple[float, float] | None) -> tuple[float, float]:
    """Return a normal interval, within the limits of what it estimates if they are known."""
    assert method.normal is not None  # a kind has one function or the other
    if len(estimate.influence) < 2:
        raise InvalidArgument("scores must have at least 2 rows for an asymptotic interval, got 1. Give more rows.")
    found = method.normal(estimate, level)
    return found if limits is None else (float(np.clip(found[0], *limits)), float(np.clip(found[1], *limits)))


def _finite(found: tuple[float, float], kind: str) -> Interval:
    """Return bounds as an interval, or raise if they are not finite."""
    if not np.isfinite(found).all():
        raise NotFinite(f"The {kind} interval is not finite, got {found}. Rescale the rewards to sizes of about 1.")
    low, high = sorted(map(float, found))
    return Interval(low, high, kind)
