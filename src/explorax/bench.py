"""Measurements of the engine on this machine, and of how cost and memory grow: `explorax bench engine`.

    over time     the cost of a round in each tenth of one long run: constant, because counts and sums do not grow
    memory        the memory of processes that play a short and a long run: constant, because only checkpoints are kept
    by size       the cost of a round against the number of features d and of arms K, for each GLM policy

Times are those of compiled code: the first chunk of rounds, which waits for the compiler, is not counted.
"""

import contextlib
import itertools
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax

from explorax.checkpoints import check_schedule
from explorax.environments import logistic
from explorax.registry import list_policies, make
from explorax.simulation import BLOCK, Job, play, simulate
from explorax.text import line, table

ON_A_DEVICE = 1000  # instances in lockstep on a GPU, which 50 would leave idle
TENTHS = 10
LEAST = 3  # chunks of rounds that are measured

Out = Callable[[str], None]


class Sizes(NamedTuple):
    """The sizes to measure at, and how long."""

    features: tuple[int, ...] = (2, 5, 10, 20, 32, 64)  # with `fixed_arms` arms
    arms: tuple[int, ...] = (10, 100, 1000, 10_000)  # with `fixed_features` features
    fixed_arms: int = 100
    fixed_features: int = 5
    long_run: int = 20_000  # rounds
    memory: tuple[int, int] = (10_000, 1_000_000)  # rounds
    seconds: float = 1.0  # for each policy and size
    policies: tuple[str, ...] = ("glm_tsl", "glm_fpl", "ucb_glm", "glm_ucb")


# Each program takes seconds to compile, so a quick look is at few of them.
QUICK = Sizes((2, 5), (10, 100), 100, 2, 5000, (10_000, 100_000), seconds=0.3, policies=("glm_tsl", "glm_fpl"))


class Enough(Exception):
    """The end of a run that has been measured for long enough."""


def engine(quick: bool = False, out: Out = print) -> None:
    """Measure and print cost over time, memory, and cost by size; a quick run measures fewer sizes."""
    sizes = QUICK if quick else Sizes()
    device = jax.devices()[0]
    out(f"{device.platform} ({device.device_kind}), {os.cpu_count()} cores, {instances()} instances in lockstep")
    over_time(sizes.long_run, out)
    memory(sizes.memory, out)
    by_size(sizes, out)


def instances() -> int:
    """Return the number of instances to play in lockstep on the device of this process."""
    return BLOCK if jax.default_backend() == "cpu" else ON_A_DEVICE


def over_time(rounds: int, out: Out, name: str = "glm_tsl", n_features: int = 5, n_arms: int = 100) -> None:
    """Print the cost of a round in each tenth of one run."""
    policy, environment, length = make(name), logistic(n_features=n_features, n_arms=n_arms), rounds // TENTHS
    simulate(policy, environment, rounds=length, instances=instances(), chunk=length)  # compiles
    marks = [time.perf_counter()]
    simulate(
        policy,
        environment,
        rounds=TENTHS * length,
        instances=instances(),
        chunk=length,
        progress=lambda _: marks.append(time.perf_counter()),
    )
    costs = [(end - start) / (length * instances()) for start, end in itertools.pairwise(marks)]
    out(f"\nCost over time: {list_policies()[name].title}, d = {n_features}, K = {n_arms}, {TENTHS * length} rounds")
    rows = [
        (f"{tenth * length} – {(tenth + 1) * length}", f"{1e6 * cost:.2f}", f"{cost / costs[0]:.2f}")
        for tenth, cost in enumerate(costs)
    ]
    out(table([("rounds", "µs per instance-round", "ratio"), *rows], left=0))


def memory(rounds: Sequence[int], out: Out, n_features: int = 2, n_arms: int = 10) -> None:
    """Print the peak memory of runs that differ in their number of rounds, each in a process of its own."""
    out(f"\nPeak memory: UCB-GLM, d = {n_features}, K = {n_arms}, 2 instances, a fresh process each")
    widths = (9, 7, 6, 7)  # each row is shown as soon as it is measured
    out(line(("rounds", "MiB", "ratio", "seconds"), widths, left=0))
    peaks: list[float] = []
    for count in rounds:
        began = time.perf_counter()
        code = f"from explorax.bench import peak_memory; print(peak_memory({count}, {n_features}, {n_arms}))"
        # A second process on a GPU has to live with what this one has left of its memory.
        environment = os.environ | {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, check=True, stdout=subprocess.PIPE, text=True
        )
        peaks.append(float(done.stdout))
        seconds = time.perf_counter() - began
        cells = f"{count}", f"{peaks[-1]:.0f}", f"{peaks[-1] / peaks[0]:.2f}", f"{seconds:.1f}"
        out(line(cells, widths, left=0))


def peak_memory(rounds: int, n_features: int, n_arms: int) -> float:
    """Play a run of two instances and return the peak memory of this process, in MiB."""
    import resource  # not on every system

    job = Job(make("ucb_glm"), logistic(n_features=n_features, n_arms=n_arms))
    play([job], check_schedule(rounds, 100, "even", None, None), range(2), seed=0)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def by_size(sizes: Sizes, out: Out) -> None:
    """Print the cost of a round of each policy against the number of features d and of arms K."""
    measured: dict[tuple[str, int, int], float] = {}
    for symbol, fixed, swept in (
        ("d", f"K = {sizes.fixed_arms}", [(value, sizes.fixed_arms) for value in sizes.features]),
        ("K", f"d = {sizes.fixed_features}", [(sizes.fixed_features, value) for value in sizes.arms]),
    ):
        out(f"\nCost by size: {fixed}")
        widths = (8, 5, 17, 21, 6)  # each row is shown as soon as it is measured
        out(line(("policy", symbol, "rounds per second", "µs per instance-round", "ratio"), widths))
        for name in sizes.policies:
            first = None
            for features, arms in swept:
                key = (name, features, arms)
                if key not in measured:
                    measured[key] = cost_of_a_round(name, features, arms, sizes.seconds)
                cost = measured[key]
                first = first or cost
                value = features if symbol == "d" else arms
                title = list_policies()[name].title
                speeds = f"{1 / cost:.0f}", f"{1e6 * cost:.2f}", f"{cost / first:.2f}"
                out(line((title, str(value), *speeds), widths))


def cost_of_a_round(name: str, n_features: int, n_arms: int, seconds: float) -> float:
    """Measure seconds per round and instance for about `seconds`, without compilation and the first chunk."""
    length = min(max(200_000 // (n_arms * n_features), 20), 500)
    marks: list[float] = []

    def progress(rounds: int) -> None:
        marks.append(time.perf_counter())
        if len(marks) > LEAST and marks[-1] - marks[0] > seconds:
            raise Enough

    with contextlib.suppress(Enough):
        simulate(
            make(name),
            logistic(n_features=n_features, n_arms=n_arms),
            rounds=100 * length,
            instances=instances(),
            chunk=length,
            progress=progress,
        )
    # The median, because other programs on the machine slow single chunks down.
    return statistics.median(end - start for start, end in itertools.pairwise(marks)) / (length * instances())
