"""The command `explorax`: mistakes are explained, and nothing heavy is imported for them."""

import json
import re
import subprocess
import sys

import pytest

from explorax import cli

pytestmark = pytest.mark.usefixtures("on_the_cpu")


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
        (["reproduce", "logistic", "--workers", "0"], "--workers must be left out without --cluster, got 0"),
        (["arena", "--quick", "--gpus", "0.5"], r"--gpus must be left out without --cluster, got 0\.5"),
        (["reproduce", "deep", "--ship-source"], "--ship-source must be left out without --cluster, got True"),
        (
            ["reproduce", "logistic", "--cluster", "auto", "--processes", "2"],
            "--processes must be left out with --cluster, got 2. Say with --workers",
        ),
        (["reproduce", "logistic", "--cluster", "auto", "--gpus", "2"], r"gpus must be a number from 0 to 1, got 2\.0"),
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


LIGHT = {  # commands that are answered at once, with the exit code of the answer
    "": 2,
    "--help": 0,
    "--version": 0,
    "--verson": 2,
    "polices": 2,
    "policies": 0,
    "policies --help": 0,
    "reproduce": 2,
    "reproduce --help": 0,
    "reproduce logistic --help": 0,
    "reproduce logistic --quik": 2,
    "reproduce logistic --rounds many": 2,
    "reproduce logistic --spacing evn": 2,
    "reproduce logistic --policies glm_tls": 2,
    "reproduce deep --help": 0,
    "reproduce deep --data nowhere": 2,
    "reproduce theorems --help": 0,
    "arena --help": 0,
    "arena --list": 0,
    "arena --problems logistic-6": 2,
    "arena --policies glm_tls": 2,
    "evaluate": 2,
    "evaluate --help": 0,
    "evaluate nowhere.db --policy glm_tls": 2,
    "evaluate nowhere.db --policy glm_tsl": 2,
    "run": 2,
    "run --help": 0,
    "run --example": 0,
    "run nowhere.toml": 2,
    "report": 2,
    "report --help": 0,
    "report nowhere": 2,
    "log": 2,
    "log --help": 0,
    "log show --help": 0,
    "log show nowhere.db": 2,
    "log export --help": 0,
    "log export nowhere.db out.txt": 2,
    "log check --help": 0,
    "theory": 2,
    "theory --help": 0,
    "bench": 2,
    "bench --help": 0,
    "bench engine --help": 0,
}
HEAVY = ("jax", "jaxlib", "numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "rich", "pooch", "optax")


def test_the_command_answers_at_once(tmp_path):
    """No heavy package is imported, and no process tries XLA's flags, before there is something to compute."""
    code = f"""if True:
        import contextlib, io, json, sys
        from explorax import cli, devices
        begun = []
        devices.prepare = lambda: begun.append("the device")
        found = {{}}
        for command in {list(LIGHT)}:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                try:
                    code = cli.main(command.split())
                except SystemExit as end:
                    code = end.code
            found[command] = [code, *begun, *(name for name in {HEAVY} if name in sys.modules)]
        print(json.dumps(found))
    """
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {given: [code] for given, code in LIGHT.items()}


def test_every_subcommand_has_an_answer_that_is_light():
    """A new subcommand belongs into the list above."""

    def commands(parser, so_far=()):
        yield " ".join((*so_far, "--help"))
        for action in parser._subparsers._group_actions if parser._subparsers else ():
            for name, sub in action.choices.items():
                yield from commands(sub, (*so_far, name))

    assert set(commands(cli.parser())) <= set(LIGHT)


@pytest.mark.parametrize(
    "arguments",
    [
        ["reproduce", "logistic", "--rounds", "0"],
        ["run", "empty.toml"],
        ["report", "."],
        ["arena", "--rounds", "0"],
        ["theory", "--features", "5", "--rounds", "3"],
        ["bench", "engine"],
    ],
    ids=" ".join,
)
def test_a_command_that_computes_prepares_the_device(arguments, capsys, tmp_path, monkeypatch):
    """XLA's flags for a GPU are set before the command computes, whichever command it is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.toml").touch()
    prepared = []
    monkeypatch.setattr("explorax.devices.prepare", lambda: prepared.append(True))
    monkeypatch.setattr("explorax.bench.engine", lambda quick: None)
    assert cli.main(arguments) == (0 if arguments[0] == "bench" else 2)
    assert prepared == [True]


def test_names_mean_the_same_whatever_was_imported_first():
    code = """if True:
        import explorax.cli
        import explorax.policies.base, explorax.runner
        print(explorax.simulate.__name__, explorax.policies.__name__, explorax.glm_tsl.__name__)
        print(explorax.Agent.__name__, explorax.arm_sets.__name__)
        print(set(explorax.__all__) <= set(dir(explorax)), all(hasattr(explorax, name) for name in explorax.__all__))
        print(hasattr(explorax, "nonsense"))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = ["simulate explorax.policies glm_tsl", "Agent explorax.agent.arm_sets"]
    assert done.stdout.splitlines() == [*names, "True True", "False"]


@pytest.mark.parametrize(
    "written", [["--out", "s3://KEY:SECRET@bucket"], ["--ou=s3://KEY:SECRET@bucket"], ["--o", "x"]]
)
def test_where_results_go_is_not_recorded(written):
    assert cli.without_places(["run", "mine.toml", *written, "--no-cache", "--log"]) == ["run", "mine.toml", "--log"]
