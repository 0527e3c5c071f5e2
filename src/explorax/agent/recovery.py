"""An agent from its log: the newest snapshot there, and all that happened since, in the order in which it was written.

What is written is what was told to the agent, and replaying it calls the same functions with the same arguments.  So
the state is the same to the bit, and so are the next decisions.
"""

import contextlib
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
from explorax.agent.live import Live
from explorax.agent.recording import Recorded, read
from explorax.agent.warm_start import earlier_of
from explorax.errors import InvalidArgument, InvalidLog
from explorax.log import schema, writer
from explorax.policies.base import Policy
from explorax.software import version_of

DURABILITY = "process"  # by default
DECISIONS = "SELECT seq, number, row, features, time, deferred FROM decisions WHERE seq > ? ORDER BY seq"
REWARDS = "SELECT seq, call, decision, reward FROM rewards WHERE seq > ? AND NOT by_default ORDER BY seq"
EVENTS = "SELECT seq, time, kind, decision, name, content FROM events WHERE seq > ? ORDER BY seq"
SINCE = "SELECT count(*) FROM rewards WHERE seq > ?"
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
            rewards = np.array(self.rewards)
            live.take_in(self.ids, rewards, live.record.rewarded)
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
    "dropped": lambda live, step: live.pending.drop([step.decision], live.pending.dropped + 1),
    "activated": lambda live, step: live.pending.activate([step.decision]),
    "closed": lambda live, step: live.close(live.pending.hold_through(step.decision), step.time),
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
    for name in live.now.arms.by_name():
        writer.check_name(name)
    about = {
        "version": version_of("explorax"),
        "policy": policy.name if policy else None,
        "kind": live.decider.source.kind,
        "n_features": live.decider.source.n_features,
        "dtype": live.decider.source.dtype,
    }
    content = snapshot.dumps(snapshot.take(live))
    go_on(live, writer.create(target, about, read(clock), content, durability), clock, 0)


def go_on(live: Live, to: writer.Writer, clock: Callable[[], float], since: int) -> None:
    """Log from now on, given the number of rewards since the last snapshot."""
    live.record, live.pending.drops = Recorded(to, clock, since), False
    kept = weakref.ref(live)  # so that an agent that nobody holds any more is gone, and its file closed
    live.dump = partial(dump, kept)
    weakref.finalize(live, to.close)


def dump(live: Callable[[], Live | None]) -> bytes:
    """Return a snapshot of an agent, for a caller who holds its lock."""
    found = live()
    assert found is not None
    return snapshot.dumps(snapshot.taken(found))


def recover(path: str | os.PathLike[str], policy: Policy | None, durability: str, clock: Callable[[], float]) -> Live:
    """Return the decider of a log, with the state and the pending decisions that it had last.

    All that is needed is read before the file is opened for writing, so that one that cannot be used stays as it is.
    """
    target = Path(os.path.realpath(archive.checked_path(path)))
    writer.check_durability(durability)
    schema.check_is_log(target)  # before a lock is left beside a file that is something else
    with contextlib.ExitStack() as held:
        held.enter_context(writer.locked(target))
        with contextlib.closing(schema.connect(target, write=False)) as reader:
            with schema.understood(target):
                seq, content = newest(reader, target)
                live = snapshot.resume(content, target, policy, None, None, None, same_ids=True, clock=clock)
                with replayable(target):
                    replay(live, reader, seq)
                (since,) = reader.execute(SINCE, (seq,)).fetchone()
            go_on(live, writer.Writer(target, durability, held), clock, since)
    return live


@contextlib.contextmanager
def replayable(path: Path) -> Iterator[None]:
    """Turn errors that come from the content of a log into `InvalidLog`."""
    try:
        yield
    except sqlite3.Error:
        raise
    except Exception as error:  # rows that are something else fail in any way
        raise InvalidLog(
            f"{path} is damaged, or was changed by other programs: {error or repr(error)} Nothing in it was changed. "
            "Restore it from a copy."
        ) from error


def newest(connection: sqlite3.Connection, path: Path) -> tuple[int, bytes]:
    """Return the newest snapshot of a log, and the number of the last thing that it knows."""
    found = connection.execute(NEWEST).fetchone()
    if found is None or not (isinstance(found[0], int) and isinstance(found[1], bytes)):
        raise InvalidLog(f"{path} has no snapshot of its agent, so it was changed by other programs. Use a copy.")
    return found[0], found[1]


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
