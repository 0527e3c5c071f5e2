"""The log of an agent's decisions: the ids that were given out, and the decisions that wait for their rewards.

**Ids** are unique over all restarts of an agent, without any file.  A decision has a number t, which counts decisions
from 0 on and determines its randomness, and an id, by which it is rewarded: offset + t.  The offset of a new agent is
0.  A loaded agent draws its offset from the operating system's randomness: the saved agent may have gone on deciding
after it was saved, so it gave out ids that the snapshot does not know and that must not be given out again.

Decisions that are under way in other threads while an agent is saved are not in the snapshot, and neither are those
that come after it: saving and deciding do not wait for each other.  The snapshot does not know the ids of these
decisions, so an agent loaded from it refuses their rewards.

Ids are below 2⁵³, so that every reader of JSON holds them exactly.  Two agents loaded from the same snapshot that make
n decisions each have an id in common with probability at most 2n/2⁵³: 1 in 4 billion for a million decisions.  An agent
has no id in common with those that it was loaded from (`ROOM`).

**Pending** decisions are kept in arrays that grow with the number of waiting decisions, and not with time.  A decision
that was made and does not wait any more has had its reward, or was dropped because too many waited.  Of the dropped
decisions only their number is kept, and a bound: no dropped decision has a number at or above it.  For a decision below
the bound it is not known whether it was rewarded or dropped.
"""

import reprlib
import secrets
import threading
from collections.abc import Collection, Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from explorax.agent.pulled import Pulled
from explorax.errors import AlreadyRewarded, InvalidArgument, UnknownDecision

MOST = 2**53  # ids are below this
ROOM = 2**32  # ids that are left free for the agent whose offset is drawn, and for each one before it
UNDER_WAY = 2**16  # decisions of other threads that may be under way; older ones have failed, and nobody has their ids


# Ids


class Span(NamedTuple):
    """Decisions whose ids have the same offset: the numbers from `first` up to, but not including, `end`."""

    offset: int
    first: int
    end: int

    def number(self, decision_id: int) -> int | None:
        """Return the number of the decision with this id, or None if it is not in this span."""
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
        """Whether this agent was loaded, so that others may have given out ids after the snapshot was saved."""
        return bool(self.earlier or self.offset)

    def take(self, count: int) -> int:
        """Reserve the numbers of `count` decisions that are made now, and return the first of them."""
        first, self.count = self.count, self.count + count
        self.under_way[first] = self.count
        if len(self.under_way) > UNDER_WAY:
            del self.under_way[next(iter(self.under_way))]
        return first

    def made(self, first: int) -> int:
        """Note that the decisions whose first number this is are made now; return the id of the first."""
        self.under_way.pop(first, None)
        return self.offset + first

    def number(self, decision_id: int) -> int | None:
        """Return the number of the decision with this id, or None if the id is not known."""
        number = decision_id - self.offset
        if self.first <= number < self.count:
            return number
        return next((found for span in self.earlier if (found := span.number(decision_id)) is not None), None)

    def is_under_way(self, number: int) -> bool:
        """Tell whether the decision with this number is still being made."""
        return any(first <= number < end for first, end in self.under_way.items())

    def spans(self) -> list[Span]:
        """Return all decisions that were made, also before this agent was loaded, except those under way."""
        own, start = [], self.first
        for first, end in sorted(self.under_way.items()):
            own.append(Span(self.offset, start, first))
            start = end
        own.append(Span(self.offset, start, self.count))
        return self.earlier + [span for span in own if span.first < span.end]


def fresh_offset(earlier: Sequence[Span], count: int, offset: int) -> int:
    """Draw an offset at random for the ids of the decisions from number `count` on, far from all earlier ids.

    Args:
        earlier: The decisions whose ids were given out before.
        count: The number of the next decision.
        offset: The offset of the saved agent, which may have gone on with the ids from offset + count on.

    Returns:
        The offset.
    """
    used = {offset + count, *(span.offset + span.first for span in earlier)}
    while True:
        start = ROOM + secrets.randbelow(MOST - 2 * ROOM)
        if all(abs(start - each) >= ROOM for each in used):
            return start - count


# Pending decisions


class Ledger(NamedTuple):
    """The ids given out and the decisions that wait, as a snapshot keeps them."""

    decisions: int  # the number of decisions, also of those under way
    offset: int  # of the ids
    spans: list[Span]  # all decisions that were made
    dropped: int
    unsure: int
    waiting: np.ndarray  # ids
    pulled: Pulled  # and what they were


