"""Decisions that wait for their rewards: by id, in arrays that grow with how many wait and not with time.

Ids are the numbers of the decisions, from 0 on.  One that was given out and does not wait any more has had its reward,
or was dropped because too many waited.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from explorax.errors import AlreadyRewarded, InvalidArgument, UnknownDecision


class Pulled(NamedTuple):
    """Arms that were pulled: their rows at the time, and their features."""

    indices: np.ndarray  # (n,)
    features: np.ndarray  # (n, d)


class Pending:
    """Up to `limit` decisions; beyond that the oldest are dropped."""

    def __init__(self, features: int, dtype: str, limit: int) -> None:
        self.limit = limit
        self.dropped = 0
        self.slots: dict[int, int] = {}  # id -> slot, the oldest first
        self.free: list[int] = []
        self.indices = np.zeros(0, np.int64)
        self.features = np.zeros((0, features), dtype)

    def __len__(self) -> int:
        return len(self.slots)

    def add(self, ids: Sequence[int], indices: np.ndarray, features: np.ndarray) -> None:
        """These decisions wait from now on."""
        while len(self.free) < len(ids):
            self.grow()
        slots = [self.free.pop() for _ in ids]
        self.indices[slots] = indices
        self.features[slots] = features
        self.slots.update(zip(ids, slots, strict=True))
        self.drop()

    def add_one(self, decision: int, row: int, features: np.ndarray) -> None:
        """The same for a single one, in a fraction of the time."""
        if not self.free:
            self.grow()
        slot = self.slots[decision] = self.free.pop()
        self.indices[slot] = row
        self.features[slot] = features
        self.drop()

    def drop(self) -> None:
        """The oldest, while too many wait."""
        excess = len(self.slots) - self.limit
        if excess > 0:
            self.free += map(self.slots.pop, list(islice(self.slots, excess)))
            self.dropped += excess

    def grow(self) -> None:
        """Twice the room."""
        room = len(self.indices)
        more = max(room, 16)
        self.indices = np.concatenate([self.indices, np.zeros(more, np.int64)])
        self.features = np.concatenate([self.features, np.zeros((more, self.features.shape[1]), self.features.dtype)])
        self.free.extend(range(room, room + more))

    def find(self, ids: Sequence[int], given_out: int) -> Pulled:
        """What these decisions were; raises for the first that does not wait."""
        if len(ids) == 1 and ids[0] in self.slots:
            slot = self.slots[ids[0]]
            return Pulled(self.indices[slot : slot + 1].copy(), self.features[slot : slot + 1].copy())
        if len(set(ids)) < len(ids):
            twice = next(each for each in ids if ids.count(each) > 1)
            raise AlreadyRewarded(f"decision {twice} is named twice: give one reward for each decision")
        for each in ids:
            if each not in self.slots:
                raise self.unknown(each, given_out)
        slots = [self.slots[each] for each in ids]
        return Pulled(self.indices[slots], self.features[slots])

    def unknown(self, decision: int, given_out: int) -> Exception:
        """Why a decision does not wait."""
        if not 0 <= decision < given_out:
            last = f"the last one was {given_out - 1}" if given_out else "none has been made yet"
            return UnknownDecision(f"decision {decision} was never made here, {last}: give the id that `choose` gave")
        if self.dropped:
            return UnknownDecision(
                f"decision {decision} does not wait for a reward: it has had one, or was among the {self.dropped} "
                f"oldest that were dropped because more than max_pending={self.limit} waited"
            )
        return AlreadyRewarded(f"decision {decision} has had its reward already: each decision has one")

    def remove(self, ids: Sequence[int]) -> None:
        """These have had their rewards."""
        for each in ids:
            self.free.append(self.slots.pop(each))

    def arrays(self) -> tuple[np.ndarray, Pulled]:
        """Ids and what they were, oldest first."""
        slots = list(self.slots.values())
        return np.fromiter(self.slots, np.int64), Pulled(self.indices[slots], self.features[slots])


def as_ids(ids: object) -> tuple[list[int], bool]:
    """Decision ids as a list, and whether it was a single one."""
    if isinstance(ids, int | np.integer) and not isinstance(ids, bool):
        return [int(ids)], True
    try:
        array = np.asarray(ids)
        if array.ndim == 1 and (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
            return [int(each) for each in array], False
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(f"decision_id={ids!r} must be the id of a decision, a whole number, or a list of them")
