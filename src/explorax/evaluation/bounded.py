"""Scores that are bounded below, from which bounds follow that hold for every number of rows.

A score φ_t ≥ −k_t whose mean given the past is V, a number from 0 to 1, gives lower bounds of V, however large it may
be; the score φ'_t of the mirrored problem, whose mean is 1 − V, gives upper bounds.  In a log of rewards scaled to
[0, 1],

    ips    φ_t = w_t r_t,    φ'_t = w_t (1 − r_t),    k_t = 0
    dr     those of `explorax.evaluation.scores`

V must be the same in all rows, as the value of a policy that does not learn is.  The mean reward of a log has no such
scores: while its policy learns, its value grows, and bounds that hold for a number that stays the same do not hold.

**Differences.**  φ_t of target A plus φ'_t of target B has the mean V_A + 1 − V_B.  Half of it is a score of the number
(V_A − V_B + 1) / 2 from 0 to 1, and is at least −(k_A + k_B) / 2.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument
from explorax.evaluation.scores import Scores


class Bounded(NamedTuple):
    """Scores of a number from 0 to 1, and what the number stands for.

    Attributes:
        lower: (n,) φ_t.
        caps: (n,) k_t.
        upper: (n,) φ'_t.
        low: What 0 stands for, in units of rewards.
        high: What 1 stands for.
    """

    lower: np.ndarray
    caps: np.ndarray
    upper: np.ndarray
    low: float
    high: float

    def in_rewards(self, number: Any) -> Any:
        """Return numbers from 0 to 1 in units of rewards."""
        return self.low + (self.high - self.low) * number

    def minus(self, other: "Bounded") -> "Bounded":
        """Return the scores of a difference of two values, from scores on the same rows.

        Args:
            other: The scores of the value that is subtracted.

        Returns:
            The scores of the difference.
        """
        caps, width = (self.caps + other.caps) / 2, self.high - other.low
        return Bounded((self.lower + other.upper) / 2, caps, (self.upper + other.lower) / 2, -width, width)


def of_weighted_rewards(scores: Scores) -> Bounded:
    """Return the scores of the target's value without a model."""
    low, high = _range(scores)
    payoffs = (scores.rewards - low) / (high - low)
    return Bounded(scores.weights * payoffs, np.zeros(scores.size), scores.weights * (1 - payoffs), low, high)


def of_corrected_model(scores: Scores) -> Bounded:
    """Return the scores of the target's value with a model as a control variate."""
    low, high = _range(scores)
    assert scores.lower is not None  # all three are there where the range is known
    assert scores.caps is not None
    assert scores.upper is not None
    return Bounded(scores.lower, scores.caps, scores.upper, low, high)


BOUNDED: dict[str, Callable[[Scores], Bounded]] = {
    "ips": of_weighted_rewards,
    "dr": of_corrected_model,
}


def _range(scores: Scores) -> tuple[float, float]:
    """Return the range of rewards, or raise if it is unknown."""
    if scores.reward_range is None:
        raise InvalidArgument(
            "reward_range must be known for intervals that hold for every number of rows, got None. Give the least "
            "and the largest reward that can ever be, or ask for an asymptotic interval."
        )
    return scores.reward_range
