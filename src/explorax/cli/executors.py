"""The options that say what runs a study: processes of this machine, a GPU, or a Ray cluster."""

import argparse
from typing import TYPE_CHECKING

from explorax.errors import InvalidArgument

if TYPE_CHECKING:
    from explorax.runner import Executor

ONLY_WITH_CLUSTER = {"workers": None, "gpus": None, "ship_source": False}  # and what they are if not given


def add_executors(to: argparse.ArgumentParser) -> None:
    """Add the options that say what runs a study."""
    to.add_argument(
        "--processes",
        type=int,
        metavar="P",
        help="run in P processes on the CPU of this machine (default: on a GPU if there is one, else on all cores)",
    )
    group = to.add_argument_group("on a Ray cluster")
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="run on a Ray cluster: auto (the one that this machine belongs to, or RAY_ADDRESS), ray://HOST:PORT, or "
        "local (one of this machine alone)",
    )
    group.add_argument("--workers", type=int, metavar="W", help="number of workers (default: one for each core)")
    group.add_argument(
        "--gpus", type=float, metavar="G", help="share of a GPU for each worker, up to 1 (default: workers use CPUs)"
    )
    group.add_argument(
        "--ship-source", action="store_true", help="send the source of explorax to the nodes, which need only the rest"
    )


def executor(options: argparse.Namespace) -> "Executor":
    """Return what runs the study, as the command line says.

    Args:
        options: The command line: `processes`, `cluster`, `workers`, `gpus` and `ship_source`.

    Returns:
        The executor.

    Raises:
        InvalidArgument: If options contradict each other, or a number is out of range.
    """
    from explorax.runner import default_executor, local_processes, ray_cluster

    if options.cluster is None:
        for name, missing in ONLY_WITH_CLUSTER.items():
            if (given := getattr(options, name)) is not missing:
                raise InvalidArgument(
                    f"--{name.replace('_', '-')} must be left out without --cluster, got {given}. "
                    "Give the address of a Ray cluster, or `--cluster local`."
                )
        return default_executor() if options.processes is None else local_processes(options.processes)
    if options.processes is not None:
        raise InvalidArgument(
            f"--processes must be left out with --cluster, got {options.processes}. Say with --workers how many there "
            "are to be on the cluster."
        )
    gpus = 0.0 if options.gpus is None else options.gpus
    return ray_cluster(options.cluster, workers=options.workers, gpus=gpus, ship_source=options.ship_source)
