"""Packed states: the state of a policy in few arrays, as the compiled programs of an agent take it.

Calling a compiled program costs time for each array that goes in or comes out.  Small arrays are laid end to end, one
vector for each dtype (bools go with the whole numbers); large ones stay as they are, which copies nothing.  In float64
the whole numbers, which have 64 bits too, stand bit by bit before the floats, in one vector.

The last of the whole numbers are no part of the state: whether it is finite, and a few that a program tells with it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.checks import computed
from explorax.policies.base import State

LARGE = 1024  # elements of an array that is not worth copying
WHOLE = {4: np.int32, 8: np.int64}  # by the bytes of a number
TOLD = 5  # whole numbers that a program may tell with a state: those of a decision

Arrays = tuple[Array, ...]


@dataclass(frozen=True, eq=False)
class Packing:
    """The layout of packed states of one shape; there is one object for each shape (`Packing.of`)."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, state: State) -> "Packing":
        """Return the packing of states like this one."""
        leaves, structure = jax.tree.flatten(state)
        return one_packing(structure, tuple(leaf.shape for leaf in leaves), tuple(str(leaf.dtype) for leaf in leaves))

    def groups(self) -> dict[str, list[int]]:
        """Return the leaves that share a vector, by its dtype, whole numbers first; each large leaf is alone."""
        whole = str(jnp.zeros((), int).dtype)
        groups: dict[str, list[int]] = {whole: []}
        for i, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True)):
            vector = whole if dtype == "bool" else dtype
            groups.setdefault(f"large {i}" if np.prod(shape) > LARGE else vector, []).append(i)
        return groups

    @cached_property
    def whole(self) -> int:
        """The number of whole numbers in a packed state, with those that are no part of it."""
        return 1 + TOLD + sum(math.prod(self.shapes[i]) for i in next(iter(self.groups().values())))

    def pack(self, state: State, told: Array | None = None) -> Arrays:
        """Return the state as few arrays, and whole numbers that are told with it."""
        leaves = jax.tree.leaves(state)
        (whole, counts), *others = self.groups().items()
        packed = {
            group: leaves[members[0]]
            if group.startswith("large")
            else jnp.concatenate([leaves[i].reshape(-1).astype(group) for i in members])
            for group, members in others
        }
        looked_at = {id(leaf) for leaf in computed(state)}
        finite = [
            jnp.all(jnp.isfinite(packed[group]))
            for group, members in others
            if jnp.issubdtype(packed[group].dtype, jnp.inexact)
            and (not group.startswith("large") or id(leaves[members[0]]) in looked_at)
        ]
        told = jnp.zeros(TOLD, whole) if told is None else told
        numbers = [*(leaves[i] for i in counts), jnp.all(jnp.asarray(finite, bool)), told]
        vector = jnp.concatenate([each.reshape(-1).astype(whole) for each in numbers])
        if "float64" in packed:
            vector = jnp.concatenate([vector.view("float64"), packed.pop("float64")])
        return vector, *packed.values()

    def unpack(self, arrays: Arrays) -> State:
        """Return the state that was packed into these arrays."""
        groups, (vector, *others) = self.groups(), arrays
        whole, *rest = groups
        vectors = dict(zip((group for group in rest if group != "float64"), others, strict=True))
        if "float64" in groups:
            vectors["float64"], vector = vector[self.whole :], vector[: self.whole].view(whole)
        vectors[whole] = vector
        leaves: list[Any] = [None] * len(self.shapes)
        for group, members in groups.items():
            start = 0
            for i in members:
                if group.startswith("large"):
                    leaves[i] = vectors[group]
                    continue
                size = math.prod(self.shapes[i])
                leaves[i] = vectors[group][start : start + size].reshape(self.shapes[i]).astype(self.dtypes[i])
                start += size
        return jax.tree.unflatten(self.structure, leaves)


one_packing = lru_cache(maxsize=1024)(Packing)  # a program is found by the identity of its packing


class Packed(NamedTuple):
    """A state as compiled programs take it."""

    packing: Packing
    arrays: Arrays

    @classmethod
    def of(cls, state: State) -> "Packed":
        """Return the packed form of a state."""
        packing = Packing.of(state)
        return cls(packing, packing.pack(state))

    def state(self) -> State:
        """Return the state as the policy knows it."""
        return self.packing.unpack(self.arrays)

    def whole(self) -> np.ndarray:
        """Return the whole numbers of the state, and those that are no part of it."""
        vector = np.asarray(self.arrays[0])
        return vector.view(WHOLE[vector.itemsize])[: self.packing.whole]

    def is_finite(self) -> bool:
        """Tell whether the state has no NaN or infinity in it."""
        return bool(self.whole()[-TOLD - 1])

    def told(self) -> tuple[bool, list[int]]:
        """Tell whether the state is finite; return the whole numbers that were told with it."""
        finite, *told = self.whole()[-TOLD - 1 :].tolist()
        return bool(finite), told


def on_packed(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """Return a function of (keys, state, …) as a function of (keys, packed arrays, …)."""
    return lambda keys, arrays, *others: function(keys, packing.unpack(arrays), *others)
