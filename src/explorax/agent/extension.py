"""Fixed arms that are added to the state of a policy, without compiling anything while there is room for them.

A state that gets room for more arms is filled up with zeros first.  The program that adds an arm is then the same
whether there was room for it or not, and is compiled once for each shape of the table of arms.

**Rows that are given away.**  If the state knows no reward of a retired arm (`Policy.unrewarded`), its row tells
nothing, and another arm may have it: the state is then extended to the table with the other arm's features.  A decision
on the former arm may still wait for its reward.  When the reward comes, the features that were kept with the decision
are not those of the row any more, and get a row again (`with_rows`).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax import Array

from explorax.agent.compiled import compiled
from explorax.agent.own_arms import Arms
from explorax.agent.packing import Arrays, Packed, Packing
from explorax.policies.base import ExtendFn, Policy, State
from explorax.programs import kept


def extended(extend: ExtendFn, packed: Packed, arms: Array) -> Packed:
    """Return the packed state of a policy after fixed arms were added.

    Args:
        extend: The policy's function `extend`.
        packed: The state before.
        arms: (S, d) All arms, with rows of zeros where there is room for more.

    Returns:
        The state for all rows of `arms`.
    """
    packing = packing_after(extend, packed.packing, arms.shape, str(arms.dtype))
    old = jax.tree.leaves(on_host(packed))
    leaves = [filled_up(leaf, shape) for leaf, shape in zip(old, packing.shapes, strict=True)]
    return Packed(packing, extension(extend, packing, arms.shape)(leaves, arms))


def on_host(packed: Packed) -> State:
    """Return the state with arrays of NumPy."""
    arrays: Any = tuple(np.asarray(each) for each in packed.arrays)
    return packed.packing.unpack(arrays)


def vacant(policy: Policy, packed: Packed, arms: Arms) -> int | None:
    """Return the first row of a retired arm of which the state knows no reward, or None if there is no such row."""
    free = ~arms.active[: len(arms.names)]
    if not free.any():
        return None
    if policy.extend is not None:
        if policy.unrewarded is None:  # nothing is known about the arrays of a policy of the user's own
            return None
        without = policy.unrewarded(on_host(packed))
        free = free if without is None else free & np.asarray(without)[: len(free)]
    rows = np.flatnonzero(free)
    return int(rows[0]) if len(rows) else None


def with_rows(
    policy: Policy, packed: Packed, arms: Arms, rows: np.ndarray, features: np.ndarray
) -> tuple[Arms, np.ndarray]:
    """Return the arms with a row for each arm that was pulled, also if its row was given to another arm meanwhile.

    Args:
        policy: The policy.
        packed: Its state.
        arms: The agent's own arms, to whose table the state has yet to be extended if it has grown.
        rows: (n,) The rows of the arms when they were pulled.
        features: (n, d) Their features.

    Returns:
        The arms, and the rows that have these features now.
    """
    if policy.extend is None:  # rewards are learned by their features
        return arms, rows
    moved = np.flatnonzero((arms.rows[rows] != features).any(axis=1))
    if not len(moved) or policy.unrewarded is None or policy.unrewarded(on_host(packed)) is None:
        return arms, rows
    rows = rows.copy()
    for i in moved:
        same = np.flatnonzero((arms.rows[: len(arms.names)] == features[i]).all(axis=1))
        rows[i] = same[0] if len(same) else len(arms.names)
        if not len(same):
            arms = arms.appended(None, features[i], None, False)
    return arms, rows


@lru_cache(maxsize=1024)
def packing_after(extend: ExtendFn, packing: Packing, shape: tuple[int, ...], dtype: str) -> Packing:
    """Return the layout of a packed state after it is extended to a table of arms of this shape."""
    leaves = [jax.ShapeDtypeStruct(*each) for each in zip(packing.shapes, packing.dtypes, strict=True)]
    state = jax.tree.unflatten(packing.structure, leaves)
    return Packing.of(jax.eval_shape(extend, state, jax.ShapeDtypeStruct(shape, dtype)))


def filled_up(leaf: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return an array with zeros after its entries, up to a larger shape."""
    if leaf.shape == shape:
        return leaf
    return np.pad(leaf, [(0, more - size) for size, more in zip(leaf.shape, shape, strict=True)])


@kept
def extension(extend: ExtendFn, packing: Packing, shape: tuple[int, ...]) -> Callable[..., Arrays]:
    """Return the compiled `extend`, which takes the arrays of a state that is filled up, and packs the state."""

    @jax.default_matmul_precision("highest")
    def whole(leaves: list[Any], arms: Array) -> Arrays:
        return packing.pack(extend(jax.tree.unflatten(packing.structure, leaves), arms))

    return compiled(whole)
