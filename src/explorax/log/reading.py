"""The log of an agent as arrays, read while the agent may write on.

All of a log is read in one transaction, so that decisions and rewards belong together, and in batches, so that nothing
is in memory twice.  What stays there is what the arrays take: a mask of the arms on offer, the features of arms that
were given with decisions, and the contexts column by column, of which `encoded.py` makes features when they are needed.

    fixed       arms have their names; features are those of the version that a decision was made by
    context     the same, with the features that the encoder makes of attributes and context
    changing    an arm is its place among those on offer, and has the features that were given
    set         infinitely many arms cannot be listed, so such a log is refused
"""

import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from explorax.agent.archive import checked_path
from explorax.errors import InvalidArgument, InvalidLog, UnknownName
from explorax.log.data import LoggedData
from explorax.log.encoded import EncodedFeatures
from explorax.log.exported import is_exported, read_exported
from explorax.log.features import Features, FeaturesByVersion, FixedFeatures, GivenFeatures, ListedFeatures
from explorax.log.statuses import STATUS, UNKNOWN, Statuses, opened, read_as_log
from explorax.log.versions import Began, Versions, began

REWARDS = {"known": "", "told": "AND NOT r.by_default"}  # which of the rewards count
COLUMNS = "d.id, d.time, d.version, d.arm, d.propensity, d.names, d.arms, d.context, d.every, r.reward"


class Batch(NamedTuple):
    """Some decisions of a log, column by column."""

    ids: Sequence[int]
    times: Sequence[float]
    versions: Sequence[int]
    arms: Sequence[Any]
    propensities: Sequence[float | None]
    names: Sequence[str | None]
    tables: Sequence[bytes | None]
    contexts: Sequence[str | None]
    every: Sequence[bytes | None]
    rewards: Sequence[float]


class Reader(Protocol):
    """How the decisions of one kind of arms are read."""

    def read(self, batch: Batch) -> None:
        """Take in some decisions."""

    def fields(self) -> dict[str, Any]:
        """Return what all decisions that were read say of arms, as fields of `LoggedData`."""


def read_log(path: str | os.PathLike[str], *, rewards: str = "known") -> LoggedData:
    """Return the decisions of a log whose rewards are known, as arrays.

    A decision without a reward says nothing about its arm, so it is left out, and `left_out` counts it; it is not taken
    for a reward of 0.  Decisions that were withdrawn, or never shown, are not counted either.  If the agent has a
    reward window, decisions count when their windows are over, as they do for the agent.

    Args:
        path: The file that an agent logs to, which may go on with it meanwhile; or a Parquet or CSV file that such a
            log was exported to, which has no features of arms.
        rewards: "known" for all rewards, or "told" for those that were told, without the ones that decisions got by
            default.  Default: "known".

    Returns:
        The decisions in their order, with arms, rewards, features, propensities, times and ids.  The arms are those
        that were ever on offer; an arm that was given with a decision is its place among them.

    Raises:
        InvalidArgument: If the agent has an infinite set of arms, whose points cannot be listed.
        InvalidLog: If the file is not a log, is truncated or damaged, has a newer format, or has no rewards yet.
        UnknownName: If `rewards` is something else.

    Example:
        >>> import explorax, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "decisions.db")
        ...     agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0], "blue": [0.5]}, log=path)
        ...     for decision in agent.choose_many(3)[:2]:
        ...         agent.learn(decision.id, 1.0)
        ...     data = explorax.read_log(path)
        ...     agent.close()
        >>> data.names, data.rewards, data.propensities, data.left_out
        (('red', 'blue'), array([1., 1.]), array([0.5, 0.5]), 1)
    """
    if rewards not in REWARDS:
        raise UnknownName("rewards", rewards, REWARDS)
    target = checked_path(path)
    if is_exported(target):
        return read_exported(target, by_default=rewards == "known")
    with opened(target) as connection:
        start = began(connection, target)
        if start.source.kind not in READERS:
            raise InvalidArgument(
                f"path must be the log of an agent whose arms can be listed, got {target} of an agent with an infinite "
                "set of arms. Export it with `explorax log export`."
            )
        with read_as_log(target):
            return gathered(connection, READERS[start.source.kind](connection, start), start, REWARDS[rewards], target)


def gathered(connection: sqlite3.Connection, read: Reader, start: Began, which: str, path: Path) -> LoggedData:
    """Return the decisions whose rewards are known."""
    statuses = Statuses(connection, start.window)
    counts = statuses.counts()
    plain: list[tuple[np.ndarray, ...]] = []
    for rows in statuses.rows(COLUMNS, f"{STATUS} = 'known' {which}"):
        batch = Batch(*zip(*rows, strict=True))
        read.read(batch)
        columns = batch.rewards, batch.propensities, batch.times, batch.ids
        plain.append(tuple(map(np.array, columns, (float, float, float, np.int64))))
    if not plain:
        raise InvalidLog(f"{path} has no decision whose reward is known. Read it when there are some.")
    rewards, propensities, times, ids = map(np.concatenate, zip(*plain, strict=True))
    return LoggedData(
        rewards=rewards,
        propensities=None if np.isnan(propensities).any() else propensities,
        times=times,
        ids=ids,
        left_out=sum(counts[each] for each in ("known", *UNKNOWN)) - len(ids),
        **read.fields(),
    )


