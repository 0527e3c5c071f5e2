"""The problems of the arena, in groups; within a group the same policies play.

A problem's instances are random, and the same for every policy.  Some policies ask for a bound on ‖θ*‖, which their
papers take as known: they are told its root mean square, √(v d) for θ* ~ N(0, vI).
"""

import math
from dataclasses import dataclass, field
from typing import Any

from explorax.environments import family_of
from explorax.errors import UnknownName

LOGISTIC, COUNTS, LABELLED = "logistic bandits", "counts", "labelled data"


@dataclass(frozen=True)
class Problem:
    """One random problem."""

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
        """Of the rewards."""
        return family_of(self.environment)


def _logistic(name: str, deviation: int, features: int) -> Problem:
    """Logits of that standard deviation: θ* ~ N(0, vI) and arms on [−1, 1]^d make it √(v d / 3)."""
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
        "100 fixed arms on [−1, 1]^10, θ* scaled so that the best one has logit 5 and pays 99.3 % of the time",
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
            f"10 examples of {title} a round, one label pays more",
            "classification",
            {"data": data},
            rounds=1_000,
        )
        for data, title in (("digits", "digits"), ("mushroom", "Mushroom"), ("adult", "Adult"))
    ),
)
QUICK = ("logistic-5", "saturated", "poisson")


def problem_of(name: str) -> Problem:
    """A problem by its name."""
    for problem in PROBLEMS:
        if problem.name == name:
            return problem
    raise UnknownName("problem", name, [problem.name for problem in PROBLEMS])
