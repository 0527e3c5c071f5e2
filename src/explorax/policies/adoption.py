"""Continuing with other settings: the state of a policy is carried over to the same algorithm with other settings.

    new = make("glm_tsl", capacity=100_000)          # the same algorithm, with more room
    state = adopt(new, state, new.init(d))           # and the past of the old one

All settings of a GLM policy may change except the family, the discount and the window: the policy remembers the past,
and its estimate is fitted to the past anew.  The memory may change as long as the past is still known,

    exact rows  →  refitted, constant          refitted  →  exact rows, constant          fixed arms  →  constant

but not in the other direction, since a summary of constant size has lost the single rewards.  Forgotten rewards stay
forgotten.  Any other policy that keeps rows (`capacity`) can get more room for them, until it has begun to forget.
"""

from typing import Any

import jax
import numpy as np

from explorax.errors import InvalidArgument
from explorax.policies.base import Policy, State


def adopt(policy: Policy, state: State, fresh: State) -> State:
    """Carry a state over to a policy that was built with other settings.

    Args:
        policy: The policy that continues.
        state: The state that the same algorithm has learned with other settings.  It does not change.
        fresh: The state that `policy.init` returns for the same arms or number of features, in the same dtype.

    Returns:
        The state with which `policy` continues; `state` itself if nothing differs.

    Raises:
        InvalidArgument: If `state` does not hold the past that `policy` needs, or belongs to other arms or another
            policy.
        HistoryFull: If `policy` has room for fewer rewards than `state` keeps, and may not forget.
    """
    return resized(state, fresh) if policy.adopt is None else policy.adopt(state, fresh)


def resized(state: State, fresh: State) -> State:
    """Return a state of any policy with room for another number of rows.

    Args:
        state: The state of the policy with the other settings.
        fresh: A fresh state with the new room.

    Returns:
        The state in its new room.

    Raises:
        InvalidArgument: If the two states do not have the same structure.
    """
    structure: Any = jax.tree.structure(state, is_leaf=has_room)
    if structure != jax.tree.structure(fresh, is_leaf=has_room):
        raise InvalidArgument(
            f"state must have the structure that this policy's states have, got {str(structure)[:200]}. "
            "Continue with the policy and the settings that made it; only the capacity may grow."
        )
    return jax.tree.map(carried, state, fresh, is_leaf=has_room)


def has_room(part: Any) -> bool:
    """Return whether a part of a state has room for rows (`glm.history.Rows`)."""
    return hasattr(part, "resized_like")


def carried(old: Any, new: Any) -> Any:
    """Return one part of a state: rows in their new room, and an array unchanged.

    Args:
        old: The part in the old state.
        new: The part in the fresh state.

    Returns:
        The part for the new state.

    Raises:
        InvalidArgument: If the shape or the dtype of an array differs.
    """
    if has_room(old):
        return old.resized_like(new)
    if (np.shape(old), old.dtype) != (np.shape(new), new.dtype):
        raise InvalidArgument(
            f"state must have arrays like those of this policy's states, got shape {np.shape(old)} and {old.dtype} "
            f"where {np.shape(new)} and {new.dtype} are needed. Only a capacity can be changed."
        )
    return old
