"""What a run leaves can be read back, survives a kill at any moment, and is not continued with other settings."""

import json
import os
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from explorax import record
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments import logistic
from explorax.parts import read_parts, write_part
from tests import fabricate
from tests.fabricate import result
from tests.helpers import assert_same

CURVES, PANELS = ["b", "a"], ["d = 5", "d = 10"]


def test_long_form_has_the_promised_columns_and_a_row_for_each_checkpoint():
    table = record.to_table([result(), result(curve="b")])
    kinds = {field.name: str(field.type) for field in table.schema}
    assert kinds == {name: {"float64": "double"}.get(kind, kind) for name, kind in record.COLUMNS.items()}
    assert table.num_rows == 2 * 3 * 4
    row = table.slice(5, 1).to_pylist()[0]  # second instance, second checkpoint
    assert (row["curve"], row["panel"], row["instance"], row["round"]) == ("a", "d = 5", 1, 20)
    assert row["regret"] == result().records.regret[1, 1]


def test_table_and_back_whatever_the_order_of_rows():
    wanted = [result(), result(panel="d = 10", seed=1), result(curve="b", first=7)]
    table = record.to_table(wanted)
    shuffled = table.take(pa.array(np.random.default_rng(0).permutation(table.num_rows)))
    found = sorted(record.from_table(shuffled), key=lambda one: (one.curve, PANELS.index(one.panel)))
    assert_same([one._replace(seconds=1.5, compile_seconds=0.5) for one in found], wanted)


def test_a_table_with_a_hole_is_refused():
    table = record.to_table([result()])
    with pytest.raises(InvalidArgument, match="The curve 'a' lacks or repeats a checkpoint"):
        record.from_table(table.slice(1))
    with pytest.raises(InvalidArgument, match="The table lacks the columns regret"):
        record.from_table(table.drop_columns(["regret"]))


def test_file_and_back_with_seconds_and_metadata(tmp_path):
    both = [result(), result(panel="d = 10")]
    write_part(tmp_path / "one.parquet", both, task="t1", metadata={"worker": 3})
    stored = record.read(tmp_path / "one.parquet")
    assert_same(stored.results, both)
    assert stored.metadata == {"task": "t1", "worker": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["one.parquet"]  # no temporary file stays


def test_a_file_from_before_compiling_was_told_apart(tmp_path):
    path = tmp_path / "old.parquet"
    record.write(path, [result()._replace(compile_seconds=None)])
    table = pq.read_table(path)
    kept = json.loads(table.schema.metadata[b"explorax"])
    assert kept.pop("compile_seconds") == [None]
    pq.write_table(table.replace_schema_metadata({"explorax": json.dumps(kept)}), path)
    (old,) = record.read(path).results
    assert (old.seconds, old.compile_seconds) == (1.5, None)
    new = result(first=3)
    (both,) = record.combine([old, new], CURVES, PANELS).results
    assert (both.seconds, both.compile_seconds) == (3.0, None)  # rather than a part of it


def test_any_parquet_reader_sees_the_rows(tmp_path):
    record.write(tmp_path / "regret.parquet", [result()])
    assert pq.read_table(tmp_path / "regret.parquet").num_rows == 12


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("regret", np.full((3, 4), np.nan), "regret must be finite, got NaN"),
        ("reward", np.zeros((3, 3)), r"reward must have shape \(3, 4\), by instances and rounds, got \(3, 3\)"),
        ("digest", np.zeros(2, np.uint32), r"digest must have shape \(3,\), by instances and rounds, got \(2,\)"),
        (
            "rounds",
            np.array([10, 20, 20, 40]),
            r"rounds must be .* numbers that increase from at least 1, got \[10, 20, 20, 40\]",
        ),
        (
            "instances",
            np.array([2, 1, 0]),
            r"instances must be .* numbers that increase from at least 0, got \[2, 1, 0\]",
        ),
    ],
)
def test_records_that_make_no_sense_are_not_written(tmp_path, field, value, message):
    bad = result()._replace(records=result().records._replace(**{field: value}))
    with pytest.raises(InvalidArgument, match=message):
        record.write(tmp_path / "bad.parquet", [bad])
    assert not list(tmp_path.iterdir())


def test_a_file_holds_a_curve_and_panel_once(tmp_path):
    for results in ([], [result(), result(first=3)]):
        with pytest.raises(InvalidArgument, match="one for each curve and panel"):
            record.write(tmp_path / "bad.parquet", results)


def combined(parts):
    """All results in a directory of parts, as a finished run has them."""
    stored = read_parts(parts).tasks.values()
    return record.combine((one for each in stored for one in each.results), CURVES, PANELS)


