"""The scores of several targets on one log, computed in blocks of rows so that memory stays small.

A block holds about four million numbers, however many arms and features there are.  What is left of it are the vectors
of `explorax.evaluation.scores`, a handful of numbers for each row and target.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from explorax.evaluation.propensity_models import Propensities
from explorax.evaluation.reward_models import Predictions, Range, fixed_arms
from explorax.evaluation.scores import Scores, joined, scored
from explorax.evaluation.targets import Target, checked_probabilities
from explorax.log.data import LoggedData

NUMBERS = 2**22  # in a block
LEAST_ROWS, MOST_ROWS = 64, 2**15


class Basis(NamedTuple):
    """What the scores of all targets rest on.

    Attributes:
        log: The log.
        first: The place of the first row that is evaluated; earlier ones have been learned from.
        propensities: The probabilities with which arms were chosen.
        predictions: What a reward model says, or None.
        reward_range: The least and the largest reward that can ever be, or None if unknown.
        least_propensity: A number that no propensity is below, or None if unknown.
    """

    log: LoggedData
    first: int
    propensities: Propensities
    predictions: Predictions | None
    reward_range: Range | None
    least_propensity: float | None

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the places of the rows that are evaluated, block by block."""
        features, count = self.log.features, len(self.log)
        wide = features is not None and fixed_arms(features) is None
        each = self.log.n_arms * (features.shape[1] if features is not None and wide else 1)
        size = int(np.clip(NUMBERS // each, LEAST_ROWS, MOST_ROWS))
        for start in range(self.first, count, size):
            yield np.arange(start, min(start + size, count))


def scores_of(targets: Mapping[str, Target], basis: Basis) -> dict[str, Scores]:
    """Return what a log says of each of several targets.

    Args:
        targets: The targets by name.
        basis: The log, and what else the scores rest on.

    Returns:
        The scores by name.

    Raises:
        InvalidShape: If a target does not give one probability for each arm in each row.
        InvalidArgument: If a target gives what are no probabilities of arms on offer.
        InvalidReward: If a reward lies outside of the range.
    """
    parts: dict[str, list[Scores]] = {name: [] for name in targets}
    log, predicted = basis.log, basis.predictions
    needed = any(target.reads_features for target in targets.values())
    for rows in basis.blocks() if targets else ():
        features = log.features.table(rows) if needed and log.features is not None else None
        offered = np.ones((len(rows), log.n_arms), bool) if log.offered is None else log.offered[rows].astype(bool)
        chosen, every = (None if each is None else each[rows] for each in basis.propensities[:2])
        model = None if predicted is None else predicted.at(rows)
        for name, target in targets.items():
            chances = checked_probabilities(name, target.probabilities(rows, features, offered), rows, offered)
            part = scored(
                log.rewards[rows],
                log.arms[rows],
                np.ones(len(rows)) if chosen is None else chosen,  # of no use to what weighs nothing
                chances,
                model,
                every,
                basis.reward_range,
                basis.least_propensity,
            )
            parts[name].append(part)
    return {name: joined(blocks) for name, blocks in parts.items()}


def scores_of_logging(rewards: np.ndarray, reward_range: Range | None) -> Scores:
    """Return the scores of the policy that made some rows: its weights are 1, and hindsight is its model.

    Every estimator of them is the mean reward, and their differences from the scores of a target on the same rows are
    those of the target's value and its own.

    Args:
        rewards: (n,) The rewards.
        reward_range: The least and the largest reward that can ever be, or None if unknown.

    Returns:
        The scores.
    """
    rewards = np.asarray(rewards, float)
    ones = np.ones(len(rewards))
    found = Scores(rewards, ones, rewards, rewards, spread=ones, unsupported=np.zeros(len(rewards)))
    if reward_range is None:
        return found
    low, high = reward_range
    scaled = (rewards - low) / (high - low)
    return found._replace(
        lower=scaled, caps=np.zeros(len(rewards)), upper=1 - scaled, reward_range=(float(low), float(high))
    )
