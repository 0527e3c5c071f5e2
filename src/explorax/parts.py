"""The parts of a run: a file of results for each finished task, from which a run that was stopped goes on.

A part that is damaged counts as missing, and its task is played again.  Parts are read a few at a time, so that a run
that is resumed need not have all its records in memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from explorax.errors import InvalidArgument
from explorax.places import Place, place
from explorax.record import Result, Stored, read, write

READERS = 16  # parts that are read at a time, since each waits for the answers of an object store


class Parts(NamedTuple):
    """All finished tasks in a directory, and warnings about files that cannot be used."""

    tasks: dict[str, Stored]  # by the digest of the task
    warnings: list[str]


class Finished(NamedTuple):
    """The metadata of all finished tasks in a directory, and warnings about files that cannot be used."""

    tasks: dict[str, dict[str, Any]]  # by the digest of the task
    warnings: list[str]


def write_part(
    path: Place, results: Sequence[Result], *, task: str, metadata: Mapping[str, object] | None = None
) -> None:
    """Write the results of one finished task, whose digest is `task`, to a Parquet file."""
    write(path, results, {**(metadata or {}), "task": task})


def read_parts(directory: Place | str) -> Parts:
    """Read all finished tasks in the order of file names; warn of damaged files, which count as missing."""
    found = Parts({}, [])
    for stored in each_part(place(directory), found.warnings):
        found.tasks.setdefault(stored.metadata["task"], stored)
    return found


def each_finished(directory: Place | str, found: Finished) -> Iterator[tuple[str, list[Result]]]:
    """Read finished tasks one after the other, so that their records need not be in memory together.

    Args:
        directory: The directory of the parts.
        found: Where the metadata of the tasks and the warnings are added.

    Yields:
        The digest of each task, with its results.
    """
    for stored in each_part(place(directory), found.warnings):
        digest = stored.metadata["task"]
        if digest not in found.tasks:
            found.tasks[digest] = stored.metadata
            yield digest, stored.results


def each_part(directory: Place, warnings: list[str]) -> Iterator[Stored]:
    """Read the parts in a directory, a few at a time.

    Args:
        directory: The directory.
        warnings: A list to which a sentence is added for each damaged file.

    Yields:
        The contents of each part that is not damaged, in the order of file names.
    """
    paths = sorted(directory.glob("*.parquet"), key=lambda path: path.name)
    with ThreadPoolExecutor(READERS) as readers:
        for first in range(0, len(paths), READERS):
            for part in readers.map(read_part, paths[first : first + READERS]):
                if isinstance(part, str):
                    warnings.append(part)
                else:
                    yield part


def read_part(path: Place) -> Stored | str:
    """Read the results of a finished task; return a warning in their place if the file is damaged."""
    try:
        stored = read(path)
        return stored if "task" in stored.metadata else f"{path.name} is damaged and counts as missing ('task')"
    except InvalidArgument as error:
        return f"{path.name} is damaged and counts as missing ({error})"
