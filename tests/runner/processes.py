"""Processes and their children, as the operating system sees them."""

import time
from pathlib import Path


def children(pid):
    """Processes started by a process, and by those."""
    try:
        own = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
    return own + [grandchild for child in own for grandchild in children(child)]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "this never happened"
        time.sleep(0.02)


def is_worker(pid):
    return "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text()
