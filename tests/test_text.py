"""Numbers, times and tables as text."""

import pytest

from explorax import text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0.0 s"),
        (3.21, "3.2 s"),
        (9.96, "10 s"),
        (12.4, "12 s"),
        (59.6, "1 min"),
        (119.7, "2 min"),
        (125, "2 min 5 s"),
        (600, "10 min"),
        (3599.7, "1 h"),
        (3605, "1 h"),
        (7500, "2 h 5 min"),
        (360_000, "100 h"),
    ],
)
def test_durations(seconds, said):
    assert text.duration(seconds) == said


def test_means_with_their_errors():
    assert text.with_error(12.345, 0.678, 1) == "12.3 ± 0.7"
    assert text.with_error(12.346, None, 2) == "12.35"
    assert text.with_error(3.0, 1.0, 0, sign="+") == "+3 ± 1"
    assert text.with_error(-3.0, 1.0, 0, sign="+") == "-3 ± 1"


def test_digits_are_grouped():
    assert [text.grouped(value).replace("\N{NO-BREAK SPACE}", " ") for value in (7, 2_000, 1_234_567)] == [
        "7",
        "2 000",
        "1 234 567",
    ]


def test_names_are_listed_as_in_a_sentence():
    assert [text.listed(["a", "b", "c"][:count]) for count in (1, 2, 3)] == ["a", "a and b", "a, b and c"]


ROWS = [["", "d = 5", "d = 10"], ["Uniform", "1", "2.5"], ["TSL", "10 ± 2", "-"]]


def test_tables_are_aligned():
    assert text.table(ROWS).splitlines() == [
        "          d = 5  d = 10",
        "Uniform       1     2.5",
        "TSL      10 ± 2       -",
    ]
    assert text.table(ROWS, left=3, indent="  ").splitlines() == [
        "           d = 5   d = 10",
        "  Uniform  1       2.5",
        "  TSL      10 ± 2  -",
    ]
    assert text.table(ROWS, left=0).splitlines()[2] == "    TSL  10 ± 2       -"
    with pytest.raises(ValueError, match="zip"):
        text.table([["a"], ["b", "c"]])


def test_a_row_whose_widths_are_known():
    assert text.line(("a", "b"), (3, 4)) == "a       b"
    assert text.line(("a", "b"), (3, 4), left=0) == "  a     b"
