"""What a directory knows of its run: what can be gone on with, what is refused, and what is never overwritten."""

import io
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from explorax import record
from explorax.errors import CannotWrite, InvalidArgument
from explorax.experiments import logistic
from explorax.experiments.settings import study_in
from explorax.parts import write_part
from explorax.runner import journal, outputs, rebuild, run
from explorax.runner.journal import check_free, kept
from tests.disk import contents, fill
from tests.runner.kept import MAKER, STUDY, TASKS, damage, keep, leave, manifest, opened

pytestmark = pytest.mark.usefixtures("quick_maker")


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


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_run_goes_on_from_its_parts_when_the_manifest_is_damaged(half, content):
    damage(half, content)
    before = contents(half / record.PARTS)
    with pytest.raises(InvalidArgument, match=r"manifest\.json cannot be used: .*Run the study once more"):
        rebuild(study_in(half), half)
    found = opened(half)
    assert [task.first for task in found.plan.todo] == [50]
    (warning,) = found.warnings
    assert "manifest.json was missing or damaged and is written anew" in warning
    assert manifest(half)["tasks"] == {"done": 1, "all": TASKS}
    assert contents(half / record.PARTS) == before
    assert opened(half).warnings == []


def test_a_run_goes_on_from_its_parts_without_a_manifest(half):
    (half / record.MANIFEST).unlink()
    assert len(opened(half).plan.todo) == 1
    assert kept(half).startswith("1 of 2 tasks are kept")


@pytest.mark.parametrize("content", [None, "{garbage"], ids=["missing", "damaged"])
def test_parts_of_another_run_are_not_gone_on_with(half, content, monkeypatch):
    (half / record.MANIFEST).unlink() if content is None else damage(half, content)
    before = contents(half)
    refused = r"no readable manifest\.json, and 1 of 1 parts are of other settings, data or software\. Choose"
    with pytest.raises(InvalidArgument, match=refused):
        opened(half, replace(STUDY, seed=1))
    monkeypatch.setattr(journal, "maker", lambda study, together: MAKER | {"code": "other"})
    with pytest.raises(InvalidArgument, match=refused):
        opened(half)
    assert contents(half) == before


def test_parts_that_do_not_tell_their_maker_need_their_manifest(half):
    (path,) = (half / record.PARTS).iterdir()
    stored = record.read(path)
    write_part(path, stored.results, task=stored.metadata["task"])  # as they once were
    assert len(opened(half).plan.todo) == 1
    (half / record.MANIFEST).unlink()
    with pytest.raises(InvalidArgument, match="1 of 1 parts are of other settings, data or software"):
        opened(half)


def test_a_manifest_that_is_none_of_ours_is_not_overwritten(tmp_path):
    (tmp_path / record.MANIFEST).write_text(DAMAGED["of another program"])
    before = contents(tmp_path)
    with pytest.raises(
        InvalidArgument, match=r"is damaged or belongs to another program, and there are no finished parts\."
    ):
        opened(tmp_path)
    assert contents(tmp_path) == before


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


@pytest.mark.parametrize("name", ["report.html", "summary.csv", "claims.json", "regret.parquet", "figure1-log.pdf"])
def test_a_file_that_no_run_has_written_is_not_overwritten(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(InvalidArgument, match=f"holds {name}, which no run has written and .*--out"):
        run(STUDY, tmp_path, stream=io.StringIO())
    assert contents(tmp_path).keys() == {(tmp_path / name).relative_to(tmp_path)}
    assert (tmp_path / name).read_text() == "mine"


def test_files_of_a_run_and_of_others_are_told_apart(half):
    for name in ("report.html", "notes.txt"):
        (half / name).write_text("")
    check_free(half, outputs.names(STUDY))  # the report is this run's own
    (half / record.MANIFEST).unlink()
    check_free(half, outputs.names(STUDY))  # and the parts tell as much


def test_what_a_killed_run_was_writing_is_removed_by_the_next(half):
    left = leave(half)
    opened(half)
    assert not any(path.exists() for path in left)
    assert (half / ".mine.tmp").exists()


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
    assert opened(half).plan.todo == []


def test_copies_of_a_directory_can_be_gone_on_with(half, tmp_path_factory):
    copy = tmp_path_factory.mktemp("copy") / "out"
    shutil.copytree(half, copy)
    assert [task.first for task in opened(copy).plan.todo] == [50]
