"""The worker process on another machine: it first says which software it has, and plays tasks only then.

Nothing of JAX and NumPy is imported before `Remote` is made, since the environment variables that it sets count only
until then.  It sets them only where jaxlib is that of the driver: a flag that another one does not know would end the
process before it could say what it has.
"""

import os
import platform
import queue
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

from explorax import devices, program_cache
from explorax.extras import optional
from explorax.software import Software, software, version_of


class Station(NamedTuple):
    """Where a worker is, and what it has there."""

    node: str  # the id of its node
    host: str
    cpu: tuple[str, ...]  # which instructions it has
    software: Software


class Remote:
    """A worker on a node of a cluster, whose methods are called one after the other.

    Args:
        variables: The environment variables of a worker on one core.
        jaxlib: The version of jaxlib that they are meant for.
        gpus: The share of a GPU that it may use; 0 for one core of the CPU.
        cache: Whether compiled programs are kept on the disk of its node, where all workers find them.
    """

    def __init__(self, variables: Mapping[str, str], jaxlib: str, gpus: float, cache: bool):
        if gpus:
            devices.prepare()
            if gpus < 1:
                os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", f"{0.75 * gpus:.3f}")
        elif version_of("jaxlib") == jaxlib:
            os.environ.update(variables)
        self.together = gpus > 0
        self.cache = cache
        self.messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

        self.ray = optional("ray", "a worker of a Ray cluster", "cluster")

    def station(self) -> Station:
        """Return where this worker is."""
        node = self.ray.get_runtime_context().get_node_id()
        return Station(node, platform.node(), tuple(program_cache.cpu()), software())

    def open(self, study: Any, read: Mapping[str, Any], pause: float) -> None:
        """Get ready for the tasks of a study.

        Args:
            study: The study.
            read: References to the data of its environments, by the digest of their settings.
            pause: The least number of seconds between two messages about progress.
        """
        from explorax.garbage import collect_rarely
        from explorax.runner.worker import Player

        collect_rarely()
        if self.cache:
            program_cache.cache_programs()
        self.player = Player(study, self.together, {key: self.ray.get(data) for key, data in read.items()})
        self.pause = pause

    def play(self, task: Any) -> Any:
        """Start a task in a thread of its own, and return the first message about it."""
        threading.Thread(target=self.attempt, args=(task,), daemon=True).start()
        return self.message()

    def attempt(self, task: Any) -> None:
        """Play a task to its end, and leave messages about it."""
        from explorax.runner.worker import throttled

        self.messages.put(self.player.attempt(task, throttled(self.messages.put, self.pause)))

    def message(self) -> Any:
        """Wait for the next message about the task: rounds that are done, its outcome, or its failure."""
        return self.messages.get()
