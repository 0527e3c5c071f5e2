"""The worker process: it takes tasks from a pipe, simulates them, and sends back their outcomes.

A worker uses one core and only the CPU, so that as many workers can run as there are cores, and results do not depend
on how many there are.  A worker ends when its pipe is closed, and at once when its parent process is gone.
"""

import math
import multiprocessing
import multiprocessing.connection
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from explorax import program_cache
from explorax.checkpoints import check_schedule
from explorax.environments import Environment
from explorax.errors import ExploraxError
from explorax.experiments.study import CHECKPOINTS, Curve, Panel, Study
from explorax.garbage import collect_rarely
from explorax.record import Records, settings_digest
from explorax.runner.compiling import compile_seconds, compile_times
from explorax.runner.tasks import Task, policies_of
from explorax.simulation import Job, compile_ahead, share_program, simulate_together

NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory")  # in the errors that JAX raises when memory runs out
PAUSE = 0.2  # seconds between two messages about progress


class Outcome(NamedTuple):
    """The records of a finished task, and the time that it took."""

    records: list[Records]  # of each of its curves
    seconds: float  # wall time, with the time of each program that was compiled ahead, as if one after the other
    compiling: float | None = None  # the part of `seconds` spent compiling; None if unknown
    pace: float | None = None  # seconds for each decision, without compilation; None if unknown


class Failure(NamedTuple):
    """The reason why a task could not be run."""

    text: str
    wrong_input: bool  # whether the settings are to blame


def main(study: Study, pipe: Connection) -> None:
    """Run the tasks that come through a pipe until it is closed."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    collect_rarely()
    program_cache.inherit()
    player = Player(study)
    try:
        while True:
            task = pipe.recv()
            pipe.send(player.attempt(task, throttled(pipe.send)))
    except (EOFError, OSError):
        os._exit(0)  # the parent needs no more, and Python would look at all that was ever traced before it ends


def end_with_parent() -> None:
    """End this process the moment its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def throttled(send: Callable[[int], None], pause: float = PAUSE) -> Callable[[int], None]:
    """Return a function that passes numbers on to `send`, at most one in so many seconds."""
    last = -math.inf

    def maybe(rounds: int) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= pause:
            last = now
            send(int(rounds))

    return maybe


class Clock:
    """A progress callback that also records when each number of rounds was reached."""

    def __init__(self, progress: Callable[[int], None]):
        self.progress = progress
        self.laps: list[tuple[int, float]] = []

    def __call__(self, rounds: int) -> None:
        """Record that a number of rounds is done, and pass it on."""
        self.laps.append((rounds, time.perf_counter()))
        self.progress(rounds)

    def pace(self, instances: int) -> float | None:
        """Return the seconds for each decision from the second lap on, since the first one compiles."""
        rounds = self.laps[-1][0] - self.laps[0][0] if self.laps else 0
        return (self.laps[-1][1] - self.laps[0][1]) / (rounds * instances) if rounds > 0 else None


def instances_of(task: Task) -> range:
    """Return the numbers of the instances of a task."""
    return range(task.first, task.first + task.instances)


class Player:
    """A player of the tasks of one study, which builds its policies and environments once.

    Args:
        study: The study.
        together: Whether a task is all curves of a policy, as on a GPU, or a block of instances of one curve.
        read: Arguments of environments in place of those that name data to read, by the digest of the panel's settings
            of its environment.  Default: None, to read all data.
    """

    def __init__(self, study: Study, together: bool = False, read: Mapping[str, Mapping[str, Any]] | None = None):
        self.study = study
        self.read = read or {}
        # Made once, since what is compiled for an environment or a policy is found again by the object it was for.
        self.policies = {
            (label, panel.label): policy
            for panel in study.panels
            for label, policy in policies_of(study, panel, together).items()
        }
        self.environments: dict[str, Environment] = {}
        self.making = threading.Lock()

    def environment(self, panel: Panel) -> Environment:
        """Return the environment of a panel, which panels of equal settings share, since it may hold a data set."""
        key = settings_digest(panel.environment_settings)
        with self.making:
            if key not in self.environments:
                self.environments[key] = self.study.make_environment(panel, **self.read.get(key, {}))
            return self.environments[key]

    def play(self, task: Task, progress: Callable[[int], None]) -> Outcome:
        """Simulate a task; `progress` is called with the number of rounds that are done."""
        began = time.perf_counter()
        study, clock = self.study, Clock(progress)
        schedule = check_schedule(task.rounds, study.checkpoints or CHECKPOINTS, study.spacing, None, clock)
        with compile_times() as spans:
            played = [simulate_together(jobs, schedule, instances_of(task), study.seed) for jobs in self.batches(task)]
        pace = clock.pace(task.instances * len(task.curves))
        records = [one for batch in played for one in batch]
        return Outcome(records, time.perf_counter() - began, compile_seconds(spans), pace)

    def prepare(self, task: Task, curve: Curve) -> float | None:
        """Compile the program that a task plays for one of its curves, unless the curve before it has the same.

        Args:
            task: The task.
            curve: One of its curves.

        Returns:
            The seconds that compiling took; None if unknown.
        """
        study = self.study
        schedule = check_schedule(task.rounds, study.checkpoints or CHECKPOINTS, study.spacing, None, None)
        policy = self.policies[curve.label, task.panel.label]
        with compile_times() as spans:
            for jobs in self.batches(task):
                if jobs[0].policy is policy:
                    compile_ahead(jobs, schedule, instances_of(task), study.seed)
        return compile_seconds(spans)

    def batches(self, task: Task) -> list[list[Job]]:
        """Return the jobs of a task in batches, each of which shares a program."""
        environment = self.environment(task.panel)
        jobs = [Job(self.policies[curve.label, task.panel.label], environment) for curve in task.curves]
        return [jobs] if all(share_program(jobs[0], job) for job in jobs) else [[job] for job in jobs]

    def play_together(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Outcome]:
        """Simulate tasks with different numbers of features as one batch.

        Arms with fewer features are padded with zeros, which changes no score.

        Args:
            tasks: Tasks of the same instances that can be batched, as `pool.stacks` decides.
            progress: A function that is called with the number of rounds that are done.

        Returns:
            The outcome of each task, with an equal share of the time.
        """
        began = time.perf_counter()
        study = self.study
        features: list[int] = [task.panel.environment_settings["n_features"] for task in tasks]
        schedule = check_schedule(study.rounds, study.checkpoints or CHECKPOINTS, study.spacing, None, progress)
        jobs = []
        for task, own in zip(tasks, features, strict=True):
            environment = study.make_environment(task.panel, padded_to=max(features))
            jobs += [Job(study.make(curve, task.panel, n_features=own), environment) for curve in task.curves]
        with compile_times() as spans:
            records = iter(simulate_together(jobs, schedule, instances_of(tasks[0]), study.seed))
        found = [[next(records) for _ in task.curves] for task in tasks]
        seconds, compiling = time.perf_counter() - began, compile_seconds(spans)
        share = None if compiling is None else compiling / len(tasks)
        return [Outcome(of_task, seconds / len(tasks), share) for of_task in found]

    def attempt(self, task: Task, progress: Callable[[int], None]) -> Outcome | Failure:
        """Simulate a task; return a failure with its text on an error, since not all exceptions can be sent by pipe."""
        try:
            return self.play(task, progress)
        except ExploraxError as error:
            return Failure(str(error), wrong_input=True)
        except Exception as error:
            if isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY):
                return Failure(f"Memory ran out ({error}). Ask for fewer arms, features or processes.", False)
            return Failure(traceback.format_exc(), wrong_input=False)
