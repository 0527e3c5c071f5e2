"""What became of each decision of a log, as one word, and queries of decisions that ask for it.

    known       its reward is known, told or by default, and counts
    open        its reward was told, and counts when the reward window is over
    waiting     its reward may still come
    dropped     too many decisions waited, and nobody waits for its reward any more
    lost        its reward window was over before a reward came, and there is no reward by default
    withdrawn   it will have no reward, because its arm was not shown
    not shown   it was deferred, and nobody has said that its arm was shown

A log is read in one transaction, so that decisions and rewards belong together, whatever is written meanwhile.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from explorax.errors import InvalidArgument, InvalidLog
from explorax.log import schema

STATUSES = ("known", "open", "waiting", "dropped", "lost", "withdrawn", "not shown")
UNKNOWN = ("open", "waiting", "dropped", "lost")  # arms that were shown, with rewards that nobody knows yet, or ever
BATCH = 10_000  # rows that are read at a time
IN = "d.id IN (SELECT decision FROM events WHERE kind = '{}')"
STATUS = f"""
CASE
WHEN {IN.format("withdrawn")} THEN 'withdrawn'
WHEN r.reward IS NOT NULL THEN CASE WHEN d.time + :window <= :closed THEN 'known' ELSE 'open' END
WHEN d.deferred AND NOT {IN.format("activated")} THEN 'not shown'
WHEN {IN.format("dropped")} THEN 'dropped'
WHEN :windowed AND d.time + :window <= :closed THEN 'lost'
ELSE 'waiting'
END
"""
DECISIONS = "SELECT {columns} FROM decisions d LEFT JOIN rewards r ON r.decision = d.id {where} ORDER BY d.id"
COUNTS = (
    f"SELECT {STATUS} AS status, count(*) FROM decisions d LEFT JOIN rewards r ON r.decision = d.id GROUP BY status"
)
CLOSED = "SELECT max(time) FROM events WHERE kind = 'closed'"


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a log for reading, as it is at this moment, whatever is written meanwhile."""
    with contextlib.closing(schema.connect(path, write=False)) as connection, schema.understood(path):
        connection.execute("BEGIN")
        yield connection


@contextlib.contextmanager
def read_as_log(path: Path) -> Iterator[None]:
    """Turn errors that come from the rows of a log into `InvalidLog`."""
    try:
        yield
    except InvalidLog:
        raise
    except (InvalidArgument, LookupError, TypeError, ValueError) as error:
        raise InvalidLog(
            f"{path} has decisions that contradict each other or its first snapshot: {error} Look at it with `explorax "
            "log check`, and use a copy."
        ) from error


class Statuses:
    """What became of the decisions of a log.

    Args:
        connection: The log.
        window: The seconds of its reward window, or None.
    """

    def __init__(self, connection: sqlite3.Connection, window: float | None) -> None:
        self.connection = connection
        closed = connection.execute(CLOSED).fetchone()[0]
        never = float("inf") if window is None else float("-inf")
        self.told = {
            "window": window or 0.0,
            "closed": never if window is None or closed is None else closed,
            "windowed": window is not None,
        }

    def counts(self) -> dict[str, int]:
        """Return how many decisions there are of each status."""
        found = dict(self.connection.execute(COUNTS, self.told).fetchall())
        return {status: found.get(status, 0) for status in STATUSES}

    def rows(self, columns: str, where: str = "") -> Iterator[list[tuple[Any, ...]]]:
        """Yield some rows at a time of a query of decisions `d` and their rewards `r`, in the order of the decisions.

        Args:
            columns: The columns, in SQL; `STATUS` is one.
            where: The condition of a row, in SQL.  Default: none.

        Yields:
            Lists of rows.
        """
        found = self.connection.execute(
            DECISIONS.format(columns=columns, where=f"WHERE {where}" if where else ""), self.told
        )
        while rows := found.fetchmany(BATCH):
            yield rows
