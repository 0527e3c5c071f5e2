"""The command `explorax arena`."""

import numpy as np

from explorax.arena import problems, tournament
from explorax.arena.problems import PROBLEMS
from explorax.arena.standings import ranks
from explorax.cli import main
from explorax.log import reading
from explorax.log.data import LoggedData
from tests.arena.played import ROWS

LOG = LoggedData(np.array([0, 1]), np.array([1, 0]), None, ["red", "blue"])


def test_the_command(capsys, tmp_path, monkeypatch):
    assert main(["arena", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(problem.name in printed for problem in PROBLEMS)
    assert "a log, which --log names" in printed
    asked = []
    found = tournament.Found(ROWS, ranks(ROWS), [tmp_path / "arena.html"], ["odd"])
    monkeypatch.setattr(tournament, "run", lambda games, out, **more: asked.append((games, out, more)) or found)
    assert main(["arena", "--quick", "--policies", "uniform", "--seed", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "arena.html" in printed.out
    assert "GLM_TSL  1.0 (1.0 to 1.0)" in printed.out
    assert "warning: odd" in printed.err
    ((what, out, more),) = asked
    assert [game.problem.name for game in what.rounds] == list(problems.QUICK)
    assert {game.study.seed for game in what.rounds} == {3}
    assert out == tmp_path
    assert more["command"] == "explorax arena --quick --policies uniform --seed 3"
    (tmp_path / "shop.db").write_bytes(b"a log")
    monkeypatch.setattr(reading, "read_log", lambda path: LOG)
    quick = ["arena", "--quick", "--policies", "uniform", "--out", str(tmp_path), "--log", str(tmp_path / "shop.db")]
    assert main(quick) == 0
    assert [game.problem.name for game in asked[-1][0].rounds] == [*problems.QUICK, "log"]
    assert main([*quick, "--problems", "log"]) == 0
    assert [game.problem.name for game in asked[-1][0].rounds] == ["log"]
    assert main(["arena", "--problems", "log"]) == 2
    assert "got None. Name it with --log." in capsys.readouterr().err
    assert main(["arena", "--log", str(tmp_path / "no.db")]) == 2
    assert "log must be the path of a log, got " in capsys.readouterr().err
    assert main(["arena", "--data", str(tmp_path / "nowhere")]) == 2
    assert "--data must be a directory, got " in capsys.readouterr().err
