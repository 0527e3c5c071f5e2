"""How much of a time was spent compiling: JAX tells listeners how long each step of it took."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import jax

STEPS = "/jax/core/compile/"  # how the names of its events begin: tracing, lowering, compiling

Span = tuple[float, float]  # from when to when


class Heard(threading.local):
    """What a thread has spent compiling since someone asked."""

    def __init__(self) -> None:
        self.since = 0.0
        self.spans: list[Span] = []


heard = Heard()
ever = threading.Event()  # set once JAX has told anything: every process compiles something


@cache
def listen() -> None:
    """Be told from now on."""

    def hear(event: str, duration_secs: float, **about: str | int) -> None:
        if event.startswith(STEPS):
            now = time.perf_counter()
            heard.spans.append((max(now - duration_secs, heard.since), now))  # JAX's clock may be set meanwhile
            ever.set()

    jax.monitoring.register_event_duration_secs_listener(hear)


@contextmanager
def compile_times() -> Iterator[list[Span]]:
    """Collect when this thread compiles meanwhile."""
    listen()
    heard.since, heard.spans = time.perf_counter(), []
    yield heard.spans


def compile_seconds(spans: list[Span]) -> float | None:
    """How long that is in all, steps within steps counted once; None where JAX never told anything."""
    if not ever.is_set():
        return None
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(end - max(begin, until), 0.0)
        until = max(until, end)
    return total
