"""What a Ray cluster costs and gives: overhead of a task, memory of the driver, scaling, and 1000 workers on paper.

    PYTHONPATH=src python benchmarks/cluster.py overhead [--tasks 1000] [--repeats 3] [--cluster local]
    PYTHONPATH=src python benchmarks/cluster.py scaling [--workers 1 2] [--tasks 8] [--rounds 10000] [--repeats 3]
                                                        [--on processes ray]

`overhead` plays many tiny tasks of one program with one worker, in a local process and on Ray in turns, with journal
and display as in any run.  It prints the time between two finished tasks, the part of it that the worker played, and
the rest, which is the overhead; the processor time of the driver for each task; the driver's memory after a tenth of
the tasks and after all; and how long Ray takes to find an answer among those of 1000 workers.  A simulation then says
how busy a driver of this speed keeps many workers: each plays a task for so many seconds, then waits until the driver
has served those before it.

`scaling` plays so many equal tasks for each worker.  "Playing" compares the rate of finished tasks, each worker counted
from its first to its last finished task, with as many times the rate of one worker; "whole" compares the durations,
from the first task that is given out to the last that is finished, loading programs and waiting for the last one
included.
"""

import argparse
import heapq
import io
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from explorax import program_cache, record
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Study
from explorax.extras import optional
from explorax.parts import read_parts
from explorax.runner import Executor, local_processes, play, ray_cluster
from explorax.runner.ray_connection import connected
from explorax.runner.tasks import Task, expand
from explorax.runner.worker import Outcome

BLOCK = 50  # instances of a task
PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(required=True)
    one = kinds.add_parser("overhead")
    one.add_argument("--tasks", type=int, default=1000)
    one.add_argument("--repeats", type=int, default=3)
    one.add_argument("--cluster", default="local")
    one.set_defaults(action=overhead)
    other = kinds.add_parser("scaling")
    other.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    other.add_argument("--tasks", type=int, default=8, help="for each worker")
    other.add_argument("--rounds", type=int, default=10_000)
    other.add_argument("--repeats", type=int, default=3)
    other.add_argument("--on", nargs="+", choices=("processes", "ray"), default=["processes", "ray"])
    other.set_defaults(action=scaling)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program_cache.cache_programs(f"{folder}/programs")
        options.action(options, Path(folder))


def study_of(tasks: int, policy: str, features: int, rounds: int) -> Study:
    """Return a study that is so many tasks of one program."""
    return from_settings(
        {"name": "benchmark", "environment": "logistic", "dims": [features], "rounds": rounds, "checkpoints": 1}
        | {"instances": BLOCK * tasks, "curves": [{"policy": policy}]}
    )


class Stamps(io.StringIO):
    """A stream that notes when each task was finished, and the driver's processor time and memory then."""

    def __init__(self) -> None:
        super().__init__()
        self.wall: list[float] = []
        self.cpu: list[float] = []
        self.memory: list[float] = []

    def write(self, text: str) -> int:
        """Note a finished task."""
        if text.startswith("["):
            self.wall.append(time.perf_counter())
            self.cpu.append(time.process_time())
            self.memory.append(int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6)
        return len(text)


class Cost(NamedTuple):
    """The cost of a task, in milliseconds, and the driver's memory, in MB."""

    each: float
    played: float
    overhead: float
    driver: float
    early: float
    late: float


def cost(study: Study, on: Executor, out: Path) -> Cost:
    """Return what a task of a study costs once a tenth of them is done."""
    stamps = Stamps()
    play(study, out, on=on, stream=stamps)
    count = len(stamps.wall)
    early = count // 10
    each = (stamps.wall[-1] - stamps.wall[early]) / (count - 1 - early)
    driver = (stamps.cpu[-1] - stamps.cpu[early]) / (count - 1 - early)
    found = read_parts(out / record.PARTS).tasks.values()
    played = statistics.median(part.results[0].seconds for part in found)
    return Cost(1e3 * each, 1e3 * played, 1e3 * (each - played), 1e3 * driver, stamps.memory[early], stamps.memory[-1])


def overhead(options: argparse.Namespace, folder: Path) -> None:
    study = study_of(options.tasks, "uniform", 2, 10)
    ways: dict[str, Executor] = {
        "process": local_processes(1),
        "Ray": ray_cluster(options.cluster, workers=1),
    }
    found: dict[str, list[Cost]] = {name: [] for name in ways}
    for repeat in range(options.repeats):
        for name, on in sorted(ways.items(), reverse=repeat % 2 == 1):
            found[name].append(cost(study, on, folder / f"{name}-{repeat}"))
    print(
        f"{options.tasks} tasks of {BLOCK} instances and 10 rounds; median of {options.repeats} (least to largest), ms"
    )
    for name, costs in found.items():
        cells = [spread([getattr(one, field) for one in costs]) for field in ("each", "played", "overhead", "driver")]
        print(f"  {name:8} each {cells[0]}, played {cells[1]}, overhead {cells[2]}, processor of the driver {cells[3]}")
        memory = [f"{one.early:.0f} -> {one.late:.0f}" for one in costs]
        print(f"  {'':8} memory of the driver after a tenth and at the end, MB: {', '.join(memory)}")
    seconds = {count: 1e3 * waiting(options.cluster, count) for count in (1, 1000)}
    print("  an answer of one worker, while others are waited for: " + among(seconds))
    served = statistics.median(one.driver for one in found["Ray"]) / 1e3
    print(
        f"\nOn paper, the workers of a driver that serves a task in {1e3 * served:.1f} ms play, by seconds of a task:"
    )
    lengths = (0.1, 1.0, 10.0, 60.0)
    print(f"  {'workers':>8}" + "".join(f"{length:>9g}" for length in lengths))
    for workers in (10, 100, 1000, 10_000):
        print(f"  {workers:>8}" + "".join(f"{busy(workers, length, served):>9.0%}" for length in lengths))


