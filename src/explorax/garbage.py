"""How often Python looks for unreachable objects, in processes that trace programs or draw figures."""

import gc

OBJECTS = 100_000  # new objects after which Python looks for unreachable ones


def collect_rarely() -> None:
    """Make Python look for unreachable objects rarely: tracing makes many that live, which it would look at in vain."""
    gc.freeze()
    gc.set_threshold(OBJECTS)
