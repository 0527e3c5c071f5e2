"""`explorax log`: what it prints, what it writes, and what it says of mistakes."""

import json
import re
import sqlite3
import subprocess
import sys

import numpy as np
import pytest

from explorax import Agent, cli, networks, neural_linear, uniform
from tests.log import played


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """A log whose agent is still at work."""
    found = played.windowed(tmp_path_factory.mktemp("log") / "log.db")
    yield found.path
    found.agent.close()


def said(capsys, *arguments, code=0):
    assert cli.main(["log", *map(str, arguments)]) == code
    out, err = capsys.readouterr()
    return out if code == 0 else out + err


def test_show(log, capsys):
    out = said(capsys, "show", log, "--rows", "2")
    assert re.search(r"^policy +uniform\(\)$", out, re.MULTILINE)
    assert re.search(r"^decisions +11: 6 known, 1 open, 2 waiting, 1 withdrawn, 1 not shown$", out, re.MULTILINE)
    assert re.search(r"^rewards +7, of them 5 by default, with mean 1$", out, re.MULTILINE)
    assert re.search(r"^period +1970-01-01 00:01:40Z to 1970-01-01 00:01:5\dZ$", out, re.MULTILINE)
    assert re.search(r"^window +10 s$", out, re.MULTILINE)
    shares = re.findall(r"^[ab] +\d+ +([\d.]+) % +\d+ +[\d.-]+$", out, re.MULTILINE)
    assert sum(map(float, shares)) == pytest.approx(100, abs=0.2)
    assert re.findall(r"^(\d+) .* (waiting|open)$", out, re.MULTILINE) == [("9", "waiting"), ("10", "waiting")]


def test_show_as_json(log, capsys):
    found = json.loads(said(capsys, "show", log, "--json"))
    assert found["statuses"]["known"] == 6
    assert [row["id"] for row in found["newest"]] == [6, 7, 8, 9, 10]
    told = json.loads(said(capsys, "show", log, "--json", "--decision", "2"))
    assert (told["status"], told["events"][0]["kind"]) == ("withdrawn", "withdrawn")


def test_names_leave_terminals_alone(capsys, tmp_path):
    agent = Agent(uniform(), arms={"red\x1b[2J\n": [1.0]}, log=tmp_path / "log.db")
    agent.choose()
    for arguments in ([], ["--decision", "0"]):
        out = said(capsys, "show", tmp_path / "log.db", *arguments)
        assert r"red\u001b[2J\n" in out
        assert "\x1b" not in out
    agent.close()


def test_show_a_decision(log, capsys):
    out = said(capsys, "show", log, "--decision", "1")
    assert re.search(r"^reward +2$", out, re.MULTILINE)
    assert re.search(r"^by_default +no$", out, re.MULTILINE)
    assert "got 99" in said(capsys, "show", log, "--decision", "99", code=2)


@pytest.mark.parametrize("ending", ["parquet", "csv", "vw", "json", "db"])
def test_export(log, capsys, tmp_path, ending):
    out = tmp_path / f"out.{ending}"
    count = 6 if ending in ("vw", "json") else 11
    assert said(capsys, "export", log, out) == f"{count} decisions written to {out}\n"
    before = out.read_bytes()
    assert "must be a new file" in said(capsys, "export", log, out, code=2)
    assert out.read_bytes() == before


def test_check(log, capsys, tmp_path):
    assert said(capsys, "check", log) == f"{log}: nothing is wrong.\n"
    assert said(capsys, "check", "--quick", log) == f"{log}: the rows are in order.\n"
    said(capsys, "export", log, tmp_path / "wrong.db")
    with sqlite3.connect(tmp_path / "wrong.db") as connection:
        connection.execute("UPDATE decisions SET propensity = 2 WHERE id = 4")
    connection.close()
    assert said(capsys, "check", tmp_path / "wrong.db", code=1) == ("Propensities are not above 0 and at most 1: 4.\n")


def test_check_of_a_policy_that_no_log_can_tell(capsys, tmp_path):
    policy = neural_linear(network=networks.mlp([2]))
    Agent(policy, arms=np.eye(2), draws=0, log=tmp_path / "log.db").close()
    out = said(capsys, "check", tmp_path / "log.db")
    assert "the rows are in order.\nThe state was not compared, because its policy" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "nowhere.db"], "nowhere.db cannot be read: No such file or directory"),
        (["show", "text.db"], "text.db is not a log of decisions"),
        (["check", "text.db"], "text.db is not a log of decisions"),
        (["export", "text.db", "out.csv"], "text.db is not a log of decisions"),
        (["export", "text.db", "out.xlsx"], "must be one of .csv, .db, .json, .parquet, .vw, got '.xlsx'"),
        (["show", "text.db", "--rows", "-1"], "--rows must be a whole number of at least 0, got -1"),
    ],
)
def test_mistakes_are_explained_before_anything_heavy_is_imported(arguments, words, tmp_path):
    (tmp_path / "text.db").write_text("once upon a time " * 20)
    code = (
        "import sys; from explorax import cli; code = cli.main(sys.argv[1:]); "
        "assert not {'jax', 'numpy', 'pyarrow'} & set(sys.modules), 'heavy'; sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "log", *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
