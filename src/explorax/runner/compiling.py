"""The time that is spent compiling: JAX tells listeners how long each step of a compilation took."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import jax

STEPS = "/jax/core/compile/"  # how the names of JAX's events begin: tracing, lowering, compiling

Span = tuple[float, float]  # from when to when


class Heard(threading.local):
    """The times that a thread has spent compiling since `since`."""

    def __init__(self) -> None:
        self.since = 0.0
        self.spans: list[Span] = []


heard = Heard()
ever = threading.Event()  # set once JAX has told anything: every process compiles something


@cache
def listen() -> None:
    """Register the listener that records compilation times, once in each process."""

    def hear(event: str, duration_secs: float, **about: str | int) -> None:
        if event.startswith(STEPS):
            now = time.perf_counter()
            heard.spans.append((max(now - duration_secs, heard.since), now))  # JAX's clock may be set meanwhile
            ever.set()

    jax.monitoring.register_event_duration_secs_listener(hear)


@contextmanager
def compile_times() -> Iterator[list[Span]]:
    """Collect the times at which this thread compiles in this context."""
    listen()
    heard.since, heard.spans = time.perf_counter(), []
    yield heard.spans


def compile_seconds(spans: list[Span]) -> float | None:
    """Return the total length of time spans, with overlaps counted once; None if JAX has never reported any."""
    if not ever.is_set():
        return None
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return total
