"""Decisions that wait for their rewards: by id, in arrays that grow with how many wait and not with time.

One that was made and does not wait any more has had its reward, or was dropped because too many waited.  What is known
of those dropped is how many they are, and a number that none of them is beyond: of earlier decisions it is not known
which of the two happened.
"""

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from explorax.agent.ids import Ids, Span, fresh_offset
from explorax.errors import AlreadyRewarded, InvalidArgument, UnknownDecision


class Pulled(NamedTuple):
    """Arms that were pulled: their rows at the time, and their features."""

    indices: np.ndarray  # (n,)
    features: np.ndarray  # (n, d)


class Ledger(NamedTuple):
    """The ids given out and the decisions that wait, as a snapshot keeps them."""

    decisions: int  # how many numbers were given out
    offset: int  # of the ids
    spans: list[Span]  # all decisions that were made
    dropped: int
    unsure: int
    waiting: np.ndarray  # ids
    pulled: Pulled  # and what they were


class Pending:
    """Up to `limit` decisions; beyond that the oldest are dropped."""

    def __init__(self, features: int, dtype: str, limit: int) -> None:
        self.limit = limit
        self.ids = Ids()
        self.dropped = 0
        self.unsure = 0  # a decision with a number below this, if it does not wait, may have been dropped
        self.slots: dict[int, int] = {}  # id -> slot, the oldest first
        self.held: frozenset[int] = frozenset()  # those whose rewards are being learned: not to be dropped now
        self.free: list[int] = []
        self.indices = np.zeros(0, np.int64)
        self.features = np.zeros((0, features), dtype)

    def __len__(self) -> int:
        return len(self.slots)

    def made(self, first: int, indices: np.ndarray, features: np.ndarray) -> range:
        """The decisions taken with this number wait from now on; returns their ids."""
        start = self.ids.made(first)
        ids = range(start, start + len(indices))
        self.add(ids, indices, features)
        return ids

    def made_one(self, number: int, row: int, features: np.ndarray) -> int:
        """The same for a single one, in a fraction of the time."""
        decision = self.ids.made(number)
        if not self.free:
            self.grow()
        slot = self.slots[decision] = self.free.pop()
        self.indices[slot] = row
        self.features[slot] = features
        self.drop()
        return decision

    def add(self, ids: Sequence[int], indices: np.ndarray, features: np.ndarray) -> None:
        """Decisions with these ids wait from now on."""
        while len(self.free) < len(ids):
            self.grow()
        slots = [self.free.pop() for _ in ids]
        self.indices[slots] = indices
        self.features[slots] = features
        self.slots.update(zip(ids, slots, strict=True))
        self.drop()

    def drop(self) -> None:
        """The oldest, while too many wait; those held do not count."""
        excess = len(self.slots) - len(self.held) - self.limit
        if excess > 0:
            oldest = list(islice((each for each in self.slots if each not in self.held), excess))
            self.free += map(self.slots.pop, oldest)
            self.dropped += excess
            self.unsure = max(self.unsure, *(1 + (self.ids.number(each) or 0) for each in oldest))

    def grow(self) -> None:
        """Twice the room."""
        room = len(self.indices)
        more = max(room, 16)
        self.indices = np.concatenate([self.indices, np.zeros(more, np.int64)])
        self.features = np.concatenate([self.features, np.zeros((more, self.features.shape[1]), self.features.dtype)])
        self.free.extend(range(room, room + more))

    def hold(self, ids: Sequence[int]) -> Pulled:
        """What these decisions were, which are not dropped until `release`; raises for the first that does not wait."""
        if len(ids) == 1 and ids[0] in self.slots:
            self.held = frozenset(ids)
            slot = self.slots[ids[0]]
            return Pulled(self.indices[slot : slot + 1].copy(), self.features[slot : slot + 1].copy())
        if len(set(ids)) < len(ids):
            twice = next(each for each in ids if ids.count(each) > 1)
            raise AlreadyRewarded(f"decision {twice} is named twice: give one reward for each decision")
        for each in ids:
            if each not in self.slots:
                raise self.unknown(each)
        self.held = frozenset(ids)
        slots = [self.slots[each] for each in ids]
        return Pulled(self.indices[slots], self.features[slots])

    def release(self) -> None:
        """The decisions held may be dropped again, or have had their rewards."""
        self.held = frozenset()

    def unknown(self, decision: int) -> Exception:
        """Why a decision does not wait."""
        number = self.ids.number(decision)
        if number is None and self.ids.loaded:
            return UnknownDecision(
                f"decision_id must be the id of a decision that this agent knows, got {decision}. It was made by "
                "another agent, or by the saved one after the snapshot: its reward cannot be learned here"
            )
        if number is None:
            last = f"the last one was {self.ids.count - 1}" if self.ids.count else "none has been made yet"
            return UnknownDecision(f"decision {decision} was never made here, {last}: give the id that `choose` gave")
        if self.ids.is_under_way(number):
            return UnknownDecision(f"decision {decision} is not made yet: wait until `choose` returns it")
        if number < self.unsure:
            other = "was still being made when a snapshot of format 1 was saved, which lacks it"
            if self.dropped:
                other = (
                    f"was among the {self.dropped} oldest that were dropped because too many waited: "
                    f"max_pending={self.limit}"
                )
            return UnknownDecision(f"decision {decision} does not wait for a reward: it has had one, or {other}")
        return AlreadyRewarded(f"decision {decision} has had its reward already: each decision has one")

    def remove(self, ids: Sequence[int]) -> None:
        """These have had their rewards."""
        for each in ids:
            self.free.append(self.slots.pop(each))
        self.release()

    def ledger(self) -> Ledger:
        """All of this, as it is now."""
        slots = list(self.slots.values())
        pulled = Pulled(self.indices[slots], self.features[slots])
        waiting = np.fromiter(self.slots, np.int64, len(slots))
        return Ledger(self.ids.count, self.ids.offset, self.ids.spans(), self.dropped, self.unsure, waiting, pulled)

    def resume(self, ledger: Ledger, same_ids: bool) -> None:
        """Go on from there, with ids that were not given out before, unless they shall be the same."""
        count, offset = ledger.decisions, ledger.offset
        self.ids = Ids(ledger.spans, count, offset if same_ids else fresh_offset(ledger.spans, count, offset))
        self.dropped, self.unsure = ledger.dropped, ledger.unsure
        self.add(ledger.waiting.tolist(), *ledger.pulled)


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
