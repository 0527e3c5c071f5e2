"""Workers on the nodes of a Ray cluster as what runs the tasks.

A worker is an actor of Ray with a core, or a share of a GPU, of its own.  It plays one task after the other, so that it
compiles a program once, and all workers of a node keep their programs in one place.  Before a worker plays, its
software is compared with ours.  Studies and data sets are put into Ray's object store once, and outcomes come back to
this process, which alone keeps them.

A worker that is gone, for whatever reason, is replaced as soon as a core is free, and its task is played again, there
or by another worker.  A task that loses `MOST_LOSSES` workers on nodes that live on is given up.  Ray ends a process
whose head node is gone, after a minute; this one notices earlier and says so.
"""

import contextlib
import os
import signal
import socket
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from explorax import environments, program_cache
from explorax.checks import check_positive, check_whole, is_number
from explorax.errors import ExploraxError, InvalidArgument, RunFailed, shown
from explorax.experiments.study import Study
from explorax.extras import optional
from explorax.record import settings_digest
from explorax.remote import Remote, Station
from explorax.runner.executor import Watcher
from explorax.runner.local import usable_cores
from explorax.runner.queues import Seat, share_out
from explorax.runner.tasks import Task, is_brief, largest
from explorax.runner.worker import Failure, Outcome
from explorax.software import SOURCE, software
from explorax.text import duration, listed

MOST_LOSSES = 3  # workers that one task may lose
TICK = 2.0  # seconds between two looks at the cluster while no message comes
HEAD_PATIENCE = 30.0  # seconds that the head node may be silent; Ray itself ends this process after 60
FIRST_NOTE = 10.0  # seconds without a worker after which one is told why
MESSAGES = 100  # about progress, that all workers together send in a second
LONGEST_REASON = 300  # characters of what Ray tells of the end of a worker
MENTIONED = 2**27  # bytes of memory for a worker, less of which any node has
FEWEST = 0.5  # seconds between two messages about progress of a worker


@dataclass(frozen=True)
class RayCluster:
    """An executor that runs tasks on a Ray cluster.

    Attributes:
        address: "auto", "local", "ray://host:port", or "host:port" of the head node.
        workers: How many workers there are to be; None for one on each core, or on each share of a GPU.
        gpus: The share of a GPU that each worker has; 0 for workers on one core each.
        ship_source: Whether the nodes get this process's source of explorax.
        patience: Seconds to wait for a free core when there is no worker.
    """

    address: str
    workers: int | None
    gpus: float
    ship_source: bool
    patience: float

    @property
    def together(self) -> bool:
        """Whether a task is all instances of all curves of a policy: on GPUs."""
        return self.gpus > 0

    @property
    def device(self) -> str:
        """The kind of device that plays."""
        return "gpu" if self.together else "cpu"

    def check(self, study: Study) -> None:
        """Raise `InvalidArgument` if the environment of a panel cannot be built."""
        largest(study)

    def where(self, tasks: int) -> str:
        """Return that tasks run on a cluster."""
        return "on a Ray cluster"

    @contextlib.contextmanager
    def crew(self, study: Study, most: int) -> "Iterator[Actors]":
        """Return workers on the cluster, which are ended with this context."""
        ray = optional("ray", "a Ray cluster", "cluster")
        with connected(ray, self):
            crew = Actors(ray, self, study, most)
            try:
                yield crew
            finally:
                crew.end()


