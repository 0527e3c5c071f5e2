"""How much bias to accept for less variance: thresholds and strengths of shrinkage chosen from the data.

The candidates come in an order in which the bias grows and the variance falls; the first has no bias.  What is stated
with the chosen one is the standard error of the first: its own knows neither of its bias nor of the choice.

    "slope"    Lepski's method: the last i for which the intervals I_1, …, I_i have a common point, where I_j is the
               estimate θ_j of candidate j plus and minus its standard error.
    "mse"      the least estimated mean squared error, stderr(θ_i)² + max(0, (θ_i − θ_1)² − stderr(θ_i − θ_1)²),
               where the last term estimates the squared bias, since θ_1 has none.

Reference: Su, Srinath and Krishnamurthy, 2020, Adaptive estimator selection for off-policy evaluation.
"""

from collections.abc import Callable, Sequence

import numpy as np

from explorax.errors import UnknownName
from explorax.evaluation.estimate import Estimate

DEFAULT = "slope"
LEVELS = (0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)  # quantiles of the weights that are candidates


def slope(values: np.ndarray, stderrs: np.ndarray, gaps: np.ndarray) -> int:
    """Return the candidate that Lepski's method chooses.

    Args:
        values: (c,) The estimates of the candidates.
        stderrs: (c,) Their standard errors.
        gaps: (c,) The standard errors of their differences from the first one, which this method does not need.

    Returns:
        The place of the candidate.
    """
    widths = np.minimum.accumulate(stderrs)  # which fall, if only the data were without noise
    meet = np.maximum.accumulate(values - widths) <= np.minimum.accumulate(values + widths)
    return len(values) - 1 if meet.all() else int(np.argmin(meet)) - 1


def least_mse(values: np.ndarray, stderrs: np.ndarray, gaps: np.ndarray) -> int:
    """Return the candidate with the least estimated mean squared error.

    Args:
        values: (c,) The estimates of the candidates.
        stderrs: (c,) Their standard errors.
        gaps: (c,) The standard errors of their differences from the first one.

    Returns:
        The place of the candidate.
    """
    return int(np.argmin(stderrs**2 + np.maximum(0, (values - values[0]) ** 2 - gaps**2)))


TUNINGS: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], int]] = {"slope": slope, "mse": least_mse}


def thresholds(weights: np.ndarray) -> list[float]:
    """Return thresholds of weights to choose from, from infinity down to 0, which drops all weights.

    Args:
        weights: (n,) The weights of the log.

    Returns:
        Infinity, quantiles of the weights above 0, and 0.
    """
    positive = weights[weights > 0]
    inner = np.quantile(positive, LEVELS[::-1]) if len(positive) else []
    return [np.inf, *map(float, dict.fromkeys(inner)), 0.0]


def shrinkages(weights: np.ndarray) -> list[float]:
    """Return strengths λ of shrinkage to choose from, from infinity, which changes no weight, down to 0.

    Args:
        weights: (n,) The weights of the log.

    Returns:
        Infinity, 100 times and 10 times the square of the largest weight, squares of quantiles, and 0.
    """
    largest = float(weights.max(initial=0)) ** 2
    return [np.inf, 100 * largest, 10 * largest, largest, *(each**2 for each in thresholds(weights)[1:])]


def tuned(candidates: Sequence[float], estimate: Callable[[float], Estimate], by: str = DEFAULT) -> Estimate:
    """Return the estimate of the candidate that the data choose.

    Args:
        candidates: Settings, in the order of growing bias.
        estimate: A function that returns the estimate of a setting.
        by: "slope" or "mse".  Default: "slope".

    Returns:
        The estimate, with the standard error of the first candidate.

    Raises:
        UnknownName: If there is no such way of tuning.
    """
    if by not in TUNINGS:
        raise UnknownName("tuning", by, TUNINGS)
    first = estimate(candidates[0])
    numbers = []
    for candidate in candidates:
        found = estimate(candidate)
        numbers.append((found.value, found.stderr, found.minus(first).stderr))
    return estimate(candidates[TUNINGS[by](*np.array(numbers).T)])._replace(influence=first.influence)
