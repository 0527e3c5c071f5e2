"""Files that are there whole or not at all, and a clear error where one cannot be written."""

import contextlib
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

from explorax.errors import CannotWrite

LEFTOVER = re.compile(r"\..+\.\d+\.\d+\.tmp")  # the names that `write_atomically` writes to at first


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system meanwhile into one that says which file could not be written."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"{path} could not be written: {error.strerror or error}. "
            "Nothing that was there before is lost. Make room or get permission there, or choose another place."
        ) from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that it is there whole or not at all, also when the process is killed half-way."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with open(temporary, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):  # which would hide why it could not be written
                temporary.unlink(missing_ok=True)
        if os.name == "posix":  # the new name has to reach the disk, too
            folder = os.open(path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)


def remove_leftovers(directory: Path) -> None:
    """Remove what `write_atomically` leaves in a directory when its process is killed half-way."""
    for path in Path(directory).glob(".*.tmp"):
        if LEFTOVER.fullmatch(path.name):
            with contextlib.suppress(OSError):  # of another user, say: it is in nobody's way
                path.unlink(missing_ok=True)
