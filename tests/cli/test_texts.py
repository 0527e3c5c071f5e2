"""What the command says of itself."""

import pytest

import explorax
from explorax import cli


def test_help_teaches(capsys):
    for arguments, taught in (
        ([], ("exit codes:", "examples:", "130")),
        (["reproduce", "logistic"], ("Figure 1", "how long it takes", "summary.csv", "regret.parquet", "exit codes:")),
        (["reproduce", "deep"], ("Figure 2", "0.576", "--data DIR", "EXPLORAX_DATA", "figure2", "exit codes:")),
        (
            ["run"],
            (
                "environment_settings",
                "halving",
                "is a grid",
                "curves",
                "panels",
                "measure",
                '"classification"',
                "--example",
            ),
        ),
        (["report"], ("unfinished or still running",)),
        (["theory"], ("c1",)),
    ):
        with pytest.raises(SystemExit) as end:
            cli.main([*arguments, "--help"])
        assert end.value.code == 0
        printed = capsys.readouterr().out
        assert all(text in printed for text in taught)
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out == f"explorax {explorax.__version__}\n"
