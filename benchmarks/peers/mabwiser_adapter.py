"""mabwiser: LinTS and LinUCB with a linear model for each arm, and LinUCB with one model for arms with features.

    LinTS per arm, LinUCB per arm    as documented: one context for all arms, a ridge regression for each
    LinUCB                           a bandit of one "arm": its bounds for K contexts are those of K arms with features

mabwiser's interface takes one context for all arms.  The last of these ways is not in its documentation; the bounds are
those of `predict_expectations`, the update is `partial_fit`, and it is LinUCB with shared features.  (LinTS in this way
would draw coefficients for every arm anew, which is not Thompson sampling.)

`partial_fit` is what it documents for learning online; on the way it copies the models of all arms, which is most of
what a `learn` costs.  It cannot predict before the first reward: the first arm is drawn uniformly.

`scale` is `alpha`, a multiple of the standard deviation of the samples or of the width of the bounds.
"""

from typing import Any

import numpy as np
from common import Adapter, Floats, Task, serve
from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]


class PerArm(Adapter):
    """A ridge regression for each arm."""

    def __init__(self, task: Task) -> None:
        policy = {"LinTS per arm": LearningPolicy.LinTS, "LinUCB per arm": LearningPolicy.LinUCB}[task.algorithm]
        self.bandit = MAB(list(range(task.arms)), policy(alpha=task.scale), seed=task.seed)
        self.first = int(np.random.default_rng(task.seed).integers(task.arms))
        self.fitted = False

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest sampled reward or bound."""
        return (self.bandit.predict(context[np.newaxis]) if self.fitted else self.first), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """Updates the model of the arm; mabwiser calls `fit` itself the first time."""
        self.bandit.partial_fit([arm], [reward], context[np.newaxis])
        self.fitted = True


class Shared(Adapter):
    """One ridge regression for all arms."""

    def __init__(self, task: Task) -> None:
        self.bandit: Any = MAB([0], LearningPolicy.LinUCB(alpha=task.scale), seed=task.seed)
        self.first = int(np.random.default_rng(task.seed).integers(task.arms))
        self.fitted = False

    def choose(self, context: Floats) -> tuple[int, None]:
        """The row with the largest bound."""
        if not self.fitted:
            return self.first, None
        bounds = self.bandit.predict_expectations(context)
        return max(range(len(bounds)), key=lambda row: bounds[row][0]), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """An update with the row of the arm."""
        self.bandit.partial_fit([0], [reward], context[arm : arm + 1])
        self.fitted = True


if __name__ == "__main__":
    serve("mabwiser", {"LinTS per arm": PerArm, "LinUCB per arm": PerArm, "LinUCB": Shared})
