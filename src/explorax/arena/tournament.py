"""The tournament: it runs the arena problem by problem, and writes tables, figure and page after each problem.

out/<problem>/     records of the problem, kept and resumed like those of any study
out/standings.csv  every policy on every problem: regret, difference from GLM-TSL, time
out/standings.md   the same as tables
out/ranks.png      ranks in each group of problems; also ranks.pdf
out/arena.html     the interactive page
out/arena.json.gz  the data of that page
"""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, TextIO

from explorax import parts, plot, record
from explorax.arena import figure, page
from explorax.arena.contestants import Absence, Contestant, contestants, study
from explorax.arena.problems import LOG, PROBLEMS, Problem, log_problem, problem_of
from explorax.arena.standings import Rank, Standing, ranks, standings, to_csv, to_markdown
from explorax.checks import MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.errors import InvalidArgument
from explorax.experiments.study import Study, each_policy_once
from explorax.files import remove_leftovers, write_atomically
from explorax.places import Place, place
from explorax.registry import list_policies
from explorax.runner import Executor, default_executor, play
from explorax.runner.journal import check_directory, check_unwritten, read_manifest
from explorax.runner.tasks import expand
from explorax.software import version_of

FILES = ("standings.csv", "standings.md", "ranks.png", "ranks.pdf", "arena.html", "arena.json.gz")


class Round(NamedTuple):
    """A problem, the policies that play it and those that do not, and the study of it."""

    problem: Problem
    playing: list[Contestant]
    absent: list[Absence]
    study: Study


class Tournament(NamedTuple):
    """The problems of a tournament, with their contestants."""

    rounds: list[Round]
    tuning: int  # instances that the tuned variants are chosen on


class Found(NamedTuple):
    """The results of a tournament so far, and the files that were written."""

    rows: list[Standing]
    ranks: list[Rank]
    files: list[Place]
    warnings: list[str]


def tournament(
    *,
    problems: Sequence[str] | None = None,
    log: str | Path | None = None,
    policy_names: Sequence[str] | None = None,
    rounds: int | None = None,
    tuning: int = 50,
    instances: int = 100,
    seed: int = 0,
) -> Tournament:
    """Plan a tournament.

    Args:
        problems: Names of problems. Default: all.
        log: The path of a log, which is the problem "log". Default: None, for no such problem.
        policy_names: Names of policies in the registry. Default: all.
        rounds: Length of a run. Default: depends on the problem.
        tuning: Number of instances that exploration is tuned on. Default: 50.
        instances: Number of other instances, which are reported. Default: 100.
        seed: Seed of the random instances and of the policies. Default: 0.

    Returns:
        The problems, each with the policies that play it.

    Raises:
        InvalidArgument: If a number is out of range, a name is given twice, no policy can play, or the log cannot be
            read or is given to problems without "log".
        UnknownName: If there is no such problem or policy.
    """
    check_whole("tuning", tuning, 1, MOST_INSTANCES)
    check_whole("instances", instances, 2, MOST_INSTANCES)
    check_whole("seed", seed, 0, MOST_SEED)
    if rounds is not None:
        check_whole("rounds", rounds, 2, MOST_ROUNDS)
    names = list(list_policies()) if policy_names is None else each_policy_once(policy_names)
    known = PROBLEMS if log is None else (*PROBLEMS, log_problem(log))
    chosen = known if problems is None else tuple(problem_of(name, known) for name in problems)
    if log is not None and not any(problem.name == LOG for problem in chosen):
        raise InvalidArgument(
            f"log must be left out unless the problem {LOG!r} is played, got {str(log)!r}. Add {LOG!r} to problems."
        )
    for what, several in (("problems", [one.name for one in chosen]), ("policies", names)):
        if not several:
            raise InvalidArgument(f"{what} must be at least one name, got none. Leave them out to play all.")
        for name in several:
            if several.count(name) > 1:
                raise InvalidArgument(f"{what} must be different ones, got {name!r} twice. Leave one out.")
    found, reasons = [], []
    for problem in chosen:
        length = rounds or problem.rounds
        playing, absent = contestants(problem, names, length)
        reasons += [f"{one.policy} on {problem.name}: {one.reason}" for one in absent]
        if playing:
            its_study = study(problem, playing, rounds=length, tuning=tuning, instances=instances, seed=seed)
            found.append(Round(problem, playing, absent, its_study))
    if not found:
        raise InvalidArgument(
            f"No policy can play any of the problems: {'; '.join(reasons)}. Choose other policies or problems."
        )
    return Tournament(found, tuning)


