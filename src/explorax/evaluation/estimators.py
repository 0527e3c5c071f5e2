"""Estimators of the value of a target policy from the log of another one.

With the scores of `explorax.evaluation.scores`: rewards r_t, weights w_t, the mean m_t of the model under the target,
and its prediction q̂_t for the arm that was chosen,

    on_policy      mean r_t                                           the value of the policy that made the log
    ips            mean w_t r_t
    snips          Σ w_t r_t / Σ w_t
    dm             mean m_t
    dr             mean Γ_t,   Γ_t = m_t + w_t (r_t − q̂_t)
    sndr           mean m_t + Σ w_t (r_t − q̂_t) / Σ w_t
    switch_dr      dr with the weights w_t 1{w_t ≤ τ}
    dr_shrinkage   dr with the weights λ w_t / (w_t² + λ)
    adaptive_dr    Σ h_t Γ_t / Σ h_t

A function of each takes the scores and returns an `Estimate`: the value with what each row adds to its error, to first
order.  For ratios that is the delta method on both sums.

**Adaptive weights.**  The weights of a log made by a bandit grow while it learns, and then Σ Γ_t is not normal: its
variance depends on what happened.  Rows that tell little count less with h_t near v_t^(-1/2), which keeps the variance
of h_t Γ_t the same, or near 1/v_t, where v_t is the spread.  What the weights are must be known before the row: a
weight that depended on the context x_t would favor contexts in which the target is like the log, and estimate the value
there.  So h_t is the mean of v_s^(-1/2), or of 1/v_s, over the latest quarter of the rows before t.

References: Dudík, Langford and Li, 2011 (dr); Swaminathan and Joachims, 2015 (snips); Wang, Agarwal and Dudík, 2017
(switch_dr); Su, Dimakopoulou, Krishnamurthy and Dudík, 2020 (dr_shrinkage); Hadad, Hirshberg, Zhan, Wager and Athey,
2021 (adaptive_dr).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.evaluation.estimate import Estimate
from explorax.evaluation.scores import Scores
from explorax.evaluation.tuning import DEFAULT, shrinkages, thresholds, tuned

LATEST = 4  # the latest quarter of the rows before a row says how large its weight is


def on_policy(scores: Scores) -> Estimate:
    """Return the mean reward, which is the value of the policy that made the log.

    Args:
        scores: What the log says of any target.

    Returns:
        The estimate.
    """
    return _mean(scores.rewards)


def ips(scores: Scores) -> Estimate:
    """Return the mean of weighted rewards: inverse propensity scoring.

    Args:
        scores: What the log says of the target.

    Returns:
        The estimate.
    """
    return _mean(scores.weights * scores.rewards)


def snips(scores: Scores) -> Estimate:
    """Return the weighted mean of rewards: self-normalized inverse propensity scoring.

    Args:
        scores: What the log says of the target.

    Returns:
        The estimate, which lies between the least and the largest reward.
    """
    return _ratio(scores.weights, scores.rewards)


def dm(scores: Scores) -> Estimate:
    """Return the mean of what the reward model says of the target: the direct method.

    Args:
        scores: What the log says of the target, with a model.

    Returns:
        The estimate; errors of the model are not part of its standard error.
    """
    return _mean(scores.modelled)


def dr(scores: Scores) -> Estimate:
    """Return what the model says of the target, corrected by weighted residuals: the doubly robust estimate.

    Args:
        scores: What the log says of the target, with a model.

    Returns:
        The estimate.
    """
    return _mean(_doubly_robust(scores, scores.weights))


def sndr(scores: Scores) -> Estimate:
    """Return the doubly robust estimate with weights that are divided by their mean.

    Args:
        scores: What the log says of the target, with a model.

    Returns:
        The estimate.
    """
    model, residual = _mean(scores.modelled), _ratio(scores.weights, scores.rewards - scores.predicted)
    return Estimate(model.value + residual.value, model.influence + residual.influence)


def switch_dr(scores: Scores, threshold: float | str = DEFAULT) -> Estimate:
    """Return the doubly robust estimate that leaves rows with large weights to the model.

    Args:
        scores: What the log says of the target, with a model.
        threshold: τ, the largest weight that counts: infinity gives `dr`, 0 gives `dm`.  Or how it is chosen from the
            data, "slope" or "mse".  Default: "slope".

    Returns:
        The estimate, with the threshold as its setting.  Its standard error is that of `dr` if the threshold is chosen.
    """

    def estimate(tau: float) -> Estimate:
        """Return the estimate with a threshold."""
        kept = np.where(scores.weights <= tau, scores.weights, 0)
        return _mean(_doubly_robust(scores, kept))._replace(setting=tau)

    return _with_setting("threshold", threshold, thresholds(scores.weights), estimate)


def dr_shrinkage(scores: Scores, shrinkage: float | str = DEFAULT) -> Estimate:
    """Return the doubly robust estimate with weights shrunk to λ w / (w² + λ).

    Args:
        scores: What the log says of the target, with a model.
        shrinkage: λ: infinity gives `dr`, 0 gives `dm`.  Or how it is chosen from the data, "slope" or "mse".
            Default: "slope".

    Returns:
        The estimate, with λ as its setting.  Its standard error is that of `dr` if λ is chosen.
    """

    def estimate(strength: float) -> Estimate:
        """Return the estimate with a λ."""
        weights = scores.weights
        if strength < np.inf:  # for large λ the largest numbers are those of w²
            weights = strength * weights / (weights**2 + strength) if strength else np.zeros(scores.size)
        return _mean(_doubly_robust(scores, weights))._replace(setting=strength)

    return _with_setting("shrinkage", shrinkage, shrinkages(scores.weights), estimate)


def adaptive_dr(scores: Scores, power: float = 0.5) -> Estimate:
    """Return the doubly robust estimate in which rows count less where the log tells less of the target.

    Args:
        scores: What the log says of the target, with a model and with all propensities, in the order of the log.
        power: 0.5 for weights near v_t^(-1/2), 1 for weights near 1/v_t.  Default: 0.5.

    Returns:
        The estimate.

    Raises:
        InvalidArgument: If the spread is unknown, or infinite in all rows.
    """
    if scores.spread is None:
        raise InvalidArgument(
            "all_propensities must be known for adaptive_dr, got None. Log the probabilities of all arms, or use dr."
        )
    if not (is_number(power) and 0 <= power <= 1):
        raise InvalidArgument(f"power must be a number from 0 to 1, got {power!r}. Give 0.5 or 1.")
    rows = known_before(scores.spread**-power)
    if not rows.sum() > 0:
        raise InvalidArgument(
            "all_propensities must be above 0 for the arms that the target wants in at least one row, got 0 in every "
            "row. Use dr, or log decisions with explore_floor above 0."
        )
    return _ratio(rows, _doubly_robust(scores, scores.weights))


def known_before(values: np.ndarray) -> np.ndarray:
    """Return for each row the mean over the latest quarter of the rows before it; the first row keeps its own value.

    Args:
        values: (n,) A value of each row.

    Returns:
        (n,) The means.
    """
    before = np.arange(len(values))
    window = -(-before // LATEST)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means = (sums[before] - sums[before - window]) / np.maximum(window, 1)
    return np.where(before == 0, values, np.maximum(means, 0))  # differences of sums may fall below 0 by rounding


def _doubly_robust(scores: Scores, weights: np.ndarray) -> np.ndarray:
    """Return Γ_t with given weights."""
    return scores.modelled + weights * (scores.rewards - scores.predicted)


def _mean(terms: np.ndarray) -> Estimate:
    """Return a plain mean as an estimate."""
    if not len(terms):
        raise InvalidArgument("scores must have at least one row, got 0. Give a log with rewards.")
    value = float(np.mean(terms))
    return Estimate(value, (terms - value) / len(terms))


def _ratio(weights: np.ndarray, terms: np.ndarray) -> Estimate:
    """Return Σ w_t z_t / Σ w_t as an estimate."""
    total = float(np.sum(weights))
    if not total > 0:
        raise InvalidArgument(
            f"weights must not all be 0, got {len(weights)} of them without one above 0. The target never chooses as "
            "the log does: give a log that covers it."
        )
    value = float(np.sum(weights * terms)) / total
    return Estimate(value, weights * (terms - value) / total)


def _with_setting(name: str, setting: Any, candidates: list[float], estimate: Callable[[float], Estimate]) -> Estimate:
    """Return the estimate with a given setting, or with one chosen from the data."""
    if isinstance(setting, str):
        return tuned(candidates, estimate, setting)
    if not (setting == np.inf or (is_number(setting) and setting >= 0)):
        raise InvalidArgument(
            f"{name} must be a number of at least 0, infinity, 'slope' or 'mse', got {setting!r}. Leave it out to "
            "have it chosen from the data."
        )
    return estimate(float(setting))


class Estimator(NamedTuple):
    """What is known of an estimator.

    Attributes:
        estimate: The function of the scores; settings that it has are chosen from the data.
        title: What it is called in a sentence.
        needs: What the log or the caller must give beyond propensities of the chosen arms: "model", "spread".
        martingale: Whether it is a mean of terms whose mean given the past is the value, so that it holds for logs of
            policies that learn.
        unbiased: Whether its mean is the value, for every number of rows.
        intervals: The kinds of intervals that fit it.
        assumption: What it takes for granted, in a sentence.
    """

    estimate: Callable[[Scores], Estimate]
    title: str
    needs: tuple[str, ...]
    martingale: bool
    unbiased: bool
    intervals: tuple[str, ...]
    assumption: str


ALL = ("anytime", "bernstein", "betting", "asymptotic")
ESTIMATORS: dict[str, Estimator] = {
    "on_policy": Estimator(
        on_policy, "on-policy mean", (), True, True, ("asymptotic",),
        "The value is that of the policy that made the log, as it was on average while it made it.",
    ),
    "ips": Estimator(
        ips, "inverse propensity scoring", (), True, True, ALL,
        "Propensities are right, and every arm that the target wants had a chance.",
    ),
    "snips": Estimator(
        snips, "self-normalized inverse propensity scoring", (), False, False, ("asymptotic",),
        "Propensities are right up to a factor, every arm that the target wants had a chance, and there are many rows.",
    ),
    "dm": Estimator(
        dm, "direct method", ("model",), False, False, ("asymptotic",),
        "The reward model is right; its interval does not know of the model's errors.",
    ),
    "dr": Estimator(
        dr, "doubly robust", ("model",), True, True, ALL,
        "Propensities are right, every arm that the target wants had a chance, and the model has not seen the row.",
    ),
    "sndr": Estimator(
        sndr, "self-normalized doubly robust", ("model",), False, False, ("asymptotic",),
        "Propensities are right up to a factor, or the model is right, and there are many rows.",
    ),
    "switch_dr": Estimator(
        switch_dr, "doubly robust with a switch to the model", ("model",), False, False, ("asymptotic",),
        "Propensities are right where weights are small, and the model is right where they are large.",
    ),
    "dr_shrinkage": Estimator(
        dr_shrinkage, "doubly robust with shrunk weights", ("model",), False, False, ("asymptotic",),
        "Propensities are right, and the model is nearly right where weights are large.",
    ),
    "adaptive_dr": Estimator(
        adaptive_dr, "adaptively weighted doubly robust", ("model", "spread"), True, False, ("asymptotic",),
        "Propensities are right, every arm that the target wants had a chance, and contexts have one distribution.",
    ),
}  # fmt: skip
