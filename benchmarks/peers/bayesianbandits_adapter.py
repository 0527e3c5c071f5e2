"""bayesianbandits: Thompson sampling with one regression on the arms' features, or with one for each arm.

    logistic TS, linear TS                    `LipschitzContextualAgent`, a learner that all arms share
    logistic TS per arm, linear TS per arm    `ContextualAgent`, a learner for each arm; sampled one by one in Python

The library documents the first for arms with features and as the general form of the second, with a block for each arm.
A featurizer turns contexts and arms into rows; here a context is the matrix of its round, so the rows are there
already.  All arms are scored by one sample of the coefficients.  Of all the peers it is the nearest to explorax.

The learner is `BayesianGLM` with the logit link, or `NormalRegressor`.  One Newton step for each reward,
`LaplaceApproximator(n_iter=1)`, is what the documentation advises for fast online updates.

Thompson sampling has no scale here.  That of the posterior is the weight of the rewards: with weights 1/a² and a prior
of precision 1/a² the estimate is that of weights 1 and a prior of precision 1, and the covariance is a² times its.
`scale` is a.  In a linear model 1/a² is `beta`, the precision of the noise; in a logistic one it is `sample_weight`.
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
    NormalRegressor,
    ThompsonSampling,
)
from common import Adapter, Floats, Task, blocks, serve


def rows(contexts: Floats, arms: Sequence[int]) -> Floats:
    """Features of these arms as the library wants them: (n, K, d) contexts → (n, d, number of arms)."""
    return contexts[:, arms].transpose(0, 2, 1)


class Sampling(Adapter):
    """Thompson sampling; the ways differ in the agent only."""

    agent: Any

    def __init__(self, task: Task) -> None:
        self.precision = 1 / task.scale**2
        self.weight = None if task.algorithm.startswith("linear") else np.array([self.precision])

    def learner(self) -> Any:
        """A regression that has seen nothing."""
        if self.weight is None:
            return NormalRegressor(alpha=self.precision, beta=self.precision)
        return BayesianGLM(alpha=self.precision, link="logit", approximator=LaplaceApproximator(n_iter=1))

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest sampled mean."""
        return self.agent.pull(context[np.newaxis])[0], None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """An update of the posterior."""
        self.agent.select_for_update(arm).update(context[np.newaxis], np.array([reward]), self.weight)


class Shared(Sampling):
    """One regression for all arms."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.arms = task.arms if task.shape == "disjoint" else None
        self.agent = LipschitzContextualAgent(
            [Arm(number) for number in range(task.arms)],
            ThompsonSampling(),
            arm_featurizer=FunctionArmFeaturizer(rows),
            learner=self.learner(),
            random_seed=task.seed,
        )
        self.shown: Floats = np.empty(0)

    def choose(self, context: Floats) -> tuple[int, None]:
        """The features are kept for the reward."""
        self.shown = context if self.arms is None else blocks(context, self.arms)
        return super().choose(self.shown)

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """An update with the row of the arm."""
        super().learn(self.shown, arm, reward, propensity)


class PerArm(Sampling):
    """A regression for each arm."""

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        arms = [Arm(number, learner=self.learner()) for number in range(task.arms)]
        self.agent = ContextualAgent(arms, ThompsonSampling(), random_seed=task.seed)


if __name__ == "__main__":
    shared = dict.fromkeys(("logistic TS", "linear TS"), Shared)
    serve("bayesianbandits", shared | dict.fromkeys(("logistic TS per arm", "linear TS per arm"), PerArm))
