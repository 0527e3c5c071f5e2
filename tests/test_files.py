"""Files are there whole or not at all, and one that cannot be written says so."""

from pathlib import Path

import pytest

from explorax import files
from explorax.errors import CannotWrite, RunFailed
from explorax.runner.lock import locked
from tests.disk import contents, fill


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


def test_a_file_is_written_whole_and_nothing_is_left_beside_it(tmp_path):
    files.write_atomically(tmp_path / "new folder" / "file", b"one")
    files.write_atomically(tmp_path / "new folder" / "file", b"two")
    assert contents(tmp_path) == {Path("new folder/file"): b"two"}


def test_leftovers_are_told_from_files_that_are_being_written(tmp_path):
    for name in (".a.1.2.tmp", ".b.1.2.tmp", ".mine.tmp", "a.1.2.tmp"):
        (tmp_path / name).write_text("")
    with files.temporary(tmp_path / "held") as held:
        files.remove_leftovers(tmp_path, "a")
        assert {path.name for path in tmp_path.iterdir()} == {".b.1.2.tmp", ".mine.tmp", "a.1.2.tmp", held.name}
        files.remove_leftovers(tmp_path)
        assert {path.name for path in tmp_path.iterdir()} == {".mine.tmp", "a.1.2.tmp", held.name}
    assert {path.name for path in tmp_path.iterdir()} == {".mine.tmp", "a.1.2.tmp"}
