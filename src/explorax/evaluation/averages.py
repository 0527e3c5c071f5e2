"""Bounds of an average of values that change from row to row, such as the value of a policy while it learns.

The bounds of `explorax.evaluation.anytime` are for one number V, the value of a policy that stays as it is.  What the
policy of a log earned on average, and how much more a target would have earned, are averages of V_1, …, V_n, since that
policy may have learned meanwhile.  Rows must then count alike: with scores φ_t ≥ −k whose mean given the past is V_t, a
number from 0 to 1, with ξ_t = φ_t / (1 + k), a forecast ξ̂_t ≤ 1 / (1 + k) that is known before row t, and a number
0 < λ < 1 that is the same in all rows,

    exp(λ Σ (ξ_t − V_t / (1 + k)) − ψ(λ) Σ (ξ_t − ξ̂_t)²),    ψ(λ) = −log(1 − λ) − λ,

is a supermartingale, for the reason given there.  With J numbers λ, each of which has a J-th of the risk α,

    mean V_t  ≥  mean φ_t − (1 + k) / n · min_λ [log(J / α) + ψ(λ) Σ (ξ_t − ξ̂_t)²] / λ

for all n at once with probability 1 − α, whatever the policies learn and however contexts change.  The λ are 1/2, 1/4,
…, 1/4096, one of which is near the best for up to some ten million rows.

Reference: Howard, Ramdas, McAuliffe and Sekhon, 2021, Time-uniform, nonparametric, nonasymptotic confidence sequences.
"""

import numpy as np

from explorax.evaluation.anytime import Moments
from explorax.evaluation.bounded import Bounded

RATES = 0.5 ** np.arange(1, 13)  # the λ


def average_interval(bounded: Bounded, level: float) -> tuple[float, float]:
    """Return an interval for the average of what scores are the scores of.

    Args:
        bounded: The scores.
        level: The probability with which the intervals for all numbers of rows hold at once.

    Returns:
        The bounds, in units of rewards.
    """
    alpha = (1 - level) / 2
    low, mirrored = (_lower(scores, float(bounded.caps.max()), alpha) for scores in (bounded.lower, bounded.upper))
    return float(bounded.in_rewards(low)), float(bounded.in_rewards(1 - mirrored))


def _lower(scores: np.ndarray, cap: float, alpha: float) -> float:
    """Return a lower bound, from 0 to 1, of the average mean of scores that are at least −cap."""
    reach = 1 + cap
    variation = float(np.sum(((scores - Moments.before_each_row(scores).mean) / reach) ** 2))
    slack = (np.log(len(RATES) / alpha) + (-np.log1p(-RATES) - RATES) * variation) / RATES
    return float(np.clip(scores.mean() - reach * slack.min() / len(scores), 0, 1))
