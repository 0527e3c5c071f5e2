"""The subcommand `explorax arena`, which plays every policy on every problem."""

import argparse
from pathlib import Path

from explorax.cli import texts
from explorax.cli.commands import DONE, check_policies, directory, prepare, print_files, print_warnings, use_data
from explorax.cli.executors import add_executors, executor
from explorax.cli.stopping import resumable
from explorax.text import table

ABOUT = """\
Play all policies on families of random problems: logistic bandits with logits
of standard deviation 1 and 3 (d = 5, 10, 20), with a saturated best arm, with
sparse features and with changing arms; counts; labelled data; and a log of your
own decisions (--log), with rewards of a model that is fitted to it.  Each policy
plays twice: with its default settings, and with the amount of exploration that
does best on separate instances (--tuning), which are not reported.
"""
AROUND = """\
examples:
  explorax arena --quick
  explorax arena --problems logistic-5 saturated --policies glm_tsl evill rand_ucb
  explorax arena --data data --out results/arena
  explorax arena --log decisions.db --problems log

files in the output directory: standings.csv and standings.md (regret and its
difference from GLM-TSL, with intervals, and time per round), ranks.png and
ranks.pdf, arena.html (an interactive page), arena.json.gz (the data of that
page), and a directory of records for each problem.  If the command is stopped,
run it again to continue.

"""


def add_arena(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax arena` to its parser."""
    to.add_argument(
        "--quick", action="store_true", help="smaller defaults: three problems, 1 000 rounds, 20 + 30 instances"
    )
    to.add_argument("--list", action="store_true", help="print the problems and exit")
    to.add_argument("--problems", nargs="+", metavar="NAME", help="problems to play, see --list (default: all)")
    to.add_argument("--log", type=Path, metavar="FILE", help="an agent's log or its export, one more problem: log")
    to.add_argument(
        "--policies", nargs="+", metavar="NAME", help="policies that play, see `explorax policies` (default: all)"
    )
    to.add_argument(
        "--rounds", type=int, metavar="N", help="length of a run (default: depends on the problem, mostly 2 000)"
    )
    to.add_argument("--instances", type=int, metavar="M", help="random instances that are reported (default: 100)")
    to.add_argument(
        "--tuning", type=int, metavar="T", help="other instances, on which exploration is tuned (default: 50)"
    )
    to.add_argument("--seed", type=int, metavar="S", help="seed of the random instances and policies (default: 0)")
    to.add_argument("--data", type=Path, metavar="DIR", help="directory of the data sets (default: downloaded once)")
    to.add_argument(
        "--out",
        type=directory,
        metavar="DIR",
        help=f"{texts.OUT} (default: results/arena, or results/arena-quick)",
    )
    add_executors(to)
    add_caching(to)
    to.set_defaults(action=arena)


def add_caching(to: argparse.ArgumentParser) -> None:
    """Add the option that leaves compiled programs on disk alone."""
    to.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="compile all programs, and keep none of them on disk for the next run",
    )


def arena(options: argparse.Namespace) -> int:
    """Play the arena and print the mean ranks of the policies; return the exit code."""
    from explorax.arena.problems import ABOUT_LOG, LOG, LOGS, PROBLEMS, QUICK, log_problem, problem_of

    if options.list:
        lines = [*([one.name, one.group, one.about] for one in PROBLEMS), [LOG, LOGS, ABOUT_LOG]]
        print(table([["problem", "group", "description"], *lines], left=3, indent="  "))
        return DONE
    check_policies(options.policies)
    known = PROBLEMS if options.log is None else (*PROBLEMS, log_problem(options.log))
    for name in options.problems or ():
        problem_of(name, known)
    use_data(options.data)
    prepare(options)
    from explorax.arena.tournament import run, tournament

    given = {name: getattr(options, name) for name in ("problems", "log", "rounds", "instances", "tuning", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.quick:
        more = () if options.log is None else (LOG,)
        given = {"problems": (*QUICK, *more), "rounds": 1_000, "instances": 30, "tuning": 20} | given
    out = options.out or Path("results", "arena-quick" if options.quick else "arena")
    games = tournament(policy_names=options.policies, **given)
    with resumable(lambda: f"What is finished is kept in {out}; run the same command again to continue."):
        found = run(games, out, on=executor(options), command=options.command)
    print_warnings(found.warnings)
    for group in dict.fromkeys(rank.group for rank in found.ranks):
        print(f"\nMean rank by regret in {group}, with 95 % intervals:\n")
        rows = {rank.title: ["-", "-"] for rank in found.ranks if rank.group == group}
        for rank in found.ranks:
            if rank.group == group:
                text = f"{rank.mean:.1f} ({rank.low:.1f} to {rank.high:.1f})"
                rows[rank.title][rank.variant == "tuned"] = text
        print(table([["", "default", "tuned"], *([title, *cells] for title, cells in rows.items())], indent="  "))
    print_files(found.files)
    return DONE
