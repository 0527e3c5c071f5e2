"""What a directory knows of its run: what can be gone on with, what is refused, and what is never overwritten."""

import errno
import io
import json
import os
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from explorax import files, record
from explorax.arena import tournament
from explorax.errors import CannotWrite, InvalidArgument, RunFailed
from explorax.experiments import logistic
from explorax.experiments.settings import from_settings, study_in
from explorax.runner import Outcome, journal, outputs, rebuild, run
from explorax.runner.journal import Journal, check_free, kept, locked
from tests import fabricate

STUDY = from_settings(
    {"environment": "logistic", "dims": [2], "rounds": 40, "checkpoints": 4, "instances": 60}
    | {"name": "kept", "curves": [{"policy": "uniform"}]}
)
TASKS = 2  # blocks of 50 and of 10 instances
MAKER = {"code": "0123", "jax": "1", "together": False}


@pytest.fixture(autouse=True)
def quick_maker(monkeypatch):
    """The digest of the source files does not change here, and takes a while."""
    monkeypatch.setattr(journal, "maker", lambda study, together: MAKER | {"together": together})


def keep(one, number=0):
    """Let a task be finished."""
    task = one.tasks[number]
    played = fabricate.records("sqrt", 5.0, rounds=40, checkpoints=4, instances=task.instances, first=task.first)
    one.keep(task, Outcome([played], 3.0, 1.0))


def opened(out, study=STUDY):
    return Journal(study, out, False, "explorax run kept.toml")


@pytest.fixture
def half(tmp_path):
    """A directory with one of two tasks."""
    keep(opened(tmp_path))
    return tmp_path


def manifest(out):
    return json.loads((out / record.MANIFEST).read_text())


def contents(out):
    return {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}


# ----------------------------------------------------------------------------------------------------------- manifests

DAMAGED = {
    "garbage": "{garbage",
    "no text": b"\xff\xfe\x00",
    "deeply nested": "[" * 100_000,
    "a number": "3",
    "a list": "[]",
    "of another program": '{"name": "web app", "icons": []}',
    "without tasks": {"tasks": None},
    "tasks that are no counts": {"tasks": {"done": "1", "all": 2}},
    "settings that are no table": {"settings": 3},
    "no versions": {"versions": None},
    "a bad start": {"started": "yesterday"},
    "a start without a zone": {"started": "2024-05-01T00:00:00"},
    "a bad duration": {"duration_seconds": "long"},
    "a long duration": {"duration_seconds": 10**400},
    "a command that is no text": {"command": 3},
    "no status": {"status": None},
    "no maker": {"maker": None},
    "a maker without a device": {"maker": {"code": "0123"}},
}


def damage(out, content):
    if isinstance(content, dict):
        content = json.dumps(manifest(out) | content)
    (out / record.MANIFEST).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_run_goes_on_from_its_parts_when_the_manifest_is_damaged(half, content):
    damage(half, content)
    before = contents(half / record.PARTS)
    with pytest.raises(InvalidArgument, match=r"manifest\.json cannot be used: .*run the study once more"):
        rebuild(study_in(half), half)
    found = opened(half)
    assert [task.first for task in found.todo] == [50]
    (warning,) = found.warnings
    assert "manifest.json was missing or damaged and is written anew" in warning
    assert manifest(half)["tasks"] == {"done": 1, "all": TASKS}
    assert contents(half / record.PARTS) == before
    assert opened(half).warnings == []


def test_a_run_goes_on_from_its_parts_without_a_manifest(half):
    (half / record.MANIFEST).unlink()
    assert len(opened(half).todo) == 1
    assert kept(half).startswith("1 of 2 tasks are kept")


@pytest.mark.parametrize("content", [None, "{garbage"], ids=["missing", "damaged"])
def test_parts_of_another_run_are_not_gone_on_with(half, content, monkeypatch):
    (half / record.MANIFEST).unlink() if content is None else damage(half, content)
    before = contents(half)
    refused = "no manifest.json that can be read, and 1 of 1 parts are of other settings, data or software: choose"
    with pytest.raises(InvalidArgument, match=refused):
        opened(half, replace(STUDY, seed=1))
    monkeypatch.setattr(journal, "maker", lambda study, together: MAKER | {"code": "other"})
    with pytest.raises(InvalidArgument, match=refused):
        opened(half)
    assert contents(half) == before


def test_parts_that_do_not_tell_their_maker_need_their_manifest(half):
    (path,) = (half / record.PARTS).iterdir()
    stored = record.read(path)
    record.write_part(path, stored.results, task=stored.metadata["task"])  # as they once were
    assert len(opened(half).todo) == 1
    (half / record.MANIFEST).unlink()
    with pytest.raises(InvalidArgument, match="1 of 1 parts are of other settings, data or software"):
        opened(half)


