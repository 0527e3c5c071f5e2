"""An agent from its log: the newest snapshot there, and all that happened since, in the order in which it was written.

What is written is what was told to the agent, and replaying it calls the same functions with the same arguments.  So
the state is the same to the bit, and so are the next decisions.
"""

import heapq
import json
import os
import sqlite3
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from explorax.agent import archive, snapshot
from explorax.agent.live import Live, earlier_of
from explorax.agent.recording import Recorded, read
from explorax.errors import InvalidArgument, InvalidLog
from explorax.log import schema, writer
from explorax.policies.base import Policy
from explorax.record import version_of

DURABILITY = "process"  # by default
DECISIONS = "SELECT seq, number, row, features, time, deferred FROM decisions WHERE seq > ? ORDER BY seq"
REWARDS = "SELECT seq, call, decision, reward FROM rewards WHERE seq > ? AND NOT by_default ORDER BY seq"
EVENTS = "SELECT seq, time, kind, decision, name, content FROM events WHERE seq > ? ORDER BY seq"
NEWEST = "SELECT seq, content FROM snapshots ORDER BY seq DESC LIMIT 1"
# The number of the last thing that a state has learned; rewards that wait for the end of a window are not learned yet.
VERSION = "SELECT max(seq) FROM events WHERE kind != 'dropped'"
VERSION_AT_ONCE = f"SELECT max(seq) FROM (SELECT max(seq) AS seq FROM rewards UNION ALL {VERSION})"


class Step(Protocol):
    """Something that happened, as a log tells it."""

    @property
    def seq(self) -> int:
        """The number under which it was written."""

    def replay(self, live: Live) -> None:
        """Let it happen again."""


class Decided(NamedTuple):
    """A decision that was made."""

    seq: int
    number: int
    row: int
    features: bytes
    time: float
    deferred: int

    def replay(self, live: Live) -> None:
        """Let the decision wait for its reward."""
        features = np.frombuffer(self.features, live.decider.source.dtype)
        live.pending.made_before(self.number, self.row, features, self.time, bool(self.deferred))
        own = live.now.arms
        if live.decider.source.named and not own.attributes and not np.array_equal(own.rows[self.row], features):
            live.now = live.now._replace(arms=own.with_reused_rows())


class Rewarded(NamedTuple):
    """The rewards of one call."""

    seq: int
    ids: list[int]
    rewards: list[float]

    def replay(self, live: Live) -> None:
        """Learn the rewards, or keep them until the windows of their decisions are over."""
        if live.window is None:
            live.take_in(self.ids, np.array(self.rewards), lambda coming, *_: coming)
        else:
            live.pending.tell(self.ids, self.rewards)


class Happened(NamedTuple):
    """Something else that happened."""

    seq: int
    time: float
    kind: str
    decision: int
    name: Any
    content: Any

    def replay(self, live: Live) -> None:
        """Let it happen again."""
        HAPPENED[self.kind](live, self)


def put(live: Live, step: Happened) -> None:
    """Add an arm, or give it other features."""
    told = json.loads(step.content)
    source = live.decider.source
    with live.decider.precision():
        if isinstance(told, Mapping):
            row, attributes = source.read(live.now.arms, step.name, told)
        else:
            row, attributes = np.array(told, source.dtype), None
        live.put_row(step.kind, step.name, row, attributes)


HAPPENED: Mapping[str, Callable[[Live, Happened], None]] = {
    "added": put,
    "updated": put,
    "retired": lambda live, step: live.switch(step.name, False),
    "restored": lambda live, step: live.switch(step.name, True),
    "withdrawn": lambda live, step: live.pending.withdraw([step.decision]),
    "dropped": lambda live, step: live.pending.drop([step.decision]),
    "activated": lambda live, step: live.pending.activate([step.decision]),
    "closed": lambda live, step: live.close_windows(step.time),
    "learned_from": lambda live, step: live.learn_from(*earlier_of(step.content)),
}


def check_log(log: object, durability: str | None) -> None:
    """Raise unless there is a log for a durability that is given, and a file can have its name."""
    if log is not None:
        archive.checked_path(log)
        writer.check_durability(durability or DURABILITY)
    elif durability is not None:
        raise InvalidArgument(
            f"durability must be left out without a log, got {durability!r}. Give log=, the file to log to."
        )


def begin(live: Live, path: object, durability: str, clock: Callable[[], float]) -> None:
    """Begin a log in a new file, which holds the agent as it is."""
    target = archive.checked_path(path)
    policy = live.decider.policy.recipe
    about = {
        "version": version_of("explorax"),
        "policy": policy.name if policy else None,
        "kind": live.decider.source.kind,
        "n_features": live.decider.source.n_features,
        "dtype": live.decider.source.dtype,
    }
    content = snapshot.dumps(snapshot.take(live))
    writer.create(target, about, read(clock), content)
    go_on(live, writer.Writer(target, durability), clock)


def go_on(live: Live, to: writer.Writer, clock: Callable[[], float]) -> None:
    """Log from now on."""
    live.record, live.pending.drops = Recorded(to, clock), False
    kept = weakref.ref(live)  # so that an agent that nobody holds any more is gone, and its file closed
    live.dump = partial(dump, kept)
    weakref.finalize(live, to.close)


def dump(live: Callable[[], Live | None]) -> bytes:
    """Return a snapshot of an agent, for a caller who holds its lock."""
    found = live()
    assert found is not None
    return snapshot.dumps(snapshot.taken(found))


def recover(path: str | os.PathLike[str], policy: Policy | None, durability: str, clock: Callable[[], float]) -> Live:
    """Return the decider of a log, with the state and the pending decisions that it had last."""
    target = archive.checked_path(path)
    to = writer.Writer(target, durability)
    try:
        with schema.understood(target):
            seq, content = newest(to.connection, target)
            live = snapshot.resume(content, target, policy, None, None, None, same_ids=True, clock=clock)
            replay(live, to.connection, seq)
        go_on(live, to, clock)
    except BaseException:
        to.close()
        raise
    return live


def newest(connection: sqlite3.Connection, path: Path) -> tuple[int, bytes]:
    """Return the newest snapshot of a log, and the number of the last thing that it knows."""
    found = connection.execute(NEWEST).fetchone()
    if found is None:
        raise InvalidLog(f"{path} has no snapshot of its agent, so it was changed by other programs. Use a copy.")
    return int(found[0]), bytes(found[1])


def replay(live: Live, connection: sqlite3.Connection, seq: int) -> None:
    """Let all happen again that has a higher number than `seq`."""
    live.pending.drops = False
    for step in steps(connection, seq):
        step.replay(live)
    (version,) = connection.execute(VERSION if live.window else VERSION_AT_ONCE).fetchone()
    live.now = live.now._replace(version=version or 0)


def steps(connection: sqlite3.Connection, seq: int) -> Iterator[Step]:
    """Yield what happened after number `seq`, in its order."""
    calls = groupby(connection.execute(REWARDS, (seq,)), key=lambda row: row[1])
    sources: list[Iterator[Step]] = [
        (Decided(*row) for row in connection.execute(DECISIONS, (seq,))),
        (rewarded(call, list(rows)) for call, rows in calls),
        (Happened(*row) for row in connection.execute(EVENTS, (seq,))),
    ]
    return heapq.merge(*sources, key=attrgetter("seq"))


def rewarded(call: int, rows: list[Any]) -> Rewarded:
    """Return the rewards of one call."""
    return Rewarded(call, [row[2] for row in rows], [row[3] for row in rows])
