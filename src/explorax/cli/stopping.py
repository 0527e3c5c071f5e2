"""Ctrl-C and SIGTERM: a command that is stopped says so in a line, and ends with 128 + the number of the signal."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from explorax.errors import RunFailed

KEPT = "stopped; what is finished is kept, and the same command goes on from there"


class Stopped(KeyboardInterrupt):
    """A signal has asked to stop."""

    def __init__(self, number: int = signal.SIGINT, said: str = KEPT):
        super().__init__(said)
        self.number = number

    @property
    def exit_code(self) -> int:
        """What a shell expects of a command that was stopped."""
        return 128 + self.number


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """Say of a run that ends early meanwhile what is kept of it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        raise Stopped(number, f"stopped: {kept()}") from None
    except RunFailed as error:
        raise RunFailed(f"{error}\n{kept()}") from error


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` when a signal asks to stop meanwhile; one that is ignored stays so."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not for us
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in before.items():
            if handler in (signal.SIG_DFL, signal.default_int_handler):
                signal.signal(number, stop)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def stop(number: int, frame: FrameType | None) -> None:
    """Stop at once while a module is imported, where an exception may get lost and nothing is half done yet."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            print(f"explorax: {KEPT}", file=sys.stderr, flush=True)
            os._exit(128 + number)
        frame = frame.f_back
    raise Stopped(number)
