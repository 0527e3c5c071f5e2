"""The lock of a directory, with which only one run at a time uses it.

On a disk it is a lock of the operating system on a file that says who holds it.  It ends with the process, for whatever
reason, so that a lock file which a killed run has left behind blocks nobody.

Where there are no such locks, on object stores and on some mounted directories, it is a lease: a small file that a run
writes, renews again and again, and removes at its end.  A run that finds a lease which was renewed within its term is
refused.  A lease past its term was left by a run that was killed, and is taken over.  Ages are measured by the times
that the store gives to files, since the clocks of machines differ.

What a lease promises is less than what a lock does, because a store offers no step that both looks and writes.  It
keeps out a run that starts while another goes on.  Two that start within the same seconds may both go on, until one of
them renews its lease, finds that of the other and stops.  Until then they do the same work twice and damage nothing:
parts are whole, named by the digest of their task, and the same whoever writes them.
"""

import contextlib
import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from explorax import files
from explorax.checks import is_number
from explorax.errors import CannotRead, CannotWrite, InvalidArgument, RunFailed
from explorax.files import remove_leftovers, write_atomically, writing
from explorax.places import Place, RemotePath

LOCK, LEASE = ".lock", ".lease"
TERM = 120.0  # seconds that a lease lasts after it was renewed
RENEWALS = 4  # in a term
REMEDY = "Wait for that run, stop it, or choose another directory with --out."

Check = Callable[[], None]


class Holder(NamedTuple):
    """The run that holds a lease."""

    token: str  # of one run, unlike all others
    process: int
    host: str
    term: float  # seconds that the lease lasts after it was renewed

    def __str__(self) -> str:
        return f"process {self.process} on {self.host}" if self.token else "an unknown process"


UNKNOWN = Holder("", 0, "", TERM)  # of a lease that cannot be read


def this_process() -> Holder:
    """Return a new holder for a run of this process."""
    return Holder(uuid.uuid4().hex, os.getpid(), platform.node() or "this host", TERM)


@contextlib.contextmanager
def locked(directory: Place) -> Iterator[Check]:
    """Hold the lock of a directory, which is created if needed.

    Args:
        directory: The directory.

    Yields:
        A function that raises `RunFailed` if the lock was lost to another run.

    Raises:
        InvalidArgument: If another process holds the lock.
    """
    with contextlib.ExitStack() as held:
        if isinstance(directory, Path) and held.enter_context(system_lock(directory)):
            yield lambda: None
        else:
            yield held.enter_context(leased(Lease(directory, this_process())))


@contextlib.contextmanager
def system_lock(directory: Path) -> Iterator[bool]:
    """Hold a lock of the operating system on a file in a directory.

    Args:
        directory: The directory, which is created if needed.

    Yields:
        Whether the file is locked: false where the system has no locks.

    Raises:
        InvalidArgument: If another process holds the lock.
    """
    path = directory / LOCK
    with contextlib.ExitStack() as held:
        with writing(path):
            directory.mkdir(parents=True, exist_ok=True)
            file = held.enter_context(open(path, "a+"))  # neither this nor the lock is inherited by worker processes
        worked = files.lock(file.fileno())
        if worked is False:
            file.seek(0)
            raise InvalidArgument(f"{directory} is in use by {file.read().strip() or 'an unknown process'}. {REMEDY}")
        if worked:
            with writing(path):
                file.truncate(0)
                file.write(f"{this_process()}\n")
                file.flush()
        yield worked is True  # the file stays behind: removing it would race with a process about to lock it


