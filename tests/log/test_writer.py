"""One process writes a log, any number read it, and what cannot be written has not happened."""

import contextlib
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from explorax import Agent, errors, files
from explorax.log import writer
from tests.agent.logs import assert_alike, everything, full_disk, killed, rows
from tests.agent.test_pending import COUNTING, counting
from tests.disk import fill
from tests.helpers import assert_same

HOLDING = """
import sys
from pathlib import Path
from explorax.log import writer

with writer.locked(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def test_another_process_is_refused_until_the_first_is_killed(tmp_path):
    path = tmp_path / "decisions.db"
    counting(log=path).close()
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(errors.InvalidArgument, match=r"must have one writer, got .*decisions.db"):
            Agent.recover(path, COUNTING)
        other.send_signal(signal.SIGKILL)
    Agent.recover(path, COUNTING).close()


def test_another_agent_is_refused_until_the_first_is_closed_or_gone(tmp_path):
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    with pytest.raises(errors.InvalidArgument, match="must have one writer"):
        Agent.recover(path, COUNTING)
    with pytest.raises(errors.InvalidArgument, match="must have one writer"):
        counting(log=path)
    agent.close()
    agent.close()
    with pytest.raises(errors.InvalidArgument, match=r"must be a new file.*Agent.recover\(path\)"):
        counting(log=path)
    again = Agent.recover(path, COUNTING)
    del again
    Agent.recover(path, COUNTING).close()


def test_a_closed_log_is_refused(tmp_path):
    agent = counting(log=tmp_path / "decisions.db")
    first = agent.choose()
    with full_disk(agent), pytest.raises(errors.CannotWrite):
        agent.choose()
    agent.close()
    before = agent.pending, agent.decisions, agent.state
    for call in (agent.choose, lambda: agent.choose_many(2), lambda: agent.learn(first.id, 1.0)):
        with pytest.raises(errors.InvalidArgument, match=r"log must be open, got .*which was closed"):
            call()
    assert_same((agent.pending, agent.decisions, agent.state), before)


def test_a_forked_process_is_refused(tmp_path):
    agent = counting(log=tmp_path / "decisions.db")
    agent.choose()
    to = agent._live.record.writer
    to.process -= 1  # as a child finds it; JAX forbids to fork in truth
    for call in (agent.choose, lambda: agent.choose_many(2), lambda: agent.learn(0, 1.0)):
        with pytest.raises(errors.InvalidArgument, match=r"forked from it. Make or recover an agent in each process"):
            call()
    to.close()
    to.process += 1
    assert agent.choose().id == 1


def test_readers_see_whole_calls(tmp_path):
    """Every call of `choose_many` is there with all of its decisions, or not at all."""
    path, stop, seen, torn = tmp_path / "decisions.db", threading.Event(), [], []
    agent = counting(log=path)

    def read():
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as reader:
            while not stop.is_set():
                found = reader.execute("SELECT count(*) FROM decisions GROUP BY call").fetchall()
                torn.extend(each for each in found if each != (7,))
                seen.append(len(found))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(60):
        agent.learn(agent.choose_many(7).ids, np.ones(7))
    stop.set()
    for thread in threads:
        thread.join()
    assert not torn
    assert seen[-1] <= 60
    assert seen[:20] == sorted(seen[:20])
    agent.close()


CALLS = {
    "choose": lambda agent: agent.choose(),
    "choose_many": lambda agent: agent.choose_many(6),
    "choose_slate": lambda agent: agent.choose_slate(2),
    "learn": lambda agent: agent.learn(agent.pending[0], 1.0),
    "learn several": lambda agent: agent.learn(agent.pending[:2], [1.0, 0.5]),
    "withdraw": lambda agent: agent.withdraw(agent.pending[0]),
    "retire": lambda agent: agent.retire_arm(0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_full_disk(name, tmp_path):
    """What was asked for is refused, nothing changes, not even what would be dropped; and then all goes on."""
    path = tmp_path / "decisions.db"
    agent, plain = counting(log=path, max_pending=5), counting(max_pending=5)
    for each in (agent, plain):
        each.choose_many(5)
    before = everything(agent)
    with full_disk(agent):
        for _ in range(2):
            with pytest.raises(
                errors.CannotWrite, match=r"decisions.db could not be written: .*disk is full"
            ) as refused:
                CALLS[name](agent)
    assert isinstance(refused.value, OSError)
    after = everything(agent)
    for part in ("described", "arms", "names", "attributes", "version"):
        assert after.pop(part) == before.pop(part)
    assert_same(after, before)
    for each in (agent, plain):
        CALLS[name](each)
    assert agent.choose() == plain.choose()
    assert agent.pending == plain.pending
    assert agent.dropped == plain.dropped
    again = Agent.recover(killed(path, tmp_path / "killed"), COUNTING)
    assert_alike(again, agent)


FILLING = """
import resource, signal, sys
import numpy as np
from explorax import Agent, errors, make

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path = sys.argv[1]
agent = Agent(make("lin_ts"), arms=np.eye(2), draws=0, log=path)
agent.learn(agent.choose().id, 1.0)
size = 200_000
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
refused = 0
for _ in range(1000):
    before = agent.decisions, agent.pending
    try:
        agent.learn(agent.choose().id, 1.0)
    except errors.CannotWrite:
        refused += 1
        if refused == 5:
            break
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
for _ in range(3):
    agent.learn(agent.choose().id, 0.5)
