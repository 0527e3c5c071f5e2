"""What an agent remembers of its decisions: the ids that it gave out, and those that wait for their rewards.

**Ids** are unique, over all restarts of an agent and without any file.  A decision has a number t, which counts
decisions from 0 on and is what its randomness depends on, and an id, by which it is rewarded: offset + t.  The offset
of a new agent is 0.  An agent that is loaded draws one from the operating system's randomness: the saved agent may have
gone on deciding after it was saved, and gave out ids that the snapshot does not know; they must not be given out again.

Decisions that are under way in other threads while an agent is saved are not in the snapshot, no more than those that
come after it: saving waits for nobody, and nobody for saving.  Their ids are left out of what the snapshot knows, so
that an agent loaded from it says that it does not know them.

Ids are below 2⁵³, which every reader of JSON holds exactly.  Two agents loaded from the same snapshot that make n
decisions each have an id in common with probability 2n/2⁵³ at the most: 1 in 4 billion for a million decisions.  An
agent has no id in common with those that it was loaded from (`ROOM`).

**Pending** decisions are kept in arrays that grow with how many wait and not with time.  One that was made and does not
wait any more has had its reward, or was dropped because too many waited.  What is known of those dropped is how many
they are, and a number that none of them is beyond: of earlier decisions it is not known which of the two happened.
"""

import secrets
import threading
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from explorax.errors import AlreadyRewarded, InvalidArgument, UnknownDecision

MOST = 2**53  # ids are below this
ROOM = 2**32  # ids that are left free for the agent that an offset is drawn for, and for each one before it
UNDER_WAY = 2**16  # decisions of other threads that may be under way; what is older has failed, and nobody has its id


# Ids


class Span(NamedTuple):
    """Decisions whose ids have the same offset: the numbers from `first` up to, but not including, `end`."""

    offset: int
    first: int
    end: int

    def number(self, decision_id: int) -> int | None:
        """Return the number of the decision with this id; None if it is none of these."""
        number = decision_id - self.offset
        return number if self.first <= number < self.end else None


class Ids:
    """The ids that an agent has given out, and those of the agents that it was loaded from."""

    def __init__(self, earlier: Sequence[Span] = (), count: int = 0, offset: int = 0) -> None:
        self.earlier = list(earlier)
        self.offset, self.first = offset, count  # of this agent, in this process
        self.count = count  # numbers given out so far
        if self.earlier and (self.earlier[-1].offset, self.earlier[-1].end) == (offset, count):  # the same ids go on
            self.first = self.earlier.pop().first
        self.under_way: dict[int, int] = {}  # first number -> end

    @property
    def loaded(self) -> bool:
        """Whether others may have given out ids of this agent, after a snapshot that it was loaded from."""
        return bool(self.earlier or self.offset)

    def take(self, count: int) -> int:
        """Return the number of the next decision, of so many that are made now."""
        first, self.count = self.count, self.count + count
        self.under_way[first] = self.count
        if len(self.under_way) > UNDER_WAY:
            del self.under_way[next(iter(self.under_way))]
        return first

    def made(self, first: int) -> int:
        """Note that the decisions taken with this number are made now; return the id of the first."""
        self.under_way.pop(first, None)
        return self.offset + first

    def number(self, decision_id: int) -> int | None:
        """Return the number of a decision; None if the id is not known."""
        number = decision_id - self.offset
        if self.first <= number < self.count:
            return number
        return next((found for span in self.earlier if (found := span.number(decision_id)) is not None), None)

    def is_under_way(self, number: int) -> bool:
        """Tell whether a decision has not been made yet."""
        return any(first <= number < end for first, end in self.under_way.items())

    def spans(self) -> list[Span]:
        """Return all decisions that were made, before this agent was loaded too, but not those under way."""
        own, start = [], self.first
        for first, end in sorted(self.under_way.items()):
            own.append(Span(self.offset, start, first))
            start = end
        own.append(Span(self.offset, start, self.count))
        return self.earlier + [span for span in own if span.first < span.end]


def fresh_offset(earlier: Sequence[Span], count: int, offset: int) -> int:
    """Draw an offset for the decisions from number `count` on, far from all earlier ids.

    Those that the saved agent went on with, from number `count` and its own offset on, are among the earlier ones.
    """
    used = {offset + count, *(span.offset + span.first for span in earlier)}
    while True:
        start = ROOM + secrets.randbelow(MOST - 2 * ROOM)
        if all(abs(start - each) >= ROOM for each in used):
            return start - count


# Pending decisions