def test_merge_is_sorted_and_does_not_depend_on_who_finished_first(tmp_path):
    pieces = [result(curve, panel, first) for curve in ("a", "b") for panel in PANELS[::-1] for first in (3, 0)]
    tables, merged = [], []
    for order in (pieces, pieces[::-1]):
        parts = tmp_path / f"parts{len(tables)}"
        for index, piece in enumerate(order):
            name = f"{piece.curve}-{piece.panel}-{piece.records.instances[0]}"
            write_part(parts / f"{name}.parquet", [piece], task=name)
            os.utime(parts / f"{name}.parquet", (index, index))
        merged.append(combined(parts))
        record.write(tmp_path / "regret.parquet", merged[-1].results)
        tables.append(pq.read_table(tmp_path / "regret.parquet"))
    assert tables[0].equals(tables[1])
    rows = tables[0].to_pylist()
    keys = [(PANELS.index(row["panel"]), CURVES.index(row["curve"]), row["instance"], row["round"]) for row in rows]
    assert keys == sorted(keys)
    assert len(set(keys)) == len(keys) == 8 * 3 * 4
    assert_same(merged[0].results, merged[1].results)
    assert_same(record.read(tmp_path / "regret.parquet").results, merged[0].results)
    assert [one[6:] for one in merged[0].results] == [(3.0, 1.0)] * 4
    assert merged[0].warnings == []


def test_merge_warns_of_damage_and_contradiction(tmp_path):
    write_part(tmp_path / "p/1.parquet", [result(first=0)], task="1")
    write_part(tmp_path / "p/2.parquet", [result(first=0)], task="2")
    assert combined(tmp_path / "p").warnings == []  # the same twice
    write_part(tmp_path / "p/3.parquet", [result(first=2, seed=9)], task="3")
    (tmp_path / "p/4.parquet").write_bytes(b"PAR1")
    merged = combined(tmp_path / "p")
    assert "4.parquet is damaged" in read_parts(tmp_path / "p").warnings[0]
    assert "contradict" in merged.warnings[0]
    (only,) = merged.results
    np.testing.assert_array_equal(only.records.instances, np.arange(5))
    np.testing.assert_array_equal(only.records.regret[:3], result().records.regret)


def test_batches_that_do_not_fit_together_are_refused():
    short = record.Result(*result()[:5], fabricate.records("log", 1.0, rounds=20, checkpoints=4, instances=2))
    with pytest.raises(InvalidArgument, match="different checkpoints"):
        record.combine([result(), short], CURVES, PANELS)
    with pytest.raises(UnknownName, match=r"curve must be one of .*, got 'c'"):
        record.combine([result(curve="c")], CURVES, PANELS)
    with pytest.raises(UnknownName, match=r"panel must be one of .*, got 'd = 7'"):
        record.combine([result(panel="d = 7")], CURVES, PANELS)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "part.parquet"
    write_part(path, [result()], task="t")
    before = path.read_bytes()

    def killed(source, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_part(path, [result(seed=1)], task="t")
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["part.parquet"]


def test_manifest_says_how_it_was_run_and_nothing_private(tmp_path):
    start = datetime(2024, 5, 1, 12, tzinfo=UTC)
    settings = logistic.study().settings()
    content = record.manifest(settings, seed=3, started=start, finished=start + timedelta(seconds=90.5))
    record.write_manifest(tmp_path, content)
    found = record.read_manifest(tmp_path)
    assert found == json.loads((tmp_path / "manifest.json").read_text()) == content
    assert found["settings"]["rounds"] == 50_000
    assert found["seed"] == 3
    assert set(found["versions"]) == {"explorax", "jax", "jaxlib", "numpy", "python"}
    assert found["versions"]["numpy"] == np.__version__
    assert found["duration_seconds"] == 90.5
    assert found["device"] == "cpu"
    text = (tmp_path / "manifest.json").read_text()
    assert os.uname().nodename not in text
    assert "/" not in text.replace("+00:00", "")
    unfinished = record.manifest(settings, seed=3, started=start)
    assert unfinished["finished"] is None
    assert unfinished["duration_seconds"] is None


def test_settings_digest_depends_on_values_alone():
    digest = record.settings_digest({"rounds": 10, "ridge": 1.0, "dims": (5, 10)})
    assert digest == record.settings_digest({"dims": [5, 10], "ridge": 1, "rounds": np.int64(10)})
    assert digest != record.settings_digest({"rounds": 11, "ridge": 1.0, "dims": (5, 10)})
    assert len(digest) == 16
    with pytest.raises(InvalidArgument, match="settings must be numbers, text, lists and tables, got <object"):
        record.settings_digest({"policy": object()})
    with pytest.raises(InvalidArgument, match="settings must be finite numbers, got inf"):
        record.settings_digest({"scale": float("inf")})
