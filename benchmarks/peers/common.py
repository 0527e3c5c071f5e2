"""The rounds that every library plays, and the clock; the adapters in this folder import it.

A problem has rewards of one of two kinds, for the mean score s_i = x_iᵀθ_i of arm i,

    logistic   1 with probability σ(s_i), else 0
    linear     s_i + N(0, ½²)

and one of three shapes:

    shared     x_i uniform on [−1, 1]^d, drawn afresh for every arm and round; one θ ~ N(0, 3/d I) for all arms
    fixed      the same, but the x_i are drawn once and stay
    disjoint   one x uniform on [−1, 1]^d for all arms of a round; each arm has a θ_i ~ N(0, 3/d I) of its own

All have var[xᵀθ] = 1 and no intercept.  Where a library can use features of arms only, the disjoint shape has the
features x ⊗ e_i, which are x in the i-th of K blocks and 0 in the others (`blocks`): the same model, so that every
library knows the same of a problem.  Contexts, θ and luck depend on the seed alone: all libraries meet the same rounds.

One decision is one call of `choose`, one reward one call of `learn`, nothing in batches, on one core in one thread.
Times are taken of the clock and of the processor.  On a machine that does nothing else they agree; where it does, the
clock lengthens long decisions more than short ones, and the processor's time, of all threads, is the fair one.

The file needs NumPy and the standard library only, as each library has an environment of its own.  An adapter's file
is a command that reads tasks, one line of JSON each, and answers each of them with one line (`serve`); `asking.py` is
who asks.
"""

import json
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rewards = Literal["logistic", "linear"]
Shape = Literal["shared", "fixed", "disjoint"]
NOISE = 0.5  # standard deviation of a linear reward


class Task(NamedTuple):
    """One run: a problem, who plays it, and for how long."""

    algorithm: str  # as the adapter calls it
    rewards: Rewards
    shape: Shape
    arms: int
    features: int
    seed: int  # of the problem, and apart from that of the library
    scale: float  # how much to explore, in the library's own measure
    rounds: int
    rate: float = 0.5  # of learning, where a library has one
    center: float = 0.0  # taken from every reward before it is learned
    warmup: int = 0  # rounds before those that count


class Adapter(ABC):
    """A library as a bandit; it is made from a task and has seen no reward then."""

    @abstractmethod
    def __init__(self, task: Task) -> None: ...

    @abstractmethod
    def choose(self, context: Floats) -> tuple[int, float | None]:
        """An arm for (K, d) features of the arms or (d,) features of the round, and its probability where known."""

    @abstractmethod
    def learn(self, context: Floats, arm: int, reward: float, propensity: float | None) -> None:
        """Takes in the reward of an arm that was chosen with this probability."""


class Round(NamedTuple):
    """What a round shows, and what it hides."""

    context: Floats  # (K, d) or (d,)
    means: Floats  # (K,) mean rewards
    luck: float  # decides what an arm pays, whichever it is

    def reward(self, arm: int, rewards: Rewards) -> float:
        """What this arm pays: it is luckier than its mean or not, or its mean and the luck."""
        return float(self.luck < self.means[arm]) if rewards == "logistic" else float(self.means[arm]) + self.luck


class Problem:
    """A bandit; its rounds do not depend on what was chosen."""

    def __init__(self, rewards: Rewards, shape: Shape, arms: int, features: int, seed: int) -> None:
        self.rewards = rewards
        self.random = np.random.default_rng([seed, 1])  # apart from what an adapter draws with the same seed
        own = shape == "disjoint"  # whether every arm has a θ of its own
        self.context_shape = (features,) if own else (arms, features)
        self.theta = self.random.normal(0.0, (3 / features) ** 0.5, (arms, features) if own else features)
        self.fixed = self.drawn() if shape == "fixed" else None

    def drawn(self) -> Floats:
        """The features of the arms, or of the context, of a new round."""
        return self.random.uniform(-1.0, 1.0, self.context_shape)

    def rounds(self, count: int) -> Iterator[Round]:
        """The next rounds of this problem."""
        for _ in range(count):
            context = self.drawn() if self.fixed is None else self.fixed
            scores = context @ self.theta if context.ndim == 2 else self.theta @ context
            if self.rewards == "logistic":
                yield Round(context, 1 / (1 + np.exp(-scores)), self.random.random())
            else:
                yield Round(context, scores, NOISE * self.random.standard_normal())


def blocks(context: Floats, arms: int) -> Floats:
    """Features of the arms where a round has those of a context only: (d,) → (K, K d), row i being x ⊗ e_i."""
    features = np.zeros((arms, arms, len(context)))
    everyone = np.arange(arms)
    features[everyone, everyone] = context
    return features.reshape(arms, -1)


def play(adapter: Adapter, task: Task) -> dict[str, object]:
    """Plays the task and tells what its rounds took, in microseconds, and what they paid and failed to pay."""
    problem = Problem(task.rewards, task.shape, task.arms, task.features, task.seed)
    propensity = None
    before = set(threading.enumerate())
    for shown in problem.rounds(task.warmup):
        arm, propensity = adapter.choose(shown.context)
        adapter.learn(shown.context, arm, shown.reward(arm, task.rewards) - task.center, propensity)
    for thread in set(threading.enumerate()) - before:  # what a library does in the background, such as compiling
        thread.join()

    nanoseconds = np.empty((task.rounds, 3))  # of choose and of learn on the clock, and of the processor for both
    paid = np.empty((task.rounds, 3))  # on average by the arm that was chosen, by all arms, by the best
    for number, shown in enumerate(problem.rounds(task.rounds)):
        worked = time.process_time_ns()
        began = time.perf_counter_ns()
        arm, propensity = adapter.choose(shown.context)
        chosen = time.perf_counter_ns()
        reward = shown.reward(arm, task.rewards) - task.center
        rewarded = time.perf_counter_ns()
        adapter.learn(shown.context, arm, reward, propensity)
        ended = time.perf_counter_ns()
        nanoseconds[number] = chosen - began, ended - rewarded, time.process_time_ns() - worked
        paid[number] = shown.means[arm], shown.means.mean(), shown.means.max()

    choose, learn, processor = nanoseconds.T / 1e3
    mean, uniform, best = paid.sum(axis=0)
    return {
        "regret": round(float(best - mean), 4),
        "uniform_regret": round(float(best - uniform), 4),
        "mean_reward": round(float(mean) / task.rounds, 4),
        "choose_us": quantiles(choose),
        "learn_us": quantiles(learn),
        "both_us": quantiles(choose + learn),
        "processor_us": quantiles(processor),
        "propensity": propensity is not None,
    }


def quantiles(times: Floats) -> dict[str, float]:
    return {"median": round(float(np.median(times)), 2), "p99": round(float(np.quantile(times, 0.99)), 2)}


def serve(library: str, players: Mapping[str, Callable[[Task], Adapter]]) -> None:
    """The command of an adapter's file: plays the tasks that come in, by the names that the library's algorithms have.

    What a library prints goes where errors go, so that answers are all that comes out.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        task = Task(**json.loads(line))
        found = play(players[task.algorithm](task), task)
        print(json.dumps({"version": version(library)} | found), file=answers, flush=True)
