"""Small logs whose truth is known: of independent decisions, and of a policy that learns."""

from typing import NamedTuple

import numpy as np

from explorax.evaluation.scores import Scores, scored

CHANCES = np.array([[0.2, 0.5, 0.7], [0.6, 0.4, 0.3]])  # of a reward of 1, in two contexts, which are equally likely
TARGET = np.array([[0.1, 0.3, 0.6], [0.5, 0.3, 0.2]])
OTHER = np.array([[0.8, 0.1, 0.1], [0.2, 0.2, 0.6]])


class Log(NamedTuple):
    """A log with all that is known of it."""

    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    every: np.ndarray

    def scores(self, target=TARGET, model=True, scale=1.0, shift=0.0, **changes) -> Scores:
        """Return what the log says of a target, with rewards and model on another scale."""
        predictions = np.array([[0.3, 0.4, 0.6], [0.5, 0.5, 0.4]])[self.contexts]
        knowledge = {
            "predictions": predictions * scale + shift if model else None,
            "all_propensities": self.every,
            "reward_range": (shift, shift + scale),
        }
        chosen = self.every[np.arange(len(self.arms)), self.arms]
        rewards = self.rewards * scale + shift
        return scored(rewards, self.arms, chosen, target[self.contexts], **(knowledge | changes))


def value_of(target):
    """Return the value of a target."""
    return float(np.mean(np.sum(CHANCES * target, axis=1)))


def independent_log(rng, rows, floor=0.1):
    """Return a log of decisions that do not learn."""
    contexts = rng.integers(2, size=rows)
    every = floor / 3 + (1 - floor) * np.array([[0.2, 0.2, 0.6], [0.7, 0.2, 0.1]])[contexts]
    arms = (rng.random(rows)[:, None] > np.cumsum(every, axis=1)).sum(axis=1).clip(0, 2)
    rewards = (rng.random(rows) < CHANCES[contexts, arms]).astype(float)
    return Log(contexts, arms, rewards, every)


def adaptive_log(rng, rows, floor=0.15):
    """Return a log of a policy that mostly takes the arm with the best mean so far in the context."""
    contexts, luck, coins = rng.integers(2, size=rows), rng.random(rows), rng.random(rows)
    pulls, sums = np.ones((2, 3)), np.full((2, 3), 0.5)
    every, arms, rewards = np.full((rows, 3), floor / 3), np.zeros(rows, int), np.zeros(rows)
    for t, context in enumerate(contexts):
        every[t, np.argmax(sums[context] / pulls[context])] += 1 - floor
        arm = min(int(np.searchsorted(np.cumsum(every[t]), luck[t])), 2)
        arms[t], rewards[t] = arm, float(coins[t] < CHANCES[context, arm])
        pulls[context, arm] += 1
        sums[context, arm] += rewards[t]
    return Log(contexts, arms, rewards, every)
