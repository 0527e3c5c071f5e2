"""A tournament leaves everything, goes on where it was, and explains what it cannot play."""

import csv
import io

import pytest

import explorax
from explorax import environments
from explorax.arena import tournament
from explorax.arena.problems import problem_of
from explorax.errors import ExploraxError, InvalidArgument, UnknownName
from explorax.runner import local_processes, run
from tests.runner.kept import STUDY


def games(**more):
    small = {"problems": ["logistic-5"], "policy_names": ["uniform", "LinTS"], "rounds": 12, "tuning": 2}
    return tournament.tournament(**(small | {"instances": 3} | more))


def test_a_run_leaves_everything_and_goes_on_where_it_was(tmp_path):
    stream = io.StringIO()
    played = tournament.run(games(), tmp_path, on=local_processes(1), command="explorax arena", stream=stream)
    assert {path.name for path in played.files} == {
        "standings.csv",
        "standings.md",
        "ranks.png",
        "ranks.pdf",
        "arena.html",
        "arena.json.gz",
    }
    assert all(path.stat().st_size > 0 for path in played.files)
    lines = list(csv.DictReader(io.StringIO((tmp_path / "standings.csv").read_text())))
    assert [(line["problem"], line["policy"], line["variant"]) for line in lines] == [
        ("logistic-5", "uniform", "default"),
        ("logistic-5", "lin_ts", "default"),
        ("logistic-5", "lin_ts", "tuned"),
    ]
    # As `simulate` plays it, on the instances after those to tune on.
    environment = environments.make("logistic", **problem_of("logistic-5").settings)
    records = explorax.simulate(explorax.make("uniform"), environment, rounds=12, instances=3, first=2)
    assert float(lines[0]["regret"]) == pytest.approx(records.regret[:, -1].mean(), abs=1e-4)
    before = {path.name: path.read_bytes() for path in tmp_path.glob("standings.*")}
    assert stream.getvalue().startswith("The arena has 1 problem with 5 tasks in all.\n")
    again, left = io.StringIO(), tmp_path / ".arena.html.12.34.tmp"
    left.write_text("of a run that was killed")
    tournament.run(games(), tmp_path, on=local_processes(1), command="explorax arena", stream=again)
    assert "tasks are done already" in again.getvalue()
    assert "[" not in again.getvalue()  # no task was played
    assert not left.exists()
    assert before == {path.name: path.read_bytes() for path in tmp_path.glob("standings.*")}
    with pytest.raises(InvalidArgument, match="rounds is 12 there, 13 now"):
        tournament.run(games(rounds=13), tmp_path, on=local_processes(1), stream=again)


def test_the_arena_overwrites_no_files_of_others(tmp_path):
    games = tournament.tournament(problems=["logistic-5"], policy_names=["uniform"], rounds=4, tuning=1, instances=2)
    (tmp_path / "arena.html").write_text("mine")
    with pytest.raises(InvalidArgument, match=r"holds arena\.html, which no run has written"):
        tournament.run(games, tmp_path, stream=io.StringIO())
    assert (tmp_path / "arena.html").read_text() == "mine"
    with pytest.raises(InvalidArgument, match=r"arena\.html' is a file\. Choose another directory\."):
        tournament.run(games, tmp_path / "arena.html", stream=io.StringIO())
    with pytest.raises(InvalidArgument, match=r"arena\.html' is a file\. Choose another directory\."):
        run(STUDY, tmp_path / "arena.html" / "deeper", stream=io.StringIO())


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"problems": ["logistik-5"]}, UnknownName, "Did you mean 'logistic-5'"),
        (
            {"problems": ["poisson", "poisson"]},
            InvalidArgument,
            r"problems must be different ones, got 'poisson' twice\. Leave one out\.",
        ),
        ({"policy_names": ["glm_tls"]}, UnknownName, "Did you mean 'glm_tsl'"),
        (
            {"policy_names": ["lin_ts"], "problems": ["poisson"]},
            InvalidArgument,
            r"No policy can play any of the problems: lin_ts on poisson: has no model for poisson rewards\.",
        ),
        ({"instances": 1}, InvalidArgument, "instances must be a whole number of at least .*, got 1"),
        ({"tuning": 0}, InvalidArgument, "tuning must be a whole number of at least .*, got 0"),
        ({"rounds": 1}, InvalidArgument, "rounds must be a whole number of at least .*, got 1"),
    ],
)
def test_mistakes_are_explained(given, error, said):
    with pytest.raises(error, match=said) as raised:
        games(**given)
    assert isinstance(raised.value, ExploraxError)
