"""Files that are no logs, or were damaged, are refused and stay as they are."""

import shutil
import sqlite3

import numpy as np
import pytest

from explorax import Agent, errors
from explorax.log import schema
from tests.agent.logs import everything, killed
from tests.agent.test_pending import COUNTING, counting
from tests.disk import contents


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files of a log whose writer was killed ("open"), and of one that was closed ("closed")."""
    folder = tmp_path_factory.mktemp("logs")
    agent = counting(log=folder / "decisions.db", max_pending=20)
    for _ in range(3):
        ids = agent.choose_many(30).ids[-5:]
        agent.learn(ids, np.linspace(0, 1, 5))
        agent.choose()
    agent.retire_arm(1)
    killed(folder / "decisions.db", folder / "open")
    agent.close()
    killed(folder / "decisions.db", folder / "closed")
    return folder


def recovered(path):
    """What there is in a log, or None if it is refused; its file must stay as it was until somebody writes."""
    before = path.read_bytes()
    try:
        agent = Agent.recover(path, COUNTING)
    except errors.InvalidArgument:  # InvalidLog is one
        agent = None
    assert path.read_bytes() == before or (agent and before[18] == 1)  # which is put into the mode of a log again
    if agent is None:
        return None
    found = everything(agent)
    agent._live.record.writer.connection.execute("PRAGMA wal_checkpoint = PASSIVE")
    agent.close()
    return found


def numbers(found):
    return (found["ledger"]["decisions"], *np.asarray(found["state"]["state_0"]))


@pytest.mark.parametrize("kind", ["open", "closed"])
def test_a_truncated_file(kind, folder, tmp_path):
    """At every page, and at odd places: it is refused, or its other file has what is missing."""
    name = "decisions.db-wal" if kind == "open" else "decisions.db"
    whole = (folder / kind / name).read_bytes()
    page = schema_page(folder / "closed" / "decisions.db")
    step = page + 24 if kind == "open" else page
    start = 32 if kind == "open" else 0
    places = sorted({*range(start, len(whole), step), 1, 15, 17, 99, 100, 101, len(whole) - 1, len(whole) // 2 + 7})
    wanted, found = numbers(recovered(killed(folder / kind / "decisions.db", tmp_path / "whole"))), []
    for place in places:
        path = killed(folder / kind / "decisions.db", tmp_path / str(place))
        (path.parent / name).write_bytes(whole[:place])
        (path.parent / "decisions.db-shm").unlink(missing_ok=True)
        found.append(recovered(path))
    if kind == "closed":
        assert found == [None] * len(places)
    else:  # a log is cut between two things that happened
        known = [numbers(each) for each in found]
        assert known == sorted(known)
        assert known[0] == (0, 0.0, 0.0)
        assert known[-1] <= wanted
        assert {each[:2] for each in known} >= {(0, 0.0), (30, 0.0), (30, 5.0), (31, 5.0), (93, 15.0)}


def schema_page(path):
    return int.from_bytes(path.read_bytes()[16:18])


@pytest.mark.parametrize("kind", ["open", "closed"])
def test_flipped_bits(kind, folder, tmp_path):
    """They are refused, or are where nobody notices; never is there an error of another kind."""
    name = "decisions.db-wal" if kind == "open" else "decisions.db"
    whole, rng = (folder / kind / name).read_bytes(), np.random.default_rng(0)
    places = [*range(0, 100, 2 if kind == "closed" else 8), *rng.integers(0, len(whole), 100).tolist()]
    wanted, found = numbers(recovered(killed(folder / kind / "decisions.db", tmp_path / "whole"))), []
    path = killed(folder / kind / "decisions.db", tmp_path / "flipped")
    files = contents(path.parent)
    for place in places:
        for each in path.parent.iterdir():
            each.unlink()
        for part, content in files.items():
            if not part.name.endswith("-shm"):
                (path.parent / part).write_bytes(content)
        damaged = bytearray(whole)
        damaged[place] ^= 1 << int(rng.integers(8))
        (path.parent / name).write_bytes(damaged)
        found.append(recovered(path))
    if kind == "open":  # what is not written to its place yet has checksums
        assert all(numbers(each) <= wanted for each in found)
        assert any(numbers(each) < wanted for each in found)
    else:
        assert found.count(None) > 20


def foreign(folder):
    """Files that are no logs, by name."""
    with sqlite3.connect(folder / "other.db") as other:
        other.execute("CREATE TABLE about (name, value)")
    other.close()
    counting().save(folder / "snapshot.npz")
    (folder / "text.txt").write_text("decisions\n" * 100)
    (folder / "empty.db").write_bytes(b"")
    (folder / "folder.db").mkdir()
    return ["other.db", "snapshot.npz", "text.txt", "empty.db", "folder.db", "nothing.db"]


def test_files_that_are_no_logs(tmp_path):
    for name in foreign(tmp_path):
        before = contents(tmp_path)
        with pytest.raises(errors.InvalidLog, match=name):
            Agent.recover(tmp_path / name, COUNTING)
        assert contents(tmp_path) == before  # not even a lock beside it
        if name != "nothing.db":
            with pytest.raises(errors.InvalidArgument, match="must be a new file"):
                counting(log=tmp_path / name)
            assert {path: value for path, value in contents(tmp_path).items() if path.suffix != ".lock"} == {
                path: value for path, value in before.items() if path.suffix != ".lock"
            }
            (tmp_path / f"{name}.lock").unlink()


def test_a_newer_format(folder, tmp_path):
    path = killed(folder / "closed" / "decisions.db", tmp_path / "newer")
    with sqlite3.connect(path) as log:
        log.execute(f"PRAGMA user_version = {schema.FORMAT + 1}")
    log.close()
    before = path.read_bytes()
    with pytest.raises(errors.InvalidLog, match="format 2, which this version of explorax does not know"):
        Agent.recover(path, COUNTING)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE events SET kind = 'unheard of'",
        "UPDATE decisions SET features = x'00'",
        "UPDATE decisions SET row = 'first'",
        "UPDATE rewards SET decision = 4000 WHERE decision = 25",
        "UPDATE rewards SET reward = 'much'",
        "UPDATE snapshots SET content = x'00'",
        "UPDATE snapshots SET content = 3",
        "UPDATE snapshots SET seq = 'zero'",
        "DELETE FROM snapshots",
        "DROP TABLE about",
        "DROP TABLE events",
    ],
)
def test_rows_that_other_programs_have_changed(change, folder, tmp_path):
    path = killed(folder / "closed" / "decisions.db", tmp_path / "changed")
    log = sqlite3.connect(path, isolation_level=None)
    try:
        log.execute(change)
    except sqlite3.IntegrityError:  # what the tables themselves do not allow
        return
    finally:
        log.close()
    assert recovered(path) is None


def test_a_log_in_another_mode_goes_on(folder, tmp_path):
    """As copies of SQLite's own are, and one under another name."""
    shutil.copy(folder / "closed" / "decisions.db", tmp_path / "copy.db")
    log = sqlite3.connect(tmp_path / "copy.db")
    assert log.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    log.close()
    wanted = recovered(killed(folder / "closed" / "decisions.db", tmp_path / "same"))
    assert numbers(recovered(tmp_path / "copy.db")) == numbers(wanted)
    (tmp_path / "link.db").symlink_to(tmp_path / "copy.db")
    agent = Agent.recover(tmp_path / "link.db", COUNTING)
    with pytest.raises(errors.InvalidArgument, match="must have one writer"):
        Agent.recover(tmp_path / "copy.db", COUNTING)
    agent.close()