class Lease:
    """The lease of a run on a directory.

    Args:
        directory: The directory.
        holder: The run that asks for it.
    """

    def __init__(self, directory: Place, holder: Holder):
        self.directory, self.holder, self.path = directory, holder, directory / LEASE
        self.renewed: float | None = None  # when, by the clock of this machine; None before it was written
        self.lost: RunFailed | None = None
        self.one_at_a_time = threading.Lock()

    def found(self) -> Holder | None:
        """Return who holds the lease; None if nobody does."""
        try:
            content = json.loads(self.path.read_bytes())
            holder = Holder(**{name: content[name] for name in Holder._fields})
            return holder if is_number(holder.term) else UNKNOWN
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError):
            return UNKNOWN

    def seconds_left(self, holder: Holder) -> float:
        """Return for how many seconds the lease of another run lasts, by the store's own times."""
        beside = self.directory / f"{LEASE}-{self.holder.token}"
        write_atomically(beside, b"")
        try:
            return holder.term - (beside.stat().st_mtime - self.path.stat().st_mtime)
        except FileNotFoundError:  # it has just ended
            return 0.0
        finally:
            beside.unlink(missing_ok=True)

    def take(self, now: float) -> None:
        """Write the lease, unless another run holds it.

        Args:
            now: The time by the clock of this machine.

        Raises:
            InvalidArgument: If another run holds it.
        """
        other = self.found()
        if other is not None and (left := self.seconds_left(other)) > 0:
            raise InvalidArgument(
                f"{self.directory} is in use by {other}, whose lease ends in {left:.0f} seconds unless it is renewed. "
                f"{REMEDY} The lease of a run that was killed ends by itself."
            )
        self.write(now)
        other = self.found()
        if other is None or other.token != self.holder.token:
            raise InvalidArgument(f"{self.directory} is in use by {other or UNKNOWN}, which started just now. {REMEDY}")

    def write(self, now: float) -> None:
        """Write the lease."""
        self.renewed = now
        write_atomically(self.path, json.dumps(self.holder._asdict() | {"renewed": now}).encode())

    def renew(self, now: float) -> None:
        """Write the lease once more, or raise `RunFailed` if it is that of another run by now."""
        with self.one_at_a_time:
            if self.lost is None:
                other = self.found()
                if other is not None and other.token == self.holder.token:
                    return self.write(now)
                taken = f"is in use by {other}, which has" if other else "has no lease any more: another run has"
                self.lost = RunFailed(
                    f"{self.directory} {taken} taken it over, since this run did not renew its lease in time. "
                    "What was finished is kept there. Let one run go on alone."
                )
            raise self.lost

    def check(self, now: float) -> None:
        """Raise `RunFailed` if the lease was lost; look at it first if it was not renewed in time."""
        if self.lost is not None:
            raise self.lost
        if self.renewed is None or abs(now - self.renewed) > self.holder.term / 2:  # this process may have slept
            self.renew(now)

    def release(self) -> None:
        """Remove the lease if it is still that of this run."""
        if self.renewed is not None and self.lost is None:
            with contextlib.suppress(CannotRead, OSError):  # then it ends by itself
                other = self.found()
                if other is not None and other.token == self.holder.token:
                    self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def leased(lease: Lease) -> Iterator[Check]:
    """Hold a lease, which a thread renews, and remove it at the end.

    Args:
        lease: The lease.

    Yields:
        A function that raises `RunFailed` if the lease was lost to another run.

    Raises:
        InvalidArgument: If another run holds it.
    """
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(lease.holder.term / RENEWALS):
            try:
                lease.renew(time.time())
            except (CannotRead, OSError):
                continue  # the store may be back in time
            except RunFailed:
                return  # which `check` raises in the thread of the run

    thread = threading.Thread(target=keep, daemon=True, name="explorax-lease")
    try:
        lease.take(time.time())
        thread.start()
        yield lambda: lease.check(time.time())
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()
        lease.release()


def tidy(directory: Place) -> None:
    """Remove what killed processes left in a directory, unless a run goes on there, which may be writing."""
    if isinstance(directory, RemotePath):
        return  # nothing is left behind there that may be removed
    with contextlib.suppress(InvalidArgument, CannotWrite), locked(directory):
        remove_leftovers(directory)
