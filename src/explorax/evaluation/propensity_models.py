"""Propensities for logs that lack them: the probability of every arm in every row, estimated by a classifier.

The classifier learns which arm was chosen from what was known before the decision, and the probabilities of a row come
from a classifier that has not seen it (five parts).  Weights that rest on them are right only if the classifier is, and
if nothing that it does not see had a part both in the choice of the arm and in the reward: no unmeasured confounding.
No number of rows makes up for either, so intervals have no guarantee.

A rule that was never random is told apart.  If the arm is a function of the context, the rewards of all other arms in
this context are unknown, and no weighting can find them.
"""

from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument, shown
from explorax.evaluation.reward_models import FOLDS, cloned
from explorax.extras import optional
from explorax.log.data import LoggedData
from explorax.log.features import ContextFeatures, Features, FixedFeatures

CERTAIN = 1 - 1e-9  # a logged propensity that leaves no chance to any other arm
PREDICTABLE = 0.99  # the share of decisions that a classifier foresees, from which on a rule counts as not random

ESTIMATED = (
    "The log has no propensities. They were estimated by {name}, and everything here rests on two assumptions that the "
    "log cannot confirm: the estimates are right, and nothing that the log does not hold influenced both the choice of "
    "the arm and the reward (no unmeasured confounding). The intervals have no guarantee."
)


class Propensities(NamedTuple):
    """The probabilities with which the arms of a log were chosen.

    Attributes:
        chosen: (n,) That of the chosen arm; None if nothing is known.
        every: (n, K) Those of all arms, or None if they are not known.
        random: Whether the rule that made the log seems to have left anything to chance.
        assumption: What is assumed of the probabilities, as sentences; empty if they are those of the log.
    """

    chosen: np.ndarray | None
    every: np.ndarray | None
    random: bool
    assumption: str = ""


def logged(log: LoggedData) -> Propensities:
    """Return the propensities that a log has."""
    assert log.propensities is not None
    random = bool(np.any(log.propensities < CERTAIN))
    return Propensities(log.propensities, log.all_propensities, random)


def estimated(log: LoggedData, classifier: Any = None) -> Propensities:
    """Return propensities estimated by a classifier that predicts the chosen arm.

    Args:
        log: The log.
        classifier: A scikit-learn classifier with `predict_proba`, which is cloned.  Default: multinomial logistic
            regression on standardized numbers.

    Returns:
        The propensities, with what is assumed of them.

    Raises:
        InvalidArgument: If the classifier has no probabilities, or the log has fewer than two rows.
        ImportError: If scikit-learn is not installed.
    """
    if classifier is None:
        classifier = _default()
    elif not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InvalidArgument(
            f"propensities must be None, 'estimate' or a classifier with predict_proba, got {shown(classifier)}. Give, "
            "for example, sklearn.ensemble.HistGradientBoostingClassifier()."
        )
    if len(log) < 2:
        raise InvalidArgument(f"log must have at least 2 rows to estimate propensities, got {len(log)}. Log more rows.")
    known, rows = situations(log), np.arange(len(log))
    every = np.zeros((len(log), log.n_arms))
    for fold in range(min(FOLDS, len(log))):
        out = rows % FOLDS == fold
        seen = log.arms[~out]
        if (seen == seen[0]).all():  # which many classifiers refuse
            every[out, seen[0]] = 1
        else:
            model = cloned(classifier, "an estimate of propensities").fit(known[~out], seen)
            every[np.ix_(out, model.classes_)] = model.predict_proba(known[out])
    if log.offered is not None:
        every = np.where(log.offered, every, 0)
    foreseen = np.mean(np.argmax(every, axis=1) == log.arms)
    offered = np.ones_like(every) if log.offered is None else log.offered.astype(float)
    every = np.maximum(every, 1 / len(log)) * offered  # an arm that the classifier rules out may have been chosen
    every /= every.sum(axis=1, keepdims=True)
    name = type(classifier).__name__ if not hasattr(classifier, "steps") else type(classifier.steps[-1][1]).__name__
    return Propensities(every[rows, log.arms], every, bool(foreseen < PREDICTABLE), ESTIMATED.format(name=name))


def situations(log: LoggedData) -> np.ndarray:
    """Return what was known before each decision as a matrix (n, …) of numbers; a column of zeros if nothing was."""
    if log.contexts is not None:
        return log.contexts.reshape(len(log), -1)
    return _numbers(log.features, len(log))


def _numbers(features: Features | None, count: int) -> np.ndarray:
    """Return what differs between the rows of a log in the features of its arms."""
    if features is None or isinstance(features, FixedFeatures):
        return np.zeros((count, 1))
    if isinstance(features, ContextFeatures):
        return features.contexts
    return features.table(np.arange(count)).reshape(count, -1)


def _default() -> Any:
    """Return multinomial logistic regression on standardized numbers."""
    use = "an estimate of propensities"
    pipeline, preprocessing = (
        optional("sklearn.pipeline", use, "agent"),
        optional("sklearn.preprocessing", use, "agent"),
    )
    regression = optional("sklearn.linear_model", use, "agent").LogisticRegression(max_iter=1000)
    return pipeline.make_pipeline(preprocessing.StandardScaler(), regression)
