"""coba: its own learners, `LinUCBLearner` and `LinTSLearner`, as its experiments call them.

coba is a library for experiments; a learner of it predicts an action with its probability, `predict(context, actions)`,
and learns from them, `learn(context, action, reward, probability)`.  Actions are tuples of features.

    shared     no context, actions are the features of the arms, and these are what the model has: `features=["a"]`
    disjoint   the context, actions are unit vectors, and the model has their products: `features=["xa"]`

coba turns contexts and actions into features one action at a time in Python, in both calls, which is most of the time.
`scale` is `alpha`, the width of LinUCB's bounds, or the root of `v`, by which LinTS multiplies the covariance.
Version 8.1.0 draws LinTS's coefficients with the same random numbers whatever its seed.

Its other learners (`VowpalSquarecbLearner` and others) are those of Vowpal Wabbit, which plays for itself here.
"""

import numpy as np
from coba.learners import LinTSLearner, LinUCBLearner  # type: ignore[import-not-found]
from common import Adapter, Floats, Task, serve


class Learning(Adapter):
    """A learner of coba."""

    def __init__(self, task: Task) -> None:
        self.disjoint = task.shape == "disjoint"
        self.actions = [tuple(row) for row in np.eye(task.arms).tolist()]
        features = ["xa"] if self.disjoint else ["a"]
        if task.algorithm == "LinTS":
            self.learner = LinTSLearner(v=task.scale**2, features=features, seed=task.seed + 1)
        else:
            self.learner = LinUCBLearner(alpha=task.scale, features=features, seed=task.seed + 1)
        self.context: tuple[float, ...] | None = None

    def choose(self, context: Floats) -> tuple[int, float]:
        """An action, and the probability that the learner states: of a draw among the best ones."""
        if self.disjoint:
            self.context = tuple(context.tolist())
        else:
            self.actions = [tuple(row) for row in context.tolist()]
        action, probability = self.learner.predict(self.context, self.actions)
        return self.actions.index(action), probability

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """A Sherman–Morrison update."""
        self.learner.learn(self.context, self.actions[arm], reward, propensity)


if __name__ == "__main__":
    serve("coba", dict.fromkeys(("LinTS", "LinUCB"), Learning))
