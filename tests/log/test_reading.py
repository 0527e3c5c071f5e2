"""The log of an agent as arrays: the same as a diary kept beside the agent, while the agent writes on."""

import shutil
import sqlite3
import threading
import tracemalloc

import numpy as np
import pytest

from explorax import Agent, errors, lin_ts, read_log, uniform
from explorax.log import statuses
from tests.log import played
from tests.log.played import EVALUATED


@pytest.mark.parametrize("kind", EVALUATED)
def test_a_log_is_what_happened(logs, kind):
    known, data = logs[kind].known, read_log(logs[kind].path)
    assert data.ids.tolist() == sorted(known)
    assert data.rewards.tolist() == [known[each].reward for each in sorted(known)]
    assert data.propensities.tolist() == [known[each].propensity for each in sorted(known)]
    assert data.times.tolist() == [known[each].time for each in sorted(known)]
    table = data.features.table(np.arange(len(data)))
    for row, each in enumerate(sorted(known)):
        entry = known[each]
        names = entry.on_offer if kind == "changing" else data.names  # where places are those on offer
        assert names[data.arms[row]] == entry.arm
        offered = np.ones(data.n_arms, bool) if data.offered is None else data.offered[row]
        places = [names.index(name) for name in entry.on_offer]
        assert sorted(np.flatnonzero(offered)) == sorted(places)
        for name, features in entry.features.items():
            np.testing.assert_array_equal(table[row, names.index(name)], features)


@pytest.mark.parametrize("kind", ["changing", "context"])
def test_probabilities_of_all_arms(logs, kind):
    known, data = logs[kind].known, read_log(logs[kind].path)
    for row, each in enumerate(sorted(known)):
        names = known[each].on_offer if kind == "changing" else data.names
        found = {name: data.all_propensities[row, names.index(name)] for name in known[each].every}
        assert found == known[each].every
        assert data.all_propensities[row].sum() == pytest.approx(1, abs=1e-12)


def test_probabilities_of_fixed_arms(tmp_path):
    """Of those that stay where they are, and of those whose names are in the log."""
    agent = Agent(lin_ts(), arms={"a": [1.0, 0], "b": [0, 1.0], "c": [1.0, 1.0]}, draws=20, log=tmp_path / "log.db")
    told = []
    for t in range(12):
        if t == 6:
            agent.retire_arm("b")
        decision = agent.choose(all_propensities=True, exclude=["a"] if t % 4 == 3 else None)
        told.append(dict(zip(decision.all_propensities.arms, decision.all_propensities.probabilities, strict=True)))
        agent.learn(decision.id, float(t % 2))
    data = read_log(tmp_path / "log.db")
    np.testing.assert_array_equal(data.all_propensities, [[each.get(name, 0.0) for name in "abc"] for each in told])
    agent.update_arm("a", [2.0, 2.0])  # which moves it behind the others
    decision = agent.choose(all_propensities=True)
    agent.learn(decision.id, 1.0)
    data = read_log(tmp_path / "log.db")
    assert data.all_propensities[-1, data.names.index(decision.arm)] == decision.propensity
    agent.close()


def test_an_arm_that_never_changed_has_fixed_features(tmp_path):
    agent = Agent(uniform(), arms={"a": [1.0, 0.5], "b": [0.25, 1.0]}, log=tmp_path / "log.db", dtype="float32")
    agent.learn(agent.choose().id, 1.0)
    features = read_log(tmp_path / "log.db").features
    np.testing.assert_array_equal(features.matrix, np.array([[1.0, 0.5], [0.25, 1.0]], np.float32))
    assert features.matrix.dtype == np.float32
    agent.close()


def test_decisions_without_rewards_are_counted(logs):
    for kind in ("fixed", "changing", "context"):
        entries = logs[kind].diary.values()
        unknown = [entry for entry in entries if entry.reward is None and not entry.gone]
        assert read_log(logs[kind].path).left_out == len(unknown) > 0


def test_open_windows_do_not_count_and_defaults_may_be_left_out(logs):
    """Of 11 decisions 7 have had their reward, 1 was withdrawn, 1 never shown, and the windows of 3 are open; one of
    these has a reward already, which would favor fast rewards."""
    path = logs["windowed"].path
    known, told = read_log(path), read_log(path, rewards="told")
    assert known.rewards.tolist() == [0, 2, 0, 0, 0, 0]
    assert known.left_out == 3
    assert told.rewards.tolist() == [2]
    assert told.left_out == 8


def test_an_infinite_set_is_refused(logs):
    with pytest.raises(errors.InvalidArgument, match=r"whose arms can be listed.*explorax log export"):
        read_log(logs["infinite"].path)


