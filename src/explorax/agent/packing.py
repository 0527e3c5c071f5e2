"""A state in few arrays: calling a compiled program costs some microseconds for each array that goes in or comes out.

Small arrays are laid end to end, one vector for each dtype (bools go with the whole numbers); large ones stay as they
are, which copies nothing.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.checks import computed
from explorax.policies.base import State

LARGE = 1024  # elements of an array that is not worth copying

Packed = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Packing:
    """How the states of one shape are packed; there is one object for each shape (`packing_of`)."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    def groups(self) -> dict[str, list[int]]:
        """Which leaves go into one vector, by its dtype, whole numbers first; a large leaf is a group of its own."""
        whole = str(jnp.zeros((), int).dtype)
        groups: dict[str, list[int]] = {whole: []}
        for i, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True)):
            vector = whole if dtype == "bool" else dtype
            groups.setdefault(f"large {i}" if np.prod(shape) > LARGE else vector, []).append(i)
        return groups

    def pack(self, state: State) -> Packed:
        """The state as few arrays; the last of its whole numbers says whether it is finite."""
        leaves = jax.tree.leaves(state)
        (whole, counted), *others = self.groups().items()
        packed = [
            leaves[members[0]]
            if group.startswith("large")
            else jnp.concatenate([leaves[i].reshape(-1).astype(group) for i in members])
            for group, members in others
        ]
        looked_at = {id(leaf) for leaf in computed(state)}
        finite = [
            jnp.all(jnp.isfinite(vector))
            for (group, members), vector in zip(others, packed, strict=True)
            if jnp.issubdtype(vector.dtype, jnp.inexact)
            and (not group.startswith("large") or id(leaves[members[0]]) in looked_at)
        ]
        numbers = [*(leaves[i] for i in counted), jnp.all(jnp.asarray(finite, bool))]
        return jnp.concatenate([each.reshape(-1).astype(whole) for each in numbers]), *packed

    @staticmethod
    def is_finite(packed: Packed) -> bool:
        """Whether a packed state has no NaN or infinity in it."""
        return bool(np.asarray(packed[0])[-1])

    def unpack(self, packed: Packed) -> State:
        """The state again."""
        leaves: list[Any] = [None] * len(self.shapes)
        for (group, members), vector in zip(self.groups().items(), packed, strict=True):
            start = 0
            for i in members:
                if group.startswith("large"):
                    leaves[i] = vector
                    continue
                size = int(np.prod(self.shapes[i]))
                leaves[i] = vector[start : start + size].reshape(self.shapes[i]).astype(self.dtypes[i])
                start += size
        return jax.tree.unflatten(self.structure, leaves)


def packing_of(state: State) -> Packing:
    """The packing of states like this one."""
    leaves, structure = jax.tree.flatten(state)
    return unique(structure, tuple(leaf.shape for leaf in leaves), tuple(str(leaf.dtype) for leaf in leaves))


unique = lru_cache(maxsize=1024)(Packing)  # so that a program is found by what a packing is, not by what it says