def ray_cluster(
    address: str = "auto",
    *,
    workers: int | None = None,
    gpus: float = 0.0,
    ship_source: bool = False,
    patience: float = 300.0,
) -> RayCluster:
    """Run tasks on a Ray cluster, with the same results as on this machine.

    Args:
        address: "auto" for the cluster that this machine belongs to, or that RAY_ADDRESS names; "local" for a cluster
            of this machine alone, which ends with the run; "ray://host:10001" for a cluster elsewhere; or "host:6379",
            the head node of the cluster that this machine belongs to.  Default: "auto".
        workers: The number of workers, which changes no result.  Workers that find no free core wait for one, such as
            one that an autoscaler adds.  Default: one for each core of the cluster, or each share of a GPU.
        gpus: The share of a GPU that each worker has: 1, or less for several workers on each GPU.  A run plays either
            on GPUs or on CPUs, since their results differ in the last bits.  Default: 0, for one core each.
        ship_source: Whether the nodes get this process's source of explorax.  What it depends on must be installed
            there.  Default: False, for nodes that have it.
        patience: The seconds to wait while no worker finds a free core.  Default: 300.

    Returns:
        The executor, for the argument `on` of `explorax.runner.run`.

    Raises:
        InvalidArgument: If an argument has another type or is out of range.
    """
    if not isinstance(address, str) or not address:
        raise InvalidArgument(
            f"address must be 'auto', 'local' or the address of a cluster, got {shown(address)}. "
            "Give one such as 'ray://host:10001'."
        )
    if workers is not None:
        check_whole("workers", workers, 1)
    if not is_number(gpus) or not (0 <= gpus <= 1):
        raise InvalidArgument(
            f"gpus must be a number from 0 to 1, got {shown(gpus)}. A worker uses one GPU, or a share of one."
        )
    if not isinstance(ship_source, bool):
        raise InvalidArgument(f"ship_source must be True or False, got {shown(ship_source)}. Leave it out for False.")
    check_positive("patience", patience)
    return RayCluster(address, workers, float(gpus), ship_source, float(patience))


@contextlib.contextmanager
def connected(ray: Any, cluster: RayCluster) -> Iterator[None]:
    """Be connected to a cluster in this context; a connection that is there already is used, and stays.

    Args:
        ray: The package.
        cluster: What to connect to.

    Yields:
        Nothing, while the connection lasts.

    Raises:
        InvalidArgument: If a connection is there that contradicts the settings.
        RunFailed: If the cluster cannot be reached, or is lost.
    """
    ours = not ray.is_initialized()
    if ours:
        with handlers_kept():
            connect(ray, cluster)
    elif cluster.address != "auto" or cluster.ship_source:
        given = f"address={cluster.address!r}" if cluster.address != "auto" else "ship_source=True"
        raise InvalidArgument(
            f"{given} must be left out while this process is connected to a Ray cluster already. "
            "Leave it out to use that cluster, or call ray.shutdown() first."
        )
    try:
        yield
    except ConnectionError as error:
        raise RunFailed(f"The connection to the Ray cluster at {cluster.address} is lost: {error}.") from error
    finally:
        if ours:
            ray.shutdown()


def connect(ray: Any, cluster: RayCluster) -> None:
    """Connect this process to a cluster, or raise `RunFailed` if it cannot be reached."""
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if cluster.address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported of a run on one's own machine
        given |= {"num_cpus": cluster.workers or usable_cores(), "include_dashboard": False}
    if cluster.ship_source:
        given["runtime_env"] = {"py_modules": [str(SOURCE)]}
    try:
        with warnings.catch_warnings():  # JAX warns of processes that are forked, as Ray starts those of "local"
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(address=cluster.address, **given)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        raise RunFailed(
            f"The Ray cluster at {cluster.address!r} cannot be used: {str(error).strip().rstrip('.')}. Look with "
            "`ray status` whether it runs, start one with `ray start --head`, or give the address of another."
        ) from error


