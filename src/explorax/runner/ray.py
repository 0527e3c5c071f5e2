"""A Ray cluster as what runs the tasks.

A worker is an actor of Ray with a core, or a share of a GPU, of its own.  It plays one task after the other, so that it
compiles a program once, and all workers of a node keep their programs in one place.  Before a worker plays, its
software is compared with that of this process, to which outcomes come back, and which alone keeps them.
"""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

from explorax.checks import check_positive, check_whole, is_number
from explorax.errors import InvalidArgument, shown
from explorax.experiments.study import Study
from explorax.extras import optional
from explorax.runner.ray_connection import connected
from explorax.runner.ray_crew import Actors
from explorax.runner.tasks import largest


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
        # A call without a connection would start a cluster of Ray's own here.
        os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
        ray = optional("ray", "a Ray cluster", "cluster")
        with connected(ray, self.address, self.ship_source):
            crew = Actors(ray, study, most, workers=self.workers, gpus=self.gpus, patience=self.patience)
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
