"""What is wrong in a log: its file, its numbers, its references, and whether its snapshots are what its rewards make.

A check never changes the file, which an agent may write meanwhile.
"""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from explorax.agent import archive, recovery, snapshot
from explorax.agent.archive import checked_path
from explorax.agent.ids import MOST
from explorax.errors import ExploraxError
from explorax.log import schema
from explorax.log.data import LIMIT
from explorax.log.flat import Offers
from explorax.log.statuses import Statuses, opened
from explorax.log.versions import Began, Versions, began

CLOSE = 1e-6  # by how much probabilities may be off
SHOWN = 3  # examples in a sentence
SEQS = " UNION ALL ".join(f"SELECT seq FROM {table}" for table in schema.NUMBERED)
KINDS = ", ".join(f"'{kind}'" for kind in recovery.HAPPENED)
MADE = "SELECT id FROM decisions UNION ALL SELECT value FROM json_each(:earlier)"  # those before the log, too
WRONG = {  # sentence -> the query of what is wrong, which returns examples
    "Numbers (seq) are there twice": f"SELECT seq FROM ({SEQS}) GROUP BY seq HAVING count(*) > 1",
    "Numbers (seq) are missing before": f"""
        SELECT seq FROM (
            SELECT seq, lag(seq, 1, 0) OVER (ORDER BY seq) AS before FROM (SELECT DISTINCT seq FROM ({SEQS}))
        ) WHERE seq != before + 1""",
    "Rewards belong to no decision": f"SELECT decision FROM rewards WHERE decision NOT IN ({MADE})",
    "Decisions have several rewards": "SELECT decision FROM rewards GROUP BY decision HAVING count(*) > 1",
    "Rewards were written before their decisions": """
        SELECT d.id FROM decisions d JOIN rewards r ON r.decision = d.id WHERE r.seq <= d.seq""",
    "Rewards are no finite numbers": """
        SELECT decision FROM rewards WHERE typeof(reward) NOT IN ('real', 'integer') OR abs(reward) = 9e999""",
    "Decisions were withdrawn, but have a reward": """
        SELECT decision FROM events WHERE kind = 'withdrawn' AND decision IN (SELECT decision FROM rewards)""",
    "Events belong to no decision": f"""
        SELECT seq FROM events WHERE decision IS NOT NULL AND decision NOT IN ({MADE})""",
    "Events are of a kind that nobody knows": f"SELECT seq FROM events WHERE kind NOT IN ({KINDS})",
    "Propensities are not above 0 and at most 1": f"""
        SELECT id FROM decisions WHERE propensity IS NOT NULL AND NOT (propensity > 0 AND propensity <= 1 + {LIMIT})""",
    "Standard errors of propensities are below 0": "SELECT id FROM decisions WHERE stderr < 0",
    f"Ids are not from 0 to {MOST - 1}": f"SELECT id FROM decisions WHERE id < 0 OR id >= {MOST}",
    "Versions are ahead of their decisions": "SELECT id FROM decisions WHERE version >= seq OR version < 0",
    "Versions are numbers of decisions": """
        SELECT id FROM decisions WHERE version IN (SELECT seq FROM decisions)""",
}
COLUMNS = "d.id, d.arm, d.version, d.propensity, d.names, d.every, d.features, d.arms"


def problems(path: str | os.PathLike[str], *, fold: bool) -> Iterator[str]:
    """Yield what is wrong in a log, in sentences; nothing if all is well.

    Args:
        path: The file that an agent logs to.
        fold: Whether to learn all rewards again, which takes as long as it took the agent.

    Yields:
        Sentences.
    """
    target = checked_path(path)
    with opened(target) as connection:
        try:
            yield from wrong_in(connection, target, fold)
        except sqlite3.DatabaseError as error:
            yield f"The file is damaged: {error}."


def can_fold(path: str | os.PathLike[str]) -> bool:
    """Tell whether the policy of a log can be made from what the log says, so that its rewards can be learned again."""
    target = checked_path(path)
    with opened(target) as connection, contextlib.suppress(ExploraxError):
        found = began(connection, target).schema
        return found["policy"] is not None and found["settings"] is not None
    return True  # whoever tries says why not


