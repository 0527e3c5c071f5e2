"""What an evaluation found: as text, plain data, a table and files."""

import csv
import json

import numpy as np
import pytest

from explorax.errors import CannotWrite, UnknownName
from explorax.evaluation.result import Evaluation
from explorax.evaluation.values import COLUMNS
from tests.evaluation.test_answer import BAD, GOOD
from tests.evaluation.test_values import row

LOG = row(target="logging policy", estimator="on_policy", gain=None, gain_low=None, gain_high=None, effective=None)


def found():
    rows = (LOG, row(), row(estimator="dm"), row(target="dark, too"))
    return Evaluation(rows, {"new": GOOD, "dark, too": BAD}, ("It holds.",), "The answer.")


def test_a_name_stands_for_the_first_value():
    assert found()["new"].estimator == "dr"
    assert found()["logging policy"] is LOG
    with pytest.raises(UnknownName, match="Did you mean 'new'"):
        found()["news"]


def test_text_begins_with_the_answer_and_says_what_is_wrong():
    text = str(found())
    assert text.startswith("The answer.\n\npolicy ")
    assert "  new: The log can answer the question.\n" in text
    assert "  dark, too: The log cannot answer the question. " in text
    assert text.endswith("Assumptions:\n  It holds.")


def test_json_is_strict_and_has_all():
    kept = json.loads(found().to_json(), parse_constant=pytest.fail)
    assert kept == json.loads(json.dumps(found().to_dict()))
    assert set(kept) == {"answer", "rows", "diagnostics", "assumptions"}
    assert kept["diagnostics"]["new"]["verdict"] == "yes"
    assert kept["diagnostics"]["new"]["calibration"][0].keys() == {"label", "observed", "expected", "deviation"}


def test_a_table_of_pandas():
    pytest.importorskip("pandas")
    table = found().to_pandas()
    assert tuple(table.columns) == COLUMNS
    assert table["target"].tolist() == ["logging policy", "new", "new", "dark, too"]
    assert np.isnan(table["gain"][0])


def test_files(tmp_path):
    paths = found().write(tmp_path / "out")
    assert {path.name for path in paths} == {"results.json", "table.csv", "forest.png", "forest.pdf", "index.html"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in paths}
    assert json.loads((tmp_path / "out/results.json").read_text()) == json.loads(found().to_json())
    with open(tmp_path / "out/table.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert [line["target"] for line in lines] == ["logging policy", "new", "new", "dark, too"]
    assert (lines[0]["gain"], lines[1]["gain"]) == ("", "0.1")
    before = {path.name: path.read_bytes() for path in paths}
    found().write(tmp_path / "out")
    assert {path.name: path.read_bytes() for path in paths} == before


def test_a_file_in_the_way(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CannotWrite):
        found().write(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
