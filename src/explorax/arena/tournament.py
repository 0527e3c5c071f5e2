"""Plays the arena problem by problem with the runner, and writes down what is known after each.

out/<problem>/     records of the problem, as any study leaves them; kept and resumed as such
out/standings.csv  every policy on every problem: regret, difference from GLM-TSL, time
out/standings.md   the same as tables
out/ranks.png      ranks in each group of problems; also ranks.pdf
out/arena.html     one page to look around in
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TextIO

from explorax import plot, record
from explorax.arena import figure, page
from explorax.arena.contestants import Absence, Contestant, contestants, study
from explorax.arena.problems import PROBLEMS, Problem, problem_of
from explorax.arena.standings import Rank, Standing, ranks, standings, to_csv, to_markdown
from explorax.checks import MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.errors import InvalidArgument
from explorax.experiments.study import Study, each_policy_once
from explorax.files import remove_leftovers, write_atomically
from explorax.registry import list_policies
from explorax.runner import on_accelerator, play
from explorax.runner.journal import check_directory, check_unwritten, read_manifest
from explorax.runner.tasks import expand

FILES = ("standings.csv", "standings.md", "ranks.png", "ranks.pdf", "arena.html", "arena.json.gz")


class Round(NamedTuple):
    """A problem and those who play it."""

    problem: Problem
    playing: list[Contestant]
    absent: list[Absence]
    study: Study


class Tournament(NamedTuple):
    """What there is to play."""

    rounds: list[Round]
    tuning: int  # instances that the tuned variants are chosen on


class Found(NamedTuple):
    """What is known so far."""

    rows: list[Standing]
    ranks: list[Rank]
    files: list[Path]
    warnings: list[str]


def tournament(
    *,
    problems: Sequence[str] | None = None,
    policy_names: Sequence[str] | None = None,
    rounds: int | None = None,
    tuning: int = 50,
    instances: int = 100,
    seed: int = 0,
) -> Tournament:
    """All problems and all policies unless given; `rounds` are each problem's own unless given."""
    check_whole("tuning", tuning, 1, MOST_INSTANCES)
    check_whole("instances", instances, 2, MOST_INSTANCES)
    check_whole("seed", seed, 0, MOST_SEED)
    if rounds is not None:
        check_whole("rounds", rounds, 2, MOST_ROUNDS)
    names = list(list_policies()) if policy_names is None else each_policy_once(policy_names)
    chosen = PROBLEMS if problems is None else tuple(problem_of(name) for name in problems)
    for what, several in (("problems", [one.name for one in chosen]), ("policies", names)):
        if not several or len(set(several)) < len(several):
            raise InvalidArgument(f"{what}={several!r}: give at least one, each once")
    found, reasons = [], []
    for problem in chosen:
        length = rounds or problem.rounds
        playing, absent = contestants(problem, names, length)
        reasons += [f"{one.policy} on {problem.name}: {one.reason}" for one in absent]
        if playing:
            its_study = study(problem, playing, rounds=length, tuning=tuning, instances=instances, seed=seed)
            found.append(Round(problem, playing, absent, its_study))
    if not found:
        raise InvalidArgument(f"nobody plays; choose other policies or problems ({'; '.join(reasons)})")
    return Tournament(found, tuning)


def run(
    games: Tournament, out: Path, *, processes: int | None = None, command: str = "", stream: TextIO | None = None
) -> Found:
    """Play what has not been played yet, and write down what was found after each problem."""
    check_directory(out)
    if not any((out / problem.name / record.MANIFEST).exists() for problem in PROBLEMS):
        check_unwritten(out, FILES)
    together = on_accelerator()
    tasks = sum(len(expand(game.study, together)) for game in games.rounds)
    print(f"problems: {len(games.rounds)}, tasks in all: {tasks}", file=stream, flush=True)
    remove_leftovers(out)
    found = Found([], [], [], [])
    for number, game in enumerate(games.rounds):
        print(f"{game.problem.title} ({number + 1} of {len(games.rounds)} problems)", file=stream, flush=True)
        warnings = play(game.study, out / game.problem.name, processes=processes, command=command, stream=stream)
        rows, more = load(game, out / game.problem.name, games.tuning)
        found = found._replace(rows=found.rows + rows, warnings=[*found.warnings, *warnings, *more])
        found = write(games, found, out, command)
    return found


def load(game: Round, directory: Path, tuning: int) -> tuple[list[Standing], list[str]]:
    """The standings of a problem from the records of its study."""
    parts = record.read_parts(directory / record.PARTS)
    together = read_manifest(directory)["maker"]["together"]
    done = [parts.tasks[task.digest] for task in expand(game.study, together) if task.digest in parts.tasks]
    results = [result for part in done for result in part.results]
    labels = [one.label for one in game.study.curves]
    merged = record.combine(results, labels, [panel.label for panel in game.study.panels])
    paces: dict[str, float] = {}
    for part in done:
        # The least of a curve's blocks: what it takes when nothing else disturbs.
        pace = part.metadata.get("seconds_per_decision")
        for result in part.results:
            if pace is not None:
                paces[result.curve] = min(pace, paces.get(result.curve, math.inf))
    rows = standings(game.problem, game.playing, merged.results, paces, tuning)
    return rows, parts.warnings + merged.warnings


def write(games: Tournament, found: Found, out: Path, command: str) -> Found:
    """Tables, figure and page of what is known so far."""
    places = ranks(found.rows)
    table, tables, png, pdf, html, data = files = [out / name for name in FILES]
    write_atomically(table, to_csv(found.rows).encode())
    write_atomically(tables, to_markdown(found.rows).encode())
    drawn = figure.draw(places)
    for path in (png, pdf):
        plot.save(drawn, path)
    games_played = [game for game in games.rounds if any(row.problem is game.problem for row in found.rows)]
    about = page.About(
        command=command,
        made=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={name: record.version_of(name) for name in ("explorax", "jax", "numpy")},
        tuning=games.tuning,
        seed=games.rounds[0].study.seed,
        missing=[game.problem.title for game in games.rounds if game not in games_played],
        absent={game.problem.name: game.absent for game in games_played},
    )
    kept = page.content(found.rows, places, about)
    write_atomically(html, page.render(kept).encode())
    write_atomically(data, page.pack(kept))
    return found._replace(ranks=places, files=files)