def test_a_manifest_that_is_none_of_ours_is_not_overwritten(tmp_path):
    (tmp_path / record.MANIFEST).write_text(DAMAGED["of another program"])
    before = contents(tmp_path)
    with pytest.raises(InvalidArgument, match=r"is damaged, or of another program, and no finished parts"):
        opened(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize(
    "change",
    [
        {"rounds": "many"},
        {"panels": 3},
        {"curves": [{"policy": "nobody"}]},
        {"name": "../evil"},
        {"panels": [{"label": "x"}]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_settings_in_a_manifest_that_no_run_can_have_had(half, change):
    damage(half, {"settings": manifest(half)["settings"] | change})
    with pytest.raises(InvalidArgument):
        rebuild(study_in(half), half)


def test_a_directory_is_gone_on_with_only_under_its_own_settings(tmp_path):
    settings = logistic.study().settings()
    there = record.manifest(settings, seed=0, started=datetime.now(UTC))
    journal.check_same_settings(tmp_path, there, settings)
    with pytest.raises(InvalidArgument) as caught:
        journal.check_same_settings(tmp_path, there, logistic.study(rounds=2000, ridge=0.5).settings())
    message = str(caught.value)
    assert "rounds is 50000 there, 2000 now" in message
    assert "curves[0].settings.ridge is 1 there, 0.5 now" in message
    assert "instances" not in message
    assert "--out" in message
    with pytest.raises(InvalidArgument, match=r"curves\[2\].label is 'UCB-GLM \(theory\)' there, absent now; .* more"):
        journal.check_same_settings(tmp_path, there, {**settings, "curves": settings["curves"][:2]})


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize("name", ["report.html", "summary.csv", "claims.json", "regret.parquet", "figure1-log.pdf"])
def test_a_file_that_no_run_has_written_is_not_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InvalidArgument, match=f"holds {name} that no run has written, .*--out"):
        run(STUDY, tmp_path, stream=io.StringIO())
    assert contents(tmp_path).keys() == {(tmp_path / name).relative_to(tmp_path)}
    assert (tmp_path / name).read_text() == "mine"


def test_files_of_a_run_and_of_others_are_told_apart(half):
    for name in ("report.html", "notes.txt"):
        (half / name).write_text("")
    check_free(half, outputs.names(STUDY))  # the report is this run's own
    (half / record.MANIFEST).unlink()
    check_free(half, outputs.names(STUDY))  # and the parts tell as much


def test_the_arena_overwrites_no_files_of_others(tmp_path):
    games = tournament.tournament(problems=["logistic-5"], policy_names=["uniform"], rounds=4, tuning=1, instances=2)
    (tmp_path / "arena.html").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"holds arena\.html that no run has written"):
        tournament.run(games, tmp_path, stream=io.StringIO())
    assert (tmp_path / "arena.html").read_text() == "mine"
    with pytest.raises(InvalidArgument, match=r"arena\.html' is a file: give a directory"):
        tournament.run(games, tmp_path / "arena.html", stream=io.StringIO())
    with pytest.raises(InvalidArgument, match=r"arena\.html' is a file: give a directory"):
        run(STUDY, tmp_path / "arena.html" / "deeper", stream=io.StringIO())


def leave(out):
    """What killed processes leave, and a file that only looks like it."""
    left = [out / ".manifest.json.123.456.tmp", out / record.PARTS / ".a.parquet.1.2.tmp"]
    for path in (*left, out / ".mine.tmp"):
        path.write_bytes(b"half")
    return left


def test_what_a_killed_run_was_writing_is_removed_by_the_next(half):
    left = leave(half)
    opened(half)
    assert not any(path.exists() for path in left)
    assert (half / ".mine.tmp").exists()


def test_what_a_killed_run_was_writing_is_removed_by_a_report(half, monkeypatch):
    monkeypatch.setattr(outputs, "draw", lambda *about: ([], []))
    left = leave(half)
    with locked(half):  # by a run that may be writing these
        rebuild(study_in(half), half)
    assert all(path.exists() for path in left)
    rebuild(study_in(half), half)
    assert not left[0].exists()
    assert (half / ".mine.tmp").exists()


def fill(monkeypatch):
    """Let no more bytes fit on the disk."""

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


def test_a_full_disk_is_explained_and_takes_nothing(half, monkeypatch):
    found = opened(half)
    before = contents(half)
    with monkeypatch.context() as patch:
        fill(patch)
        with pytest.raises(CannotWrite, match=r"parts/d-2-uniform-000050-\w+\.parquet could not be written: No space"):
            keep(found, 1)
        assert contents(half) == before  # and no temporary file
        assert kept(half).startswith("1 of 2 tasks are kept")
    keep(opened(half), 1)
    assert opened(half).todo == []


def test_a_file_that_cannot_be_written_is_an_error_of_the_system_and_of_a_run(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"file/inside could not be written: .*[Mm]ake room") as caught:
        files.write_atomically(tmp_path / "file" / "inside", b"")
    assert isinstance(caught.value, RunFailed)
    with pytest.raises(CannotWrite, match=r"\.lock could not be written"), locked(tmp_path / "file"):
        pass
    fill(monkeypatch)
    with pytest.raises(CannotWrite):
        files.write_atomically(tmp_path / "file", b"new")
    assert contents(tmp_path) == {(tmp_path / "file").relative_to(tmp_path): b""}


def test_copies_of_a_directory_can_be_gone_on_with(half, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "out"
    shutil.copytree(half, copy)
    assert [task.first for task in opened(copy).todo] == [50]
