"""The values of all targets by several estimators, each compared with the value of the policy that made the log."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorax.checks import is_number
from explorax.errors import InvalidArgument, UnknownName, check_names, shown
from explorax.evaluation.averages import average_interval
from explorax.evaluation.bounded import BOUNDED
from explorax.evaluation.estimators import ESTIMATORS, on_policy
from explorax.evaluation.intervals import INTERVALS, Interval, interval, interval_of_difference
from explorax.evaluation.preparing import UNWEIGHED, Prepared
from explorax.evaluation.scores import Scores
from explorax.evaluation.values import LOGGING, PolicyValue

NORMALIZED = ("snips", "sndr")  # estimators that divide by the sum of the weights


def checked_estimators(estimator: str | Sequence[str], kind: str | None, reward_model: object) -> tuple[str, ...]:
    """Return the names of estimators; raise unless they are known and suit the kind of interval and the model."""
    if not isinstance(estimator, Sequence):
        raise InvalidArgument(f"estimator must be a name or several, got {shown(estimator)}. Give, for example, 'dr'.")
    names = (estimator,) if isinstance(estimator, str) else tuple(estimator)
    check_names("estimator", names, [name for name in ESTIMATORS if name != "on_policy"])
    modelled = [name for name in names if "model" in ESTIMATORS[name].needs]
    if reward_model is None and modelled:
        raise InvalidArgument(
            f"reward_model must be given for the estimator {modelled[0]}, got None. Leave it out for a GLM, or use "
            "estimator=('ips', 'snips')."
        )
    if not names or len(set(names)) < len(names):
        raise InvalidArgument(f"estimator must name different estimators, got {shown(estimator)}. Name each once.")
    if kind is not None and kind not in INTERVALS:
        raise UnknownName("interval", kind, INTERVALS)
    unfit = [name for name in names if kind is not None and kind not in ESTIMATORS[name].intervals]
    if unfit:
        fit = [name for name, each in ESTIMATORS.items() if kind in each.intervals]
        raise InvalidArgument(
            f"interval must fit the estimators, got {kind!r} for {unfit[0]}. It fits {', '.join(fit)}: name one of "
            "these as the estimator, or leave out the interval."
        )
    return names


def checked_level(level: float) -> float:
    """Return the level; raise unless it is between 0 and 1."""
    if not (is_number(level) and 0 < level < 1):
        raise InvalidArgument(f"level must be a number between 0 and 1, got {shown(level)}. Give, for example, 0.95.")
    return float(level)


def kind_for(kind: str | None, estimator: str, found: Prepared) -> str:
    """Return the kind of interval as asked for, or the strongest that fits the estimator and what is known."""
    flaw = found.flaw.get(estimator)
    if kind is not None and kind != "asymptotic" and flaw is not None:
        raise InvalidArgument(flaw.format(kind=kind))
    if kind is not None:
        return kind
    bounded = found.logging.reward_range is not None and "anytime" in ESTIMATORS[estimator].intervals
    return "anytime" if bounded and flaw is None else "asymptotic"


def kind_for_averages(kind: str | None, scores: Scores) -> str:
    """Return the kind of interval for mean rewards; bounds of averages hold for all numbers of rows at once."""
    bounded = scores.reward_range is not None and kind != "asymptotic"
    if kind not in (None, "asymptotic") and not bounded:
        raise InvalidArgument(
            f"reward_range must be known for {kind} intervals, got None. Give the least and the largest reward that "
            "can ever be, or ask for asymptotic intervals."
        )
    return "anytime" if bounded else "asymptotic"


def all_values(found: Prepared, estimators: Sequence[str], kind: str | None, level: float) -> tuple[PolicyValue, ...]:
    """Return the value of the policy that made the log, and then those of all targets by each estimator.

    Args:
        found: What the log says of the targets.
        estimators: The names of the estimators.
        kind: The kind of interval, or None for the strongest that fits.
        level: The probability with which each interval holds.

    Returns:
        The values.

    Raises:
        InvalidArgument: If an estimator or interval needs what is not known.
    """
    rows = [_average(LOGGING, "on_policy", found.logging, kind, level)]
    for target, scores in found.targets.items():
        defined = [name for name in estimators if name not in NORMALIZED or scores.weights.any()] or estimators
        rows += [_compared(target, name, found, kind_for(kind, name, found), level) for name in defined]
    for target, scores in found.replayed.items():
        row = _average(target, "replay", scores, kind, level)
        own, other = (_of_average(row.interval, each, (1 + level) / 2) for each in (scores, found.logging))
        rows.append(_with_gain(row, found.logging, apart(own, other)))
    return tuple(rows)


def _average(target: str, estimator: str, scores: Scores, kind: str | None, level: float) -> PolicyValue:
    """Return the mean reward of a policy that may have learned, from its own rows."""
    chosen, estimate = kind_for_averages(kind, scores), on_policy(scores)
    bounds = _of_average(chosen, scores, level)
    return PolicyValue(
        target, estimator, estimate.value, estimate.stderr, bounds.low, bounds.high, chosen, level, scores.size
    )


def _of_average(kind: str, scores: Scores, level: float) -> Interval:
    """Return an interval of a mean reward."""
    if kind == "asymptotic":
        return interval(kind, "on_policy", scores, level)
    return Interval(*average_interval(BOUNDED["dr"](scores), level), kind)


def _compared(target: str, estimator: str, found: Prepared, chosen: str, level: float) -> PolicyValue:
    """Return the value of a target by an estimator, with its difference from the policy that made the log."""
    scores, logging = found.targets[target], found.logging
    estimate, bounds = ESTIMATORS[estimator].estimate(scores), interval(chosen, estimator, scores, level)
    if chosen == "asymptotic":
        gain = interval_of_difference(chosen, estimator, scores, logging, level)
    else:  # the policy of the log may have learned, so that the difference is an average
        differences = BOUNDED[estimator](scores).minus(BOUNDED["dr"](logging))
        gain = Interval(*average_interval(differences, level), chosen)
    effective = None if estimator in UNWEIGHED else effective_rows(scores.weights)
    row = PolicyValue(
        target,
        estimator,
        estimate.value,
        estimate.stderr,
        bounds.low,
        bounds.high,
        chosen,
        level,
        scores.size,
        effective,
    )
    return _with_gain(row, logging, gain)


def difference(found: Prepared, one: str, other: str, estimator: str, kind: str, level: float) -> Interval:
    """Return an interval of the value of one target minus that of another.

    Args:
        found: What the log says of the targets.
        one: The name of a target.
        other: The name of the target whose value is subtracted.
        estimator: The name of the estimator of targets that were weighed.
        kind: The kind of interval.
        level: The probability with which it holds.

    Returns:
        The interval.
    """
    if one in found.targets and other in found.targets:
        return interval_of_difference(kind, estimator, found.targets[one], found.targets[other], level)
    half, bounds = (1 + level) / 2, []
    for name in (one, other):
        if name in found.replayed:
            bounds.append(_of_average(kind, found.replayed[name], half))
        else:
            bounds.append(interval(kind, estimator, found.targets[name], half))
    return apart(*bounds)


def apart(one: Interval, other: Interval) -> Interval:
    """Return an interval of a difference from two intervals, each of which has half of the risk to fail."""
    return Interval(one.low - other.high, one.high - other.low, one.kind)


def _with_gain(row: PolicyValue, logging: Scores, gain: Interval) -> PolicyValue:
    """Return a value with its difference from the policy that made the log."""
    return replace(row, gain=row.value - on_policy(logging).value, gain_low=gain.low, gain_high=gain.high)


def effective_rows(weights: np.ndarray) -> float:
    """Return the effective sample size (Σ w)² / Σ w², 0 if all weights are 0."""
    squares = float(np.sum(weights**2))
    return float(np.sum(weights)) ** 2 / squares if squares else 0.0