def run(
    games: Tournament,
    out: Place | str,
    *,
    on: Executor | None = None,
    command: str = "",
    stream: TextIO | None = None,
) -> Found:
    """Run the tournament from where it was stopped, and write the results so far after each problem.

    Args:
        games: The tournament.
        out: The directory, which is created if needed, or an address like s3://bucket/folder.
        on: What runs the tasks. Default: this process if JAX has a GPU, and else a process for each usable core.
        command: The command line, for the page.
        stream: Where progress is shown. Default: standard output.

    Returns:
        The results, and the files that were written.
    """
    out = place(out)
    check_directory(out)
    there = {path.name for path in out.glob("*")}
    names = [name for name in (LOG, *(problem.name for problem in PROBLEMS)) if name in there]
    if not any((out / name / record.MANIFEST).exists() for name in names):
        check_unwritten(out, FILES)
    on = default_executor() if on is None else on
    tasks = sum(len(expand(game.study, on.together)) for game in games.rounds)
    problems = "1 problem" if len(games.rounds) == 1 else f"{len(games.rounds)} problems"
    print(f"The arena has {problems} with {tasks} tasks in all.", file=stream, flush=True)
    remove_leftovers(out)
    found = Found([], [], [], [])
    for number, game in enumerate(games.rounds):
        print(f"Problem {number + 1} of {len(games.rounds)}: {game.problem.title}", file=stream, flush=True)
        warnings = play(game.study, out / game.problem.name, on=on, command=command, stream=stream)
        rows, more = load(game, out / game.problem.name, games.tuning)
        found = found._replace(rows=found.rows + rows, warnings=[*found.warnings, *warnings, *more])
        found = write(games, found, out, command)
    return found


def load(game: Round, directory: Place, tuning: int) -> tuple[list[Standing], list[str]]:
    """Read the standings of a problem from the records of its study; return them with warnings."""
    found = parts.read_parts(directory / record.PARTS)
    together = read_manifest(directory)["maker"]["together"]
    done = [found.tasks[task.digest] for task in expand(game.study, together) if task.digest in found.tasks]
    results = [result for part in done for result in part.results]
    labels = [one.label for one in game.study.curves]
    merged = record.combine(results, labels, [panel.label for panel in game.study.panels])
    paces: dict[str, float] = {}
    for part in done:
        # The shortest time among a curve's blocks: the one that other processes disturbed least.
        pace = part.metadata.get("seconds_per_decision")
        for result in part.results:
            if pace is not None:
                paces[result.curve] = min(pace, paces.get(result.curve, math.inf))
    rows = standings(game.problem, game.playing, merged.results, paces, tuning)
    return rows, found.warnings + merged.warnings


def write(games: Tournament, found: Found, out: Place, command: str) -> Found:
    """Write tables, figure and page of the results so far."""
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
        versions={name: version_of(name) for name in ("explorax", "jax", "numpy")},
        tuning=games.tuning,
        seed=games.rounds[0].study.seed,
        missing=[game.problem.title for game in games.rounds if game not in games_played],
        absent={game.problem.name: game.absent for game in games_played},
    )
    kept = page.content(found.rows, places, about)
    write_atomically(html, page.render(kept).encode())
    write_atomically(data, page.pack(kept))
    return found._replace(ranks=places, files=files)
