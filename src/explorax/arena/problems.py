"""The problems of the arena, in groups whose problems the same policies play.

The instances of a problem are random, and the same for every policy.  Some policies need a bound on ‖θ*‖, which their
papers assume to be known: they are given its root mean square, √(v d) for θ* ~ N(0, vI).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from explorax.errors import InvalidArgument, UnknownName, shown

LOGISTIC, COUNTS, LABELLED, LOGS = "logistic bandits", "counts", "labelled data", "logs"
MANY_FEATURES = (LABELLED, LOGS)  # groups in which arms have many features and differ from round to round
LOG = "log"  # the name of the problem that a log of one's own is
ABOUT_LOG = "the arms on offer in random rows of a log, which --log names; rewards of a model fitted to it"


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

    @cached_property
    def family(self) -> str:
        """The family of the rewards."""
        from explorax.environments import family_of  # JAX is imported when a problem is played, not when it is listed

        return family_of(self.environment, self.settings)


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


def log_problem(log: str | Path) -> Problem:
    """Return a log as a problem.

    Args:
        log: The path of an agent's log, or of the file that it was exported to.

    Returns:
        The problem, whose name is "log".

    Raises:
        InvalidArgument: If `log` is not the path of a file.
    """
    path = Path(log).expanduser().resolve() if isinstance(log, str | Path) else None
    if path is None or not path.is_file():
        raise InvalidArgument(f"log must be the path of a log, got {shown(log)}. Give the path of a file that exists.")
    about = f"arms on offer in random rows of {path.name}, rewards of a model fitted to it"
    return Problem(LOG, path.name, LOGS, about, "from_log", {"data": str(path)}, rounds=1_000)


def problem_of(name: str, known: Sequence[Problem] = PROBLEMS) -> Problem:
    """Return a problem by its name.

    Args:
        name: The name of a problem.
        known: The problems that can be played.  Default: all that need no file.

    Returns:
        The problem.

    Raises:
        InvalidArgument: If it is the problem "log", and no log is known.
        UnknownName: If there is no problem of that name; the error suggests the nearest.
    """
    for problem in known:
        if problem.name == name:
            return problem
    if name == LOG:
        raise InvalidArgument("log must be the path of a log to play the problem 'log', got None. Name it with --log.")
    raise UnknownName("problem", name, [problem.name for problem in known])
