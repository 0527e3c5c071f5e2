"""Files that exist whole or not at all, and a clear error if one cannot be written.

A file is written under a temporary name in the same directory and renamed when it is complete.  The writer holds a lock
of the operating system on the temporary file.  The lock ends with the process, however that ended: a temporary file
that nobody has locked is a leftover.  Process ids could not tell this, because in containers all processes may have the
same one.

On a shared or object store the store itself, or a move there, makes files whole (`places.py`).
"""

import contextlib
import errno
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from explorax.errors import CannotWrite
from explorax.places import Place, RemotePath, place


@contextlib.contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an error of the operating system in this block into a `CannotWrite` that names the file."""
    try:
        yield
    except OSError as error:
        raise CannotWrite(
            f"{path} could not be written: {error.strerror or error}. "
            "Nothing that was there before is lost. Make room or get permission there, or choose another place."
        ) from error


def write_atomically(path: Place | str, content: bytes) -> None:
    """Write a file so that it exists whole or not at all, even if the process is killed half-way."""
    path = place(path)
    if isinstance(path, RemotePath):
        path.write_whole(content)
        return
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary(path) as beside:
            with open(beside, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(beside, path)
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until the names of new files in a folder have reached the disk."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


@contextlib.contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """Yield the path of a locked temporary file beside a file, and remove it at the end if it still exists."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with contextlib.ExitStack() as held:
        while sys.platform != "win32":  # there a file that is open cannot be removed, nor moved
            file = held.enter_context(open(beside, "ab"))
            acquire(file.fileno(), wait=True)
            if beside.exists():
                break
            held.close()  # another process has just removed it as a leftover: try again
        try:
            yield beside
        finally:
            with contextlib.suppress(OSError):  # which would hide why it could not be written
                beside.unlink(missing_ok=True)


def remove_leftovers(directory: Place | str, name: str | None = None) -> None:
    """Remove the temporary files that killed processes left in a directory: those of the file `name`, or all.

    On a shared or object store nothing is removed, since nobody knows there who is writing.

    Args:
        directory: The directory.
        name: The name of a file. Default: None, for all files.
    """
    directory = place(directory)
    if isinstance(directory, RemotePath):
        return
    of_name = ".+" if name is None else re.escape(name)
    for beside in directory.glob(".*.tmp"):
        if re.fullmatch(rf"\.{of_name}\.\d+\.\d+\.tmp", beside.name):
            with (
                contextlib.suppress(OSError),
                open(beside, "rb") as file,
            ):  # for example because it is another user's, or already gone
                if acquire(file.fileno(), otherwise=False):
                    beside.unlink(missing_ok=True)


def acquire(descriptor: int, *, wait: bool = False, otherwise: bool = True) -> bool:
    """Try to lock a file and return whether it worked; return `otherwise` if the system has no such locks."""
    worked = lock(descriptor, wait=wait)
    return otherwise if worked is None else worked


def lock(descriptor: int, *, wait: bool = False) -> bool | None:
    """Try to lock a file and return whether it worked; return None if the system has no such locks there."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True
