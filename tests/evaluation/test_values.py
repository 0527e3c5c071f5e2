"""Values as rows of a table: verdicts, plain data, text."""

import pytest

from explorax.evaluation.values import COLUMNS, LOGGING, PolicyValue, as_text, number, percent, span


def row(**others):
    given = {
        "target": "new", "estimator": "dr", "value": 0.5, "stderr": 0.01, "low": 0.45, "high": 0.55,
        "interval": "anytime", "level": 0.95, "rows": 100, "effective": 40.0, "gain": 0.1, "gain_low": 0.02,
        "gain_high": 0.18,
    }  # fmt: skip
    return PolicyValue(**(given | others))


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.1, 0.2, "better"), (-0.2, -0.1, "worse"), (-0.1, 0.2, "undecided"), (0.0, 0.2, "undecided"), (None, None, "")],
)
def test_a_verdict_is_what_the_interval_of_the_difference_shows(low, high, verdict):
    assert row(gain_low=low, gain_high=high).verdict == verdict


def test_a_row_as_plain_data_has_all_columns():
    assert tuple(row().to_dict()) == COLUMNS
    assert row().to_dict()["verdict"] == "better"


def test_rows_as_text():
    logging = row(target=LOGGING, estimator="on_policy", effective=None, gain=None, gain_low=None, gain_high=None)
    head, first, second = as_text([logging, row(value=-12345.678)]).splitlines()
    assert head.split("  ")[0] == "policy"
    assert first.split()[-3:] == ["-", "100", "-"]
    assert "-1.235e+04" in second
    assert "+0.0200 to +0.1800" in second
    assert second.endswith("better   100         40")
    assert len({len(head), len(first), len(second)}) == 1


def test_numbers_as_text():
    assert [number(each) for each in (0.0, 1.23456, -99.9, 1234.5)] == ["0.0000", "1.2346", "-99.9000", "1234"]
    assert span(-0.5, 0.25) == "-0.5000 to 0.2500"
    assert span(-0.5, 0.25, "+") == "-0.5000 to +0.2500"
    assert percent(0.95) == "95\N{NO-BREAK SPACE}%"
    assert percent(1 - 0.05 / 21) == "99.76\N{NO-BREAK SPACE}%"
