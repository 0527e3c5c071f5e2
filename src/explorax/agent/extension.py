"""Fixed arms that are added to the state of a policy, without compiling anything while there is room for them.

A state that gets room for more arms is filled up with zeros first.  The program that adds an arm is then the same
whether there was room for it or not, and is compiled once for each shape of the table of arms.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax import Array

from explorax.agent.compiled import compiled
from explorax.agent.packing import Arrays, Packed, Packing
from explorax.policies.base import ExtendFn
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
    on_host: Any = tuple(np.asarray(each) for each in packed.arrays)
    old = jax.tree.leaves(packed.packing.unpack(on_host))
    leaves = [filled_up(leaf, shape) for leaf, shape in zip(old, packing.shapes, strict=True)]
    return Packed(packing, extension(extend, packing, arms.shape)(leaves, arms))


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
