"""Whether what an agent does is on record: in no log, or in a log that is written first.

An agent asks one of two objects with the same methods, `Unrecorded` or `Recorded`.  Both let decisions wait and hand
back the record of the agent that comes next (`Now`); `Recorded` writes a log before that.

Writing and what follows from it in memory happen under the lock of the writer.  So what is decided, dropped and learned
has the same order in the file as in memory, and a fold of the file is what the memory was.
"""

import contextlib
import json
import math
import reprlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.agent.arm_tables import Pick
from explorax.agent.decider import Now
from explorax.agent.decisions import Propensities
from explorax.agent.offers import Shown
from explorax.agent.pending import Pending
from explorax.agent.reward_window import Due
from explorax.checks import is_number
from explorax.errors import CannotWrite, InvalidArgument
from explorax.log import writer

SNAPSHOT_EVERY = 10_000  # rewards, after which the log is given a snapshot


class Asked(NamedTuple):
    """A call that asks for decisions: what numbers they have, and by which state they are made."""

    first: int  # number
    version: int
    deferred: bool = False  # whether they teach nothing unless they are activated


class Event(NamedTuple):
    """Something that happened beside decisions and rewards, as a row of a log."""

    kind: str
    decision: int | None = None
    name: Any = None
    content: Any = None


class Unrecorded:
    """No log: what happens is in memory only."""

    unfinished: Now | None = None  # what comes next, if an interrupt may have left it to come

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self.clock = clock

    def now(self) -> float:
        """Return the time that decisions are made at; 0 for an agent that never looks at a clock."""
        return 0.0 if self.clock is None else read(self.clock)

    def decided(
        self,
        pending: Pending,
        asked: Asked,
        shown: Callable[[], list[Shown]],
        pick: Pick,
        chance: float | None,
        stderr: float | None,
        every: Propensities | None,
    ) -> int:
        """Let a decision wait for its reward; return its id."""
        if self.clock is None:
            return pending.made_one(asked.first, pick.row, pick.features)
        return pending.made_one(asked.first, pick.row, pick.features, self.now(), asked.deferred)

    def decided_many(
        self,
        pending: Pending,
        asked: Asked,
        shown: Callable[[], list[Shown]],
        picks: Pick,
        chances: np.ndarray | None,
        stderrs: np.ndarray | None,
        every: Sequence[Propensities] | None,
    ) -> range:
        """Let decisions wait for their rewards; return their ids."""
        return pending.made(asked.first, picks.row, picks.features, self.now(), asked.deferred)

    def rewarded(self, coming: Now, ids: Sequence[int], rewards: Any) -> Now:
        """Return what comes after rewards were learned."""
        return coming

    def missed(self, ids: Sequence[int]) -> tuple[list[int], list[float]]:
        """Return those of the decisions whose rewards an interrupt has left in the log only, and these rewards."""
        return [], []

    def told(self, ids: Sequence[int], rewards: Any) -> None:
        """Note that rewards came that are learned later."""

    def closed(self, due: Due, time: float, coming: Now) -> Now:
        """Return what comes after the windows of decisions were closed."""
        return coming

    def happened(self, events: Sequence[Event], coming: Now) -> Now:
        """Return what comes after something else happened."""
        return coming

    def settled(self, now: Now) -> Now:
        """Return what an interrupt has left to come, or else what is now."""
        return now

    def keep(self, dump: Callable[[], bytes]) -> None:
        """Keep a snapshot, if there is a place for it and enough was learned since the last."""

    def close(self) -> None:
        """Close the log, if there is one."""


