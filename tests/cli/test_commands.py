"""What each subcommand prints and writes."""

import json
import os
import re
import subprocess
import sys
import tomllib

import pytest

import explorax
import explorax.runner
from explorax import cli, theory
from explorax.cli.texts import EXAMPLE
from explorax.experiments.settings import study_in

pytestmark = pytest.mark.usefixtures("on_the_cpu")
SMALL = ["--dims", "2", "--rounds", "60", "--instances", "8", "--checkpoints", "6", "--processes", "1"]
OUTPUTS = ("regret.parquet", "summary.csv", "claims.json", "manifest.json", "figure1.png", "figure1.pdf", "report.html")


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """A small run of `reproduce logistic` with two policies: its directory, and what the command printed."""
    out = tmp_path_factory.mktemp("reproduced") / "out"
    command = [sys.executable, "-m", "explorax", "reproduce", "logistic", *SMALL]
    command += ["--policies", "GLM-TSL", "uniform", "--parameter-variance", "printed", "--bound", "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return out, done.stdout


def test_reproduce_prints_and_writes(reproduced):
    out, printed = reproduced
    for text in ("GLM-TSL (theory)", "GLM-TSL (informal)", "Uniform", "d = 2", " ± ", "undecided"):
        assert text in printed
    assert "Theory GLM-TSL and GLM-FPL beat theory GLM-UCB." in printed
    for name in (*OUTPUTS, "figure1-log.png", "figure1-log.pdf"):
        assert str(out / name) in printed
        assert (out / name).stat().st_size > 0
    about = json.loads((out / "manifest.json").read_text())
    assert about["settings"]["environment_settings"] == {"n_arms": 100, "parameter_variance": "printed"}
    assert printed.startswith(
        "Running 3 tasks on 1 process. Programs are compiled first, which may take a minute or more.\n"
    )
    assert about["command"].startswith("explorax reproduce logistic --dims 2")
    assert "--out" not in about["command"]
    summary = (out / "summary.csv").read_text().splitlines()
    assert summary[0].startswith(
        "policy,design,dim,rounds,instances,regret_mean,regret_stderr,compile_seconds,run_seconds"
    )
    assert len(summary) == 4


def test_report_rebuilds_the_files(reproduced, capsys):
    out, _ = reproduced
    before = {name: (out / name).read_bytes() for name in ("summary.csv", "claims.json", "figure1.png", "report.html")}
    for name in before:
        (out / name).unlink()
    assert cli.main(["report", str(out), "--bound", "--strict"]) == 0
    assert {name: (out / name).read_bytes() for name in before} == before
    assert str(out / "report.html") in capsys.readouterr().out
    for part in (out / "parts").iterdir():
        part.unlink()
    (out / "summary.csv").unlink()
    assert cli.main(["report", str(out)]) == 0  # the merged records are enough
    assert (out / "summary.csv").read_bytes() == before["summary.csv"]


def test_the_example_is_a_study_that_runs(tmp_path, capsys):
    assert cli.main(["run", "--example"]) == 0
    printed = capsys.readouterr().out
    assert printed == EXAMPLE
    assert tomllib.loads(printed)["name"] == "mine"
    small = printed.replace("dims = [5, 10]", "dims = [2]").replace("rounds = 2000", "rounds = 60")
    small = small.replace("instances = 50", "instances = 3").replace("checkpoints = 100", "checkpoints = 6")
    small = small.replace("arms = 50", "arms = 100")
    (tmp_path / "mine.toml").write_text(small)
    command = [str(tmp_path / "mine.toml"), "--out", str(tmp_path / "out"), "--processes", "1"]
    assert cli.main(["run", *command]) == 0
    printed = capsys.readouterr().out
    for label in ("GLM-TSL (theory)", "GLM-TSL (informal)", "GLM-FPL, a = 1/4", "Uniform"):
        assert label in printed
    assert all((tmp_path / "out" / name).exists() for name in OUTPUTS)
    assert json.loads((tmp_path / "out" / "claims.json").read_text()) == []

    (tmp_path / "mine.toml").write_text(small.replace("seed = 0", "seed = 7"))
    assert cli.main(["run", *command]) == 2
    assert "seed is 0 there, 7 now" in capsys.readouterr().err


def test_reproduce_deep_on_data_of_ones_own(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EXPLORAX_DATA", "elsewhere")
    monkeypatch.setattr(explorax.runner, "on_accelerator", lambda: True)  # spares a process
    (tmp_path / "flowers.csv").write_text("petal,label\n" + "1,rose\n" * 3 + "2,daisy\n")
    command = ["reproduce", "deep", "--datasets", "flowers.csv", "--activations", "relu", "--policies", "uniform"]
    command += ["--rounds", "40", "--instances", "4", "--checkpoints", "4"]
    assert cli.main([*command, "--data", str(tmp_path), "--out=out", "--strict"]) == 3
    printed = capsys.readouterr().out
    assert "Average reward after 40 rounds, mean ± standard error over 4 instances:\n" in printed
    assert re.search(r"\n  Uniform  0\.\d{4} ± 0\.\d{4}\n", printed)
    assert "does not hold  The best possible average reward is about 0.576.\n" in printed
    assert re.search(r"\n {17}flowers, ReLU: The best possible average reward is 0\.\d{4}\.\n", printed)
    assert all((tmp_path / "out" / name.replace("figure1", "figure2")).exists() for name in OUTPUTS)
    assert os.environ["EXPLORAX_DATA"] == str(tmp_path)
    about = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert about["command"] == f"explorax {' '.join(command)} --strict"
    assert str(tmp_path) not in json.dumps(about)
    summary = (tmp_path / "out" / "summary.csv").read_text()
    assert summary.startswith("policy,dataset,activation,rounds,instances,reward_mean")

    (tmp_path / "flowers.csv").unlink()  # the records are enough
    assert cli.main(["report", "out", "--strict"]) == 0
    assert "undecided      The best possible average reward" in capsys.readouterr().out


def test_strict_fails_where_a_claim_does(reproduced, capsys, monkeypatch):
    out, _ = reproduced
    judged = explorax.runner.rebuild(study_in(out), out)
    false = [claim._replace(holds=False) for claim in judged.claims]
    monkeypatch.setattr("explorax.runner.rebuild", lambda *arguments: judged._replace(claims=false))
    assert cli.main(["report", str(out)]) == 0
    assert cli.main(["report", str(out), "--strict"]) == 3
    assert "does not hold" in capsys.readouterr().out


def test_the_number_of_instances_is_that_of_each_cell(reproduced, capsys, monkeypatch):
    out, printed = reproduced
    assert "mean ± standard error over 8 instances:\n" in printed
    whole = explorax.runner.rebuild(study_in(out), out)
    first, *others = whole.summaries
    unequal = whole._replace(summaries=[first._replace(instances=3), *others])
    monkeypatch.setattr("explorax.runner.rebuild", lambda *arguments: unequal)
    assert cli.main(["report", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "mean ± standard error over the instances in brackets, 3 to 8:\n" in printed
    assert re.findall(r"± \d+\.\d \((\d)\)\n", printed) == ["3", "8", "8"]


def test_mistakes_in_a_settings_file(tmp_path, capsys):
    path = tmp_path / "mine.toml"
    for content, said in (
        ("dims = [1", "mine.toml cannot be read"),
        (EXAMPLE.replace('"mine"', '"../../evil"'), "name must be a plain file name"),
        (EXAMPLE.replace("arms = 50", "arms = 100000000000"), "arms times features must be at most 2147483647"),
        (EXAMPLE.replace("rounds = 2000", ""), "The settings of the study lack 'rounds'. Add it."),
        (
            EXAMPLE.replace("seed = 0", "sed = 0"),
            "setting of a study must be one of .*, got 'sed'. Did you mean 'seed'?",
        ),
        (
            EXAMPLE.replace("scale = 0.25", "scael = 0.25"),
            "setting of glm_fpl must be one of .*, got 'scael'. Did you mean 'scale'?",
        ),
    ):
        path.write_text(content)
        assert cli.main(["run", str(path), "--out", str(tmp_path / "out")]) == 2
        assert re.search(said, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_policies_lists_the_registry(capsys):
    assert cli.main(["policies"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for entry in explorax.list_policies().values():
        (row,) = [line for line in lines if line.split()[:1] == [entry.name] and f"  {entry.title}  " in line]
        assert entry.cost in row
        assert ", ".join(entry.families) in row
        assert any(entry.reference in line for line in lines)


def test_theory_is_that_of_the_library(capsys):
    assert cli.main(["theory", "--dims", "5", "20", "--rounds", "50000", "--arms", "10", "--min-slope", "0.1"]) == 0
    found = [str(theory.describe(10, n_features=d, rounds=50_000, min_slope=0.1)) for d in (5, 20)]
    assert capsys.readouterr().out == "\n\n".join(found) + "\n"


def test_bench_calls_the_benchmark(monkeypatch):
    called = []
    module = type(sys)("explorax.bench")
    module.engine = lambda **settings: called.append(settings)
    monkeypatch.setitem(sys.modules, "explorax.bench", module)
    monkeypatch.setattr(explorax, "bench", module, raising=False)
    assert cli.main(["bench", "engine", "--quick"]) == 0
    assert called == [{"quick": True}]