def among(seconds: dict[int, float]) -> str:
    """Return how long an answer takes among so many that are waited for, as text."""
    return ", ".join(f"{time:.1f} ms among {count}" for count, time in seconds.items())


def waiting(address: str, count: int, repeats: int = 200) -> float:
    """Return the seconds for one answer of Ray while `count` others are waited for."""
    ray: Any = optional("ray", "this benchmark", "cluster")
    with connected(ray, address, ship_source=False):
        actor = ray.remote(Answering).options(num_cpus=0)
        busy, free = actor.remote(), actor.remote()
        ray.get(free.answer.remote(0.0))
        others = [busy.answer.remote(60.0) for _ in range(count)]
        began = time.perf_counter()
        for _ in range(repeats):
            mine = free.answer.remote(0.0)
            _, rest = ray.wait([*others, mine], num_returns=1)
            ray.wait(rest, num_returns=len(rest), timeout=0)
            ray.get(mine)
        taken = (time.perf_counter() - began) / repeats
        for one in (busy, free):
            ray.kill(one)
    return taken


class Answering:
    """An actor that answers after a while."""

    def answer(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)


def spread(values: list[float]) -> str:
    """Return the median of some values with the least and the largest."""
    return f"{statistics.median(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def busy(workers: int, length: float, served: float, tasks: int = 100) -> float:
    """Return the share of their time that workers play, if each plays tasks of a length and then waits to be served."""
    ready = [length * (1 + number / workers) for number in range(workers)]  # not all at once
    heapq.heapify(ready)
    free, last = 0.0, 0.0
    for _ in range(workers * tasks):
        at = heapq.heappop(ready)
        free = max(free, at) + served  # the driver serves one after the other
        last = max(last, free)
        heapq.heappush(ready, free + length)
    return min(1.0, workers * tasks * length / (workers * last))


class Rates:
    """A watcher that notes when each worker finished its tasks."""

    def __init__(self) -> None:
        self.began: float | None = None
        self.times: dict[int, list[float]] = {}

    def started(self, worker: int, task: Task) -> None:
        """Note when the first task was given out."""
        self.began = self.began or time.perf_counter()

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Ignore progress."""

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Note that a task is finished."""
        self.times.setdefault(worker, []).append(time.perf_counter())

    def lost(self, worker: int, task: Task) -> None:
        """Ignore lost workers."""

    def noted(self, text: str) -> None:
        """Print a sentence about the workers."""
        print(text, flush=True)

    @property
    def rate(self) -> float:
        """The tasks that all workers finish in a second while they play."""
        return sum((len(ends) - 1) / (ends[-1] - ends[0]) for ends in self.times.values() if len(ends) > 1)

    @property
    def whole(self) -> float:
        """The seconds from the first task that was given out to the last that was finished."""
        assert self.began is not None
        return max(ends[-1] for ends in self.times.values()) - self.began


def scaling(options: argparse.Namespace, folder: Path) -> None:
    makers: dict[str, Callable[[int], Executor]] = {
        "processes": local_processes,
        "ray": lambda count: ray_cluster("local", workers=count),
    }

    def measured(name: str, workers: int) -> Rates:
        rates = Rates()
        study = study_of(options.tasks * workers, "lin_ts", 10, options.rounds)
        tasks = expand(study, False)
        with makers[name](workers).crew(study, len(tasks)) as crew:
            crew.run(tasks, rates)
        print(f"{name}, {workers} workers: {rates.whole:.1f} s", file=sys.stderr, flush=True)
        return rates

    measured(options.on[0], options.workers[0])  # which compiles
    found: dict[tuple[str, int], list[Rates]] = {}
    for _ in range(options.repeats):
        for workers in options.workers:
            for name in options.on:
                found.setdefault((name, workers), []).append(measured(name, workers))
    print(f"{options.tasks} tasks for each worker, {options.rounds} rounds of LinTS with 50 instances, d = 10, K = 100")
    print(f"  {'':10} {'workers':>7}  {'seconds':>8}  efficiency: playing, then whole (least to largest)")
    for (name, workers), several in found.items():
        alone = found[name, options.workers[0]]
        playing = [
            one.rate / (workers / options.workers[0] * base.rate) for one, base in zip(several, alone, strict=True)
        ]
        whole = [base.whole / one.whole for one, base in zip(several, alone, strict=True)]
        seconds = statistics.median(one.whole for one in several)
        cells = [f"{statistics.median(ones):.2f} ({min(ones):.2f} to {max(ones):.2f})" for ones in (playing, whole)]
        print(f"  {name:10} {workers:>7}  {seconds:>8.1f}  {cells[0]}, {cells[1]}")


if __name__ == "__main__":
    main()
