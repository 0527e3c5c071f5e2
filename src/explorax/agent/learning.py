"""Learning from rewards that came: checked, and then one `update` after the other, in the order given, compiled.

A batch is taken in pieces of a few fixed sizes, so that a handful of programs serves batches of any length.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from explorax.agent.deciding import compiled
from explorax.agent.packing import Packed, Packing
from explorax.agent.pending import Pulled
from explorax.checks import check_reward_size
from explorax.errors import HistoryFull, InvalidShape, NotFinite
from explorax.glm import families
from explorax.glm.history import check_room, limited_rows
from explorax.policies.base import Policy, State
from explorax.programs import kept

PIECES = (1024, 128, 16)  # and the rest one by one


def learn(
    update: Callable[..., State], packing: Packing, packed: Packed, pulled: Pulled, rewards: np.ndarray
) -> Packed:
    """The packed state after these rewards; raises if it would not be finite."""
    before, start = packed, 0
    for size in PIECES:
        while len(rewards) - start >= size > 1:
            piece = slice(start, start + size)
            packed = updates(update, packing, size)(
                packed, pulled.indices[piece], pulled.features[piece], rewards[piece]
            )
            start += size
    for i in range(start, len(rewards)):
        packed = one_update(update, packing)(packed, pulled.indices[i], pulled.features[i], rewards[i])
    if not packing.is_finite(packed) and packing.is_finite(before):
        raise NotFinite(
            f"reward must leave a finite state, got {rewards[:3].tolist()} for arms with features up to "
            f"{np.max(np.abs(pulled.features)):g}: the state stays as it was and the decisions still wait for their "
            "rewards. Scale features and rewards to sizes of about 1."
        )
    return packed


@kept
def one_update(update: Callable[..., State], packing: Packing) -> Callable[..., Packed]:
    """An update of a packed state."""
    return compiled(lambda packed, *pulled: packing.pack(update(packing.unpack(packed), *pulled)))


@kept
def updates(update: Callable[..., State], packing: Packing, size: int) -> Callable[..., Packed]:
    """`size` updates as one program."""

    def one(state: State, pulled: Any) -> tuple[State, None]:
        return update(state, *pulled), None

    def all_of_them(packed: Packed, arms: Any, features: Any, rewards: Any) -> Packed:
        return packing.pack(lax.scan(one, packing.unpack(packed), (arms, features, rewards))[0])

    return compiled(all_of_them)


def checked_rewards(rewards: object, ids: Sequence[int], single: bool) -> np.ndarray:
    """Rewards as an array, one for each decision."""
    array = families.as_rewards(rewards)
    if array.shape != (() if single else (len(ids),)):
        raise InvalidShape(f"reward has shape {array.shape}: give one number for each of {len(ids)} decisions")
    return array.reshape(len(ids))


def check_possible(policy: Policy, rewards: np.ndarray, dtype: str) -> None:
    """Raise unless the policy can learn from all of these rewards."""
    values = float(rewards[0]) if len(rewards) == 1 else rewards
    if policy.check is None:
        families.check_rewards(families.gaussian, values)
    else:
        policy.check(values)
    check_reward_size(values, dtype)


def room(state: State) -> float:
    """How many more rewards a state can take in; infinite where it forgets, or remembers without rows."""
    return min((rows.capacity - int(rows.seen) for rows in limited_rows(state)), default=math.inf)


def check_room_for(policy: Policy, state: State, count: int) -> None:
    """Raise if so many rewards find no room."""
    for rows in limited_rows(state):
        try:
            check_room(rows, count)
        except HistoryFull as error:
            name, settings = policy.recipe or ("…", {})
            larger = {**settings, "capacity": 2 * rows.capacity}
            listed = "".join(f", {key}={value!r}" for key, value in larger.items())
            raise HistoryFull(
                f"{error}. An agent that is full goes on with more room after agent.save(path) and "
                f"Agent.load(path, make({name!r}{listed}))"
            ) from None
