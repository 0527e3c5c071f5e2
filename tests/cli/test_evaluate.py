"""`explorax evaluate`: what it prints and writes, how policies are named, mistakes."""

import json
import re

import numpy as np
import pytest

import explorax
from explorax import cli
from explorax.cli.evaluate import as_value, parsed
from explorax.errors import InvalidArgument

pytestmark = pytest.mark.usefixtures("on_the_cpu")
MEANS = {"red": 0.2, "blue": 0.8}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """The log of a uniform agent with two arms."""
    path, rng = tmp_path_factory.mktemp("log") / "decisions.db", np.random.default_rng(0)
    agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.0], "blue": [0.0, 1.0]}, log=path)
    decisions = agent.choose_many(600)
    agent.learn(decisions.ids, [float(rng.random() < MEANS[arm]) for arm in decisions.arms])
    agent.close()
    return path


def test_values_are_printed(file, capsys):
    assert cli.main(["evaluate", str(file), "--policy", "greedy", "--no-cache"]) == 0
    printed = capsys.readouterr().out
    assert "greedy would have earned 0." in printed.splitlines()[0]
    assert "it is shown better than the logging policy" in printed.splitlines()[0]
    assert re.search(r"^greedy +replay +0\.[78]", printed, re.MULTILINE)
    assert "Assumptions:" in printed


def test_json_and_settings(file, capsys):
    command = ["evaluate", str(file), "--policy", "epsilon_greedy:epsilon=0.5,ridge=2", "--policy", "uniform", "--json"]
    command += ["--estimator", "ips", "--estimator", "dr", "--interval", "betting", "--level", "0.9", "--seed", "3"]
    assert cli.main([*command, "--learning", "trained", "--least-propensity", "0.5", "--no-cache"]) == 0
    kept = json.loads(capsys.readouterr().out)
    assert [(row["target"], row["estimator"]) for row in kept["rows"][1:]] == [
        (name, estimator) for name in ("epsilon_greedy:epsilon=0.5,ridge=2", "uniform") for estimator in ("ips", "dr")
    ]
    assert [row["interval"] for row in kept["rows"]] == ["anytime", *["betting"] * 4]  # the log's own is an average
    assert {row["level"] for row in kept["rows"]} == {0.9}
    assert {row["rows"] for row in kept["rows"]} == {300}


def test_a_ranking_with_files(file, capsys, tmp_path):
    out = tmp_path / "out"
    command = ["evaluate", str(file), "--policy", "epsilon_greedy", "--policy", "uniform", "--rank", "--out", str(out)]
    assert cli.main([*command, "--no-cache"]) == 0
    printed = capsys.readouterr().out
    grid = explorax.list_policies()["epsilon_greedy"].grid
    assert f"{2 + len(grid)} candidates" in printed or "may be best" in printed
    assert f"epsilon_greedy:epsilon={grid[0]:g}" in printed
    names = {"index.html", "table.csv", "results.json", "forest.png", "forest.pdf", "ranking.json"}
    assert {path.name for path in out.iterdir()} == names
    assert str(out / "index.html") in printed


def test_a_family_is_that_of_the_rewards(tmp_path, capsys):
    path, rng = tmp_path / "decisions.db", np.random.default_rng(0)
    agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.0], "blue": [0.0, 1.0]}, log=path)
    agent.learn(agent.choose_many(100).ids, rng.normal(size=100))
    agent.close()
    assert cli.main(["evaluate", str(path), "--policy", "glm_ucb", "--no-cache"]) == 0
    assert "asymptotic" in capsys.readouterr().out
    assert cli.main(["evaluate", str(path), "--policy", "glm_ucb:family=bernoulli", "--no-cache"]) == 2
    assert "between 0 and 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "glm_tls"], "Did you mean 'glm_tsl'?"),
        (["--policy", "glm_tsl:scale"], "--policy must be NAME or NAME:SETTING=VALUE"),
        (["--policy", "glm_tsl:sclae=2"], "Did you mean 'scale'?"),
        (["--policy", "uniform", "--policy", "uniform"], "--policy must name different policies, got uniform twice"),
        (["--policy", "uniform", "--estimator", "drr"], "Did you mean 'dr'?"),
        (["--policy", "uniform", "--interval", "betting"], "got 'betting' for snips"),
        (["--policy", "uniform", "--level", "95"], "level must be a number between 0 and 1, got 95"),
        (["--policy", "uniform", "--reward-range", "1", "0"], "reward_range must be two finite numbers"),
        (["--policy", "uniform", "--estimate-propensities"], "must be left out for a log that has them"),
        (
            ["--policy", "uniform", "--rank", "--estimator", "dr", "--estimator", "ips"],
            "--estimator must be given at m",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_explained_in_one_line(options, said, file, capsys):
    assert cli.main(["evaluate", str(file), *options, "--no-cache"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_files_that_are_no_logs(tmp_path, capsys):
    assert cli.main(["evaluate", str(tmp_path / "no.db"), "--policy", "uniform"]) == 2
    assert "FILE must be the file of a log, got" in capsys.readouterr().err
    (tmp_path / "text.db").write_text("no log")
    assert cli.main(["evaluate", str(tmp_path / "text.db"), "--policy", "uniform", "--no-cache"]) == 2
    assert "is not a log of decisions" in capsys.readouterr().err
    assert (tmp_path / "text.db").read_text() == "no log"
    with pytest.raises(SystemExit):
        cli.main(["evaluate", "decisions.db"])
    assert "--policy" in capsys.readouterr().err


def test_settings_are_spelled():
    assert parsed("glm_tsl") == ("glm_tsl", {})
    text = "x:a=1,b=0.5,c=theory,d=true,e=none,f=1e-3"
    assert parsed(text) == ("x", {"a": 1, "b": 0.5, "c": "theory", "d": True, "e": None, "f": 0.001})
    assert isinstance(as_value("1"), int)
    for wrong in ("x:a", "x:=1", "x:a=1,a=2"):
        with pytest.raises(InvalidArgument, match="with each setting once"):
            parsed(wrong)
