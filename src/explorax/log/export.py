"""The log of an agent in other formats, written to new files.

    .parquet, .csv   a flat table with all decisions (`flat.py`)
    .vw              text for `vw --cb_adf`, of the decisions whose rewards are known (`vw.py`)
    .json            the dictionary `bandit_feedback` of the Open Bandit Pipeline, of the same decisions (`obp.py`)
    .db              the log itself, whole, in a file that needs no companions

Tables and copies are written in batches, whatever the length of the log.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from explorax.agent.archive import checked_path
from explorax.errors import InvalidArgument, UnknownName
from explorax.extras import optional
from explorax.files import temporary, writing
from explorax.log.flat import PURPOSE, rows_of
from explorax.log.obp import to_obp
from explorax.log.reading import read_log
from explorax.log.statuses import opened
from explorax.log.vw import to_vw


def export_log(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> int:
    """Write the log of an agent in another format, while the agent may write on.

    Args:
        path: The file that an agent logs to.
        out: The file to write, which must not exist.  Its ending tells the format: .parquet or .csv for a table of all
            decisions, .vw for the text of Vowpal Wabbit, .json for the dictionary of the Open Bandit Pipeline, .db for
            a copy of the log that needs no other files.

    Returns:
        The number of decisions written.

    Raises:
        InvalidArgument: If `out` exists, or the log lacks what the format needs.
        InvalidLog: If the log is not one, is truncated or damaged, or has a newer format.
        UnknownName: If `out` has another ending.
        ImportError: If the format is a table, and pyarrow is not installed.
        CannotWrite: If the file cannot be written.

    Example:
        >>> import explorax, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path, out = os.path.join(folder, "decisions.db"), os.path.join(folder, "decisions.parquet")
        ...     agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0], "blue": [0.5]}, log=path)
        ...     agent.learn(agent.choose().id, 1.0)
        ...     explorax.export_log(path, out)
        ...     again = explorax.read_log(out)
        ...     agent.close()
        1
        >>> again.rewards, again.propensities
        (array([1.]), array([0.5]))
    """
    source, target = checked_path(path), checked_path(out)
    if target.suffix not in FORMATS:
        raise UnknownName("the ending of out", target.suffix, FORMATS)
    check_new(target)
    return FORMATS[target.suffix](source, target)


def check_new(target: Path) -> None:
    """Raise if there is a file already, or no folder for it."""
    if target.exists() or target.is_symlink() or not target.parent.is_dir():
        raise InvalidArgument(
            f"out must be a new file in a folder that exists, got {str(target)!r}. Give another name, or remove "
            "what is there."
        )


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """Yield the path of a file beside the one to write, which takes its name when all went well."""
    with writing(target), temporary(target) as beside:
        yield beside
        os.replace(beside, target)


def to_table(source: Path, target: Path, module: str, writer: str) -> int:
    """Write the flat table of a log, by a writer of pyarrow."""
    make = getattr(optional(module, PURPOSE), writer)
    with rows_of(source) as table, new_file(target) as beside:
        with make(str(beside), table.schema) as file:
            for batch in table.batches:
                file.write_batch(batch)
        return table.size


def to_parquet(source: Path, target: Path) -> int:
    """Write a Parquet file."""
    return to_table(source, target, "pyarrow.parquet", "ParquetWriter")


def to_csv(source: Path, target: Path) -> int:
    """Write a CSV file."""
    return to_table(source, target, "pyarrow.csv", "CSVWriter")


def to_text(source: Path, target: Path) -> int:
    """Write text for Vowpal Wabbit."""
    data = read_log(source)
    to_vw(data, target)
    return len(data)


def to_json(source: Path, target: Path) -> int:
    """Write the dictionary of the Open Bandit Pipeline as JSON."""
    data = read_log(source)
    plain = {key: value.tolist() if isinstance(value, np.ndarray) else value for key, value in to_obp(data).items()}
    with new_file(target) as beside, open(beside, "w", encoding="utf-8") as file:
        json.dump(plain, file, allow_nan=False)
    return len(data)


def to_copy(source: Path, target: Path) -> int:
    """Write a copy of a log, as it is at this moment."""
    with opened(source) as connection, new_file(target) as beside:
        (count,) = connection.execute("SELECT count(*) FROM decisions").fetchone()
        with contextlib.closing(sqlite3.connect(beside, isolation_level=None)) as copy:
            try:
                connection.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.OperationalError as error:
                raise OSError(str(error)) from error
    return int(count)


FORMATS: Mapping[str, Callable[[Path, Path], int]] = {
    ".parquet": to_parquet,
    ".csv": to_csv,
    ".vw": to_text,
    ".json": to_json,
    ".db": to_copy,
}
