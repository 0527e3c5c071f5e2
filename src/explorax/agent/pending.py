"""The decisions of an agent that wait for their rewards.

Decisions that are under way in other threads while an agent is saved are not in the snapshot, and neither are those
that come after it: saving and deciding do not wait for each other.  The snapshot does not know the ids of these
decisions, so an agent loaded from it refuses their rewards.

Waiting decisions are kept in arrays that grow with their number, and not with time.  A decision that was made and does
not wait any more has had its reward, was withdrawn, or was dropped because too many waited.  Of the latter two only
their number is kept, and a bound: no such decision has a number at or above it.  For a decision below the bound it is
not known whether it was rewarded.
"""

import reprlib
import threading
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from explorax.agent.ids import Ids, Span, fresh_offset
from explorax.agent.pulled import Pulled
from explorax.agent.reward_window import Due, Opened, Window
from explorax.errors import AlreadyRewarded, InvalidArgument, UnknownDecision


class Ledger(NamedTuple):
    """The ids given out and the decisions that wait, as a snapshot keeps them."""

    decisions: int  # the number of decisions, also of those under way
    offset: int  # of the ids
    spans: list[Span]  # all decisions that were made
    dropped: int
    unsure: int
    waiting: np.ndarray  # ids
    pulled: Pulled  # and what they were
    times: np.ndarray | None = None  # when they were made, if there is a reward window
    told: np.ndarray | None = None  # the rewards that came, NaN for none
    deferred: np.ndarray | None = None  # whether they were not shown yet


