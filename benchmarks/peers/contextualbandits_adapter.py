"""contextualbandits: LinUCB on the arms' features, and LinTS with a linear model for each arm.

Shared: `linreg.LinearRegression`, scored by one `predict_ucb` for all arms and updated by the Sherman–Morrison
formula, `method="sm"`.  It is the regression inside the library's own LinUCB, and much the faster way to it where
arms have features.

Disjoint: `online.LinTS`, the library's policy for one context and K arms, with `partial_fit`.  It goes through all
arms in Python, to choose and to learn.  `sample_from="ci"` samples the scores of the arms and not their coefficients,
which is as good for independent arms and needs no eigenvalues after an update.  `beta_prior` is what the
documentation offers against getting stuck with the arms that were tried first.

Nothing here samples coefficients (`predict_thompson`, `sample_from="coef"`): in version 0.3.30 the draws have
covariance XᵀX + λI where its inverse is meant, and LinTS then earns what uniform choices earn.

The documentation recommends to explore less than its defaults of 1 do: `alpha`, the width of the bounds, and `v_sq`,
that of the samples, are 1/4 here.  Neither 1 nor 1/2 nor 1/10 earned clearly more.
"""

import numpy as np
from common import Adapter, Floats, main
from contextualbandits.linreg import LinearRegression  # type: ignore[import-not-found]
from contextualbandits.online import LinTS  # type: ignore[import-not-found]


class SharedLinUCB(Adapter):
    """Upper confidence bounds of one ridge regression on the arms' features."""

    shape = "shared"
    algorithm = "LinUCB"

    def __init__(self, arms: int, features: int, seed: int, alpha: float = 0.25) -> None:
        self.model = LinearRegression(method="sm", use_float=False)
        self.random = np.random.default_rng(seed)
        self.alpha = alpha

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest bound; ties of the first round are broken at random."""
        bounds = self.model.predict_ucb(context, self.alpha, add_unfit_noise=True, random_state=self.random)
        return int(np.argmax(bounds)), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """A Sherman–Morrison update with the row of the arm."""
        self.model.partial_fit(context[arm : arm + 1], np.array([reward]))


class DisjointLinTS(Adapter):
    """Thompson sampling with a ridge regression for each arm."""

    shape = "disjoint"
    algorithm = "LinTS"

    def __init__(self, arms: int, features: int, seed: int, v_sq: float = 0.25) -> None:
        self.policy = LinTS(
            arms, v_sq=v_sq, sample_from="ci", method="sm", beta_prior="auto", random_state=np.random.default_rng(seed)
        )

    def choose(self, context: Floats) -> tuple[int, None]:
        """The arm with the largest sampled score."""
        return int(self.policy.predict(context[np.newaxis])[0]), None

    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """A Sherman–Morrison update of the arm's model."""
        self.policy.partial_fit(context[np.newaxis], np.array([arm]), np.array([reward]))


if __name__ == "__main__":
    main("contextualbandits", [SharedLinUCB, DisjointLinTS])