class Pulled(NamedTuple):
    """Arms that were pulled: their rows at the time, and their features."""

    rows: np.ndarray  # (n,)
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
    """Up to `limit` decisions that wait for their rewards; beyond that the oldest are dropped.

    Any number of threads may call the methods, each of which takes the lock.
    """

    def __init__(self, n_features: int, dtype: str, limit: int) -> None:
        self.limit = limit
        self.ids = Ids()
        self.dropped = 0
        self.lock = threading.Lock()
        self._unsure = 0  # a decision with a number below this, if it does not wait, may have been dropped
        self._slots: dict[int, int] = {}  # id -> slot, the oldest first
        self._held: frozenset[int] = frozenset()  # those whose rewards are being learned: not to be dropped now
        self._removed: Sequence[int] = ()  # the last that were removed
        self._free: list[int] = []
        self._rows = np.zeros(0, np.int64)
        self._features = np.zeros((0, n_features), dtype)

    @property
    def room(self) -> int:
        """How many decisions the arrays have slots for."""
        return len(self._rows)

    def waiting(self) -> list[int]:
        """Return the ids of the decisions that wait, the oldest first."""
        with self.lock:
            return list(self._slots)

    def __contains__(self, decision_id: int) -> bool:
        return decision_id in self._slots

    def take(self, count: int) -> int:
        """Return the number of the next decision, of so many that are made now."""
        with self.lock:
            return self.ids.take(count)

    def made(self, first: int, rows: np.ndarray, features: np.ndarray) -> range:
        """Let the decisions taken with this number wait from now on; return their ids."""
        with self.lock:
            start = self.ids.made(first)
            ids = range(start, start + len(rows))
            self._add(ids, rows, features)
            return ids

    def made_one(self, number: int, row: int, features: np.ndarray) -> int:
        """Do what `made` does for a single decision, in a fraction of the time."""
        with self.lock:
            decision = self.ids.made(number)
            if not self._free:
                self._grow()
            slot = self._slots[decision] = self._free.pop()
            self._rows[slot] = row
            self._features[slot] = features
            if len(self._slots) > self.limit:
                self._drop()
            return decision

    def hold(self, ids: Sequence[int]) -> Pulled:
        """Return what these decisions were, and do not drop them until `release`; raise if one does not wait."""
        with self.lock:
            if len(ids) == 1 and ids[0] in self._slots:
                self._held = frozenset(ids)
                slot = self._slots[ids[0]]
                return Pulled(self._rows[slot : slot + 1].copy(), self._features[slot : slot + 1].copy())
            if len(set(ids)) < len(ids):
                twice = next(each for each in ids if ids.count(each) > 1)
                raise AlreadyRewarded(f"decision {twice} is named twice: give one reward for each decision")
            for each in ids:
                if each not in self._slots:
                    raise self._unknown(each)
            self._held = frozenset(ids)
            slots = [self._slots[each] for each in ids]
            return Pulled(self._rows[slots], self._features[slots])

    def release(self) -> None:
        """Allow that the decisions held are dropped again."""
        with self.lock:
            self._held = frozenset()

    def remove(self, ids: Sequence[int]) -> None:
        """Remove decisions that have had their rewards; the same ids again change nothing."""
        if ids is self._removed:
            return
        with self.lock:
            for each in ids:
                if each in self._slots:
                    self._free.append(self._slots.pop(each))
            self._removed = ids

    def ledger(self) -> Ledger:
        """Return all of this, as it is now."""
        with self.lock:
            slots = list(self._slots.values())
            pulled = Pulled(self._rows[slots], self._features[slots])
            waiting = np.fromiter(self._slots, np.int64, len(slots))
            ids = self.ids
            return Ledger(ids.count, ids.offset, ids.spans(), self.dropped, self._unsure, waiting, pulled)

    def resume(self, ledger: Ledger, same_ids: bool) -> None:
        """Go on from there, with ids that were not given out before, unless they shall be the same."""
        count, offset = ledger.decisions, ledger.offset
        with self.lock:
            self.ids = Ids(ledger.spans, count, offset if same_ids else fresh_offset(ledger.spans, count, offset))
            self.dropped, self._unsure = ledger.dropped, ledger.unsure
            self._add(ledger.waiting.tolist(), *ledger.pulled)

    def _add(self, ids: Sequence[int], rows: np.ndarray, features: np.ndarray) -> None:
        """Let decisions with these ids wait from now on."""
        while len(self._free) < len(ids):
            self._grow()
        slots = [self._free.pop() for _ in ids]
        self._rows[slots] = rows
        self._features[slots] = features
        self._slots.update(zip(ids, slots, strict=True))
        self._drop()

    def _drop(self) -> None:
        """Drop the oldest while too many wait; those held do not count."""
        excess = len(self._slots) - len(self._held) - self.limit
        if excess > 0:
            oldest = list(islice((each for each in self._slots if each not in self._held), excess))
            self._free += map(self._slots.pop, oldest)
            self.dropped += excess
            self._unsure = max(self._unsure, *(1 + (self.ids.number(each) or 0) for each in oldest))

    def _grow(self) -> None:
        """Make twice the room."""
        more, features = max(self.room, 16), self._features
        self._free.extend(range(self.room, self.room + more))
        self._rows = np.concatenate([self._rows, np.zeros(more, np.int64)])
        self._features = np.concatenate([features, np.zeros((more, features.shape[1]), features.dtype)])

    def _unknown(self, decision: int) -> Exception:
        """Return the error that says why a decision does not wait."""
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
        if number < self._unsure:
            other = "was still being made when a snapshot of format 1 was saved, which lacks it"
            if self.dropped:
                other = (
                    f"was among the {self.dropped} oldest that were dropped because too many waited: "
                    f"max_pending={self.limit}"
                )
            return UnknownDecision(f"decision {decision} does not wait for a reward: it has had one, or {other}")
        return AlreadyRewarded(f"decision {decision} has had its reward already: each decision has one")


def as_ids(ids: object) -> tuple[list[int], bool]:
    """Return decision ids as a list, and whether it was a single one."""
    if isinstance(ids, int | np.integer) and not isinstance(ids, bool):
        return [int(ids)], True
    try:
        array = np.asarray(ids)
        if array.ndim == 1 and (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
            return [int(each) for each in array], False
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(f"decision_id={ids!r} must be the id of a decision, a whole number, or a list of them")
