"""Whether what an agent does is on record: in no log, or in a log that is written first.

An agent asks one of two objects with the same methods, `Unrecorded` or `Recorded`.  Both do what follows in memory;
`Recorded` writes a log before that.

Writing and what follows from it in memory happen under the lock of the writer.  So what is decided, dropped and learned
has the same order in the file as in memory, and a fold of the file is what the memory was.

**Interrupts.**  An interrupt may come after something was written, and before it has all happened in memory.  A note of
what follows is made before anything is written (`Recorded.write`).  Whoever comes next does it if the file has the row;
what was done by half is done again, and doing it twice changes nothing.
"""

import contextlib
import json
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from explorax.agent.arm_tables import Pick
from explorax.agent.decisions import Propensities
from explorax.agent.offers import Shown
from explorax.agent.pending import Pending
from explorax.agent.pulled import Pulled
from explorax.agent.reward_window import Due
from explorax.checks import is_number
from explorax.errors import CannotWrite, ExploraxError, InvalidArgument
from explorax.log import writer

SNAPSHOT_EVERY = 10_000  # rewards, after which the log is given a snapshot

NOTHING_SHOWN: tuple[Shown, ...] = ()  # in place of what a log would hold of the arms on offer

Result = TypeVar("Result")
Then = Callable[[int], object]  # what follows in memory, given the version that comes of it


class Event(NamedTuple):
    """Something that happened beside decisions and rewards, as a row of a log."""

    kind: str
    decision: int | None = None
    name: Any = None
    content: Any = None