class Pending:
    """The decisions that wait for their rewards, at most `limit` of them; beyond that the oldest are dropped.

    Any number of threads may call the methods, each of which takes the lock.
    """

    def __init__(self, n_features: int, dtype: str, limit: int, window: Window | None = None) -> None:
        self.limit = limit
        self.drops = True  # whether it drops by itself; what is on record is dropped when the record says so
        self.opened = None if window is None else Opened(window)
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

    def __len__(self) -> int:
        return len(self._slots)

    def __contains__(self, decision_id: int) -> bool:
        return decision_id in self._slots

    def is_only(self, ids: Sequence[int]) -> bool:
        """Tell whether this is a single decision, and no other one waits."""
        return len(ids) == len(self._slots) == 1

    def take(self, count: int) -> int:
        """Reserve the numbers of `count` decisions that are made now, and return the first of them."""
        with self.lock:
            return self.ids.take(count)

    def give_back(self, first: int) -> None:
        """Free the numbers of decisions whose first number this is, if they were taken and not made."""
        with self.lock:
            self.ids.give_back(first)

    def made(
        self, first: int, rows: np.ndarray, features: np.ndarray, time: float = 0.0, deferred: bool = False
    ) -> range:
        """Let the decisions whose first number this is wait from now on; return their ids."""
        with self.lock:
            start = self.ids.made(first)
            ids = range(start, start + len(rows))
            if self.opened is not None:
                self.opened.add(ids, time, deferred)
            self._add(ids, rows, features)
            return ids

    def made_one(self, number: int, row: int, features: np.ndarray, time: float = 0.0, deferred: bool = False) -> int:
        """Let a single decision wait from now on; return its id.  This is a faster `made`."""
        with self.lock:
            decision = self.ids.made(number)
            if self.opened is not None:
                self.opened.add((decision,), time, deferred)
            if not self._free:
                self._grow()
            slot = self._free.pop()
            self._rows[slot] = row
            self._features[slot] = features
            self._slots[decision] = slot
            if self.drops and len(self._slots) > self.limit:
                self._drop()
            return decision

    def hold(self, ids: Sequence[int]) -> Pulled:
        """Return the arms of decisions that wait, which are not dropped until `release`; raise for other decisions."""
        with self.lock:
            if len(ids) == 1 and ids[0] in self._slots and not self._held:
                self._held = ids
                slot = self._slots[ids[0]]
                return Pulled(self._pulled.numbers[slot : slot + 1].copy())
            if len(set(ids)) < len(ids):
                twice = next(each for each in ids if ids.count(each) > 1)
                raise AlreadyRewarded(f"Decision {twice} is named twice. Give one reward for each decision.")
            for each in ids:
                if each not in self._slots:
                    raise self._unknown(each)
            self._held = frozenset([*self._held, *ids])
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
            self._forget(ids)
            self._removed = ids

    def withdraw(self, ids: Sequence[int]) -> None:
        """Forget decisions that wait and will have no reward."""
        with self.lock:
            self._forget(ids)
            self.mark_unsure(ids)

    def check_untold(self, ids: Sequence[int]) -> None:
        """Raise if the reward of one of these decisions has come, and waits for the end of its window."""
        for each in ids:
            if self.opened is not None and each in self.opened.rewards:
                raise AlreadyRewarded(f"The reward of decision {each} is already known. The first one counts.")

    def too_many_with(self, ids: Sequence[int]) -> list[int]:
        """Return the decisions to be dropped when these wait, too; none that are held."""
        with self.lock:
            excess = len(self._slots) + len(ids) - len(self._held) - self.limit
            return [] if excess <= 0 else self._oldest(excess, ids)

    def drop(self, ids: Sequence[int], total: int) -> None:
        """Drop these decisions, with which there are `total` that were dropped; doing so again changes nothing."""
        with self.lock:
            self._forget(ids)
            self.dropped = total
            self.mark_unsure(ids)

    def is_due(self, time: float) -> bool:
        """Tell whether the window of the oldest decision is over."""
        with self.lock:
            return self.opened is not None and self.opened.is_due(time)

    def hold_due(self, time: float) -> Due:
        """Return the decisions whose windows are over, none of which is dropped until `release`."""
        with self.lock:
            assert self.opened is not None
            return self._hold_over(self.opened.over(time))

    def hold_through(self, last: int) -> Due:
        """Return the decisions from the oldest to this one, none of which is dropped until `release`."""
        with self.lock:
            assert self.opened is not None
            return self._hold_over(self.opened.through(last))

    def _hold_over(self, over: list[int]) -> Due:
        """Return what becomes of decisions whose windows are over, and hold them."""
        assert self.opened is not None
        self.opened.remove([each for each in over if each not in self._slots])  # what an interrupt has left
        due = self.opened.due([each for each in over if each in self._slots])
        self._held = frozenset([*due.paid, *due.lost])
        return due

    def tell(self, ids: Sequence[int], rewards: Sequence[float]) -> None:
        """Keep rewards until the windows of their decisions are over."""
        with self.lock:
            assert self.opened is not None
            self.opened.rewards.update(zip(ids, rewards, strict=True))
            self.opened.deferred.difference_update(ids)

    def activate(self, ids: Sequence[int]) -> None:
        """Note that deferred decisions were shown."""
        with self.lock:
            assert self.opened is not None
            self.opened.deferred.difference_update(ids)

    def ledger(self) -> Ledger:
        """Return a copy of the ids given out and of the decisions that wait, for a snapshot."""
        with self.lock:
            slots = list(self._slots.values())
            pulled = Pulled(self._pulled.numbers[slots])
            waiting = np.fromiter(self._slots, np.int64, len(slots))
            ids = self.ids
            known = (ids.count, ids.offset, ids.spans(), self.dropped, self._unsure, waiting, pulled)
            if self.opened is None:
                return Ledger(*known)
            times = np.array([self.opened.times[each] for each in self._slots], float)
            told = np.array([self.opened.rewards.get(each, np.nan) for each in self._slots], float)
            deferred = np.array([each in self.opened.deferred for each in self._slots], bool)
            return Ledger(*known, times, told, deferred)

    def resume(self, ledger: Ledger, same_ids: bool) -> None:
        """Resume the log of a snapshot, with new ids or with those that the saved agent would have given out."""
        count, offset = ledger.decisions, ledger.offset
        with self.lock:
            self.ids = Ids(ledger.spans, count, offset if same_ids else fresh_offset(ledger.spans, count, offset))
            self.dropped, self._unsure = ledger.dropped, ledger.unsure
            waiting = ledger.waiting.tolist()
            if self.opened is not None and ledger.times is not None:
                assert ledger.told is not None
                assert ledger.deferred is not None
                self.opened.times.update(zip(waiting, ledger.times.tolist(), strict=True))
                self.opened.deferred.update(ledger.waiting[ledger.deferred].tolist())
                came = ~np.isnan(ledger.told)
                self.opened.rewards.update(zip(ledger.waiting[came].tolist(), ledger.told[came].tolist(), strict=True))
            self._add(waiting, ledger.pulled.rows, ledger.pulled.features)

    def made_before(self, number: int, row: int, features: np.ndarray, time: float, deferred: bool) -> None:
        """Let a decision wait that was made before with this number, as a log tells it."""
        with self.lock:
            self.ids.note(number)
            decision = self.ids.offset + number
            if self.opened is not None:
                self.opened.add((decision,), time, deferred)
            self._add((decision,), np.array([row]), features[None])

    def _add(self, ids: Sequence[int], rows: np.ndarray, features: np.ndarray) -> None:
        """Let decisions with these ids wait from now on."""
        while len(self._free) < len(ids):
            self._grow()
        slots = [self._free.pop() for _ in ids]
        self._rows[slots] = rows
        self._features[slots] = features
        self._slots.update(zip(ids, slots, strict=True))
        if self.drops:
            self._drop()

    def _forget(self, ids: Sequence[int]) -> None:
        """Free the slots of those of the decisions that wait; doing so again changes nothing."""
        for each in ids:
            if each in self._slots:
                self._free.append(self._slots.pop(each))
        if self.opened is not None:
            self.opened.remove(ids)

    def _drop(self) -> None:
        """Drop the oldest decisions while too many wait, except for those that are held."""
        excess = len(self._slots) - len(self._held) - self.limit
        if excess > 0:
            oldest = self._oldest(excess)
            self._forget(oldest)
            self.dropped += len(oldest)
            self.mark_unsure(oldest)

    def _oldest(self, count: int, more: Sequence[int] = ()) -> list[int]:
        """Return the oldest decisions that wait and are not held; the youngest are `more`."""
        return list(islice((each for each in chain(self._slots, more) if each not in self._held), count))

    def mark_unsure(self, ids: Iterable[int]) -> None:
        """Note that decisions neither wait nor had a reward."""
        self._unsure = max([self._unsure, *(1 + (self.ids.number(each) or 0) for each in ids)])

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
            other = "was withdrawn, or was still being made when a snapshot of format 1 was saved, which lacks it"
            if self.dropped:
                other = (
                    f"was withdrawn, or was among the {self.dropped} oldest that were dropped because too many waited. "
                    f"Raise max_pending, which is {self.limit}"
                )
            return UnknownDecision(f"Decision {decision} does not wait for a reward: it has had one, or {other}.")
        if self.opened is not None:
            return AlreadyRewarded(
                f"The reward of decision {decision} is already known, or its window of {self.opened.window.seconds:g} "
                "seconds is over. Learn each decision once, and in time."
            )
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
