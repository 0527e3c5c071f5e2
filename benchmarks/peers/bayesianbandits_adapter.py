"""bayesianbandits: Thompson sampling with one logistic regression on the arms' features, or with one for each arm.

Shared: `LipschitzContextualAgent`, which the library documents for arms that share a learner and for many arms.  A
featurizer turns contexts and arms into rows; here a context is the (K, d) matrix of its round, so the rows are there
already.  All arms are scored by one sample of the coefficients.  Of all the peers it is the nearest to explorax.

Disjoint: `ContextualAgent`, with a learner for each arm; they are sampled one by one in Python.

The learner is `BayesianGLM` with the logit link and the library's prior of precision 1.  One Newton step for each
reward, `LaplaceApproximator(n_iter=1)`, is what its documentation advises for fast online updates.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bayesianbandits import (  # type: ignore[import-not-found]
    Arm,
    BayesianGLM,
    ContextualAgent,
    FunctionArmFeaturizer,
    LaplaceApproximator,
    LipschitzContextualAgent,
    ThompsonSampling,
)
from common import Adapter, Floats, main


def logistic() -> BayesianGLM:
    return BayesianGLM(link="logit", approximator=LaplaceApproximator(n_iter=1))


def rows(contexts: Floats, arms: Sequence[int]) -> Floats:
    """Features of these arms as the library wants them: (n, K, d) contexts → (n, d, number of arms)."""
    return contexts[:, arms].transpose(0, 2, 1)


class LogisticTS(Adapter):
    """Thompson sampling with a logistic model; the two shapes differ in the agent only."""

    algorithm = "Thompson sampling, logistic"
    agent: Any

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest sampled mean."""
        return self.agent.pull(context[np.newaxis])[0], None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """One Newton step from the posterior so far."""
        self.agent.select_for_update(arm).update(context[np.newaxis], np.array([reward]))


class SharedLogisticTS(LogisticTS):
    """One logistic regression on the arms' features."""

    shape = "shared"

    def __init__(self, arms: int, features: int, seed: int) -> None:
        self.agent = LipschitzContextualAgent(
            [Arm(number) for number in range(arms)],
            ThompsonSampling(),
            arm_featurizer=FunctionArmFeaturizer(rows),
            learner=logistic(),
            random_seed=seed,
        )


class DisjointLogisticTS(LogisticTS):
    """A logistic regression for each arm."""

    shape = "disjoint"

    def __init__(self, arms: int, features: int, seed: int) -> None:
        numbered = [Arm(number, learner=logistic()) for number in range(arms)]
        self.agent = ContextualAgent(numbered, ThompsonSampling(), random_seed=seed)


if __name__ == "__main__":
    main("bayesianbandits", [SharedLogisticTS, DisjointLogisticTS])
