"""The problems of the arena, in groups whose problems the same policies play.

The instances of a problem are random, and the same for every policy.  Some policies need a bound on ‖θ*‖, which their
papers assume to be known: they are given its root mean square, √(v d) for θ* ~ N(0, vI).
"""

import math
from dataclasses import dataclass, field
from typing import Any

from explorax.errors import UnknownName

LOGISTIC, COUNTS, LABELLED = "logistic bandits", "counts", "labelled data"


@dataclass(frozen=True)
class Problem:
    """A problem of the arena: an environment with settings, from which random instances are drawn."""

    name: str
    title: str
    group: str
    about: str
    environment: str
    settings: dict[str, Any] = field(default_factory=dict)  # of the environment
    rounds: int = 2_000
    norm: float | None = None  # of θ*, where there is one

    @property
    def family(self) -> str:
        """The family of the rewards."""
        from explorax.environments import family_of  # JAX is imported when a problem is played, not when it is listed

        return family_of(self.environment)


def _logistic(name: str, deviation: int, features: int) -> Problem:
    """Return a logistic problem whose logits have a given standard deviation, √(v d / 3) for θ* ~ N(0, vI)."""
    variance = 3 * deviation**2 / features
    return Problem(
        f"{name}-{features}",
        f"{name}, d = {features}",
        LOGISTIC,
        f"100 fixed arms on [−1, 1]^{features}, logits of standard deviation {deviation}",
        "logistic",
        {"n_features": features, "parameter_variance": variance},
        norm=math.sqrt(variance * features),
    )


PROBLEMS = (
    *(_logistic("logistic", 1, features) for features in (5, 10, 20)),
    *(_logistic("steep", 3, features) for features in (5, 10, 20)),
    Problem(
        "saturated",
        "saturated, d = 10",
        LOGISTIC,
        "100 fixed arms on [−1, 1]^10, θ* scaled so that the best arm has logit 5 and pays 99.3 % of the time",
        "logistic",
        {"n_features": 10, "best_score": 5.0},
        norm=4.0,  # about: the best of 100 arms has a score of 2.2 standard deviations ‖θ*‖ / √3
    ),
    Problem(
        "sparse",
        "sparse, d = 10",
        LOGISTIC,
        "100 fixed arms with one non-zero feature each, the setting of Theorem 2; θ* ~ N(0, 3I)",
        "logistic",
        {"n_features": 10, "nonzero": 1, "parameter_variance": 3.0},
        norm=math.sqrt(30),
    ),
    Problem(
        "changing",
        "changing arms, d = 10",
        LOGISTIC,
        "100 fresh arms on [−1, 1]^10 in every round, logits of standard deviation 1",
        "logistic",
        {"n_features": 10, "arms_change": True},
        rounds=1_000,
        norm=math.sqrt(3),
    ),
    Problem(
        "poisson",
        "Poisson, d = 5",
        COUNTS,
        "100 fixed arms on [−1, 1]^5, counts whose log means have standard deviation 1",
        "poisson",
        {"n_features": 5},
        norm=math.sqrt(3),
    ),
    *(
        Problem(
            data,
            title,
            LABELLED,
            f"10 examples of {title} in each round, one label of which pays more",
            "classification",
            {"data": data},
            rounds=1_000,
        )
        for data, title in (("digits", "digits"), ("mushroom", "Mushroom"), ("adult", "Adult"))
    ),
)
QUICK = ("logistic-5", "saturated", "poisson")


def problem_of(name: str) -> Problem:
    """Return a problem by its name; raise `UnknownName` for any other name."""
    for problem in PROBLEMS:
        if problem.name == name:
            return problem
    raise UnknownName("problem", name, [problem.name for problem in PROBLEMS])
