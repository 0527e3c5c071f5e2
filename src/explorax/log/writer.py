"""The one writer of a log: rows that are in the file before anyone is told of what they say.

**Durability.**  Every call of a method is a transaction of its own, which is in the file when the method returns.  With
"process" it is handed to the operating system: it survives the end of the process in any way.  If the machine loses its
power, the last transactions may be lost, but the file is whole.  With "power" each transaction is forced to the disk,
and survives that, too.

**Speed.**  A transaction writes whole pages, two of them for a decision and its reward: pages are small, and `seq` has
no index, so that only opening a log takes time in proportion to its rows.

**One writer.**  A lock of the operating system on a companion file, which ends with the process, keeps other processes
from writing.  Readers are not disturbed.

**Interrupts.**  An interrupt in the middle of a call leaves it open whether its rows were written.  The next call asks
the file which number comes next, and `has` tells whether it has a row.
"""

import contextlib
import os
import reprlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from explorax.errors import CannotWrite, InvalidArgument, UnknownName
from explorax.files import acquire, remove_leftovers, sync_folder, temporary, writing
from explorax.log import schema

CHECKPOINT = 16_384  # pages in the companion -wal, after which they are moved to the file
PAGE = 2048  # bytes; every row that is written writes a few whole pages
SYNCHRONOUS = {"process": "NORMAL", "power": "FULL"}
DECISION = f"INSERT INTO decisions VALUES ({', '.join('?' * 18)})"
REWARD = "INSERT INTO rewards VALUES (?, ?, ?, ?, ?, ?)"
EVENT = "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)"
SNAPSHOT = "INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)"
FORGET = "DELETE FROM snapshots WHERE seq > (SELECT min(seq) FROM snapshots) AND seq < ?"  # those in between
LAST = " UNION ALL ".join(f"SELECT max(seq) FROM {table}" for table in schema.NUMBERED)
HELD = " UNION ALL ".join(f"SELECT seq FROM {table} WHERE seq = ?" for table in schema.NUMBERED)

REFUSED = (sqlite3.Error, OverflowError, UnicodeEncodeError)  # what is raised for rows that are not written

Row = Sequence[Any]
Rows = tuple[str, Sequence[Row]]  # a statement, and the rows that it is executed for


