"""The flat table of a log, against the diary and against SQLite by hand."""

import json
import sqlite3

import numpy as np
import polars
import pytest

from explorax import Agent, errors, log_table, uniform
from tests.log.played import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_row_for_each_decision(logs, kind):
    diary, table = logs[kind].diary, log_table(logs[kind].path, package="pyarrow").to_pylist()
    assert [row["id"] for row in table] == sorted(diary)
    for row in table:
        entry = diary[row["id"]]
        if kind == "infinite":
            assert row["arm"] is row["on_offer"] is None
        else:
            assert row["arm"] in (entry.arm, str(entry.arm))
            assert set(json.loads(row["on_offer"])) == set(entry.on_offer)
        assert row["propensity"] == entry.propensity
        assert row["time"] == entry.time
        chosen = [row[f"feature_{i}"] for i in range(len(entry.chosen))]
        np.testing.assert_array_equal(chosen, entry.chosen)
        assert {name: row[f"context_{name}"] for name in entry.context or {}} == (entry.context or {})
        assert row["status"] == "withdrawn" if entry.gone else row["status"] != "withdrawn"
        if kind != "windowed":
            assert row["reward"] == entry.reward
            assert row["status"] == ("known" if entry.reward is not None else "withdrawn" if entry.gone else "waiting")
        if row["all_propensities"] is not None:
            pairs = zip(json.loads(row["on_offer"]), json.loads(row["all_propensities"]), strict=True)
            assert dict(pairs) == entry.every


def test_columns_are_those_of_the_file(logs):
    path = logs["windowed"].path
    table = log_table(path)
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT time, version, stderr, forced, converged, deferred FROM decisions").fetchall()
        rewards = dict(connection.execute("SELECT decision, reward FROM rewards WHERE by_default").fetchall())
    connection.close()
    names = ["time", "version", "stderr", "forced", "converged", "deferred"]
    np.testing.assert_array_equal(table[names].astype(float), np.array(rows, float))
    assert table.id[table.by_default == True].tolist() == sorted(rewards)  # noqa: E712
    assert table.deferred.sum() == 2


def test_every_package(logs):
    path = logs["fixed"].path
    frame, arrow, polar = (log_table(path, package=each) for each in ("pandas", "pyarrow", "polars"))
    assert isinstance(polar, polars.DataFrame)
    assert polar.to_dicts() == arrow.to_pylist()
    assert list(frame.columns) == arrow.column_names
    with pytest.raises(errors.UnknownName, match="package must be one of pandas, polars, pyarrow, got 'dask'"):
        log_table(path, package="dask")


def test_contexts_of_several_types_and_arms_of_several_kinds(tmp_path):
    agent = Agent(uniform(), arms={7: [1.0], "x": [2.0]}, log=tmp_path / "log.db")
    agent.choose(among=[7])
    agent.choose(among=["x"])
    assert log_table(tmp_path / "log.db").arm.tolist() == ["7", "x"]
    agent.close()
    empty = Agent(uniform(), arms=[[1.0]], log=tmp_path / "empty.db")
    assert len(log_table(tmp_path / "empty.db")) == 0
    empty.close()
