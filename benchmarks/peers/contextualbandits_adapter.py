"""contextualbandits: LinUCB on the arms' features, and LinUCB and LinTS with a linear model for each arm.

    linreg UCB        `linreg.LinearRegression`, scored by one `predict_ucb` for all arms and updated by the
                      Sherman–Morrison formula, `method="sm"`.  It is the regression inside the library's own LinUCB,
                      and much the faster way to it where arms have features
    LinUCB per arm    `online.LinUCB`, the library's policy for one context and K arms, with `partial_fit`.  It goes
                      through all arms in Python, to choose and to learn
    LinTS per arm     `online.LinTS` with `sample_from="ci"`, which samples the scores of the arms and not their
                      coefficients; as good for independent arms.  `beta_prior` is what the documentation offers against
                      getting stuck with the arms that were tried first, but it is meant for clicks, and LinUCB explores
                      new arms by itself: `agent_speed.py` alone uses LinTS

Nothing here samples coefficients (`predict_thompson`, `sample_from="coef"`): in version 0.3.30 the draws have a
wrong covariance (with `method="chol"` XᵀX + λI, where its inverse is meant), and LinTS then earns as much as uniform
choices.

Its logistic policies are not played.  `LogisticUCB` and `LogisticTS` cannot learn from one reward after the other, and
are documented as not recommended; those that can, with a classifier of scikit-learn for each arm (`BootstrappedUCB`,
`SoftmaxExplorer` and others with `SGDClassifier`), took milliseconds for a decision and had several times the regret
of LinUCB on the logistic problem.

`scale` is `alpha`, the width of the bounds, or `v_sq`, which with `sample_from="ci"` multiplies the standard deviation.
"""

import numpy as np
from common import Adapter, Floats, Task, blocks, serve
from contextualbandits.linreg import LinearRegression  # type: ignore[import-not-found]
from contextualbandits.online import LinTS, LinUCB  # type: ignore[import-not-found]


class Shared(Adapter):
    """Upper confidence bounds of one ridge regression on the arms' features."""

    def __init__(self, task: Task) -> None:
        self.model = LinearRegression(method="sm", fit_intercept=False, use_float=False)
        self.random = np.random.default_rng(task.seed)
        self.alpha = task.scale
        self.arms = task.arms if task.shape == "disjoint" else None
        self.shown: Floats = np.empty(0)

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest bound; ties of the first round are broken at random."""
        self.shown = context if self.arms is None else blocks(context, self.arms)
        bounds = self.model.predict_ucb(self.shown, self.alpha, add_unfit_noise=True, random_state=self.random)
        return int(np.argmax(bounds)), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """A Sherman–Morrison update with the row of the arm."""
        self.model.partial_fit(self.shown[arm : arm + 1], np.array([reward]))


class PerArm(Adapter):
    """A ridge regression for each arm."""

    def __init__(self, task: Task) -> None:
        random = np.random.default_rng(task.seed)
        if task.algorithm == "LinTS per arm":
            self.policy = LinTS(
                task.arms,
                v_sq=task.scale,
                sample_from="ci",
                method="sm",
                beta_prior="auto",
                fit_intercept=False,
                random_state=random,
            )
        else:
            self.policy = LinUCB(
                task.arms, alpha=task.scale, method="sm", fit_intercept=False, use_float=False, random_state=random
            )

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest bound or sampled score."""
        return int(self.policy.predict(context[np.newaxis])[0]), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """A Sherman–Morrison update of the arm's model."""
        self.policy.partial_fit(context[np.newaxis], np.array([arm]), np.array([reward]))


if __name__ == "__main__":
    serve("contextualbandits", {"linreg UCB": Shared, "LinUCB per arm": PerArm, "LinTS per arm": PerArm})
