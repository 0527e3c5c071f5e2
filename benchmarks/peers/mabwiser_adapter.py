"""mabwiser: LinTS, which keeps a linear model for each arm.  The disjoint shape is the only one it has.

Its interface takes one context for all arms, so features of the arms cannot be given.  `partial_fit` is what it
documents for learning online; on the way it copies the models of all arms, which is most of what a `learn` costs.  It
cannot predict before the first reward: the first arm is drawn uniformly.

`alpha` multiplies the standard deviation of the sampled coefficients.  It is 1/4 here, as in the example of mabwiser's
documentation, and earns more than mabwiser's default of 1.
"""

import numpy as np
from common import Adapter, Floats, main
from mabwiser.mab import MAB, LearningPolicy  # type: ignore[import-not-found]


class LinTS(Adapter):
    """Thompson sampling with a ridge regression for each arm."""

    shape = "disjoint"
    algorithm = "LinTS"

    def __init__(self, arms: int, features: int, seed: int, alpha: float = 0.25) -> None:
        self.bandit = MAB(list(range(arms)), LearningPolicy.LinTS(alpha=alpha), seed=seed)
        self.first = int(np.random.default_rng(seed).integers(arms))
        self.fitted = False

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest sampled reward."""
        return (self.bandit.predict(context[np.newaxis]) if self.fitted else self.first), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """Updates the model of the arm; mabwiser calls `fit` itself the first time."""
        self.bandit.partial_fit([arm], [reward], context[np.newaxis])
        self.fitted = True


if __name__ == "__main__":
    main("mabwiser", [LinTS])