@contextlib.contextmanager
def handlers_kept() -> Iterator[None]:
    """Put back the handlers of signals at the end of this context: Ray sets its own."""
    if threading.current_thread() is not threading.main_thread():
        yield  # which may not set any
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Chair(Seat):
    """The seat of a worker on the cluster: the worker, and what it has been asked for.

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
        cluster: The settings.
        study: The study.
        most: The largest number of tasks at a time.
    """

    def __init__(self, ray: Any, cluster: RayCluster, study: Study, most: int):
        self.ray, self.cluster, self.study = ray, cluster, study
        self.resource = "GPU" if cluster.together else "CPU"
        self.share = cluster.gpus or 1.0  # of that resource, for each worker
        self.memory = 0 if cluster.together else largest(study).memory
        room = int(ray.cluster_resources().get(self.resource, 0.0) / self.share)
        self.chairs = [Chair(number) for number in range(min(cluster.workers or max(room, 1), most))]
        self.actor = ray.remote(Remote).options(
            num_cpus=1, num_gpus=cluster.gpus, memory=self.memory or None, max_restarts=0, max_task_retries=0
        )
        self.asked: dict[Any, Chair] = {}  # by the reference to the answer
        self.fallen: list[tuple[Chair, str]] = []  # workers that are gone, and why
        self.losses: Counter[str] = Counter()  # of workers, by the digest of the task
        self.given_up: list[str] = []  # tasks, with the reason
        self.false_starts = 0  # workers in a row that were gone before they could play
        self.kinds: set[tuple[str, ...]] = set()  # of CPUs
        self.head = Head(ray)
        self.shortage = Shortage(cluster.patience)

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
        return max(FEWEST, len(self.chairs) / MESSAGES)

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
        share_out(tasks, self.chairs)
        for chair in self.chairs:
            self.employ(chair)
        while any(chair.task is not None or chair.queue for chair in self.chairs):
            for answer in self.answers():
                self.hear(answer)
            if (self.fallen or self.head.is_due()) and self.head.answers():  # else what follows would block
                while self.fallen:
                    self.bury(*self.fallen.pop())
                if any(chair.station for chair in self.chairs):
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
        """Wait for answers of workers, for a while; return the references to those that are there."""
        if not self.asked:
            time.sleep(TICK)
            return []
        some, others = self.ray.wait(list(self.asked), num_returns=1, timeout=TICK)
        more = self.ray.wait(others, num_returns=len(others), timeout=0)[0] if some and others else []
        return [*some, *more]

    def employ(self, chair: Chair) -> None:
        """Give a worker that has none a task, if one is left for it; start a worker first if there is none."""
        if chair.actor is None:
            chair.actor = self.actor.remote(is_brief(self.study), self.cluster.gpus, caching())
            self.ask(chair, chair.actor.station, partial(self.arrived, chair))
        elif chair.idle and (task := chair.take(self.chairs)) is not None:
            self.watcher.started(chair.number, task)
            self.ask(chair, chair.actor.play, partial(self.told, chair), task)

    def ask(self, chair: Chair, method: Any, then: Callable[[Any], None], *arguments: Any) -> None:
        """Ask a worker for something; `then` is called with the answer."""
        self.asked[method.remote(*arguments)] = chair
        chair.then = then

    def hear(self, answer: Any) -> None:
        """Take the answer of a worker.

        Args:
            answer: The reference to it.

        Raises:
            InvalidArgument: If the settings of the study cannot be used there.
            RunFailed: If the worker failed.
        """
        chair = self.asked.pop(answer)
        failures = self.ray.exceptions
        try:
            found = self.ray.get(answer)
        except failures.RayTaskError as error:
            if isinstance(error.cause, ExploraxError):
                raise InvalidArgument(str(error.cause)) from None
            raise RunFailed(f"A worker failed before it could play:\n{error}") from None
        except failures.RayError as error:
            self.fallen.append((chair, reason(error)))
        else:
            assert chair.then is not None
            chair.then(found)

    def arrived(self, chair: Chair, station: Station) -> None:
        """Look at the software of a worker that has started, and give it the study."""
        check_software(station)
        chair.station = station
        if not self.cluster.together and station.cpu not in self.kinds:
            self.kinds.add(station.cpu)
            if len(self.kinds) > 1:
                self.watcher.noted(
                    f"The nodes have CPUs of {len(self.kinds)} kinds, the latest on {station.host}. Results of one "
                    "kind may differ from those of another in the last bits, and so in single arms that are pulled."
                )
        self.ask(chair, chair.actor.open, partial(self.opened, chair), *self.shared, self.pause)

    def opened(self, chair: Chair, nothing: None) -> None:
        """Let a worker that is ready play."""
        self.false_starts = 0
        chair.ready = True
        self.employ(chair)

    def told(self, chair: Chair, message: int | Outcome | Failure) -> None:
        """Take a message about a task, and go on listening or give the worker its next task."""
        chair.hear(message, self.watcher)
        if chair.task is None:
            self.employ(chair)
        else:
            self.ask(chair, chair.actor.message, partial(self.told, chair))

    def bury(self, chair: Chair, why: str) -> None:
        """Replace a worker that is gone, and let its task be played again.

        Args:
            chair: The seat of the worker.
            why: A sentence about its end.

        Raises:
            RunFailed: If no worker lives long enough to play.
        """
        station, actor = chair.station, chair.actor
        self.false_starts += not chair.ready
        task = chair.leave()
        with contextlib.suppress(Exception):  # it may only be out of reach
            self.ray.kill(actor)
        if self.false_starts > len(self.chairs) + MOST_LOSSES:
            raise RunFailed(
                f"Workers end before they can play. {why} Check that explorax is installed on the nodes, or ship its "
                "source (--ship-source)."
            )
        if task is not None:
            self.watcher.lost(chair.number, task)
            if station is not None and station.node in self.living_nodes():
                self.losses[task.digest] += 1
            if self.losses[task.digest] < MOST_LOSSES:
                chair.queue.push(task)
                what = "it is played again."
            else:
                self.given_up.append(f"{task}: {why}")
                what = f"it has lost {MOST_LOSSES} workers and is given up."
            self.watcher.noted(f"A worker is gone at {task}: {what} {why}")
        for one in self.chairs:
            if one.idle or (one.actor is None and any(other.queue for other in self.chairs)):
                self.employ(one)

    def living_nodes(self) -> set[str]:
        """Return the ids of the nodes that are alive."""
        return {node["NodeID"] for node in self.ray.nodes() if node["Alive"]}

    def resources(self) -> str:
        """Return a sentence about what workers need and what the cluster has."""
        there, free = (found.get(self.resource, 0.0) for found in (self.ray.cluster_resources(), self.free()))
        unit = "GPUs" if self.cluster.together else "cores"
        text = f"a worker needs {self.share:g} of the {there:g} {unit} of the cluster, of which {free:g} are free"
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
        if self.head.error() is None:
            for chair in self.chairs:
                if chair.actor is not None:
                    with contextlib.suppress(Exception):  # it may be gone already
                        self.ray.kill(chair.actor)


