"""The workers of a run on a Ray cluster: started, given tasks, listened to, and replaced when they are gone.

A worker that is gone, for whatever reason, is replaced as soon as a core is free, and its task is played again, there
or by another worker.  A task that loses `MOST_LOSSES` workers on nodes that live on is given up.  The study and its
data sets are put into Ray's object store once.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

from explorax import devices, environments, program_cache
from explorax.errors import ExploraxError, InvalidArgument, RunFailed
from explorax.experiments.study import Study
from explorax.record import settings_digest
from explorax.remote import Remote, Station
from explorax.runner.executor import Watcher
from explorax.runner.queues import Seat, share_out
from explorax.runner.ray_connection import TICK, Head
from explorax.runner.tasks import Task, is_brief, largest
from explorax.runner.worker import Failure, Outcome
from explorax.software import software, version_of
from explorax.text import duration, listed

MOST_LOSSES = 3  # workers that one task may lose
FIRST_NOTE = 10.0  # seconds without a worker after which one is told why
MESSAGES = 100  # about progress, that all workers together send in a second
FEWEST = 0.5  # seconds between two messages about progress of a worker
MENTIONED = 2**27  # bytes of memory for a worker, less of which any node has
SENTENCES = 3  # of what Ray tells of the end of a worker


class RayWorker(Seat):
    """The seat of a worker on a cluster: its actor, and what that has been asked for.

    Args:
        number: The number of the worker, from 0.
    """

    def __init__(self, number: int):
        super().__init__(number)
        self.actor: Any = None
        self.station: Station | None = None  # known when the worker is there
        self.ready = False  # whether the worker has the study
        self.then: Callable[[Any], None] | None = None  # what to do with the answer to what it has been asked

    @property
    def idle(self) -> bool:
        """Whether the worker waits for a task."""
        return self.ready and self.task is None

    def leave(self) -> Task | None:
        """Forget the worker; return the task that it had."""
        task, self.task = self.task, None
        self.actor = self.station = self.then = None
        self.ready = False
        return task


class Actors:
    """A crew of workers on a cluster.

    Args:
        ray: The package.
        study: The study.
        most: The largest number of tasks at a time.
        workers: How many workers there are to be; None for one on each core, or on each share of a GPU.
        gpus: The share of a GPU that each worker has; 0 for workers on one core each.
        patience: Seconds to wait for a free core when there is no worker.
    """

    def __init__(self, ray: Any, study: Study, most: int, *, workers: int | None, gpus: float, patience: float):
        self.ray, self.study, self.gpus = ray, study, gpus
        self.resource, self.unit = ("GPU", "GPUs") if gpus else ("CPU", "cores")
        self.share = gpus or 1.0  # of that resource, for each worker
        self.memory = 0 if gpus else largest(study).memory
        room = int(ray.cluster_resources().get(self.resource, 0.0) / self.share)
        self.workers = [RayWorker(number) for number in range(min(workers or max(room, 1), most))]
        self.actor = ray.remote(Remote).options(
            num_cpus=1, num_gpus=gpus, memory=self.memory or None, max_restarts=0, max_task_retries=0
        )
        self.variables = devices.for_one_core(is_brief(study))
        self.asked: dict[Any, RayWorker] = {}  # by the reference to the answer
        self.fallen: list[tuple[RayWorker, str]] = []  # workers that are gone, and why
        self.losses: Counter[str] = Counter()  # of workers, by the digest of the task
        self.given_up: list[str] = []  # tasks, with the reason
        self.false_starts = 0  # workers in a row that were gone before they could play
        self.kinds: set[tuple[str, ...]] = set()  # of CPUs
        self.head = Head(ray)
        self.shortage = Shortage(patience)

    @cached_property
    def shared(self) -> tuple[Any, dict[str, Any]]:
        """The study in the object store, and the data of its environments, which is there once for all that use it."""
        stored: dict[tuple[str, str], Any] = {}
        read: dict[str, Any] = {}
        for panel in self.study.panels:
            data = environments.data_of(self.study.environment, self.study.environment_arguments(panel))
            if data is not None:
                if data.source not in stored:
                    stored[data.source] = self.ray.put(data.read())
                read[settings_digest(panel.environment_settings)] = stored[data.source]
        return self.ray.put(self.study), read

    @property
    def pause(self) -> float:
        """The least number of seconds between two messages about progress of a worker."""
        return max(FEWEST, len(self.workers) / MESSAGES)

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> None:
        """Run tasks.

        Args:
            tasks: The tasks.
            watcher: The observer.

        Raises:
            RunFailed: If the head node is lost, no core becomes free, a task fails, or tasks were given up; all others
                are finished then.
        """
        self.watcher = watcher
        share_out(tasks, self.workers)
        for worker in self.workers:
            self.employ(worker)
        while any(worker.task is not None or worker.queue for worker in self.workers):
            for answer in self.answers():
                self.hear(answer)
            if (self.fallen or self.head.is_due()) and self.head.answers():  # else what follows would block
                while self.fallen:
                    self.bury(*self.fallen.pop())
                if any(worker.station for worker in self.workers):
                    self.shortage.over()
                else:
                    self.shortage.goes_on(self.resources, watcher)
        if self.given_up:
            count = len(self.given_up)
            raise RunFailed(
                f"{count} task{'s' * (count > 1)} lost {MOST_LOSSES} workers each and {'were' if count > 1 else 'was'} "
                "given up; all others are finished. If memory ran out, use nodes with more memory, or fewer workers on "
                "each.\n" + "\n".join(self.given_up)
            )

    def answers(self) -> list[Any]:
        """Wait for answers of workers.

        Returns:
            The references to those that are there; none if nothing came for a while.

        Raises:
            ConnectionError: If there is no connection any more.
        """
        if not self.ray.is_initialized():
            raise ConnectionError("The connection was closed.")
        if not self.asked:
            time.sleep(TICK)
            return []
        some, others = self.ray.wait(list(self.asked), num_returns=1, timeout=TICK)
        more = self.ray.wait(others, num_returns=len(others), timeout=0)[0] if some and others else []
        return [*some, *more]

    def employ(self, worker: RayWorker) -> None:
        """Give a worker its next task if it waits for one; start the worker first if the seat is empty."""
        if worker.actor is None:
            worker.actor = self.actor.remote(self.variables, version_of("jaxlib"), self.gpus, caching())
            self.ask(worker, worker.actor.station, partial(self.arrived, worker))
        elif worker.idle and (task := worker.take(self.workers)) is not None:
            self.watcher.started(worker.number, task)
            self.ask(worker, worker.actor.play, partial(self.told, worker), task)

    def ask(self, worker: RayWorker, method: Any, then: Callable[[Any], None], *arguments: Any) -> None:
        """Ask a worker for something; `then` is called with the answer."""
        self.asked[method.remote(*arguments)] = worker
        worker.then = then

    def hear(self, answer: Any) -> None:
        """Take the answer of a worker.

        Args:
            answer: The reference to it.

        Raises:
            InvalidArgument: If the settings of the study cannot be used there.
            RunFailed: If the worker failed.
        """
        worker = self.asked.pop(answer)
        failures = self.ray.exceptions
        try:
            found = self.ray.get(answer)
        except failures.RayTaskError as error:
            if isinstance(error.cause, ExploraxError):
                raise InvalidArgument(str(error.cause)) from None
            raise RunFailed(f"A worker failed before it could play:\n{error}") from None
        except failures.RayError as error:
            self.fallen.append((worker, reason(error)))
        else:
            assert worker.then is not None
            worker.then(found)

    def arrived(self, worker: RayWorker, station: Station) -> None:
        """Look at the software of a worker that has started, and give it the study."""
        check_software(station)
        worker.station = station
        if not self.gpus and station.cpu not in self.kinds:
            self.kinds.add(station.cpu)
            if len(self.kinds) > 1:
                self.watcher.noted(
                    f"The nodes have CPUs of {len(self.kinds)} kinds, the latest on {station.host}. Results of one "
                    "kind may differ from those of another in the last bits, and so in single arms that are pulled."
                )
        self.ask(worker, worker.actor.open, partial(self.opened, worker), *self.shared, self.pause)

    def opened(self, worker: RayWorker, nothing: None) -> None:
        """Let a worker that is ready play."""
        self.false_starts = 0
        worker.ready = True
        self.employ(worker)

    def told(self, worker: RayWorker, message: int | Outcome | Failure) -> None:
        """Take a message about a task, and go on listening or give the worker its next task."""
        worker.hear(message, self.watcher)
        if worker.task is None:
            self.employ(worker)
        else:
            self.ask(worker, worker.actor.message, partial(self.told, worker))

    def bury(self, worker: RayWorker, why: str) -> None:
        """Replace a worker that is gone, and let its task be played again.

        Args:
            worker: The seat of the worker.
            why: A sentence about its end.

        Raises:
            RunFailed: If no worker lives long enough to play.
        """
        station, actor = worker.station, worker.actor
        self.false_starts += not worker.ready
        task = worker.leave()
        with contextlib.suppress(Exception):  # it may only be out of reach
            self.ray.kill(actor)
        if self.false_starts > len(self.workers) + MOST_LOSSES:
            raise RunFailed(
                f"Workers end before they can play. {why} Check that explorax is installed on the nodes, or ship its "
                "source (--ship-source)."
            )
        if task is not None:
            self.watcher.lost(worker.number, task)
            if station is not None and station.node in self.living_nodes():
                self.losses[task.digest] += 1
            if self.losses[task.digest] < MOST_LOSSES:
                worker.queue.push(task)
                what = "it is played again."
            else:
                self.given_up.append(f"{task}: {why}")
                what = f"it has lost {MOST_LOSSES} workers and is given up."
            self.watcher.noted(f"A worker is gone at {task}: {what} {why}")
        for one in self.workers:
            if one.idle or (one.actor is None and any(other.queue for other in self.workers)):
                self.employ(one)

    def living_nodes(self) -> set[str]:
        """Return the ids of the nodes that are alive."""
        return {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}

    def resources(self) -> str:
        """Return a sentence about what workers need and what the cluster has."""
        there, free = (found.get(self.resource, 0.0) for found in (self.ray.cluster_resources(), self.free()))
        text = f"a worker needs {self.share:g} of the {there:g} {self.unit} of the cluster, of which {free:g} are free"
        if self.memory > MENTIONED:
            largest_node = max((node["Resources"].get("memory", 0.0) for node in self.ray.nodes()), default=0.0)
            text += f", and {gibibytes(self.memory)} of memory, of which the largest node has {gibibytes(largest_node)}"
        return text

    def free(self) -> dict[str, float]:
        """Return the resources of the cluster that nobody uses."""
        found: dict[str, float] = self.ray.available_resources()
        return found

    def end(self) -> None:
        """End all workers, and with them what they are playing; without a head node they end by themselves."""
        if self.ray.is_initialized() and self.head.error() is None:
            for worker in self.workers:
                if worker.actor is not None:
                    with contextlib.suppress(Exception):  # it may be gone already
                        self.ray.kill(worker.actor)


class Shortage:
    """The time during which there is no worker at all.

    Args:
        patience: The seconds that this may take.
    """

    def __init__(self, patience: float):
        self.patience = patience
        self.since = time.monotonic()
        self.told = False

    def over(self) -> None:
        """Note that there is a worker."""
        self.since, self.told = time.monotonic(), False

    def goes_on(self, resources: Callable[[], str], watcher: Watcher) -> None:
        """Say why there is no worker if there has been none for a while.

        Args:
            resources: A function that returns a sentence about what workers need and what there is.
            watcher: The observer, who shows it.

        Raises:
            RunFailed: If there has been none for too long.
        """
        waited = time.monotonic() - self.since
        if waited > min(FIRST_NOTE, self.patience) and not self.told:
            self.told = True
            watcher.noted(f"Waiting for a worker to start, for at most {duration(self.patience)}: {resources()}.")
        elif waited > self.patience:
            raise RunFailed(
                f"No worker has started in {duration(waited)}: {resources()}. Stop what else runs there, add nodes, or "
                "use another cluster."
            )


def check_software(station: Station) -> None:
    """Raise `InvalidArgument` if a worker has other software than this process."""
    ours = software()
    pairs = zip(ours._fields, station.software, ours, strict=True)
    differ = [f"{name} is {theirs} there and {here} here" for name, theirs, here in pairs if theirs != here]
    if differ:
        raise InvalidArgument(
            f"A node of the cluster has other software than this process: on {station.host} {listed(differ)}. "
            "Install the same on both; the source of explorax can be shipped (--ship-source)."
        )


def caching() -> bool:
    """Return whether this process keeps compiled programs on disk, and workers shall."""
    return program_cache.VARIABLE in os.environ


def reason(error: Exception) -> str:
    """Return the first sentences of what an error of Ray says last, which is why; its first lines are ids."""
    sentences = str(error).strip().rpartition("\n")[2].strip().rstrip(".").split(". ")
    return f"{'. '.join(sentences[:SENTENCES])}."


def gibibytes(count: float) -> str:
    """Return a number of bytes in GiB as text."""
    return f"{count / 2**30:.1f} GiB"
