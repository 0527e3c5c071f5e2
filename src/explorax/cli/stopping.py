"""Ctrl-C and SIGTERM: a command that is stopped says so in a line, and ends with 128 + the number of the signal."""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

KEPT = "stopped; what is finished is kept, and the same command goes on from there"


class Stopped(KeyboardInterrupt):
    """A signal has asked to stop."""

    def __init__(self, number: int):
        super().__init__()
        self.number = number


def exit_code(stop: KeyboardInterrupt) -> int:
    """What a shell expects of a command that was stopped."""
    return 128 + (stop.number if isinstance(stop, Stopped) else signal.SIGINT)


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