def wrong_in(connection: sqlite3.Connection, path: Path, fold: bool) -> Iterator[str]:
    """Yield what is wrong in a log that is open."""
    found = [text for (text,) in connection.execute("PRAGMA integrity_check") if text != "ok"]
    if found:
        yield f"The file is damaged: {' '.join(found[0].split())}."
        return
    try:
        start = began(connection, path)
    except ExploraxError as error:
        yield f"The first snapshot cannot be read: {error}"
        return
    told = {"earlier": json.dumps(start.waiting)}
    for sentence, query in WRONG.items():
        yield from examples(sentence, [each for (each,) in connection.execute(query, told)])
    try:
        yield from wrong_decisions(connection, start)
    except (ExploraxError, LookupError, TypeError, ValueError) as error:
        yield f"The decisions do not fit the arms of the first snapshot: {error}"
        return
    if fold:
        yield from wrong_states(connection, path)


def examples(sentence: str, found: list[Any]) -> Iterator[str]:
    """Yield a sentence with some examples of what is wrong, if there are any."""
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"{sentence}: {', '.join(map(str, found[:SHOWN]))}{more}."


def wrong_decisions(connection: sqlite3.Connection, start: Began) -> Iterator[str]:
    """Yield what is wrong with the arms, the features and the probabilities of decisions."""
    known, source = Versions.of(connection, start), start.source
    offers, place = Offers(start, known), {name: i for i, name in enumerate(known.names)}
    size = source.n_features * np.dtype(source.dtype).itemsize
    foreign, other, sums = [], [], []
    for rows in Statuses(connection, start.window).rows(COLUMNS):
        for decision, arm, version, propensity, names, every, features, table in rows:
            listed = offers.listed(names, version, None if table is None else len(table))
            on_offer = None if listed is None else json.loads(listed)
            if on_offer is not None and arm not in on_offer:
                foreign.append(decision)
                continue
            told = np.frombuffer(features, source.dtype) if len(features) == size else np.zeros(0)
            if source.kind == "fixed" and len(told):
                fits = np.array_equal(told, known.told[known.which[known.eras(np.array([version]))[0], place[arm]]])
            elif table is not None and on_offer is not None and len(told):
                among = np.frombuffer(table, source.dtype).reshape(-1, source.n_features)
                fits = len(among) == len(on_offer) and np.array_equal(told, among[on_offer.index(arm)])
            else:
                fits = len(told) == source.n_features
            if not fits:
                other.append(decision)
            if every is not None and on_offer is not None and offers.ordered(names, version):
                chances = np.frombuffer(every) if len(every) == 8 * len(on_offer) else np.zeros(len(on_offer))
                stated = chances[on_offer.index(arm)] if propensity is None else propensity
                if (
                    abs(chances.sum() - 1) > CLOSE
                    or chances.min() < 0
                    or abs(chances[on_offer.index(arm)] - stated) > CLOSE
                ):
                    sums.append(decision)
    yield from examples("The arms of decisions were not on offer", foreign)
    yield from examples("The features of decisions are not those of their arms", other)
    yield from examples(
        "The probabilities of all arms do not add up to 1, or contradict the propensity, in decisions", sums
    )


def wrong_states(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    """Yield what differs between the newest state and what the rewards make of the first one."""
    snapshots = connection.execute("SELECT seq, content FROM snapshots ORDER BY seq").fetchall()
    try:
        newest = folded(connection, path, *snapshots[-1])
        first = newest if len(snapshots) == 1 else folded(connection, path, *snapshots[0])
    except (ExploraxError, LookupError, TypeError, ValueError) as error:
        yield f"The agent cannot be recovered: {error}"
        return
    (schema_a, arrays_a), (schema_b, arrays_b) = first, newest
    differing = [name for name in {**schema_a, **schema_b} if schema_a.get(name) != schema_b.get(name)]
    differing += [name for name in {**arrays_a, **arrays_b} if not same(arrays_a.get(name), arrays_b.get(name))]
    if differing:
        yield (
            f"The newest snapshot is not what the rewards make of the first one: {', '.join(differing[:SHOWN])} "
            "differ. It was changed, or made by other versions of explorax or JAX, or on another kind of processor."
        )


def folded(
    connection: sqlite3.Connection, path: Path, seq: int, content: bytes
) -> tuple[dict[str, Any], archive.Arrays]:
    """Return the state after all that happened since a snapshot, as another snapshot has it."""
    live = snapshot.resume(bytes(content), path, None, None, None, None, same_ids=True, clock=time.time)
    recovery.replay(live, connection, seq)
    return archive.loads(snapshot.dumps(snapshot.take(live)), path)


def same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    """Tell whether two arrays are equal to the bit."""
    if one is None or other is None:
        return False
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()