class Pending:
    """The decisions that wait for their rewards, at most `limit` of them; beyond that the oldest are dropped.

    Any number of threads may call the methods, each of which takes the lock.
    """

    def __init__(self, n_features: int, dtype: str, limit: int) -> None:
        self.limit = limit
        self.ids = Ids()
        self.dropped = 0
        self.lock = threading.Lock()
        self._unsure = 0  # a decision with a number below this, if it does not wait, may have been dropped
        self._slots: dict[int, int] = {}  # id -> slot, the oldest first
        self._held: Collection[int] = ()  # those whose rewards are being learned: not to be dropped now
        self._removed: Sequence[int] = ()  # the last that were removed
        self._free: list[int] = []
        self._let_wait_in(Pulled.nothing(0, n_features, dtype))

    @property
    def room(self) -> int:
        """The number of decisions for which the arrays have slots."""
        return len(self._pulled.numbers)

    def waiting(self) -> list[int]:
        """Return the ids of the decisions that wait, the oldest first."""
        with self.lock:
            return list(self._slots)

    def __contains__(self, decision_id: int) -> bool:
        return decision_id in self._slots

    def is_only(self, ids: Sequence[int]) -> bool:
        """Tell whether this is a single decision, and no other one waits."""
        return len(ids) == len(self._slots) == 1

    def take(self, count: int) -> int:
        """Reserve the numbers of `count` decisions that are made now, and return the first of them."""
        with self.lock:
            return self.ids.take(count)

    def made(self, first: int, rows: np.ndarray, features: np.ndarray) -> range:
        """Let the decisions whose first number this is wait from now on; return their ids."""
        with self.lock:
            start = self.ids.made(first)
            ids = range(start, start + len(rows))
            self._add(ids, rows, features)
            return ids

    def made_one(self, number: int, row: int, features: np.ndarray) -> int:
        """Let a single decision wait from now on; return its id.  This is a faster `made`."""
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
        """Return the arms of decisions that wait, which are not dropped until `release`; raise for other decisions."""
        with self.lock:
            if len(ids) == 1 and ids[0] in self._slots:
                self._held = ids
                slot = self._slots[ids[0]]
                return Pulled(self._pulled.numbers[slot : slot + 1].copy())
            if len(set(ids)) < len(ids):
                twice = next(each for each in ids if ids.count(each) > 1)
                raise AlreadyRewarded(f"Decision {twice} is named twice. Give one reward for each decision.")
            for each in ids:
                if each not in self._slots:
                    raise self._unknown(each)
            self._held = frozenset(ids)
            slots = [self._slots[each] for each in ids]
            return Pulled(self._pulled.numbers[slots])

    def release(self) -> None:
        """Allow dropping the decisions that `hold` has kept."""
        with self.lock:
            self._held = ()

    def remove(self, ids: Sequence[int]) -> None:
        """Remove decisions that have had their rewards; removing the same ids again changes nothing."""
        if ids is self._removed:
            return
        with self.lock:
            for each in ids:
                if each in self._slots:
                    self._free.append(self._slots.pop(each))
            self._removed = ids

    def ledger(self) -> Ledger:
        """Return a copy of the ids given out and of the decisions that wait, for a snapshot."""
        with self.lock:
            slots = list(self._slots.values())
            pulled = Pulled(self._pulled.numbers[slots])
            waiting = np.fromiter(self._slots, np.int64, len(slots))
            ids = self.ids
            return Ledger(ids.count, ids.offset, ids.spans(), self.dropped, self._unsure, waiting, pulled)

    def resume(self, ledger: Ledger, same_ids: bool) -> None:
        """Resume the log of a snapshot, with new ids or with those that the saved agent would have given out."""
        count, offset = ledger.decisions, ledger.offset
        with self.lock:
            self.ids = Ids(ledger.spans, count, offset if same_ids else fresh_offset(ledger.spans, count, offset))
            self.dropped, self._unsure = ledger.dropped, ledger.unsure
            self._add(ledger.waiting.tolist(), ledger.pulled.rows, ledger.pulled.features)

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
        """Drop the oldest decisions while too many wait, except for those that are held."""
        excess = len(self._slots) - len(self._held) - self.limit
        if excess > 0:
            oldest = list(islice((each for each in self._slots if each not in self._held), excess))
            self._free += map(self._slots.pop, oldest)
            self.dropped += excess
            self._unsure = max(self._unsure, *(1 + (self.ids.number(each) or 0) for each in oldest))

    def _grow(self) -> None:
        """Increase the room of the arrays to twice as many decisions."""
        room, numbers = self.room, self._pulled.numbers
        self._let_wait_in(Pulled(np.concatenate([numbers, np.zeros((max(room, 16), numbers.shape[1]), numbers.dtype)])))
        self._free.extend(range(room, self.room))

    def _let_wait_in(self, pulled: Pulled) -> None:
        """Let the decisions wait in these arrays from now on."""
        self._pulled, self._rows, self._features = pulled, pulled.rows, pulled.features  # views, made once

    def _unknown(self, decision: int) -> Exception:
        """Return the error that explains why a decision does not wait."""
        number = self.ids.number(decision)
        if number is None and self.ids.loaded:
            return UnknownDecision(
                f"decision_id must be the id of a decision that this agent knows, got {decision}. It was made by "
                "another agent, or by the saved one after the snapshot, so its reward cannot be learned here."
            )
        if number is None:
            last = f"The last one was {self.ids.count - 1}" if self.ids.count else "No decision has been made yet"
            return UnknownDecision(f"decision_id must be an id that `choose` returned, got {decision}. {last}.")
        if self.ids.is_under_way(number):
            return UnknownDecision(f"Decision {decision} is still being made. Wait until `choose` returns it.")
        if number < self._unsure:
            other = "was still being made when a snapshot of format 1 was saved, which lacks it"
            if self.dropped:
                other = (
                    f"was among the {self.dropped} oldest that were dropped because too many waited. "
                    f"Raise max_pending, which is {self.limit}"
                )
            return UnknownDecision(f"Decision {decision} does not wait for a reward: it has had one, or {other}.")
        return AlreadyRewarded(f"The reward of decision {decision} is already known. Learn each decision once.")


def as_ids(ids: object) -> tuple[list[int], bool]:
    """Return the ids of decisions as a list, and whether a single id was given."""
    if isinstance(ids, int | np.integer) and not isinstance(ids, bool):
        return [int(ids)], True
    try:
        array = np.asarray(ids)
        if array.ndim == 1 and (array.size == 0 or np.issubdtype(array.dtype, np.integer)):
            return [int(each) for each in array], False
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        f"decision_id must be the id of a decision, a whole number, or a list of ids, got {reprlib.repr(ids)}. Give "
        "decision.id."
    )
