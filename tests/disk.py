"""What is on a disk, and one that is full."""

import errno
import os


def contents(folder):
    """The bytes of every file below a folder, by its path there."""
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(monkeypatch):
    """Let no more bytes fit on the disk."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