class Unrecorded:
    """No log: what happens is in memory only."""

    logs = False  # whether what happens is written
    lock: contextlib.AbstractContextManager[Any] = contextlib.nullcontext()

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self.clock = clock

    def now(self) -> float:
        """Return the time that decisions are made at; 0 for an agent that never looks at a clock."""
        return 0.0 if self.clock is None else read(self.clock)

    def settle(self) -> None:
        """Make up for what an interrupt has left undone after it was written."""

    def hold(self, pending: Pending, ids: Sequence[int]) -> Pulled:
        """Return the arms of decisions that wait, which are not dropped until they are released."""
        return pending.hold(ids)

    def decided(
        self,
        pending: Pending,
        number: int,
        version: int,
        deferred: bool,
        shown: Sequence[Shown],
        pick: Pick,
        chance: float | None,
        stderr: float | None,
        every: Propensities | None,
    ) -> int:
        """Let a decision wait for its reward; return its id."""
        if self.clock is None:
            return pending.made_one(number, pick.row, pick.features)
        return pending.made_one(number, pick.row, pick.features, self.now(), deferred)

    def decided_many(
        self,
        pending: Pending,
        first: int,
        version: int,
        deferred: bool,
        shown: Sequence[Shown],
        picks: Pick,
        chances: np.ndarray | None,
        stderrs: np.ndarray | None,
        every: Sequence[Propensities] | None,
    ) -> range:
        """Let decisions wait for their rewards; return their ids."""
        return pending.made(first, picks.row, picks.features, self.now(), deferred)

    def rewarded(self, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Let the state have learned rewards."""
        then(0)

    def told(self, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Let rewards have come that are learned later."""
        then(0)

    def closed(self, due: Due, time: float, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Let the windows of decisions be closed, and the state have learned their rewards."""
        then(0)

    def happened(self, events: Sequence[Event], then: Then) -> None:
        """Let something else have happened."""
        then(0)

    def keep(self, dump: Callable[[], bytes]) -> None:
        """Keep a snapshot, if there is a place for it and enough was learned since the last."""

    def close(self) -> None:
        """Close the log, if there is one."""


class Recorded(Unrecorded):
    """A log, written before anything that it says has happened."""

    logs = True
    clock: Callable[[], float]

    def __init__(self, to: writer.Writer, clock: Callable[[], float], since: int = 0) -> None:
        super().__init__(clock)
        self.writer, self.lock = to, to.lock
        self.undone: tuple[int, Callable[[], object]] | None = None  # what follows in memory, if this row is there
        self.since, self.moment = since, 0.0  # rewards since the last snapshot, and when the last came

    def settle(self) -> None:
        """Make up for what an interrupt has left undone after it was written."""
        if self.undone is not None:
            with self.lock:
                self.finish()

    def hold(self, pending: Pending, ids: Sequence[int]) -> Pulled:
        """Return the arms of decisions that wait, which are not dropped until they are released."""
        with self.lock:  # not between the choice of those that are dropped and their end
            self.finish()
            return pending.hold(ids)

    def finish(self) -> None:
        """Make up for what an interrupt has left undone, for a caller who holds the lock."""
        if self.undone is not None:
            last, then = self.undone
            if self.writer.has(last):
                then()
            self.undone = None

    def write(self, statements: Sequence[writer.Rows], last: int, then: Callable[[], Result]) -> Result:
        """Write rows, of which the last has the number `last`, and return what follows; an interrupt leaves a note."""
        self.undone = last, then  # which changes nothing if it is done again
        try:
            self.writer.write(statements, last)
        except (CannotWrite, InvalidArgument):
            self.undone = None
            raise
        found = then()
        self.undone = None
        return found

    def decided(
        self,
        pending: Pending,
        number: int,
        version: int,
        deferred: bool,
        shown: Sequence[Shown],
        pick: Pick,
        chance: float | None,
        stderr: float | None,
        every: Propensities | None,
    ) -> int:
        """Write a decision, and let it wait for its reward; return its id."""
        moment, decision = self.now(), pending.ids.offset + number
        told = (pick.arm, pick.row, pick.features, chance, stderr, pick.forced, pick.converged)
        content = row_content(number, decision, version, deferred, *told, shown[0], every)
        made = partial(pending.made_one, number, pick.row, pick.features, moment, deferred)
        return self.decide(pending, (decision,), [content], moment, made)

    def decided_many(
        self,
        pending: Pending,
        first: int,
        version: int,
        deferred: bool,
        shown: Sequence[Shown],
        picks: Pick,
        chances: np.ndarray | None,
        stderrs: np.ndarray | None,
        every: Sequence[Propensities] | None,
    ) -> range:
        """Write decisions, and let them wait for their rewards; return their ids."""
        moment, nothing = self.now(), [None] * len(picks.row)
        ids = range(pending.ids.offset + first, pending.ids.offset + first + len(picks.row))
        columns = (picks.row, chances, stderrs, picks.forced, picks.converged)
        places, *numbers = (nothing if each is None else np.asarray(each).tolist() for each in columns)
        each = zip(picks.arm, places, picks.features, *numbers, shown, every or nothing, strict=True)
        contents = [row_content(first + i, ids.start, version, deferred, *told) for i, told in enumerate(each)]
        made = partial(pending.made, first, picks.row, picks.features, moment, deferred)
        return self.decide(pending, ids, contents, moment, made)

    def decide(
        self,
        pending: Pending,
        ids: Sequence[int],
        contents: Sequence[tuple[Any, ...]],
        moment: float,
        made: Callable[[], Result],
    ) -> Result:
        """Write decisions and which are dropped for them; return what lets them wait."""
        with self.lock:
            self.finish()
            seq = self.writer.next()
            if len(contents) == 1:  # as most often
                rows = [(ids[0], seq, moment, *contents[0])]
            else:
                each = zip(ids, contents, strict=True)
                rows = [(decision, seq + i, moment, *content) for i, (decision, content) in enumerate(each)]
            dropped = pending.too_many_with(ids)
            if not dropped:
                return self.write([(writer.DECISION, rows)], seq + len(rows) - 1, made)
            total = pending.dropped + len(dropped)
            drops = event_rows([Event("dropped", each) for each in dropped], seq + len(rows), moment)

            def made_and_dropped() -> Result:
                found = made()
                pending.drop(dropped, total)
                return found

            return self.write(
                [(writer.DECISION, rows), (writer.EVENT, drops)], seq + len(rows) + len(drops) - 1, made_and_dropped
            )

    def rewarded(self, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Write rewards, and let the state have learned them."""
        self.told(ids, rewards, then)
        self.since += len(ids)

    def told(self, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Write rewards, and let them have come."""
        self.moment = moment = self.now()
        with self.lock:
            self.finish()
            seq = self.writer.next()
            rows = reward_rows(ids, rewards, seq, moment, 0)
            if rows:
                last = seq + len(rows) - 1
                self.write([(writer.REWARD, rows)], last, partial(then, last))

    def closed(self, due: Due, time: float, ids: Sequence[int], rewards: Any, then: Then) -> None:
        """Write that windows were closed, with the rewards by default, and let this have happened."""
        self.moment = time
        with self.lock:
            self.finish()
            seq = self.writer.next()
            rows = reward_rows(due.defaulted, [due.default] * len(due.defaulted), seq, time, 1)
            last = seq + len(rows)
            closing = event_rows([Event("closed", due.last)], last, time)
            self.write([(writer.REWARD, rows), (writer.EVENT, closing)], last, partial(then, last))
        self.since += len(due.paid)

    def happened(self, events: Sequence[Event], then: Then) -> None:
        """Write what else happened, and let it have happened."""
        moment = self.now()
        with self.lock:
            self.finish()
            seq = self.writer.next()
            if events:
                last = seq + len(events) - 1
                self.write([(writer.EVENT, event_rows(events, seq, moment))], last, partial(then, last))

    def keep(self, dump: Callable[[], bytes]) -> None:
        """Keep a snapshot in the log if enough was learned since the last."""
        if self.since < SNAPSHOT_EVERY:
            return
        self.since = 0
        with self.lock, contextlib.suppress(ExploraxError):  # a snapshot only saves time: the log has it all
            self.finish()
            seq = self.writer.next() - 1
            self.writer.write([(writer.SNAPSHOT, [(seq, self.moment, dump())]), (writer.FORGET, [(seq,)])], seq)

    def close(self) -> None:
        """Close the file, and leave it to other writers."""
        with contextlib.suppress(InvalidArgument):  # it is closed already
            self.settle()
        self.writer.close()


def row_content(
    number: int,
    call: int,
    version: int,
    deferred: bool,
    arm: Any,
    place: int,
    features: np.ndarray,
    chance: float | None,
    stderr: float | None,
    forced: bool,
    converged: bool,
    shown: Shown,
    every: Propensities | None,
) -> tuple[Any, ...]:
    """Return a decision as a row of a log, without its id, the number of the row, and the time."""
    names, table, context = shown
    return (
        number,
        call,
        version,
        None if isinstance(arm, np.ndarray) else arm,  # a point is its features
        place,
        features.tobytes(),
        chance,
        stderr,
        forced,
        converged,
        deferred,
        None if names is None else json.dumps(names),
        None if table is None else table.tobytes(),
        None if context is None else context_text(context),
        None if every is None else every.probabilities.tobytes(),
    )


def reward_rows(ids: Sequence[int], rewards: Any, seq: int, moment: float, by_default: int) -> list[tuple[Any, ...]]:
    """Return rewards as rows of a log."""
    if len(ids) == 1 and isinstance(rewards, float):  # what most calls tell, and NumPy takes long for
        return [(ids[0], seq, moment, seq, rewards, by_default)]
    pairs = zip(ids, np.atleast_1d(rewards).tolist(), strict=True)
    return [(each, seq + i, moment, seq, reward, by_default) for i, (each, reward) in enumerate(pairs)]


def event_rows(events: Sequence[Event], seq: int, moment: float) -> list[tuple[Any, ...]]:
    """Return what happened as rows of a log."""
    return [(seq + i, moment, *event) for i, event in enumerate(events)]


def context_text(context: Mapping[str, Any]) -> str:
    """Return a context as JSON; raise if there is something in it that JSON cannot hold exactly."""
    try:
        return json.dumps(dict(context), default=plain_number, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"A context must hold text, finite numbers, True and False to be logged, got {reprlib.repr(context)}. "
            "Change the other values to these."
        ) from None


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as one of Python; raise for anything else."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError


def read(clock: Callable[[], float]) -> float:
    """Return the time that a clock tells; raise if it is not a finite number."""
    moment = clock()
    if type(moment) is float and math.isfinite(moment):
        return moment
    if not (is_number(moment) and math.isfinite(moment)):
        raise InvalidArgument(
            f"clock must return a finite number of seconds, got {moment!r}. Give time.time, or a function like it."
        )
    return float(moment)
