"""What is written from the records of a directory."""

import csv
import json

import pytest

from explorax import plot, record
from explorax.errors import InvalidArgument
from explorax.experiments import logistic, theorems
from explorax.experiments.settings import study_in
from explorax.runner import Figure, outputs, rebuild
from explorax.runner.lock import locked
from tests import fabricate
from tests.runner.kept import STUDY, damage, leave, manifest


def test_what_a_killed_run_was_writing_is_removed_by_a_report(half, monkeypatch):
    monkeypatch.setattr(outputs, "draw", lambda *about: ([], []))
    left = leave(half)
    with locked(half):  # by a run that may be writing these
        rebuild(study_in(half), half)
    assert all(path.exists() for path in left)
    rebuild(study_in(half), half)
    assert not left[0].exists()
    assert (half / ".mine.tmp").exists()


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


def test_an_unfinished_run_is_written_up_as_such(half):
    found = rebuild(STUDY, half)
    assert (found.done, found.tasks, found.complete) == (1, 2, False)
    assert {path.name for path in found.files} == {*outputs.names(STUDY), record.MANIFEST} - {
        outputs.REGRET,
        "figure1-log.png",
        "figure1-log.pdf",
    }
    assert f"{STUDY.title}: unfinished, 1 of 2 tasks" in (half / "report.html").read_text().replace("&#x27;", "'")
    (row,) = csv.DictReader((half / "summary.csv").read_text().splitlines())
    assert (row["curve"], row["instances"]) == ("Uniform", "50")
    assert json.loads((half / "claims.json").read_text()) == []


def test_a_study_says_what_is_drawn_and_under_which_names(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(plot, "figure", lambda curves, **how: asked.append(how))
    monkeypatch.setattr(plot, "to_bytes", lambda drawn, kind: kind.encode())
    figure1, results = logistic.study(), fabricate.results()
    files, pictures = outputs.draw(tmp_path, figure1, results, Figure(bound=True))
    assert [path.name for path in files] == ["figure1.png", "figure1.pdf", "figure1-log.png", "figure1-log.pdf"]
    assert [(how["scale"], len(how["bounds"])) for how in asked] == [("linear", 0), ("log", 6)]
    caption = "Mean cumulative regret after n rounds over 40 instances"
    bands = "Bands are ± 1 standard error."
    assert [path.read_text() for path in files] == ["png", "pdf"] * 2
    assert [picture.png for picture in pictures] == [b"png"] * 2
    assert [picture.caption for picture in pictures] == [
        f"{caption}, on linear axes. {bands}",
        f"{caption}, on logarithmic axes. {bands}",
    ]
    assert pictures[1].description.startswith(
        "Line chart with logarithmic axes: mean cumulative regret after n rounds, with a panel for d = 5, d = 10 and "
        "d = 20 and a line for GLM-UCB (theory), "
    )
    monkeypatch.setattr(theorems.Theorems, "bounds", lambda study, results: ["a bound"])
    files, (picture,) = outputs.draw(tmp_path, theorems.study(), results, Figure())
    assert [path.name for path in files] == ["theorems.png", "theorems.pdf"]
    assert asked[-1]["bounds"] == ["a bound"]
    assert picture.caption == f"{caption}, on logarithmic axes. {bands} {theorems.COMPARED}"
