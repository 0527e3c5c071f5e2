"""Bounds that hold for a number n of rows that is fixed before looking at the log: narrower than those for all numbers.

Scores φ_t ≥ −k_t with mean V given the past (`explorax.evaluation.bounded`) have no upper limit, so that of the two
methods of Waudby-Smith and Ramdas only the sides that bound V below apply; upper bounds are lower bounds of 1 − V from
the mirrored scores, and each side may fail with probability α = (1 − level) / 2.  Both methods are proven for every n,
for independent rows as for logs of policies that learn, if V is the same in all rows.

**Empirical Bernstein** is the bound L_n of `explorax.evaluation.anytime` with n_t = n.

**Betting.**  If V = m, then a gambler who stakes β_t ≤ 1 / (m + k_t), known before row t, on φ_t > m has the capital

    K_t(m) = Π_{i ≤ t} (1 + β_i (φ_i − m)) ≥ 0,

a martingale that starts at 1, and exceeds 1/α ever with probability at most α.  The stake is

    β_t = min(√(2 log(1/α) / (σ̂²_t n)), STAKE / (m + k_t)),

with which every factor falls in m.  So all m with max_t K_t(m) ≥ 1/α, which are refused, are those below one number,
and that is the lower bound; it is found by bisection, from below.

Reference: Waudby-Smith and Ramdas, 2023, Estimating means of bounded random variables by betting.
"""

import numpy as np

from explorax.evaluation.anytime import Moments, lower_bounds
from explorax.evaluation.bounded import Bounded

STAKE = 0.75  # of what a gambler may stake without ever losing all
HALVINGS = 20  # the bound is found to within a millionth of the range of rewards


def bernstein(bounded: Bounded, level: float) -> tuple[float, float]:
    """Return the empirical Bernstein interval.

    Args:
        bounded: The scores.
        level: The probability with which the interval holds.

    Returns:
        The bounds, in units of rewards.
    """
    alpha = (1 - level) / 2
    rows = len(bounded.lower)
    low, mirrored = (
        float(np.clip(lower_bounds(scores, bounded.caps, Moments.before_each_row(scores), rows, alpha)[-1], 0, 1))
        for scores in (bounded.lower, bounded.upper)
    )
    return bounded.in_rewards(low), bounded.in_rewards(1 - mirrored)


def betting(bounded: Bounded, level: float) -> tuple[float, float]:
    """Return the betting interval.

    Args:
        bounded: The scores.
        level: The probability with which the interval holds.

    Returns:
        The bounds, in units of rewards.
    """
    alpha = (1 - level) / 2
    low, mirrored = (_betting_bound(scores, bounded.caps, alpha) for scores in (bounded.lower, bounded.upper))
    return bounded.in_rewards(low), bounded.in_rewards(1 - mirrored)


def _betting_bound(scores: np.ndarray, caps: np.ndarray, alpha: float) -> float:
    """Return the lower bound of a number from 0 to 1 by betting."""
    plain = np.sqrt(2 * np.log(1 / alpha) / (len(scores) * Moments.before_each_row(scores).variance))

    def refused(number: float) -> bool:
        """Return whether a gambler becomes rich if this is the number."""
        with np.errstate(divide="ignore"):
            stakes = np.minimum(plain, STAKE / (number + caps))
        return bool(np.cumsum(np.log1p(stakes * (scores - number))).max() >= np.log(1 / alpha))

    if not refused(0.0):
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if refused(middle) else (low, middle)
    return low