def test_a_log_without_rewards_and_an_unknown_choice_are_refused(tmp_path):
    agent = Agent(uniform(), arms=np.eye(2), log=tmp_path / "log.db")
    agent.choose()
    with pytest.raises(errors.InvalidLog, match="no decision whose reward is known"):
        read_log(tmp_path / "log.db")
    with pytest.raises(errors.UnknownName, match="rewards must be one of known, told, got 'all'"):
        read_log(tmp_path / "log.db", rewards="all")
    agent.close()


def test_a_missing_propensity_leaves_out_the_column(tmp_path):
    agent = Agent(lin_ts(), arms=np.eye(2), draws=0, log=tmp_path / "log.db")
    agent.learn(agent.choose().id, 1.0)
    assert read_log(tmp_path / "log.db").propensities is None
    agent.close()


def test_the_agent_writes_meanwhile(tmp_path):
    """Every reading is of one moment: no decision is there without those before it."""
    agent = Agent(uniform(), arms=np.eye(3), log=tmp_path / "log.db")
    agent.learn(agent.choose().id, 1.0)
    done = threading.Event()

    def play():
        for _ in range(60):
            ids = agent.choose_many(5).ids
            agent.learn(list(ids), np.arange(5.0))
        done.set()

    thread = threading.Thread(target=play)
    thread.start()
    lengths = []
    while not done.is_set() or not lengths:
        data = read_log(tmp_path / "log.db")
        assert data.ids.tolist() == list(range(len(data)))
        assert (len(data) - 1) % 5 == 0
        np.testing.assert_array_equal(data.rewards[1:], np.tile(np.arange(5.0), len(data) // 5))
        lengths.append(len(data))
    thread.join()
    assert len(read_log(tmp_path / "log.db")) == 301
    agent.close()


def damaged(path, folder):
    """Yield copies of a log that are damaged in some way, with what is said of them."""
    whole = path.read_bytes()
    cases = {
        "empty": (b"", "not a log of decisions, or not a whole one"),
        "text": (b"once upon a time" * 50, "not a log of decisions"),
        "foreign": (whole[:68] + b"\0\0\0\0" + whole[72:], "not a log of decisions"),
        "truncated": (whole[:-5000], "truncated"),
        "newer": (whole[:60] + (9).to_bytes(4, "big") + whole[64:], "format 9"),
        "page": (whole[:4096] + bytes(4096) + whole[8192:], "cannot be read as a log|contradict|not a snapshot"),
        "snapshot": (whole.replace(b"explorax agent", b"explorer agent"), "snapshot"),
    }
    for name, (content, said) in cases.items():
        target = folder / f"{name}.db"
        target.write_bytes(content)
        yield target, said


def test_damaged_files_are_refused_and_stay_as_they_are(tmp_path):
    agent = played.fixed(tmp_path / "log.db").agent
    agent.close()
    for path, said in damaged(tmp_path / "log.db", tmp_path):
        before = path.read_bytes()
        with pytest.raises(errors.InvalidArgument, match=said):
            read_log(path)
        assert path.read_bytes() == before
    with pytest.raises(errors.InvalidLog, match="cannot be read: No such file"):
        read_log(tmp_path / "nowhere.db")


def test_rows_that_contradict_the_arms_are_refused(tmp_path):
    agent = played.fixed(tmp_path / "log.db").agent
    agent.close()
    for change in ("arm = 'unknown'", "propensity = 1.5", "names = '[1]'", "names = '['"):
        shutil.copy(tmp_path / "log.db", tmp_path / "wrong.db")
        with sqlite3.connect(tmp_path / "wrong.db") as connection:
            connection.execute(f"UPDATE decisions SET {change} WHERE id = 2")
        connection.close()
        with pytest.raises(errors.InvalidLog, match="contradict"):
            read_log(tmp_path / "wrong.db")


def test_memory_is_that_of_the_arrays(tmp_path, monkeypatch):
    """100 000 decisions with 4 arms take less than 40 MB, of which the arrays are 5; as rows they would be 150."""
    path = tmp_path / "log.db"
    agent = Agent(uniform(), arms=np.eye(4), log=path)
    agent.learn(agent.choose().id, 1.0)
    agent.close()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 99999) INSERT INTO decisions "
            "SELECT i, 2 * i + 1, time, i, i, version, arm, row, features, propensity, stderr, forced, converged, "
            "deferred, names, arms, context, every FROM decisions, n WHERE id = 0"
        )
        connection.execute("INSERT INTO rewards SELECT id, 2 * id + 2, 0, 0, 1.0, 0 FROM decisions WHERE id > 0")
    connection.close()
    monkeypatch.setattr(statuses, "BATCH", 5_000)
    tracemalloc.start()
    data = read_log(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data) == 100_000
    assert data.rewards.sum() == 100_000
    assert peak < 40e6
