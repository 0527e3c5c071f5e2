"""What a worker process does: takes tasks from a pipe, simulates them, and sends back what came of them.

A worker uses one core and only the CPU, so that as many can run as there are cores, and so that a result does not
depend on how many there are.  It ends when its pipe is closed, and also, at once, when its parent is gone.
"""

import multiprocessing
import multiprocessing.connection
import os
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import NamedTuple

from explorax import devices
from explorax.checkpoints import check_schedule
from explorax.environments import Environment
from explorax.errors import ExploraxError
from explorax.experiments.study import CHECKPOINTS, Panel, Study
from explorax.record import Records, settings_digest
from explorax.runner.compiling import compile_seconds, compile_times
from explorax.runner.tasks import Task
from explorax.simulation import Job, share_program, simulate_together

NO_MEMORY = ("RESOURCE_EXHAUSTED", "Out of memory")  # one of these is in what JAX raises then
PAUSE = 0.2  # seconds between two messages about progress


class Outcome(NamedTuple):
    """What a task leaves."""

    records: list[Records]  # of each of its curves
    seconds: float  # wall time
    compiling: float | None = None  # of it, spent compiling; None where that cannot be told
    pace: float | None = None  # seconds for each decision without compilation; None where that cannot be told


class Failure(NamedTuple):
    """Why a task could not be done."""

    text: str
    wrong_input: bool  # whether the settings are to blame


def environment_variables() -> dict[str, str]:
    """Return what the numerical libraries of a worker should find when it starts."""
    return {
        "JAX_PLATFORMS": "cpu",
        "JAX_ENABLE_X64": "0",  # whatever the caller's
        "NPROC": "1",  # the size of XLA's thread pool
        "XLA_FLAGS": devices.with_flags(devices.ONE_THREAD),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }


def main(study: Study, pipe: Connection) -> None:
    """Do the tasks that come through the pipe until it is closed."""
    threading.Thread(target=end_with_parent, daemon=True).start()
    player = Player(study)
    try:
        while True:
            task = pipe.recv()
            pipe.send(player.attempt(task, throttled(pipe.send)))
    except (EOFError, OSError):
        return  # the parent needs no more


def end_with_parent() -> None:
    """End this process the moment its parent is gone, however that ended."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def throttled(send: Callable[[int], None]) -> Callable[[int], None]:
    """Passes on a number at most every `PAUSE` seconds."""
    last = -PAUSE

    def maybe(rounds: int) -> None:
        nonlocal last
        if (now := time.monotonic()) - last >= PAUSE:
            last = now
            send(int(rounds))

    return maybe


class Clock:
    """Passes on how many rounds are done, and keeps when that was."""

    def __init__(self, progress: Callable[[int], None]):
        self.progress = progress
        self.laps: list[tuple[int, float]] = []

    def __call__(self, rounds: int) -> None:
        """So many rounds are done now."""
        self.laps.append((rounds, time.perf_counter()))
        self.progress(rounds)

    def pace(self, instances: int) -> float | None:
        """Seconds for each decision from the second lap on: the first one compiles."""
        rounds = self.laps[-1][0] - self.laps[0][0] if self.laps else 0
        return (self.laps[-1][1] - self.laps[0][1]) / (rounds * instances) if rounds > 0 else None


class Player:
    """Plays tasks of one study."""

    def __init__(self, study: Study):
        self.study = study
        # Made once, since what is compiled for an environment or a policy is found again by the object it was for.
        self.policies = {
            (curve.label, panel.label): study.make(curve, panel) for curve in study.curves for panel in study.panels
        }
        self.environments: dict[str, Environment] = {}

    def environment(self, panel: Panel) -> Environment:
        """The environment of a panel, made when first asked for and once for all like it: it may hold a data set."""
        key = settings_digest(panel.environment_settings)
        if key not in self.environments:
            self.environments[key] = self.study.make_environment(panel)
        return self.environments[key]

    def play(self, task: Task, progress: Callable[[int], None]) -> Outcome:
        """The outcome of a task; `progress` hears how many rounds are done."""
        began = time.perf_counter()
        study, clock = self.study, Clock(progress)
        schedule = check_schedule(task.rounds, study.checkpoints or CHECKPOINTS, study.spacing, None, clock)
        instances = range(task.first, task.first + task.instances)
        with compile_times() as spans:
            environment = self.environment(task.panel)
            jobs = [Job(self.policies[curve.label, task.panel.label], environment) for curve in task.curves]
            shared = all(share_program(jobs[0], job) for job in jobs)
            batches = [jobs] if shared else [[job] for job in jobs]
            records = [one for batch in batches for one in simulate_together(batch, schedule, instances, study.seed)]
        pace = clock.pace(task.instances * len(task.curves))
        return Outcome(records, time.perf_counter() - began, compile_seconds(spans), pace)

    def play_together(self, tasks: Sequence[Task], progress: Callable[[int], None]) -> list[Outcome]:
        """The outcomes of tasks that differ in their features as one batch, where that can be; raises if it cannot.

        Arms of fewer features than the widest get zeros for the others, which changes no score.
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
            records = iter(simulate_together(jobs, schedule, range(study.instances), study.seed))
        found = [[next(records) for _ in task.curves] for task in tasks]
        seconds, compiling = time.perf_counter() - began, compile_seconds(spans)
        share = None if compiling is None else compiling / len(tasks)
        return [Outcome(of_task, seconds / len(tasks), share) for of_task in found]

    def attempt(self, task: Task, progress: Callable[[int], None]) -> Outcome | Failure:
        """The outcome, or why there is none, as text: exceptions do not all survive a pipe."""
        try:
            return self.play(task, progress)
        except ExploraxError as error:
            return Failure(str(error), wrong_input=True)
        except Exception as error:
            if isinstance(error, MemoryError) or any(words in str(error) for words in NO_MEMORY):
                return Failure(f"memory ran out ({error}): ask for fewer arms or features, or processes", False)
            return Failure(traceback.format_exc(), wrong_input=False)