class Head:
    """The head node of a cluster, which is to answer from time to time.

    Args:
        ray: The package, connected to the cluster.
    """

    def __init__(self, ray: Any):
        if ray.util.client.ray.is_connected():  # which notices by itself
            self.address = None
        else:
            host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
            self.address = host, int(port)
        self.asked = self.heard = time.monotonic()

    def is_due(self) -> bool:
        """Return whether it is time to ask the head node again."""
        return time.monotonic() - self.asked >= TICK

    def answers(self) -> bool:
        """Return whether the head node answers now; raise `RunFailed` if it has not answered for long."""
        self.asked = time.monotonic()
        error = self.error()
        if error is None:
            self.heard = self.asked
        elif self.asked - self.heard > HEAD_PATIENCE:
            raise RunFailed(
                f"The head node of the Ray cluster does not answer ({error}). Start the cluster again, then run the "
                "same command again."
            )
        return error is None

    def error(self) -> OSError | None:
        """Try to reach the head node; return the error if it does not answer."""
        if self.address is not None:
            try:
                socket.create_connection(self.address, timeout=TICK).close()
            except OSError as error:
                return error
        return None


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
            f"The nodes of a cluster must have the software of this process, but on {station.host} {listed(differ)}. "
            "Install the same on both; the source of explorax can be shipped (--ship-source)."
        )


def caching() -> bool:
    """Return whether this process keeps compiled programs on disk, and workers shall."""
    return program_cache.VARIABLE in os.environ


def reason(error: Exception) -> str:
    """Return the sentence of an error of Ray that tells most, without ids."""
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if line and not line.startswith(("class_name:", "actor_id:", "pid:", "namespace:"))]
    return (told[-1] if told else type(error).__name__)[:LONGEST_REASON].rstrip(".") + "."


def gibibytes(count: float) -> str:
    """Return a number of bytes in GiB as text."""
    return f"{count / 2**30:.1f} GiB"
