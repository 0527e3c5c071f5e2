"""One run at a time in a directory.

The lock is one of the operating system on a file that holds the process id: it is gone when the process is, however
that ended, so a lock file left behind by a killed run stops nobody.
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from explorax.errors import InvalidArgument
from explorax.files import acquire, writing

LOCK = ".lock"


@contextlib.contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which is made if need be; raises if another process holds it."""
    path = directory / LOCK
    with contextlib.ExitStack() as held:
        with writing(path):
            directory.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(path, "a+"))  # neither this nor the lock is inherited by worker processes
        if not acquire(file.fileno()):
            file.seek(0)
            raise InvalidArgument(
                f"out={str(directory)!r} is in use by process {file.read().strip() or 'unknown'}: "
                "wait for that run, stop it, or choose another directory"
            )
        with writing(path):
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
        yield  # the file stays behind: removing it would race with a process about to lock it
