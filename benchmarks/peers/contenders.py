"""Who plays which problem, and the settings that each is tuned among.

A contender is an algorithm of a library on one kind of problem.  `scale` is how much it explores, in the library's own
measure (each adapter says which), and there are five to choose from.  That of sampling and of optimism multiplies the
standard deviation of a posterior, whose prior has precision 1, and is of the same five in every library.  Vowpal Wabbit
alone also has a learning rate.  It is tuned together with the scale, since its own of 0.5 learns slowly where rewards
are larger than clicks.

A model that is linear in the features is *misspecified* where rewards are logistic.  It then learns from rewards less
½, which is what arms pay on average, so that it needs no intercept either; in trials linear models earned more so.

Another library takes a file in `requirements/`, an adapter, and lines in `ENTRIES`.
"""

from itertools import product
from typing import NamedTuple

from common import Rewards, Shape, Task


class Size(NamedTuple):
    """How large the problems are, and how often they are played."""

    shapes: dict[Shape, tuple[int, int]]  # arms and features
    rounds: int
    held_out: range  # seeds of the instances to tune on
    tested: range  # seeds of the instances to report


SHAPES: dict[Shape, tuple[int, int]] = {"shared": (20, 10), "disjoint": (10, 5)}
FULL = Size(SHAPES, rounds=2000, held_out=range(1000, 1010), tested=range(20))
QUICK = Size(SHAPES, rounds=100, held_out=range(1000, 1001), tested=range(3))


class Kind(NamedTuple):
    """What problems have in common: rewards and a shape."""

    rewards: Rewards
    shape: Shape

    def __str__(self) -> str:
        return f"{self.rewards} rewards, {self.shape} shape"


class Setting(NamedTuple):
    """What is tuned."""

    scale: float
    rate: float


class Contender(NamedTuple):
    """An algorithm of a library on a kind of problem."""

    library: str
    algorithm: str
    kind: Kind
    model: Rewards  # what its model takes the rewards to be
    knob: str  # the library's name for the scale
    scales: tuple[float, ...]
    rates: tuple[float, ...]

    @property
    def misspecified(self) -> bool:
        """Whether its model is another than that of the rewards."""
        return self.model != self.kind.rewards

    @property
    def settings(self) -> list[Setting]:
        """All that it is tuned among."""
        return [Setting(*pair) for pair in product(self.scales, self.rates)]

    def task(self, size: Size, setting: Setting, seed: int) -> Task:
        """One run."""
        arms, features = size.shapes[self.kind.shape]
        return Task(
            algorithm=self.algorithm,
            rewards=self.kind.rewards,
            shape=self.kind.shape,
            arms=arms,
            features=features,
            seed=seed,
            scale=setting.scale,
            rounds=size.rounds,
            rate=setting.rate,
            center=0.5 if self.misspecified else 0.0,
        )


KINDS = [Kind(rewards, shape) for rewards in ("logistic", "linear") for shape in ("shared", "disjoint")]
TIME_OF = "glm_tsl"  # of explorax: what the other times are divided by
REGRET_OF: dict[Rewards, str] = {"logistic": "glm_tsl", "linear": "lin_ts"}  # what is taken from the other regrets

DEVIATIONS = (0.03, 0.1, 0.3, 1.0, 3.0)
GAMMAS = (10.0, 100.0, 1e3, 1e4, 1e5)  # its own is 10
MELLOWNESSES = (1e-4, 1e-3, 0.01, 0.1, 1.0)  # its own is 0.1
RATES = (0.25, 0.5, 1.0, 2.0, 4.0)  # its own is 0.5
NO_RATE = (0.5,)

Models = dict[Rewards, Rewards]  # rewards that it plays -> model that it has of them
GLM: Models = {"logistic": "logistic", "linear": "linear"}
LINEAR: Models = {"logistic": "linear", "linear": "linear"}
CLICKS: Models = {"logistic": "logistic"}
NUMBERS: Models = {"linear": "linear"}
BOTH: tuple[Shape, ...] = ("shared", "disjoint")
SHARED: tuple[Shape, ...] = ("shared",)
PER_ARM: tuple[Shape, ...] = ("disjoint",)

ENTRIES: list[tuple[str, str, Models, tuple[Shape, ...], str, tuple[float, ...], tuple[float, ...]]] = [
    ("explorax", "glm_tsl", GLM, BOTH, "scale", DEVIATIONS, NO_RATE),
    ("explorax", "glm_fpl", CLICKS, BOTH, "scale", DEVIATIONS, NO_RATE),
    ("explorax", "lin_ts", LINEAR, BOTH, "scale", DEVIATIONS, NO_RATE),
    ("explorax", "lin_ucb", LINEAR, BOTH, "width", DEVIATIONS, NO_RATE),
    ("bayesianbandits", "logistic TS", CLICKS, BOTH, "scale", DEVIATIONS, NO_RATE),
    ("bayesianbandits", "logistic TS per arm", CLICKS, PER_ARM, "scale", DEVIATIONS, NO_RATE),
    ("bayesianbandits", "linear TS", NUMBERS, BOTH, "scale", DEVIATIONS, NO_RATE),
    ("bayesianbandits", "linear TS per arm", NUMBERS, PER_ARM, "scale", DEVIATIONS, NO_RATE),
    ("coba", "LinTS", LINEAR, BOTH, "√v", DEVIATIONS, NO_RATE),
    ("coba", "LinUCB", LINEAR, BOTH, "alpha", DEVIATIONS, NO_RATE),
    ("contextualbandits", "linreg UCB", LINEAR, BOTH, "alpha", DEVIATIONS, NO_RATE),
    ("contextualbandits", "LinUCB per arm", LINEAR, PER_ARM, "alpha", DEVIATIONS, NO_RATE),
    ("mabwiser", "LinUCB", LINEAR, SHARED, "alpha", DEVIATIONS, NO_RATE),
    ("mabwiser", "LinTS per arm", LINEAR, PER_ARM, "alpha", DEVIATIONS, NO_RATE),
    ("mabwiser", "LinUCB per arm", LINEAR, PER_ARM, "alpha", DEVIATIONS, NO_RATE),
    ("vowpalwabbit", "SquareCB", LINEAR, BOTH, "gamma_scale", GAMMAS, RATES),
    ("vowpalwabbit", "RegCB", LINEAR, BOTH, "mellowness", MELLOWNESSES, RATES),
]


def contenders(kind: Kind) -> list[Contender]:
    """All that play these problems."""
    return [
        Contender(library, algorithm, kind, models[kind.rewards], knob, scales, rates)
        for library, algorithm, models, shapes, knob, scales, rates in ENTRIES
        if kind.rewards in models and kind.shape in shapes
    ]
