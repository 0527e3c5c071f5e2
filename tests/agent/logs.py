"""Logs as they are when a process is killed, what they must give back, and disks that are full."""

import shutil
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np

from explorax import Agent
from explorax.agent import snapshot
from tests.helpers import assert_same

PARTS = ("", "-wal", "-shm")


def killed(path, folder):
    """The files of a log as a killed process leaves them, copied into a folder; the path there."""
    Path(folder).mkdir(parents=True)
    for part in PARTS:
        if Path(f"{path}{part}").exists():
            shutil.copy(f"{path}{part}", folder)
    return Path(folder) / Path(path).name


def rows(path, what):
    """What a reader finds in a log."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
        return reader.execute(what).fetchall()


def everything(agent):
    """All that an agent is and knows, as plain values and arrays."""
    saved = snapshot.take(agent._live)
    ledger = {name: value for name, value in saved.ledger._asdict().items() if name not in ("pulled", "spans")}
    pulled, now = saved.ledger.pulled, agent._live.now
    return {
        "state": saved.arrays,
        "described": saved.described,
        "ledger": {name: value for name, value in ledger.items() if value is not None},
        "pulled": (pulled.features, pulled.rows),
        "arms": agent.arms,
        "names": now.arms.names,
        "rows": (now.arms.rows, now.arms.active),
        "rowless": dict(now.arms.rowless),
        "attributes": now.arms.attributes,
        "version": now.version,
    }


def assert_alike(found, wanted):
    """Two agents are and know the same, to the bit."""
    found, wanted = everything(found), everything(wanted)
    for name in ("described", "arms", "names", "attributes", "version"):
        assert found.pop(name) == wanted.pop(name), name
    assert_same(found, wanted)


def assert_recovers(agent, path, folder, **settings):
    """Whoever recovers the log of an agent that is killed now has the same agent; return it."""
    again = Agent.recover(killed(path, folder), **settings)
    assert_alike(again, agent)
    return again


class Full:
    """A connection to a disk on which no more rows fit."""

    def __init__(self, connection):
        self.connection = connection

    def execute(self, statement, *values):
        if statement.split()[0] in ("INSERT", "BEGIN"):
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.execute(statement, *values)

    def __getattr__(self, name):
        return getattr(self.connection, name)


@contextmanager
def full_disk(agent):
    """Let nothing more fit into the log of an agent."""
    to = agent._live.record.writer
    to.connection, whole = Full(to.connection), to.connection
    try:
        yield
    finally:
        to.connection = whole


def learned_by_hand(policy, state, rewards):
    """The state after rewards (row, features, reward), one `update` after the other."""
    for row, x, reward in rewards:
        state = policy.update(state, row, np.asarray(x), reward)
    return state
