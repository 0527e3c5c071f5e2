"""Logs in other formats, which are read back as they were."""

import csv
import json
import sqlite3
import tracemalloc

import numpy as np
import pandas
import pytest

from explorax import Agent, LoggedData, errors, export_log, from_obp, from_vw, log_table, read_log, uniform
from explorax.cli import log as command
from explorax.log import export, statuses
from tests.log.played import EVALUATED, KINDS


def by_name(data, rows=slice(None)):
    """What a log says, whatever the order of its arms."""
    order = np.argsort([str(name) for name in data.names])
    found = {"arms": [data.names[arm] for arm in data.arms[rows]], "rewards": data.rewards[rows].tolist()}
    found |= {name: getattr(data, name)[rows].tolist() for name in ("propensities", "times", "ids")}
    offered = np.ones((len(data), data.n_arms), bool) if data.offered is None else data.offered
    return found | {"names": sorted(map(str, data.names)), "offered": offered[rows][:, order].tolist()}


@pytest.mark.parametrize("kind", ["fixed", "context", "windowed"])
@pytest.mark.parametrize("ending", [".parquet", ".csv"])
@pytest.mark.parametrize("rewards", ["known", "told"])
def test_a_table_is_read_as_the_log_is(logs, tmp_path, kind, ending, rewards):
    out = tmp_path / f"out{ending}"
    assert export_log(logs[kind].path, out) == len(logs[kind].diary)
    from_log, from_table = read_log(logs[kind].path, rewards=rewards), read_log(out, rewards=rewards)
    assert by_name(from_table) == by_name(from_log)
    assert from_table.left_out == from_log.left_out
    if kind == "context":
        np.testing.assert_array_equal(from_table.all_propensities, from_log.all_propensities)
        entries = [logs[kind].diary[each].context for each in from_table.ids.tolist()]
        expected = [
            [*(user == each["user"] for user in ("", "7", "NA")), each["age"], not each["new"], each["new"]]
            for each in entries
        ]
        np.testing.assert_array_equal(from_table.contexts, expected)


def test_tables_with_given_arms_have_their_names(logs, tmp_path):
    export_log(logs["changing"].path, tmp_path / "out.parquet")
    data, known = read_log(tmp_path / "out.parquet"), logs["changing"].known
    assert [data.names[arm] for arm in data.arms] == [known[each].arm for each in data.ids.tolist()]
    export_log(logs["infinite"].path, tmp_path / "set.csv")
    with pytest.raises(errors.InvalidLog, match="infinite set"):
        read_log(tmp_path / "set.csv")


@pytest.mark.parametrize("kind", KINDS)
def test_files_have_what_the_table_has(logs, tmp_path, kind):
    table = log_table(logs[kind].path)
    export_log(logs[kind].path, tmp_path / "out.parquet")
    pandas.testing.assert_frame_equal(pandas.read_parquet(tmp_path / "out.parquet"), table)
    export_log(logs[kind].path, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row, expected in zip(rows, log_table(logs[kind].path, package="pyarrow").to_pylist(), strict=True):
        assert row.keys() == expected.keys()
        assert {
            name: type(expected[name])(text) for name, text in row.items() if text not in ("", "true", "false")
        } == {
            name: value for name, value in expected.items() if value not in (None, "") and not isinstance(value, bool)
        }
        for name, value in expected.items():
            assert value is not None or row[name] == ""
            assert not isinstance(value, bool) or row[name] == str(value).lower()


@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_is_the_log_and_needs_no_companions(logs, tmp_path, kind):
    assert export_log(logs[kind].path, tmp_path / "copy.db") == len(logs[kind].diary)
    assert [path.name for path in tmp_path.iterdir()] == ["copy.db"]
    for name in ("about", "decisions", "rewards", "events", "snapshots"):
        rows = []
        for path in (logs[kind].path, tmp_path / "copy.db"):
            connection = sqlite3.connect(path)
            rows.append(connection.execute(f"SELECT * FROM {name}").fetchall())
            connection.close()
        assert rows[0] == rows[1]
    agent = Agent.recover(tmp_path / "copy.db")
    assert agent.pending == logs[kind].agent.pending
    agent.close()


@pytest.mark.parametrize("kind", EVALUATED)
def test_the_formats_of_others(logs, tmp_path, kind):
    data = read_log(logs[kind].path)
    assert (
        export_log(logs[kind].path, tmp_path / "out.json")
        == export_log(logs[kind].path, tmp_path / "out.vw")
        == len(data)
    )
    read = from_obp(json.loads((tmp_path / "out.json").read_text()))
    text = from_vw(tmp_path / "out.vw", names=data.names)
    for name in ("arms", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(read, name), getattr(data, name))
        np.testing.assert_array_equal(getattr(text, name), getattr(data, name))


def test_nothing_is_overwritten_and_endings_are_known(logs, tmp_path):
    (tmp_path / "out.csv").write_text("mine")
    with pytest.raises(errors.InvalidArgument, match="out must be a new file"):
        export_log(logs["fixed"].path, tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text() == "mine"
    with pytest.raises(errors.UnknownName, match=r"one of \.csv, \.db, \.json, \.parquet, \.vw, got '\.xlsx'"):
        export_log(logs["fixed"].path, tmp_path / "out.xlsx")
    with pytest.raises(errors.InvalidArgument, match="in a folder that exists"):
        export_log(logs["fixed"].path, tmp_path / "no" / "out.csv")
    with pytest.raises(errors.InvalidLog):
        export_log(tmp_path / "out.csv", tmp_path / "other.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]
    assert set(export.FORMATS) == set(command.ENDINGS)


def test_memory_does_not_grow_with_the_log(tmp_path, monkeypatch):
    """Exporting 40 000 decisions takes as much memory as exporting 10 000, with batches of 1 000."""
    monkeypatch.setattr(statuses, "BATCH", 1_000)
    peaks = []
    for count in (10_000, 40_000):
        path = tmp_path / f"{count}.db"
        agent = Agent(uniform(), arms=np.eye(4), log=path)
        agent.choose()
        agent.close()
        with sqlite3.connect(path) as connection:
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) INSERT INTO decisions "
                "SELECT i, 2 * i, time, i, i, version, arm, row, features, propensity, stderr, forced, converged, "
                "deferred, names, arms, context, every FROM decisions, n WHERE id = 0",
                (count - 1,),
            )
        connection.close()
        tracemalloc.start()
        assert export_log(path, tmp_path / f"{count}.parquet") == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_files_that_are_no_tables_of_logs_are_explained(tmp_path):
    cases = {
        "broken.parquet": (b"PAR1" + b"\0" * 100, "cannot be read as a table of a log"),
        "other.csv": (b"id,time,version,arm,reward\n1,2,3,4,5\n", "has no column 'propensity'"),
        "ragged.csv": (b"id,time,version,arm,status\n1,2\n", "cannot be read as a table"),
        "text.csv": (b"x,y\n1,2\n", "not a log of decisions"),
    }
    for name, (content, said) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(errors.InvalidLog, match=said):
            read_log(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
    frame = pandas.DataFrame({"a": [1]})
    frame.to_parquet(tmp_path / "frame.parquet")
    with pytest.raises(errors.InvalidLog, match="has no column 'id'"):
        read_log(tmp_path / "frame.parquet")
    assert isinstance(LoggedData.from_table(frame, arm="a", reward="a"), LoggedData)
