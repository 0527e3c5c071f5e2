"""The command `explorax arena`."""

from explorax.arena import problems, tournament
from explorax.arena.problems import PROBLEMS
from explorax.arena.standings import ranks
from explorax.cli import main
from tests.arena.played import ROWS


def test_the_command(capsys, tmp_path, monkeypatch):
    assert main(["arena", "--list"]) == 0
    printed = capsys.readouterr().out
    assert all(problem.name in printed for problem in PROBLEMS)
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
    assert main(["arena", "--data", str(tmp_path / "nowhere")]) == 2
    assert "--data must be a directory, got " in capsys.readouterr().err
