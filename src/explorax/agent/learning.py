"""Learning from rewards that came: one `update` after the other, in the order given, compiled.

A batch is taken in pieces of a few fixed sizes, so that a handful of programs serves batches of any length.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from jax import lax

from explorax.agent.deciding import compiled
from explorax.agent.pending import Pulled
from explorax.policies.base import State

PIECES = (1024, 128, 16, 1)


def learn(update: Callable[..., State], state: State, pulled: Pulled, rewards: np.ndarray) -> State:
    """The state after these rewards."""
    start = 0
    for size in PIECES:
        while len(rewards) - start >= size:
            piece = slice(start, start + size)
            state = updates(update, size)(state, pulled.indices[piece], pulled.features[piece], rewards[piece])
            start += size
    return state


@lru_cache(maxsize=256)
def updates(update: Callable[..., State], size: int) -> Callable[..., State]:
    """`size` updates as one program."""

    def one(state: State, pulled: Any) -> tuple[State, None]:
        return update(state, *pulled), None

    def all_of_them(state: State, arms: Any, features: Any, rewards: Any) -> State:
        if size == 1:
            return update(state, arms[0], features[0], rewards[0])
        return lax.scan(one, state, (arms, features, rewards))[0]

    return compiled(all_of_them)