def create(path: Path, about: Mapping[str, Any], time: float, snapshot: bytes, durability: str) -> "Writer":
    """Write a new log, which holds the agent as it is before its first decision; raise if there is a file already."""
    path = Path(os.path.realpath(path))
    if not path.parent.is_dir():
        raise InvalidArgument(
            f"log must be a file in a folder that exists, got {str(path)!r}. Make the folder, or give another path."
        )
    with contextlib.ExitStack() as held:
        held.enter_context(locked(path))
        if path.exists() or path.is_symlink():
            raise InvalidArgument(
                f"log must be a new file, got {str(path)!r}, which is there already. Go on with it by "
                "Agent.recover(path), or give another path."
            )
        remove_leftovers(path.parent, path.name)
        with writing(path), temporary(path) as beside:
            connection = sqlite3.connect(beside, isolation_level=None)
            try:
                connection.execute(f"PRAGMA page_size = {PAGE}")
                connection.execute(f"PRAGMA application_id = {schema.APPLICATION}")
                connection.execute(f"PRAGMA user_version = {schema.FORMAT}")
                connection.execute("PRAGMA synchronous = FULL")
                connection.executescript(f"BEGIN; {schema.TABLES} COMMIT;")
                connection.execute("BEGIN")
                connection.executemany("INSERT INTO about VALUES (?, ?)", about.items())
                connection.execute(SNAPSHOT, (0, time, snapshot))
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise OSError(str(error)) from error
            finally:
                connection.close()
            os.replace(beside, path)
            sync_folder(path.parent)
        return Writer(path, durability, held)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of the one writer of a log; raise if another process or agent holds it."""
    with contextlib.ExitStack() as held:
        with writing(path):
            beside = held.enter_context(open(f"{path}.lock", "a+b"))
        if not acquire(beside.fileno()):
            raise InvalidArgument(
                f"log must have one writer, got {str(path)!r}, which another agent writes. Close that one, or give "
                "another path."
            )
        yield  # the file stays behind: removing it would race with a process about to lock it


def check_durability(durability: str) -> None:
    """Raise unless this is a kind of durability."""
    if durability not in SYNCHRONOUS:
        raise UnknownName("durability", durability, SYNCHRONOUS)


def check_name(name: Any) -> None:
    """Raise unless a log can hold this name of an arm."""
    try:
        fits = bool(name.encode()) if isinstance(name, str) else -(2**63) <= name < 2**63
    except UnicodeEncodeError:
        fits = False
    if not fits:
        raise InvalidArgument(
            "The name of an arm must be text that can be written as UTF-8, or a whole number below 2⁶³, to be logged, "
            f"got {reprlib.repr(name)}. Rename the arm."
        )


class Writer:
    """The one writer of a log that is there, which takes over what holds its lock.

    Whoever calls a method that writes holds `lock`, and so decides what else happens in the same order.
    """

    def __init__(self, path: Path, durability: str, held: contextlib.ExitStack) -> None:
        self.path, self.lock, self.process = path, threading.Lock(), os.getpid()
        self.unsure = False  # whether a write was interrupted
        self.closed = False
        with held:
            self.connection = schema.connect(path, write=True)
            held.callback(self.connection.close)
            with schema.understood(path):
                self.connection.execute("PRAGMA journal_mode = WAL")
                self.connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
                self.connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
                self.seq = self.last()
            self.held = held.pop_all()

    def close(self) -> None:
        """Close the file, and leave it to other writers; a process that was forked from the writer's has none open."""
        if os.getpid() == self.process:
            with self.lock:
                if not self.closed:
                    with contextlib.suppress(sqlite3.Error):  # for example because somebody reads it just now
                        self.end_interrupted()
                        self.connection.execute("PRAGMA journal_mode = DELETE")  # a file that needs no companions
                self.closed = True
                self.held.close()

    def last(self) -> int:
        """Return the number of the last thing that is in the file."""
        return max(found or 0 for (found,) in self.connection.execute(LAST))

    def has(self, seq: int) -> bool:
        """Tell whether the row of this number is in the file."""
        try:
            self.end_interrupted()
            return self.connection.execute(HELD, (seq,) * len(schema.NUMBERED)).fetchone() is not None
        except sqlite3.Error as error:
            raise self.refused(error) from error

    def next(self) -> int:
        """Return the number of the next thing that is written."""
        if self.unsure:
            self.check_process()
            try:
                self.end_interrupted()
                self.seq, self.unsure = self.last(), False
            except sqlite3.Error as error:
                raise self.refused(error) from error
        return self.seq + 1

    def write(self, statements: Sequence[Rows], last: int) -> None:
        """Write rows of several tables, all of them or none; the last has the number `last`."""
        self.check_process()
        self.unsure = True
        try:
            if len(statements) == 1 and len(statements[0][1]) == 1:
                statement, (row,) = statements[0]
                self.connection.execute(statement, row)
            else:
                self.write_together(statements)
        except REFUSED as error:
            raise self.refused(error) from error
        self.seq, self.unsure = last, False

    def write_together(self, statements: Sequence[Rows]) -> None:
        """Write rows in one transaction."""
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            for statement, rows in statements:
                self.connection.executemany(statement, rows)
            self.connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):
                self.end_interrupted()
            raise

    def end_interrupted(self) -> None:
        """Undo what an interrupt has left of a transaction."""
        if self.connection.in_transaction:
            self.connection.execute("ROLLBACK")

    def check_process(self) -> None:
        """Raise in a process that was forked from the one that opened the file."""
        if os.getpid() != self.process:
            raise InvalidArgument(
                f"log must be written by the process that opened it, got {str(self.path)!r} in a process that was "
                "forked from it. Make or recover an agent in each process, with a log of its own."
            )

    def refused(self, error: Exception) -> Exception:
        """Return the error that says why something was not written."""
        if self.closed:
            return InvalidArgument(
                f"log must be open, got {str(self.path)!r}, which was closed. Go on with it by Agent.recover(path)."
            )
        if isinstance(error, sqlite3.Error) and not isinstance(error, sqlite3.ProgrammingError):
            return CannotWrite(
                f"{self.path} could not be written: {error}. What was asked for is refused, and nothing has changed. "
                "Make room there, and try again."
            )
        return InvalidArgument(
            f"The name of an arm must be text that can be written as UTF-8, or a whole number below 2⁶³, to be logged: "
            f"{error}. Rename the arm."
        )
