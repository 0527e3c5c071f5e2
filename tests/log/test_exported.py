"""Which files are taken for tables of a log; what is read from them is in test_export.py."""

import io

import pytest

from explorax.log import exported


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"PAR1...", True),
        (b'"id","time","version","arm","propensity"\n', True),
        (b"id,time,version,arm,propensity\n", True),
        (b"id,time\n", False),
        (b"SQLite format 3\0", False),
        (b"", False),
    ],
)
def test_the_content_tells(tmp_path, content, found):
    (tmp_path / "file").write_bytes(content)
    assert exported.is_exported(tmp_path / "file") == found


def test_a_file_that_is_not_there_is_no_table(tmp_path):
    assert not exported.is_exported(tmp_path / "nowhere")


def test_names_that_look_alike_are_not_guessed():
    assert exported.named("7", [7, "x"]) == 7
    assert exported.named(7, [7, 8]) == 7
    with pytest.raises(ValueError, match="the arm '7' among"):
        exported.named("7", [7, "7"])


def test_fields_keep_their_quotes():
    text = io.StringIO('"a",1,,"b, ""c""\nd"\r\n2,3,4,5\n"open')
    assert exported.fields_of(text) == ['"a"', "1", "", '"b, ""c""\nd"']
    assert exported.fields_of(text) == ["2", "3", "4", "5"]
    assert exported.fields_of(text) == ['"open"']