agent.save(path + ".npz")
print(refused, agent.decisions, len(agent.pending), flush=True)
sys.stdin.read()
"""


def test_a_file_that_may_not_grow(tmp_path):
    """The operating system refuses to write; once it does not, all goes on, and the log has it."""
    path = tmp_path / "decisions.db"
    with subprocess.Popen(
        [sys.executable, "-c", FILLING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        refused, decisions, waiting = map(int, child.stdout.readline().split())
        child.send_signal(signal.SIGKILL)
    assert refused == 5
    assert decisions > 10
    again, saved = Agent.recover(path), Agent.load(f"{path}.npz")
    assert_same(again.state, saved.state)
    assert (again.decisions, again.pending, len(again.pending)) == (decisions, saved.pending, waiting)


def test_a_log_that_cannot_be_begun(tmp_path, monkeypatch):
    with pytest.raises(errors.InvalidArgument, match="must be a file in a folder that exists"):
        counting(log=tmp_path / "nowhere" / "decisions.db")
    for wrong in ({"durability": "power"}, {"log": 3}, {"log": tmp_path / "a.db", "durability": "much"}):
        with pytest.raises(errors.InvalidArgument):
            counting(**wrong)
    fill(monkeypatch)
    with pytest.raises(errors.CannotWrite):
        counting(log=tmp_path / "decisions.db")


def test_durability(tmp_path, monkeypatch):
    """What reaches the disk before a call returns: with "power" each commit, and the name of the file in any case."""
    synced = []
    monkeypatch.setattr(writer, "sync_folder", lambda folder: synced.append(folder) or files.sync_folder(folder))
    for durability, level in [("power", 2), ("process", 1), (None, 1)]:
        path = tmp_path / f"{durability}.db"
        agent = counting(log=path, durability=durability)
        assert synced.pop() == tmp_path
        found = lambda of: of._live.record.writer.connection.execute("PRAGMA synchronous").fetchone()[0]  # noqa: E731
        assert found(agent) == level
        assert agent._live.record.writer.connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        agent.close()
        assert [each.name for each in tmp_path.glob(f"{durability}.db-*")] == []  # no companions but the lock
        again = Agent.recover(path, COUNTING, durability="power")
        assert found(again) == 2
        again.close()
    with pytest.raises(errors.UnknownName, match="durability must be one of power, process, got 'disk'"):
        Agent.recover(path, COUNTING, durability="disk")


def test_a_transaction_that_two_interrupts_have_left_open(tmp_path):
    """Nothing of it is written, and nothing that comes later is lost with it."""
    path = tmp_path / "decisions.db"
    agent = counting(log=path)
    agent.choose()
    to = agent._live.record.writer
    to.connection.execute("BEGIN IMMEDIATE")
    to.unsure = True
    agent.choose()
    assert len(rows(path, "SELECT id FROM decisions")) == 2
    agent.close()


def test_names_that_a_log_cannot_hold():
    for name in ("a", "ä", "\0", 0, -(2**63), 2**63 - 1):
        writer.check_name(name)
    for name in ("\ud800", 2**63, -(2**63) - 1):
        with pytest.raises(
            errors.InvalidArgument, match="must be text that can be written as UTF-8, or a whole number"
        ):
            writer.check_name(name)
