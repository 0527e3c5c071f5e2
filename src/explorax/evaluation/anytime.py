"""Bounds that hold for all numbers of rows at once, so that one may look at them after every row and stop at will.

For scores φ_t ≥ −k_t with mean V given the past (`explorax.evaluation.bounded`), where k_t, λ_t and V̂_t are known
before row t, let

    ξ_t = φ_t / (1 + k_t),    ξ̂_t = V̂_t / (1 + k_t) with V̂_t ≤ 1,    so that ξ_t − ξ̂_t ≥ −1.

With ψ(λ) = −log(1 − λ) − λ and 0 ≤ λ < 1,  exp(λ y − y² ψ(λ)) ≤ 1 + λ y  for all y ≥ −1  (Fan, Grama and Liu, 2015).
With y = ξ_t − ξ̂_t and the mean μ_t = V / (1 + k_t) of ξ_t, and since 1 + x ≤ exp(x),

    E exp(λ_t (ξ_t − μ_t) − (ξ_t − ξ̂_t)² ψ(λ_t)) ≤ (1 + λ_t (μ_t − ξ̂_t)) exp(λ_t (ξ̂_t − μ_t)) ≤ 1,

so the products of these are a supermartingale, which exceeds 1/α ever with probability at most α (Ville).  Hence

    L_t = [Σ λ_i ξ_i − Σ (ξ_i − ξ̂_i)² ψ(λ_i) − log(1/α)] / Σ λ_i / (1 + k_i)  ≤  V    for all t at once

with probability 1 − α, whatever the policy that made the log has learned meanwhile.  If V_t, the value given the past
and the context, is not the same in all rows, then L_t bounds the mean of V_i with the weights λ_i / (1 + k_i).  These
do not depend on the context of row i: nothing changes if contexts come from one distribution.

V̂_t is the mean of φ before t, within [0, 1], and with the variance σ̂²_t of φ before t

    λ_t = (1 + k_t) min(√(2 log(1/α) / (σ̂²_t n_t)), MOST / (1 + k_t)),

so that a row counts for V as its variance asks, whatever k_t is.  With n_t = t log(1 + t) the bounds come closer to V
for ever, but slowly; with n_t = n they are as close as they can be at about n rows.  L_t is the largest of three such
bounds, of which the first may fail with probability α/2, and those made for `DESIGNS` rows with α/4 each: where there
are tens of thousands of rows, this makes intervals a quarter to a third narrower.

Reference: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, 2022, Anytime-valid off-policy inference for contextual
bandits.
"""

from typing import NamedTuple

import numpy as np

from explorax.evaluation.bounded import Bounded

MOST = 0.4  # of λ: as large a stake as pays while little is known of the variance
DESIGNS = (5000, 50_000)  # numbers of rows for which bounds are as narrow as can be
PRIOR = 5  # the variance that is assumed at first, and the number of rows that it counts for


class Path(NamedTuple):
    """Bounds after each row, in units of rewards.

    Attributes:
        low: (n,) L_t.
        high: (n,) U_t.
    """

    low: np.ndarray
    high: np.ndarray

    def running(self) -> "Path":
        """Return the intersections of all intervals up to each row, which hold at once with the same probability."""
        return Path(np.maximum.accumulate(self.low), np.minimum.accumulate(self.high))


def anytime_path(bounded: Bounded, level: float) -> Path:
    """Return intervals that all hold at once with a probability, one after each row.

    Args:
        bounded: The scores.
        level: The probability with which all intervals hold.

    Returns:
        The bounds after each row.
    """
    alpha, times, sides = (1 - level) / 2, np.arange(1, len(bounded.lower) + 1), []
    ways: list[tuple[float, np.ndarray | int]] = [(alpha / 2, times * np.log1p(times))]
    ways += [(alpha / 2 / len(DESIGNS), design) for design in DESIGNS]
    for scores in (bounded.lower, bounded.upper):
        moments, best = Moments.before_each_row(scores), np.zeros(len(scores))
        for share, rows in ways:
            best = np.maximum(best, lower_bounds(scores, bounded.caps, moments, rows, share))
        sides.append(np.minimum(best, 1))
    return Path(bounded.in_rewards(sides[0]), bounded.in_rewards(1 - sides[1]))


class Moments(NamedTuple):
    """What is known of scores before each row: their mean, within [0, 1], and their variance."""

    mean: np.ndarray
    variance: np.ndarray

    @classmethod
    def before_each_row(cls, scores: np.ndarray) -> "Moments":
        """Return the moments before each row, where at first the mean is 1/2 and the variance that of large weights.

        Args:
            scores: (n,) φ_t.

        Returns:
            The moments, of which those of row t depend on earlier rows alone.
        """
        times = np.arange(1, len(scores) + 1)
        mean = np.clip((0.5 + before(scores)) / times, 0, 1)
        return cls(mean, (PRIOR**2 + before((scores - mean) ** 2)) / (times - 1 + PRIOR))


def before(values: np.ndarray) -> np.ndarray:
    """Return the sums of values before each row."""
    return np.concatenate([[0.0], np.cumsum(values[:-1])]) if len(values) else values


def lower_bounds(
    scores: np.ndarray, caps: np.ndarray, moments: Moments, rows: np.ndarray | int, alpha: float
) -> np.ndarray:
    """Return the lower bounds L_t of the module's docstring.

    Args:
        scores: (n,) φ_t.
        caps: (n,) k_t.
        moments: V̂_t and σ̂²_t.
        rows: (n,) n_t, or the same for all rows.
        alpha: The probability with which the bounds may fail.

    Returns:
        (n,) L_t, which may lie below 0.
    """
    scale = 1 + caps
    rates = np.minimum(np.sqrt(2 * np.log(1 / alpha) / (moments.variance * rows)), MOST / scale)  # λ_t / (1 + k_t)
    strengths = rates * scale
    penalty = (-np.log1p(-strengths) - strengths) * ((scores - moments.mean) / scale) ** 2
    return (np.cumsum(rates * scores - penalty) - np.log(1 / alpha)) / np.cumsum(rates)
