"""Processes of this machine as what runs the tasks; the death of one of them is noticed at once.

Each worker shares one pipe with this process and nothing else: a worker that is killed closes its pipe, and breaks
nothing that other workers use.
"""

import contextlib
import math
import multiprocessing
import multiprocessing.connection
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from explorax import devices
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, RunFailed
from explorax.experiments.study import Study
from explorax.runner import worker
from explorax.runner.executor import Watcher
from explorax.runner.queues import Seat, share_out
from explorax.runner.tasks import Size, Task, is_brief, largest
from explorax.simulation import BLOCK

GRACE = 5.0  # seconds that a worker without work may take to end


@dataclass(frozen=True)
class LocalProcesses:
    """An executor that runs tasks in processes of this machine, each on one core.

    Attributes:
        count: The number of processes.
    """

    count: int
    together = False
    device = "cpu"

    def check(self, study: Study) -> None:
        """Raise `InvalidArgument` if the arms of a study do not fit into the memory of this machine."""
        there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
        check_memory(largest(study), there)

    def where(self, tasks: int) -> str:
        """Return the number of processes for so many tasks."""
        count = min(self.count, tasks)
        return f"on {count} process{'es' if count > 1 else ''}"

    @contextlib.contextmanager
    def crew(self, study: Study, most: int) -> "Iterator[Processes]":
        """Return worker processes, which are killed at the end of this context."""
        crew = Processes([])
        try:
            for number in range(min(self.count, most)):
                start(study, number, crew.workers)
            yield crew
            for one in crew.workers:
                one.pipe.close()  # which tells it to end
                one.process.join(GRACE)
        finally:
            for one in crew.workers:  # nothing is lost: what a worker had finished has been handed over
                if one.process.pid is not None:
                    one.process.kill()
                    one.process.join()


def local_processes(processes: int | None = None) -> LocalProcesses:
    """Run tasks in processes of this machine, each on one core.

    Args:
        processes: The number of processes, which changes no result.  Default: one for each usable core.

    Returns:
        The executor, for the argument `on` of `explorax.runner.run`.

    Raises:
        InvalidArgument: If the number is not a whole number of at least 1.
    """
    if processes is not None:
        check_whole("processes", processes, 1)
    return LocalProcesses(processes or usable_cores())


def check_memory(size: Size, there: float) -> None:
    """Raise `InvalidArgument` if the arms of a task do not fit into so many bytes of memory."""
    if size.memory > there:
        raise InvalidArgument(
            f"arms times features must fit into memory for {BLOCK} instances at a time, got {size.arms} times "
            f"{size.features}, which takes {size.memory / 2**30:.0f} GiB of {there / 2**30:.0f}. "
            "Give fewer arms or features."
        )


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Worker(Seat):
    """A worker process, with the pipe to it.

    Args:
        number: The number of the worker, from 0.
        process: The process.
        pipe: Our end of the pipe.
    """

    def __init__(self, number: int, process: SpawnProcess, pipe: Connection):
        super().__init__(number)
        self.process, self.pipe = process, pipe
        self.silent = True  # whether nothing has come from it yet


class Processes:
    """A crew of worker processes.

    Args:
        workers: The workers.
    """

    def __init__(self, workers: list[Worker]):
        self.workers = workers

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> None:
        """Run tasks; raise `RunFailed` as soon as a worker dies."""
        share_out(tasks, self.workers)
        for one in self.workers:
            self.assign(one, watcher)
        while busy := [one for one in self.workers if one.task is not None]:
            ready = multiprocessing.connection.wait([one.pipe for one in busy])
            for one in busy:
                if one.pipe in ready:
                    self.listen(one, watcher)

    def assign(self, one: Worker, watcher: Watcher) -> None:
        """Give a worker its next task, if there is one for it."""
        if (task := one.take(self.workers)) is not None:
            with contextlib.suppress(OSError):  # a worker that is gone is noticed when we listen to it
                one.pipe.send(task)
            watcher.started(one.number, task)

    def listen(self, one: Worker, watcher: Watcher) -> None:
        """Handle the next message of a busy worker.

        Args:
            one: The worker.
            watcher: The observer.

        Raises:
            RunFailed: If the worker has died or failed.
        """
        try:
            message = one.pipe.recv()
        except (EOFError, OSError):
            raise RunFailed(obituary(one)) from None
        one.silent = False
        one.hear(message, watcher)
        if one.task is None:
            self.assign(one, watcher)


def start(study: Study, number: int, workers: list[Worker]) -> None:
    """Start a worker process with the environment variables for its numerical libraries, and add it to `workers`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=worker.main, args=(study, theirs), daemon=True, name=f"explorax-{number}")
    workers.append(Worker(number, process, ours))  # now: an interrupt may come as soon as it has started
    with environment(devices.for_one_core(is_brief(study))), undisturbed():
        process.start()
    theirs.close()  # so that the pipe breaks when the worker ends


def obituary(one: Worker) -> str:
    """Return sentences about how a worker ended and what can be done."""
    one.process.join(GRACE)
    code = one.process.exitcode
    if code is not None and code < 0:
        how = f"was killed by {signal.Signals(-code).name if -code in set(signal.Signals) else f'signal {-code}'}"
        remedy = "If memory ran out, use fewer processes."
    else:
        how = f"ended by itself with exit code {code}"
        remedy = "See its message above."
        if one.silent:
            remedy += " A script that starts a run must do so under `if __name__ == '__main__':`."
    return f"A worker process {how} at {one.task}. {remedy}"


@contextlib.contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """Set environment variables in this context, for processes that are started in it."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Keep Ctrl-C and SIGTERM from processes that are started in this context, since this process handles them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it unblocks signals, so it must be up before
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
