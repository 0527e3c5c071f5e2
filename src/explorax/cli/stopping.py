"""Ctrl-C and SIGTERM: a command that is stopped prints one line and exits with 128 + the number of the signal."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from explorax.errors import RunFailed

KEPT = "Stopped. What is finished is kept; run the same command again to continue."


class Stopped(KeyboardInterrupt):
    """A signal that asks to stop."""

    def __init__(self, number: int = signal.SIGINT, said: str = KEPT):
        super().__init__(said)
        self.number = number

    @property
    def exit_code(self) -> int:
        """The exit code that a shell expects of a command that was stopped."""
        return 128 + self.number


@contextmanager
def resumable(kept: Callable[[], str]) -> Iterator[None]:
    """Add to the message of a run that ends early in this context what is kept of it."""
    try:
        yield
    except KeyboardInterrupt as stop:
        number = stop.number if isinstance(stop, Stopped) else signal.SIGINT
        raise Stopped(number, f"Stopped. {kept()}") from None
    except RunFailed as error:
        raise RunFailed(f"{error}\n{kept()}") from error


@contextmanager
def stoppable() -> Iterator[None]:
    """Raise `Stopped` when a signal asks to stop in this context; a signal that is ignored stays ignored."""
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
    """Raise `Stopped`, or end the process during an import, where an exception may get lost and nothing is begun."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            print(f"explorax: {KEPT}", file=sys.stderr, flush=True)
            os._exit(128 + number)
        frame = frame.f_back
    raise Stopped(number)