class Recorded(Unrecorded):
    """A log, written before anything that it says has happened."""

    clock: Callable[[], float]

    def __init__(self, to: writer.Writer, clock: Callable[[], float] = time.time) -> None:
        super().__init__(clock)
        self.writer = to
        self.unwritten: list[Event] = []  # decisions that were dropped while nothing could be written
        self.since = 0  # rewards since the last snapshot

    def decided(
        self,
        pending: Pending,
        asked: Asked,
        shown: Callable[[], list[Shown]],
        pick: Pick,
        chance: float | None,
        stderr: float | None,
        every: Propensities | None,
    ) -> int:
        """Write a decision, and let it wait for its reward; return its id."""
        moment, first = self.now(), asked.first
        decision = pending.ids.offset + first
        with self.writer.lock, self.refusable(pending, asked, 1):
            told = (pick.arm, pick.row, pick.features, chance, stderr, pick.forced, pick.converged, shown()[0], every)
            self.make_room(pending, 1, moment)
            row = as_row(decision, self.writer.next(), moment, asked, first, decision, *told)
            self.writer.one(writer.DECISION, row)
            return pending.made_one(first, pick.row, pick.features, moment, asked.deferred)

    def decided_many(
        self,
        pending: Pending,
        asked: Asked,
        shown: Callable[[], list[Shown]],
        picks: Pick,
        chances: np.ndarray | None,
        stderrs: np.ndarray | None,
        every: Sequence[Propensities] | None,
    ) -> range:
        """Write decisions, and let them wait for their rewards; return their ids."""
        moment, first, count = self.now(), asked.first, len(picks.row)
        start = pending.ids.offset + first
        nothing = [None] * count
        with self.writer.lock, self.refusable(pending, asked, count):
            columns = (picks.row, chances, stderrs, picks.forced, picks.converged)
            places, *numbers = (nothing if each is None else np.asarray(each).tolist() for each in columns)
            each = zip(picks.arm, places, picks.features, *numbers, shown(), every or nothing, strict=True)
            self.make_room(pending, count, moment)
            seq = self.writer.next()
            rows = [as_row(start + i, seq + i, moment, asked, first + i, start, *told) for i, told in enumerate(each)]
            self.write([(writer.DECISION, rows)], [], moment)
            return pending.made(first, picks.row, picks.features, moment, asked.deferred)

    @contextlib.contextmanager
    def refusable(self, pending: Pending, asked: Asked, count: int) -> Iterator[None]:
        """Free the numbers of decisions that cannot be written."""
        try:
            yield
        except (CannotWrite, InvalidArgument):
            pending.give_back(asked.first, count)
            raise

    def make_room(self, pending: Pending, count: int, moment: float) -> None:
        """Drop the oldest decisions that are too many with `count` more."""
        self.unwritten += [Event("dropped", each) for each in pending.drop_beyond(max(pending.limit - count, 0))]
        self.catch_up(moment)

    def catch_up(self, moment: float) -> None:
        """Write what has happened in memory and could not be written then, before anything else is written."""
        if self.unwritten:
            self.write([], self.unwritten, moment)
            self.unwritten = []

    def rewarded(self, coming: Now, ids: Sequence[int], rewards: Any) -> Now:
        """Write rewards that were learned; return what comes next, with its version."""
        moment = self.now()
        with self.writer.lock:
            self.catch_up(moment)
            seq = self.writer.next()
            coming = coming._replace(version=seq + len(ids) - 1)
            with self.finishing(coming):
                if len(ids) == 1:
                    self.writer.one(writer.REWARD, (ids[0], seq, moment, seq, float(np.squeeze(rewards)), 0))
                else:
                    self.write([(writer.REWARD, reward_rows(ids, rewards, seq, moment, 0))], [], moment)
        self.since += len(ids)
        return coming

    def missed(self, ids: Sequence[int]) -> tuple[list[int], list[float]]:
        """Return those of the decisions whose rewards an interrupt has left in the log only, and these rewards."""
        with self.writer.lock:
            found = {each: self.writer.reward_of(each) for each in ids} if self.writer.unsure else {}
        known = {each: reward for each, reward in found.items() if reward is not None}
        return list(known), list(known.values())

    def told(self, ids: Sequence[int], rewards: Any) -> None:
        """Write rewards that are learned later."""
        moment = self.now()
        with self.writer.lock:
            self.catch_up(moment)
            rows = reward_rows(ids, rewards, self.writer.next(), moment, 0)
            self.write([(writer.REWARD, rows)], [], moment)

    def closed(self, due: Due, time: float, coming: Now) -> Now:
        """Write that windows were closed, and the rewards that decisions have by default; return what comes next."""
        with self.writer.lock:
            self.catch_up(time)
            seq = self.writer.next()
            rows = reward_rows(due.defaulted, [due.default] * len(due.defaulted), seq, time, 1)
            coming = coming._replace(version=seq + len(rows))
            with self.finishing(coming):
                self.write([(writer.REWARD, rows)], [Event("closed")], time)
        self.since += len(due.paid)
        return coming

    def happened(self, events: Sequence[Event], coming: Now) -> Now:
        """Write what else happened; return what comes next, with its version."""
        moment = self.now()
        with self.writer.lock:
            self.catch_up(moment)
            coming = coming._replace(version=self.writer.next() + len(events) - 1)
            with self.finishing(coming):
                self.write([], events, moment)
        return coming

    @contextlib.contextmanager
    def finishing(self, coming: Now) -> Iterator[None]:
        """Note what comes next while it is written; an interrupt leaves the note, and what is refused does not."""
        self.unfinished = coming
        try:
            yield
        except (CannotWrite, InvalidArgument):
            self.unfinished = None
            raise

    def settled(self, now: Now) -> Now:
        """Return what comes next if an interrupt has come after it was written, and else what is now."""
        coming, self.unfinished = self.unfinished, None
        if coming is None or coming is now:
            return now
        with self.writer.lock:
            return coming if self.writer.has(coming.version) else now

    def write(self, statements: Sequence[writer.Rows], events: Sequence[Event], time: float) -> None:
        """Write rows that have the next numbers, and events after them, all of them or none."""
        count = sum(len(rows) for _, rows in statements)
        seq = self.writer.next() + count
        rows = [(seq + i, time, *event) for i, event in enumerate(events)]
        self.writer.all([*statements, (writer.EVENT, rows)], count + len(rows))

    def keep(self, dump: Callable[[], bytes]) -> None:
        """Keep a snapshot in the log if enough was learned since the last."""
        if self.since < SNAPSHOT_EVERY:
            return
        self.since = 0
        moment = self.now()
        with self.writer.lock, contextlib.suppress(CannotWrite):  # a snapshot only saves time: the log has it all
            seq, content = self.writer.next() - 1, dump()
            self.writer.all([(writer.SNAPSHOT, [(seq, moment, content)]), (writer.FORGET, [(seq,)])], 0)

    def close(self) -> None:
        """Close the file, and leave it to other writers."""
        self.writer.close()


def as_row(
    decision: int,
    seq: int,
    moment: float,
    asked: Asked,
    number: int,
    call: int,
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
    """Return a decision as a row of a log."""
    names, table, context = shown
    return (
        decision,
        seq,
        moment,
        number,
        call,
        asked.version,
        None if isinstance(arm, np.ndarray) else arm,  # a point is its features
        place,
        features.tobytes(),
        chance,
        stderr,
        forced,
        converged,
        asked.deferred,
        None if names is None else json.dumps(names),
        None if table is None else table.tobytes(),
        None if context is None else context_text(context),
        None if every is None else every.probabilities.tobytes(),
    )


def reward_rows(ids: Sequence[int], rewards: Any, seq: int, moment: float, by_default: int) -> list[tuple[Any, ...]]:
    """Return rewards as rows of a log."""
    pairs = zip(ids, np.atleast_1d(rewards).tolist(), strict=True)
    return [(each, seq + i, moment, seq, reward, by_default) for i, (each, reward) in enumerate(pairs)]


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
    if not (is_number(moment) and math.isfinite(moment)):
        raise InvalidArgument(
            f"clock must return a finite number of seconds, got {moment!r}. Give time.time, or a function like it."
        )
    return float(moment)
