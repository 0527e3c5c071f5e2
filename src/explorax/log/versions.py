"""The arms of an agent's own over the time of its log: which were on offer in which version, with which features.

The first snapshot of a log has the arms that the agent had when the log was begun, and events tell what changed.
"""

import json
import math
import sqlite3
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorax.agent import archive, former
from explorax.agent.own_arms import Arms
from explorax.agent.saved_parts import arms_of, source_of
from explorax.agent.snapshot import understood
from explorax.agent.sources import ArmSource
from explorax.errors import InvalidLog

FIRST = "SELECT content FROM snapshots ORDER BY seq LIMIT 1"
CHANGES = """
SELECT seq, kind, name, content FROM events WHERE kind IN ('added', 'updated', 'retired', 'restored') ORDER BY seq
"""
SWITCHED = {"added": True, "restored": True, "retired": False}  # whether the arm is on offer afterwards


class Began(NamedTuple):
    """What the agent of a log was when the log was begun."""

    source: ArmSource
    arms: Arms
    window: float | None  # seconds in which rewards may come, if they are learned afterwards
    waiting: list[int]  # ids of decisions before the log, whose rewards may be in it
    schema: Mapping[str, Any]  # of its snapshot


class Change(NamedTuple):
    """Something that happened to an arm, as a log tells it."""

    seq: int
    kind: str
    name: Hashable
    content: str | None


def began(connection: sqlite3.Connection, path: Path) -> Began:
    """Return what the agent of a log was when the log was begun."""
    found = connection.execute(FIRST).fetchone()
    if found is None:
        raise InvalidLog(f"{path} has no snapshot of its agent, so it was changed by other programs. Use a copy.")
    with understood(path):
        schema, arrays = archive.loads(bytes(found[0]), path)
        schema = former.schema_today(schema)
        source = source_of(schema, arrays)
        arms = arms_of(schema, arrays, source.encoder) if source.named else Arms.none()
        return Began(source, arms, schema["reward_window"], arrays["pending_ids"].tolist(), schema)


@dataclass(frozen=True, eq=False)
class Versions:
    """The arms of an agent's own over the time of its log.

    Attributes:
        names: (K,) All arms that were ever on offer.
        switches: (S,) The numbers of the events that put an arm on offer or took it off.
        on_offer: (S + 1, K) Which arms were on offer before the first, and after each of them.
        updates: (U,) The numbers of the events that gave an arm other features.
        which: (U + 1, K) The place among `told` of what each arm was, before the first and after each of them.
        told: What arms were: their features, or their attributes if features depend on a context.
        sure_below: The versions below this number have the arms in the order of `names`; later ones may not.
    """

    names: tuple[Hashable, ...]
    switches: np.ndarray
    on_offer: np.ndarray
    updates: np.ndarray
    which: np.ndarray
    told: Sequence[Any]
    sure_below: float

    @classmethod
    def of(cls, connection: sqlite3.Connection, start: Began) -> "Versions":
        """Return the arms of a log's agent over the time of the log."""
        return cls.after(start.arms, start.source.dtype, [Change(*row) for row in connection.execute(CHANGES)])

    @classmethod
    def after(cls, arms: Arms, dtype: str, changes: Sequence[Change]) -> "Versions":
        """Return the arms over the time of some changes, given what they were before."""
        began_on = arms.by_name()
        put_on = {change.name for change in changes if SWITCHED.get(change.kind)}
        ever = dict.fromkeys([*(name for name, on in began_on.items() if on or name in put_on), *ordered(changes)])
        place = {name: i for i, name in enumerate(ever)}
        told: list[Any] = [described(arms, name) for name in ever if name in began_on]
        first = np.full(len(place), -1)
        first[[place[name] for name in ever if name in began_on]] = np.arange(len(told))
        which, on = [first], [np.array([began_on.get(name, False) for name in ever], bool)]
        switches, updates = [], []
        for change in changes:
            if change.name not in place:
                continue
            i = place[change.name]
            if change.kind in SWITCHED and on[-1][i] != SWITCHED[change.kind]:
                on.append(on[-1].copy())
                on[-1][i] = SWITCHED[change.kind]
                switches.append(change.seq)
            if change.content is not None:
                content = json.loads(change.content)
                told.append(content if isinstance(content, Mapping) else np.array(content, dtype))
                if which[-1][i] < 0:  # an arm that is new has always been what it is now
                    for each in which:
                        each[i] = len(told) - 1
                else:
                    which.append(which[-1].copy())
                    which[-1][i] = len(told) - 1
                    updates.append(change.seq)
        moved = () if arms.attributes else ("added", "updated", *(["restored"] if arms.rowless else []))
        sure_below = next((change.seq for change in changes if change.kind in moved), math.inf)
        stacked = np.array(switches, int), np.array(on), np.array(updates, int), np.array(which)
        return cls(tuple(ever), *stacked, told, sure_below)

    def offered(self, versions: np.ndarray) -> np.ndarray:
        """Return (n, K) which arms were on offer in some versions."""
        return self.on_offer[np.searchsorted(self.switches, versions, side="right")]

    def eras(self, versions: np.ndarray) -> np.ndarray:
        """Return (n,) the rows of `which` that belong to some versions."""
        return np.searchsorted(self.updates, versions, side="right")


def ordered(changes: Iterable[Change]) -> list[Hashable]:
    """Return the names of arms that were added, in their order."""
    return [change.name for change in changes if change.kind == "added"]


def described(arms: Arms, name: Hashable) -> Any:
    """Return the features of an arm, or its attributes if features depend on a context."""
    if name in arms.rowless:
        return arms.rowless[name]
    place = arms.place(name)
    return arms.attributes[place] if arms.attributes else arms.rows[place]
