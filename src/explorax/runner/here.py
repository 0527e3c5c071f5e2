"""Threads of the process itself as what runs the tasks, which is the way to use a GPU."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass

from explorax.builders import setting_names
from explorax.errors import RunFailed
from explorax.experiments.study import Curve, Study
from explorax.registry import entry_of
from explorax.runner.executor import Watcher
from explorax.runner.tasks import Task, largest
from explorax.runner.worker import Outcome, Player

THREADS = 4  # batches at a time in one process
COMPILING = 4  # programs that are compiled at a time while a batch plays
HEAVY = ("classification", "from_log")  # environments whose policies fill the device's memory: one batch at a time


@dataclass(frozen=True)
class ThisProcess:
    """An executor that runs all tasks in this process, on the first device of JAX."""

    together = True
    device = None

    def check(self, study: Study) -> None:
        """Raise `InvalidArgument` if the environment of a panel cannot be built."""
        largest(study)

    def where(self, tasks: int) -> str:
        """Return that tasks run in this process."""
        return "in this process"

    @contextmanager
    def crew(self, study: Study, most: int) -> "Iterator[Here]":
        """Return the player of a study."""
        yield Here(study)


def this_process() -> ThisProcess:
    """Run tasks in this process, on a GPU if there is one.

    Returns:
        The executor, for the argument `on` of `explorax.runner.run`.
    """
    return ThisProcess()


class Here:
    """A crew of threads of this process, which play batches of tasks.

    Args:
        study: The study.
    """

    def __init__(self, study: Study):
        self.study = study
        self.player = Player(study, together=True)

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> None:
        """Run tasks, those of panels with different numbers of features as one batch if possible.

        Threads let batches compile while others compute.  The device takes the batches in turn, and if they would not
        fit into its memory together, only one of them is under way at a time, while the next ones are compiled.

        Args:
            tasks: The tasks.
            watcher: The observer.
        """
        study, player = self.study, self.player
        batches: dict[object, list[Task]] = {}
        for task in tasks:
            batches.setdefault(alike(task) if stacks(study, task) else task.digest, []).append(task)

        numbers = {task.digest: number for number, task in enumerate(tasks)}
        stopped = threading.Event()
        heavy = study.environment in HEAVY
        ahead: dict[str, list[Future[float | None]]] = {}

        def prepare(task: Task, curve: Curve) -> float | None:
            return None if stopped.is_set() else player.prepare(task, curve)

        def play(batch: list[Task]) -> list[Outcome]:
            for task in batch:
                watcher.started(numbers[task.digest], task)

            def progress(rounds: int) -> None:
                if stopped.is_set():
                    raise RunFailed("The run was stopped.")
                for task in batch:
                    watcher.advanced(numbers[task.digest], task, rounds)

            if len(batch) > 1:
                return player.play_together(batch, progress)
            (task,) = batch
            before = sum(one.result() or 0.0 for one in ahead.get(task.digest, []))
            outcome = player.play(task, progress)
            compiling = None if outcome.compiling is None else outcome.compiling + before
            # Batches share the device, so their pace says little.
            return [Outcome(outcome.records, outcome.seconds + before, compiling, pace=None)]

        with ThreadPoolExecutor(1 if heavy else THREADS) as threads, ThreadPoolExecutor(COMPILING) as compilers:
            if heavy:
                for task in (batch[0] for batch in batches.values() if len(batch) == 1):
                    ahead[task.digest] = [compilers.submit(prepare, task, curve) for curve in task.curves]
            running = {threads.submit(play, batch): batch for batch in batches.values()}
            try:
                for done in as_completed(running):
                    for task, outcome in zip(running[done], done.result(), strict=True):
                        watcher.finished(numbers[task.digest], task, outcome)
            finally:  # where something went wrong the other batches end with their next chunk of rounds
                stopped.set()
                for pool in (threads, compilers):
                    pool.shutdown(wait=False, cancel_futures=True)


def alike(task: Task) -> tuple[object, ...]:
    """Return a key that is equal for tasks of the same curves and instances in different panels."""
    return task.first, task.instances, *(curve.label for curve in task.curves)


def stacks(study: Study, task: Task) -> bool:
    """Return whether tasks of panels with other numbers of features can join a task in one batch."""
    if task.panel.environment_settings.keys() != {"n_features"} or task.panel.curve_settings:
        return False
    drawn = not {"fixed_arms", "theta", "arms_change", "padded_to"} & study.environment_settings.keys()
    glm = all("n_features" in setting_names(entry_of(curve.policy).builder()) for curve in task.curves)
    return drawn and glm and all("n_features" not in curve.settings for curve in task.curves)
