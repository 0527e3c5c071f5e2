"""Going on with other settings: a state that a policy has made, carried over to the same policy made otherwise.

    new = make("glm_tsl", capacity=100_000)          # the same algorithm, with more room
    state = adopt(new, state, new.init(d))           # and the past of the old one

A GLM policy may change all of its settings except the family, the discount and the window: what it remembers is the
past, and its estimate is fitted to that anew.  Its memory may change where the past is still known,

    exact rows  →  refitted, constant          refitted  →  exact rows, constant          fixed arms  →  constant

and not the other way round: a summary of constant size does not know its rewards any more.  What was forgotten stays
forgotten.  Any other policy that keeps rows (`capacity`) may have more room for them, until it has begun to forget.
"""

from typing import Any

import jax
import numpy as np

from explorax.errors import InvalidArgument
from explorax.policies.base import Policy, State


def adopt(policy: Policy, state: State, fresh: State) -> State:
    """Carry a state over to a policy that was made with other settings.

    Args:
        policy: The policy that goes on.
        state: What the same algorithm, with other settings, has learned.  It is not changed.
        fresh: What `policy.init` returns for the same arms or number of features, in the same dtype.

    Returns:
        The state with which `policy` goes on; `state` itself if nothing differs.

    Raises:
        InvalidArgument: If the past that `policy` needs is not in `state`, or belongs to other arms or another policy.
        HistoryFull: If `policy` has room for fewer rewards than `state` keeps, and may not forget.
    """
    return resized(state, fresh) if policy.adopt is None else policy.adopt(state, fresh)


def resized(state: State, fresh: State) -> State:
    """Return a state of any policy with room for another number of rows."""
    structure: Any = jax.tree.structure(state, is_leaf=has_room)
    if structure != jax.tree.structure(fresh, is_leaf=has_room):
        raise InvalidArgument(
            f"state must have the structure that this policy's states have, got {str(structure)[:200]}. "
            "Go on with the policy and the settings that made it, except for a larger capacity."
        )
    return jax.tree.map(carried, state, fresh, is_leaf=has_room)


def has_room(part: Any) -> bool:
    """Return whether a part of a state has room for rows (`glm.history.Rows`)."""
    return hasattr(part, "resized_like")


def carried(old: Any, new: Any) -> Any:
    """Return one part of a state: rows in their new room, and an array as it is."""
    if has_room(old):
        return old.resized_like(new)
    if (np.shape(old), old.dtype) != (np.shape(new), new.dtype):
        raise InvalidArgument(
            f"state must have arrays like those of this policy's states, got shape {np.shape(old)} and {old.dtype} "
            f"where {np.shape(new)} and {new.dtype} are needed. Only a capacity can be changed."
        )
    return old
