"""The command `explorax`: mistakes are explained, and nothing heavy is imported for them."""

import re
import subprocess
import sys

import pytest

from explorax import cli

# These tests start processes of their own: one group at a time.
pytestmark = [pytest.mark.xdist_group("processes"), pytest.mark.usefixtures("on_the_cpu")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["reproduce", "logistic", "--rounds", "0"], "rounds must be a whole number of at least 1, got 0"),
        (
            ["reproduce", "logistic", "--rounds", "3000000000"],
            "rounds must be a whole number from 1 to 2000000000",
        ),
        (["reproduce", "logistic", "--seed", "9" * 23], "seed must be a whole number from 0 to 4294967295, got 9"),
        (
            ["reproduce", "logistic", "--instances", "9" * 17],
            "instances must be a whole number from 1 to 1000000",
        ),
        (["reproduce", "logistic", "--policies", "glm_tsl", "GLM-TSL"], "policies must be different ones, got glm_tsl"),
        (["arena", "--rounds", "3000000000"], "rounds must be a whole number from 2 to 2000000000, got 3"),
        (["arena", "--policies", "uniform", "uniform"], "policies must be different ones, got uniform twice"),
        (["theory", "--features", "5", "--rounds", "99", "--min-slope", "1e-300"], "min_slope must be large enough"),
        (
            ["reproduce", "logistic", "--policies", "glm_tls"],
            "policy must be one of .*, got 'glm_tls'. Did you mean 'glm_tsl'?",
        ),
        (["reproduce", "logistic", "--ridge", "-1"], "ridge must be a finite number of at least 0, got -1"),
        (
            ["reproduce", "logistic", "--quick", "--checkpoints", "9999"],
            "checkpoints must be at most the number of rounds, 2000, got 9999",
        ),
        (
            ["reproduce", "logistic", "--parameter-variance", "-2"],
            "parameter_variance must be a finite number above 0, got -2",
        ),
        (["reproduce", "logistic", "--processes", "0"], "processes must be a whole number of at least .*, got 0"),
        (["reproduce", "deep", "--data", "nowhere"], "--data must be a directory, got nowhere."),
        (
            ["reproduce", "deep", "--datasets", "mnits"],
            "data set must be one of .*, got 'mnits'. Did you mean 'mnist'?",
        ),
        (["reproduce", "deep", "--policies", "uniform", "--datasets", "no.csv"], "no.csv"),
        (["run"], "`explorax run --example > mine.toml`"),
        (["run", "nowhere.toml"], "nowhere.toml cannot be read"),
        (["report", "nowhere"], "Give the directory of a run"),
        (["theory", "--features", "5", "--rounds", "3"], "more rounds than features"),
        (["theory", "--features", "5", "--rounds", "99", "--family", "poisson"], "give noise_std=B/2"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_mistakes_are_explained_in_one_line(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("explorax: ")
    assert re.search(said, captured.err)
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_usage_errors_end_with_2(capsys):
    for arguments in ([], ["reproduce"], ["nonsense"], ["reproduce", "logistic", "--rounds", "many"], ["theory"]):
        with pytest.raises(SystemExit) as end:
            cli.main(arguments)
        assert end.value.code == 2
    assert "usage: explorax" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["reproduce", "logistic", "--parameter-variance", "prnted"])
    assert "must be a number or the word 'printed', got 'prnted'" in capsys.readouterr().err


def test_output_that_is_in_the_way(tmp_path, capsys):
    (tmp_path / "FILE").write_text("mine")
    for command in (["arena", "--quick"], ["reproduce", "logistic"]):
        assert cli.main([*command, "--policies", "uniform", "--out", str(tmp_path / "FILE")]) == 2
        assert "FILE' is a file. Choose another directory." in capsys.readouterr().err
    assert (tmp_path / "FILE").read_text() == "mine"


def test_a_reader_that_has_seen_enough():
    command = [sys.executable, "-m", "explorax", "run", "--example"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""


def test_the_command_line_is_light():
    """Nothing heavy is imported before a subcommand is known, and names mean the same whatever was imported first."""
    code = """if True:
        import sys
        import explorax.cli
        explorax.cli.parser()
        print([name for name in ("jax", "numpy", "pyarrow", "matplotlib", "rich") if name in sys.modules])
        import explorax.policies.base, explorax.runner
        print(explorax.simulate.__name__, explorax.policies.__name__, explorax.glm_tsl.__name__)
        print(explorax.Agent.__name__, explorax.arm_sets.__name__)
        print(set(explorax.__all__) <= set(dir(explorax)), all(hasattr(explorax, name) for name in explorax.__all__))
        print(hasattr(explorax, "nonsense"))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ["simulate explorax.policies glm_tsl", "Agent explorax.agent.arm_sets"]
    assert done.stdout.splitlines() == ["[]", *names, "True True", "False"]