class OwnArms:
    """Decisions among the agent's own arms, whose features are fixed."""

    def __init__(self, connection: sqlite3.Connection, start: Began) -> None:
        self.source, self.known = start.source, Versions.of(connection, start)
        self.place = {name: i for i, name in enumerate(self.known.names)}
        self.arms: list[np.ndarray] = []
        self.eras: list[np.ndarray] = []
        self.offered: list[np.ndarray] = []
        self.every: list[np.ndarray] | None = []
        self.listed = lru_cache(1000)(self.places_of)

    def read(self, batch: Batch) -> None:
        """Take in some decisions."""
        versions = np.array(batch.versions)
        mask = self.known.offered(versions)
        for row, names in enumerate(batch.names):
            if names is not None:
                mask[row] = False
                mask[row, self.listed(names)] = True
        self.arms.append(np.array([self.place[arm] for arm in batch.arms]))
        self.eras.append(self.known.eras(versions))
        self.offered.append(mask)
        self.read_every(batch, mask)

    def read_every(self, batch: Batch, mask: np.ndarray) -> None:
        """Take in the probabilities of all arms, unless a decision lacks them."""
        if self.every is None or None in batch.every:
            self.every = None
            return
        found = np.zeros(mask.shape)
        for row, (names, chances) in enumerate(zip(batch.names, batch.every, strict=True)):
            if names is None and batch.versions[row] >= self.known.sure_below:
                self.every = None  # arms may have other rows by then, and the log does not tell in which order
                return
            places = np.flatnonzero(mask[row]) if names is None else self.listed(names)
            found[row, places] = np.frombuffer(chances or b"")
        self.every.append(found)

    def places_of(self, names: str) -> np.ndarray:
        """Return the places of arms whose names are given as JSON."""
        return np.array([self.place[name] for name in json.loads(names)])

    def fields(self) -> dict[str, Any]:
        """Return what all decisions that were read say of arms."""
        offered = np.concatenate(self.offered)
        return {
            "arms": np.concatenate(self.arms),
            "features": self.features(np.concatenate(self.eras)),
            "names": self.known.names,
            "offered": None if offered.all() else offered,
            "all_propensities": None if self.every is None else np.concatenate(self.every),
        }

    def features(self, eras: np.ndarray) -> Features:
        """Return the features of the arms in rows that belong to some eras."""
        vectors, which = np.array(self.known.told), self.known.which
        return FixedFeatures(vectors[which[0]]) if len(which) == 1 else FeaturesByVersion(vectors, which, eras)


class OwnArmsInContext(OwnArms):
    """Decisions among the agent's own arms, whose features are made of attributes and a context."""

    def __init__(self, connection: sqlite3.Connection, start: Began) -> None:
        super().__init__(connection, start)
        self.contexts: dict[str, list[Any]] = {}
        self.seen: dict[str, str] = {}  # each text once

    def read(self, batch: Batch) -> None:
        """Take in some decisions."""
        super().read(batch)
        contexts = [json.loads(text or "{}") for text in batch.contexts]
        for name in contexts[0]:
            values = [context[name] for context in contexts]
            once = [self.seen.setdefault(each, each) if isinstance(each, str) else each for each in values]
            self.contexts.setdefault(name, []).extend(once)

    def features(self, eras: np.ndarray) -> Features:
        """Return the features of the arms in rows that belong to some eras."""
        encoder, known = self.source.encoder, self.known
        assert encoder is not None
        columns = {name: np.array(values, object) for name, values in self.contexts.items()}
        return EncodedFeatures(encoder, self.source.dtype, known.told, known.which, eras, columns)


class GivenArms:
    """Decisions among arms that were given with each of them."""

    def __init__(self, connection: sqlite3.Connection, start: Began) -> None:
        self.shape, self.dtype = (-1, start.source.n_features), start.source.dtype
        self.vectors = bytearray()
        self.chances = bytearray()
        self.complete = True  # whether all decisions have the probabilities of all arms
        self.arms: list[np.ndarray] = []
        self.counts: list[np.ndarray] = []

    def read(self, batch: Batch) -> None:
        """Take in some decisions."""
        size = self.shape[1] * np.dtype(self.dtype).itemsize
        pairs = zip(batch.arms, batch.names, strict=True)
        self.arms.append(np.array([arm if names is None else json.loads(names).index(arm) for arm, names in pairs]))
        self.counts.append(np.array([len(table or b"") // size for table in batch.tables]))
        self.vectors.extend(b"".join(table or b"" for table in batch.tables))
        self.complete = self.complete and None not in batch.every
        if self.complete:
            self.chances.extend(b"".join(each or b"" for each in batch.every))

    def fields(self) -> dict[str, Any]:
        """Return what all decisions that were read say of arms."""
        counts, vectors = np.concatenate(self.counts), np.frombuffer(self.vectors, self.dtype).reshape(self.shape)
        most = int(counts.max())
        offered = np.arange(most) < counts[:, None]
        features: Features = ListedFeatures(vectors, np.cumsum(counts) - counts, counts, most)
        if offered.all():
            features = GivenFeatures(vectors.reshape(len(counts), most, -1))
        every = np.zeros(offered.shape) if self.complete else None
        if every is not None:
            every[offered] = np.frombuffer(self.chances)
        return {
            "arms": np.concatenate(self.arms),
            "features": features,
            "names": range(most),
            "offered": None if offered.all() else offered,
            "all_propensities": every,
        }


READERS: Mapping[str, Any] = {"fixed": OwnArms, "context": OwnArmsInContext, "changing": GivenArms}
