"""The connection to a Ray cluster, and its head node, without which Ray would end this process after a minute."""

import contextlib
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from explorax.errors import InvalidArgument, RunFailed
from explorax.runner.local import usable_cores
from explorax.software import SOURCE

TICK = 2.0  # seconds between two looks at the cluster while no message comes
HEAD_PATIENCE = 30.0  # seconds that the head node may be silent


@contextlib.contextmanager
def connected(ray: Any, address: str, ship_source: bool) -> Iterator[None]:
    """Connect this process to a cluster, until the end of this context, unless it is connected already.

    Args:
        ray: The package.
        address: The address of the cluster, as `ray_cluster` takes it.
        ship_source: Whether the nodes get the source of explorax.

    Yields:
        Nothing, while the connection lasts.

    Raises:
        InvalidArgument: If a connection is there that contradicts the settings.
        RunFailed: If the cluster cannot be reached, or is lost.
    """
    ours = not ray.is_initialized()
    if ours:
        with handlers_kept():
            connect(ray, address, ship_source)
    elif address != "auto" or ship_source:
        name, given = ("address", address) if address != "auto" else ("ship_source", ship_source)
        raise InvalidArgument(
            f"{name} must be left out while this process is connected to a Ray cluster, got {given!r}. "
            "Leave it out to use that cluster, or call ray.shutdown() first."
        )
    try:
        yield
    except ConnectionError as error:
        raise RunFailed(
            f"The connection to the Ray cluster at {address!r} is lost: {str(error).rstrip('.')}. Start the "
            "cluster again if it is gone, then run the same command again."
        ) from error
    finally:
        if ours:
            ray.shutdown()


def connect(ray: Any, address: str, ship_source: bool) -> None:
    """Connect this process to a cluster, or raise `RunFailed` if it cannot be reached."""
    given: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address == "local":
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported of a run on one's own machine
        given |= {"num_cpus": usable_cores(), "include_dashboard": False}
    if ship_source:
        given["runtime_env"] = {"py_modules": [str(SOURCE)]}
    try:
        with warnings.catch_warnings():  # of forked processes, by JAX, and of what is an error anyway, by Ray
            warnings.simplefilter("ignore")
            ray.init(address=address, **given)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        remedy = "Look with `ray status` whether it runs, start one with `ray start --head`, or give another address."
        if address.startswith("ray://"):
            remedy += " If it asks for a token, set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN."
        raise RunFailed(
            f"The Ray cluster at {address!r} cannot be used: {str(error).strip().rstrip('.')}. {remedy}"
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
