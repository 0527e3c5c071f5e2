"""Temporary files of writers that may be killed: held while they are written, and removed when their writer is dead.

A file is written under another name beside its place and moved there when it is complete.  Whoever writes it holds a
lock of the operating system on it, which is gone with the process, however that ended: a temporary file that nobody
holds is a leftover.  Process ids would not tell: in a container every process has the same one.
"""

import contextlib
import errno
import os
import re
import sys
import threading
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def temporary(path: Path) -> Iterator[Path]:
    """A file beside this one, held by this thread; removed at the end if it is still there."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with contextlib.ExitStack() as held:
        while sys.platform != "win32":  # there a file that is open cannot be removed, nor moved
            file = held.enter_context(open(beside, "ab"))
            acquire(file.fileno(), wait=True)
            if beside.exists():
                break
            held.close()  # it was just being removed as a leftover: another one
        try:
            yield beside
        finally:
            beside.unlink(missing_ok=True)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that writers of this file left behind when they were killed."""
    own = re.compile(rf"\.{re.escape(path.name)}\.\d+\.\d+\.tmp")
    for beside in path.parent.iterdir():
        if own.fullmatch(beside.name):
            with contextlib.suppress(OSError), open(beside, "rb") as file:  # another process may have removed it
                if acquire(file.fileno(), otherwise=False):
                    beside.unlink(missing_ok=True)


def acquire(descriptor: int, *, wait: bool = False, otherwise: bool = True) -> bool:
    """Whether the lock on a file could be had; where there are no such locks, what is said otherwise."""
    if sys.platform == "win32":
        return otherwise
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else otherwise
    return True
