"""The file of a log: an SQLite database whose tables are only ever added to.

    about        what the file is: who decided, with which arms, since when
    decisions    one row for each decision, written before `choose` returns
    rewards      one row for each reward, written before the state learns it
    events       all else that happened: arms added, updated, retired and restored, decisions withdrawn, windows closed
    snapshots    the agent at some moments: the first of all, and the newest

Everything that happens has a number of its own, `seq`, in the order in which it was written, whatever table it is in.
The state of the agent is what its first snapshot holds, with the rewards and the events after it learned in the order
of `seq`.  A `version` is the `seq` of the last of them that a state has learned; so the version of a decision tells
which rewards it knew.

**Columns of a decision.**  `number` determines its randomness; `call` is the id of the first decision of the same call.
`arm` is the name of the arm (NULL for a point of an infinite set), `row` its place among the arms and `features` its
features.  `propensity` is NULL where the arm has no probability.  `deferred` is 1 for a decision that teaches nothing
unless it is activated.  `names` lists the arms on offer as JSON (NULL: all of the agent's own that were on offer in
this version), `arms` holds the features of arms that were given with the decision, `context` the context as JSON, and
`every` the probability of each arm on offer, if that was asked for.  Arrays are little-endian.

**Events.**  `decision` is the decision that was withdrawn, dropped or activated; of "closed", the youngest of those
whose windows were over, which all older ones that still wait go with.  `name` and `content` belong to arms.

**WAL.**  One process writes, any number of others may read meanwhile.  A file that is copied while an agent writes it
needs its companions `-wal` and `-shm`; `explorax log export` makes a copy that needs none.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from explorax.errors import InvalidLog

APPLICATION = int.from_bytes(b"xplr")  # by which SQLite files of explorax are known
FORMAT = 1
MAGIC = b"SQLite format 3\0"
TABLES = """
CREATE TABLE about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, number INTEGER NOT NULL,
    call INTEGER NOT NULL, version INTEGER NOT NULL, arm, row INTEGER NOT NULL, features BLOB NOT NULL,
    propensity REAL, stderr REAL, forced INTEGER NOT NULL, converged INTEGER NOT NULL, deferred INTEGER NOT NULL,
    names TEXT, arms BLOB, context TEXT, every BLOB
);
CREATE TABLE rewards (
    decision INTEGER PRIMARY KEY, seq INTEGER NOT NULL, time REAL NOT NULL, call INTEGER NOT NULL,
    reward REAL NOT NULL, by_default INTEGER NOT NULL
);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY, time REAL NOT NULL, kind TEXT NOT NULL, decision INTEGER, name, content
);
CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, time REAL NOT NULL, content BLOB NOT NULL);
"""
NUMBERED = ("decisions", "rewards", "events")  # the tables whose rows have a `seq`


@contextlib.contextmanager
def understood(path: object) -> Iterator[None]:
    """Turn errors of SQLite while reading into `InvalidLog`, also where their message has bytes of the file in it."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise InvalidLog(
            f"{path} cannot be read as a log: {error}. Nothing in it was changed. Restore it from a copy, with its "
            "companions -wal and -shm if there are any."
        ) from error


def check_is_log(path: Path) -> None:
    """Raise `InvalidLog` unless a file says that it is a log of a format that is known."""
    try:
        with open(path, "rb") as file:
            header = file.read(100)
    except OSError as error:
        raise InvalidLog(
            f"{path} cannot be read: {error.strerror}. Give a file that an agent has logged to."
        ) from error
    if len(header) < 100 or header[:16] != MAGIC or int.from_bytes(header[68:72]) != APPLICATION:
        raise InvalidLog(
            f"{path} is not a log of decisions, or not a whole one. Give a file that an agent has logged to; this one "
            "stays as it is."
        )
    found = int.from_bytes(header[60:64])
    if found != FORMAT:
        raise InvalidLog(
            f"{path} has format {found}, which this version of explorax does not know: it reads format {FORMAT}. Use a "
            "newer version."
        )


def check_size(path: Path) -> None:
    """Raise `InvalidLog` if a file is shorter than it says, and nothing beside it has the rest."""
    beside = Path(f"{path}-wal")
    if beside.exists() and beside.stat().st_size:
        return  # pages may be there; what is in neither is noticed when it is read
    with open(path, "rb") as file:
        header = file.read(100)
    size = int.from_bytes(header[16:18])
    wanted, found = (65536 if size == 1 else size) * int.from_bytes(header[28:32]), path.stat().st_size
    if found < wanted:
        raise InvalidLog(
            f"{path} is truncated: it must have {wanted} bytes, got {found}. Nothing in it was changed. Restore it "
            "from a copy."
        )


def connect(path: Path, write: bool) -> sqlite3.Connection:
    """Return a connection to a log that is there, for any thread, without transactions of its own."""
    check_is_log(path)
    check_size(path)
    uri = f"{path.absolute().as_uri()}?mode={'rw' if write else 'ro'}"
    with understood(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False, timeout=10)
        try:
            connection.execute("SELECT value FROM about").fetchone()
        except BaseException:
            connection.close()
            raise
    return connection
