"""Files are there whole or not at all, and one that cannot be written says so."""

import pytest

from explorax import files
from explorax.errors import CannotWrite, RunFailed
from explorax.runner.journal import locked
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
