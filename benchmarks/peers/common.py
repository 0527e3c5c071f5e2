"""The rounds that every library plays, and the clock; the adapters in this folder import it.

A problem is a logistic bandit: arm i pays 1 with probability σ(x_iᵀθ_i), else 0.  It has one of two shapes.

    shared     x_i uniform on [−1, 1]^d, drawn afresh for every arm and round; one θ ~ N(0, 3/d I) for all arms
    disjoint   one x uniform on [−1, 1]^d for all arms of a round; each arm has a θ_i ~ N(0, 3/d I) of its own

Both have var[xᵀθ] = 1.  Libraries that can use features of the arms play the first, those that keep a model for each
arm the second.  The disjoint shape has K times as many parameters, so its rewards come later; compare within a shape.
Contexts, θ and luck depend on the seed alone: all libraries meet the same rounds.

One decision is one call of `choose`, one reward one call of `learn`, nothing in batches.  A warm-up of the same kind
comes first, since models that are still empty can cost less.  All of it runs on one core in one thread.  The file
needs NumPy and the standard library only, as each library has an environment of its own.

An adapter's file is a command that prints one line of JSON, in microseconds:

    DIR/mabwiser/bin/python benchmarks/peers/mabwiser_adapter.py [--arms 100] [--features 20] [--rounds 2000] ...
"""

import argparse
import json
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Shape = Literal["shared", "disjoint"]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Adapter(ABC):
    """A library as a bandit."""

    shape: ClassVar[Shape]
    algorithm: ClassVar[str]

    @abstractmethod
    def __init__(self, arms: int, features: int, seed: int) -> None:
        """A bandit that has seen no reward."""

    @abstractmethod
    def choose(self, context: Floats) -> tuple[int, float | None]:
        """An arm for (K, d) features of the arms or (d,) features of the round, and its probability where known."""

    @abstractmethod
    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """Takes in the reward of an arm that was chosen with this probability."""


class Round(NamedTuple):
    """What a round shows, and what it hides."""

    context: Floats  # (K, d) or (d,)
    means: Floats  # (K,) probability that an arm pays
    luck: float  # an arm pays if its mean is above it


class Problem:
    """A logistic bandit of one of the two shapes."""

    def __init__(self, shape: Shape, arms: int, features: int, seed: int) -> None:
        self.random = np.random.default_rng([seed, 1])  # apart from what an adapter draws with the same seed
        self.context_shape = (arms, features) if shape == "shared" else (features,)
        self.theta = self.random.normal(0.0, (3 / features) ** 0.5, features if shape == "shared" else (arms, features))

    def rounds(self, count: int) -> Iterator[Round]:
        """The next rounds of this problem."""
        for _ in range(count):
            context = self.random.uniform(-1.0, 1.0, self.context_shape)
            scores = context @ self.theta if context.ndim == 2 else self.theta @ context
            yield Round(context, 1 / (1 + np.exp(-scores)), self.random.random())


def play(adapter: Adapter, problem: Problem, warmup: int, rounds: int) -> dict[str, object]:
    """Plays the rounds and tells what they took, in microseconds, and what they paid."""
    for shown in problem.rounds(warmup):
        arm, propensity = adapter.choose(shown.context)
        adapter.learn(shown.context, arm, float(shown.luck < shown.means[arm]), propensity)

    nanoseconds = np.empty((rounds, 2))  # of choose and of learn
    paid = np.empty((rounds, 3))  # on average by the arm that was chosen, by all arms, by the best
    for number, shown in enumerate(problem.rounds(rounds)):
        began = time.perf_counter_ns()
        arm, propensity = adapter.choose(shown.context)
        chosen = time.perf_counter_ns()
        reward = float(shown.luck < shown.means[arm])
        rewarded = time.perf_counter_ns()
        adapter.learn(shown.context, arm, reward, propensity)
        nanoseconds[number] = chosen - began, time.perf_counter_ns() - rewarded
        paid[number] = shown.means[arm], shown.means.mean(), shown.means.max()

    choose, learn = nanoseconds.T / 1e3
    mean, uniform, best = paid.mean(axis=0).tolist()
    return {
        "choose_us": quantiles(choose),
        "learn_us": quantiles(learn),
        "both_us": quantiles(choose + learn),
        "propensity": propensity is not None,
        "mean_reward": round(mean, 4),
        "uniform_reward": round(uniform, 4),
        "best_reward": round(best, 4),
    }


def quantiles(times: Floats) -> dict[str, float]:
    return {"median": round(float(np.median(times)), 2), "p99": round(float(np.quantile(times, 0.99)), 2)}


def use_one_core() -> None:
    """Pins this process to one core, after starting it again if its linear algebra may have more than one thread.

    The libraries below NumPy read the number of threads when they are loaded, which is before this function is called.
    """
    if any(os.environ.get(name) != "1" for name in THREADS):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], os.environ | dict.fromkeys(THREADS, "1"))
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def main(library: str, adapters: Sequence[type[Adapter]]) -> None:
    """The command of an adapter's file: measures it and prints one line of JSON; the first adapter is the default."""
    by_shape = {adapter.shape: adapter for adapter in adapters}
    parser = argparse.ArgumentParser(description=f"Measure one choose and one learn of {library} on one core.")
    parser.add_argument("--shape", choices=list(by_shape), default=adapters[0].shape)
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--warmup", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if min(options.arms, options.features, options.rounds) < 1 or options.warmup < 0:
        parser.error("--arms, --features and --rounds must be at least 1, --warmup at least 0")
    use_one_core()
    adapter = by_shape[options.shape]
    problem = Problem(options.shape, options.arms, options.features, options.seed)
    measured = play(adapter(options.arms, options.features, options.seed), problem, options.warmup, options.rounds)
    about = {"library": library, "version": version(library), "algorithm": adapter.algorithm, **vars(options)}
    print(json.dumps(about | measured), flush=True)
