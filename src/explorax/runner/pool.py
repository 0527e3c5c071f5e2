"""The pool of worker processes, which notices at once when one of them dies.

Each worker shares one pipe with this process and nothing else: a worker that is killed closes its pipe, and breaks
nothing that other workers use.  Tasks that share a compiled program are queued for one worker, so that the program is
compiled once.  A worker whose queue is empty takes the last task of the longest queue, and with it short tasks that
share its program.  A short task whose program another worker has stays there: compiling it again would take longer than
the task.
"""

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from typing import Protocol

from explorax.builders import setting_names
from explorax.errors import InvalidArgument, RunFailed
from explorax.experiments.study import Curve, Study
from explorax.registry import entry_of
from explorax.runner import worker
from explorax.runner.tasks import SHORT, Task
from explorax.runner.worker import Failure, Outcome

THREADS = 4  # batches at a time in one process
COMPILING = 4  # programs that are compiled at a time while a batch plays
HEAVY = ("classification", "from_log")  # environments whose policies fill the device's memory: one batch at a time
GRACE = 5.0  # seconds that a worker without work may take to end


class Watcher(Protocol):
    """An observer that is told what the workers, numbered from 0, are doing."""

    def started(self, worker: int, task: Task) -> None:
        """Note that a worker has started a task."""

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Note how many rounds of a task are done."""

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Take the outcome of a finished task."""


@dataclass
class Worker:
    """A worker process, the pipe to it, and the queue of its tasks."""

    number: int
    process: SpawnProcess
    pipe: Connection
    queue: deque[Task]
    task: Task | None = None  # the one it is doing
    silent: bool = field(default=True)  # whether nothing has come from it yet


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def share_out(tasks: Sequence[Task], processes: int) -> list[deque[Task]]:
    """Return a queue of tasks for each process: tasks of one program in one queue, the costliest programs first."""
    programs: dict[tuple[object, ...], list[Task]] = {}
    for task in tasks:
        programs.setdefault(task.program, []).append(task)
    queues: list[deque[Task]] = [deque() for _ in range(min(processes, len(tasks)))]
    for group in sorted(programs.values(), key=total_cost, reverse=True):
        min(queues, key=total_cost).extend(group)
    return queues


def total_cost(tasks: Sequence[Task]) -> float:
    """Return the approximate duration of tasks, in an arbitrary unit."""
    return sum(task.cost for task in tasks)


def run_here(study: Study, tasks: Sequence[Task], watcher: Watcher) -> None:
    """Run all tasks in this process, those of panels with different numbers of features as one batch if possible.

    Threads let batches compile while others compute.  The device takes the batches in turn, and if they would not fit
    into its memory together, only one of them is under way at a time, while the next ones are compiled.
    """
    player = worker.Player(study, together=True)
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


def run_spread(study: Study, tasks: Sequence[Task], processes: int, watcher: Watcher) -> None:
    """Run all tasks in `processes` worker processes; raise `RunFailed` as soon as one of them dies."""
    workers: list[Worker] = []
    try:
        for number, queue in enumerate(share_out(tasks, processes)):
            start(study, number, queue, workers)
        for one in workers:
            assign(one, workers, watcher)
        while busy := [one for one in workers if one.task is not None]:
            ready = multiprocessing.connection.wait([one.pipe for one in busy])
            for one in busy:
                if one.pipe in ready:
                    listen(one, workers, watcher)
        for one in workers:
            one.pipe.close()  # which tells it to end
            one.process.join(GRACE)
    finally:
        for one in workers:  # nothing is lost: what a worker had finished has been handed over
            if one.process.pid is not None:
                one.process.kill()
                one.process.join()


def start(study: Study, number: int, queue: deque[Task], workers: list[Worker]) -> None:
    """Start a worker process with the environment variables for its numerical libraries, and add it to `workers`."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=worker.main, args=(study, theirs), daemon=True, name=f"explorax-{number}")
    workers.append(Worker(number, process, ours, queue))  # now: an interrupt may come as soon as it has started
    with environment(worker.environment_variables(study)), undisturbed():
        process.start()
    theirs.close()  # so that the pipe breaks when the worker ends


def assign(one: Worker, workers: Sequence[Worker], watcher: Watcher) -> None:
    """Give a worker its next task, or the last one of the longest queue that it can help with if its own is empty."""
    if not one.queue:
        queues = (other.queue for other in workers if not is_begun(other))
        one.queue.extend(take_last(max(queues, key=total_cost, default=deque())))
    one.task = one.queue.popleft() if one.queue else None
    if one.task is not None:
        with contextlib.suppress(OSError):  # a worker that is gone is noticed when we listen to it
            one.pipe.send(one.task)
        watcher.started(one.number, one.task)


def take_last(queue: deque[Task]) -> deque[Task]:
    """Take the last task out of a queue, and all short ones before it that share its program."""
    taken = deque([queue.pop()]) if queue else deque()
    while queue and queue[-1].program == taken[0].program and queue[-1].plays <= SHORT:
        taken.append(queue.pop())
    return taken


def is_begun(one: Worker) -> bool:
    """Return whether the last task of a worker's queue is short, and the worker already has its program."""
    if not one.queue or one.task is None:
        return False
    return one.queue[-1].program == one.task.program and one.queue[-1].plays <= SHORT


def listen(one: Worker, workers: Sequence[Worker], watcher: Watcher) -> None:
    """Handle the next message of a busy worker.

    Args:
        one: The worker.
        workers: All workers.
        watcher: The observer.

    Raises:
        InvalidArgument: If the settings of the task cannot be used.
        RunFailed: If the worker has died or failed.
    """
    assert one.task is not None
    try:
        message = one.pipe.recv()
    except (EOFError, OSError):
        raise RunFailed(obituary(one)) from None
    one.silent = False
    match message:
        case int(rounds):
            watcher.advanced(one.number, one.task, rounds)
        case Outcome():
            watcher.finished(one.number, one.task, message)
            assign(one, workers, watcher)
        case Failure(wrong_input=True):
            raise InvalidArgument(f"{one.task}: {message.text}")
        case Failure():
            raise RunFailed(f"A worker process failed at {one.task}:\n{message.text}")


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
