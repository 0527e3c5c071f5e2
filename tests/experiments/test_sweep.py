"""What is said, drawn and written of a sweep."""

import csv

import pytest

from explorax.errors import InvalidArgument
from explorax.experiments import sweep
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Figure
from explorax.record import Result
from explorax.summarize import summarize, write_summary
from tests import fabricate

SWEEP = from_settings(
    {"environment": "logistic", "dims": [2], "rounds": 40, "checkpoints": 4, "instances": 60, "name": "mine"}
    | {"environment_settings": {"n_arms": [5, 9]}}
    | {
        "curves": [
            {"policy": "uniform"},
            {"policy": "lin_ts", "design": ["informal", "theory"], "label": "L"},
            {"policy": "lin_ts", "label": "M", "settings": {"scale": [1, 2, 3]}},
        ]
    }
)
PANELS = [panel.label for panel in SWEEP.panels]
REGRETS = dict(zip((curve.label for curve in SWEEP.curves), (9.0, 5.0, 4.0, 6.0, 8.0, 7.0), strict=True))
RESULTS = [
    Result(curve.label, curve.policy, curve.design, "logistic", panel, fabricate.records("sqrt", regret, rounds=40))
    for number, panel in enumerate(PANELS)
    for curve, regret in zip(SWEEP.curves, [*REGRETS.values()][:: 1 if number == 0 else -1], strict=True)
]


def test_figures_show_the_best_settings_and_tell_what_is_left_out(monkeypatch):
    shown = [(one.curve, one.panel, one.records.regret[:, -1].mean()) for one in SWEEP.shown(RESULTS)]
    means = {(one.curve, one.panel): one.records.regret[:, -1].mean() for one in RESULTS}
    assert shown == [
        ("Uniform", PANELS[0], means["Uniform", PANELS[0]]),
        ("L, best of 2", PANELS[0], means["L, design = theory", PANELS[0]]),
        ("M, best of 3", PANELS[0], means["M, scale = 1", PANELS[0]]),
        ("Uniform", PANELS[1], means["Uniform", PANELS[1]]),
        ("L, best of 2", PANELS[1], means["L, design = theory", PANELS[1]]),
        ("M, best of 3", PANELS[1], means["M, scale = 1", PANELS[1]]),
    ]
    (drawing, logarithmic) = SWEEP.drawings(SWEEP.shown(RESULTS), Figure(log=True))
    assert drawing.remark == logarithmic.remark
    assert drawing.remark.endswith("3 other settings are in the table only.")
    monkeypatch.setattr(sweep, "MOST_DRAWN", 1)
    assert {one.panel for one in SWEEP.shown(RESULTS)} == {PANELS[0]}
    assert "The first 1 of 2 panels are drawn." in SWEEP.drawings(RESULTS, Figure())[0].remark


def test_the_summary_has_the_settings_and_the_marks(tmp_path):
    summaries = summarize(RESULTS, "regret")
    tags = {panel.label: panel.tags for panel in SWEEP.panels}
    write_summary(tmp_path / "summary.csv", summaries, "regret", tags, SWEEP.columns(RESULTS))
    rows = list(csv.DictReader((tmp_path / "summary.csv").read_text().splitlines()))
    assert [(row["n_arms"], row["curve"], row["design"], row["scale"], row["mark"]) for row in rows[:6]] == [
        ("5", "Uniform", "", "", ""),
        ("5", "L, design = informal", "informal", "", ""),
        ("5", "L, design = theory", "theory", "", "best"),
        ("5", "M, scale = 1", "informal", "1", "best"),
        ("5", "M, scale = 2", "informal", "2", ""),
        ("5", "M, scale = 3", "informal", "3", ""),
    ]
    (table,) = SWEEP.tables(RESULTS)
    assert table.head[:3] == ["", "design", "scale"]
    assert [row[:3] for row in table.rows] == [
        ["Uniform", "", ""],
        ["L", "theory", ""],
        ["L", "informal", ""],
        ["M", "", "1"],
        ["M", "", "2"],
        ["M", "", "3"],
    ]


def test_panels_alone_have_no_marks():
    alone = from_settings(SWEEP.settings() | {"curves": [{"policy": "uniform"}]})
    results = [one for one in RESULTS if one.curve == "Uniform"]
    assert alone.columns(results) == [{}, {}]
    assert alone.tables(results)[0].note == ""


def test_a_sweep_is_described():
    assert SWEEP.title == "Regret in the sweep 'mine'"
    assert "in each of 2 panels: d = 2, n_arms = 5 and d = 2, n_arms = 9" in SWEEP.about
    assert SWEEP.about.endswith("The sweep plays L with 2 settings and M with 3 settings.")
    halved = from_settings(SWEEP.settings() | {"halving": {"keep": 5}})
    assert "all play the first 50 problems, then in each panel the best 1 in 5 of a curve go on" in halved.about


def test_errors_name_curve_and_panel():
    wrong = from_settings(SWEEP.settings() | {"environment_settings": {"n_arms": [5, "many"]}})
    with pytest.raises(InvalidArgument, match=r"^d = 2, n_arms = many: n_arms must be"):
        wrong.make_environment(wrong.panels[1])
