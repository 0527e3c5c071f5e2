"""What other policies would have earned, from the log of the policy that decided."""

import os
from collections.abc import Sequence
from typing import Any

from explorax.evaluation.answer import answer
from explorax.evaluation.comparing import all_values, checked_estimators, checked_level
from explorax.evaluation.diagnostics import diagnose
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import INTERVALS
from explorax.evaluation.preparing import Prepared, prepared
from explorax.evaluation.result import Evaluation
from explorax.evaluation.values import LOGGING
from explorax.log.data import LoggedData

DEFAULT = ("dr", "snips", "dm")


def evaluate(
    log: LoggedData | str | os.PathLike[str],
    policies: Any,
    *,
    estimator: str | Sequence[str] = DEFAULT,
    interval: str | None = None,
    level: float = 0.95,
    reward_model: Any = "glm",
    fitted: str = "past",
    reward_range: tuple[float, float] | None = None,
    propensities: Any = None,
    least_propensity: float | None = None,
    learning: str = "replay",
    seed: int = 0,
) -> Evaluation:
    """Estimate what other policies would have earned, from the log of the policy that decided.

    A policy to evaluate is one of these, or there are several of them in a mapping of names:

        an array (n, K)                      the probabilities of the arms, in the order of `log.names`
        a function                           of the features (m, K, d) and the arms on offer (m, K) of some rows, which
                                             returns their probabilities (m, K)
        an `explorax.Agent`                  as it is now: its state, its floor, its arms
        `explorax.frozen(policy, state)`     a policy that stays in a state
        a `Policy`, as `explorax.glm_tsl()`  a policy that starts without a past and learns; see `learning`

    Args:
        log: The log, or the path of a log file.
        policies: The policy to evaluate, or a mapping of names to several.
        estimator: The name of an estimator, or several: "dr", "ips", "snips", "dm", "sndr", "switch_dr",
            "dr_shrinkage", "adaptive_dr".  The first decides what the answer says.  Default: "dr", "snips" and "dm".
        interval: The kind of interval: "anytime", "bernstein", "betting" or "asymptotic".  Default: "anytime" where the
            estimator, a known range of rewards and logged propensities allow it, else "asymptotic".
        level: The probability with which each interval holds.  Default: 0.95.
        reward_model: "glm", the name of a reward family, a scikit-learn regressor or classifier, an array (n, K) of
            predictions, or None for estimators that need no model.  Default: "glm".
        fitted: "past" to predict each row by a model of earlier rows, which is right for every log; "cross" to predict
            each of five parts by a model of the others, for logs of policies that did not learn and asymptotic
            intervals.  Default: "past".
        reward_range: The least and the largest reward that can ever be, which all intervals but "asymptotic" need.
            Default: (0, 1) if all rewards are 0 or 1, else unknown.
        propensities: For a log without propensities: "estimate", or a scikit-learn classifier that estimates them.
            Default: those of the log.
        least_propensity: A number that no propensity is below, for example explore_floor / K.  Default: unknown.
        learning: What becomes of a `Policy` that learns.  "replay": it is played over the log and learns from the rows
            in which it agrees with the log, thinned so that these have the law of the policy playing by itself; its
            value is that of learning from scratch.  "trained": it learns from the first half of the log and is then
            frozen; all policies are evaluated on the second half.  Default: "replay".
        seed: The seed of all random numbers.  Default: 0.

    Returns:
        The values with intervals, the first of them that of the policy that made the log, with diagnostics, what they
        assume, and an answer in one or two sentences.

    Raises:
        InvalidArgument: If an argument cannot be used, or two of them contradict each other.
        InvalidShape: If probabilities or predictions do not have a row for each decision and a column for each arm.
        InvalidReward: If a reward lies outside of `reward_range`, or a policy or model cannot have produced it.
        UnknownName: If there is no estimator, interval or model of that name.
        HistoryFull: If a policy has no room for the rewards that it should learn.

    Example:
        >>> import numpy as np, explorax
        >>> rng = np.random.default_rng(0)
        >>> arms = rng.integers(0, 2, 1000)
        >>> rewards = (rng.random(1000) < np.array([0.2, 0.6])[arms]).astype(float)
        >>> log = explorax.LoggedData(arms, rewards, None, ["old", "new"], np.full(1000, 0.5))
        >>> found = explorax.evaluate(log, {"new": np.tile([0.0, 1.0], (1000, 1))}, estimator="dr")
        >>> found["new"].verdict
        'better'
    """
    names, level = checked_estimators(estimator, interval, reward_model), checked_level(level)
    found = prepared(
        log,
        policies,
        estimators=names,
        reward_model=reward_model,
        fitted=fitted,
        reward_range=reward_range,
        propensities=propensities,
        least_propensity=least_propensity,
        learning=learning,
        seed=seed,
    )
    return concluded(found, names, interval, level)


def concluded(found: Prepared, names: Sequence[str], kind: str | None, level: float) -> Evaluation:
    """Return the evaluation that follows from what a log says of targets.

    Args:
        found: What the log says of them.
        names: The names of the estimators.
        kind: The kind of interval, or None for the strongest that fits.
        level: The probability with which each interval holds.

    Returns:
        The evaluation.
    """
    rows, random = all_values(found, names, kind, level), found.propensities.random
    weighed = found.targets if found.log.propensities is not None else {}
    diagnoses = {name: diagnose(found.log, scores) for name, scores in weighed.items()}
    used = [f"{LOGGING}: {ESTIMATORS['on_policy'].assumption}"]
    used += [f"{name}: {ESTIMATORS[name].assumption}" for name in names if found.targets]
    promises = [f"{each} interval: {INTERVALS[each].promise}" for each in dict.fromkeys(row.interval for row in rows)]
    told = answer(rows, diagnoses, random, bool(found.propensities.assumption))
    return Evaluation(rows, diagnoses, (*found.assumptions, *used, *promises), told, random)
