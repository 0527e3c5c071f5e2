"""`explorax arena`: every policy on every problem."""

import argparse
from pathlib import Path

from explorax.cli.commands import DONE, print_files, print_warnings, use_data
from explorax.cli.stopping import resumable
from explorax.text import table

ABOUT = """\
Plays all policies on families of problems: logistic bandits with logits of standard
deviation 1 and 3 (d = 5, 10, 20), with a saturated best arm, with sparse features, with
changing arms; counts; and labelled data.  Each policy plays as documented, and with the
value of its exploration that does best on instances of its own (--tuning), which the
reported ones are not.
"""
AROUND = """\
examples:
  explorax arena --quick
  explorax arena --problems logistic-5 saturated --policies glm_tsl evill rand_ucb
  explorax arena --data data --out results/arena

what it leaves: standings.csv and standings.md (regret, its difference from GLM-TSL, with
intervals, and time), ranks.png, arena.html (one page to look around in), and for each
problem a directory of records.  Stopped at any moment, it goes on where it was when
started again.

"""


def add_arena(to: argparse.ArgumentParser) -> None:
    """The options."""
    to.add_argument(
        "--quick", action="store_true", help="three problems, 1 000 rounds, 20 + 30 instances, unless given"
    )
    to.add_argument("--list", action="store_true", help="print the problems and stop")
    to.add_argument("--problems", nargs="+", metavar="NAME", help="see --list (all)")
    to.add_argument("--policies", nargs="+", metavar="NAME", help="see `explorax policies` (all)")
    to.add_argument("--rounds", type=int, metavar="N", help="length of a run (each problem's own, mostly 2 000)")
    to.add_argument("--instances", type=int, metavar="M", help="random problems that are reported (100)")
    to.add_argument("--tuning", type=int, metavar="T", help="others that the tuned values are chosen on (50)")
    to.add_argument("--seed", type=int, metavar="S", help="another seed, other instances (0)")
    to.add_argument("--data", type=Path, metavar="DIR", help="where the data sets lie (downloaded once)")
    to.add_argument("--out", type=Path, metavar="DIR", help="where results go (results/arena, or results/arena-quick)")
    to.add_argument("--processes", type=int, metavar="P", help="on a CPU: how many cores to use (all)")
    to.set_defaults(action=arena)


def arena(options: argparse.Namespace) -> int:
    """Play, and print ranks."""
    from explorax.arena.problems import PROBLEMS, QUICK

    if options.list:
        lines = [[one.name, one.group, one.about] for one in PROBLEMS]
        print(table([["problem", "group", "what it is"], *lines], left=3, indent="  "))
        return DONE
    from explorax.arena.tournament import run, tournament

    use_data(options.data)
    given = {name: getattr(options, name) for name in ("problems", "rounds", "instances", "tuning", "seed")}
    given = {name: value for name, value in given.items() if value is not None}
    if options.quick:
        given = {"problems": QUICK, "rounds": 1_000, "instances": 30, "tuning": 20} | given
    out = options.out or Path("results", "arena-quick" if options.quick else "arena")
    games = tournament(policy_names=options.policies, **given)
    with resumable(lambda: f"what is finished is kept in {out}; run the same command again to go on from there"):
        found = run(games, out, processes=options.processes, command=options.command)
    print_warnings(found.warnings)
    for group in dict.fromkeys(rank.group for rank in found.ranks):
        print(f"\nMean rank by regret, {group}\n")
        rows = {rank.title: ["-", "-"] for rank in found.ranks if rank.group == group}
        for rank in found.ranks:
            if rank.group == group:
                text = f"{rank.mean:.1f} ({rank.low:.1f} to {rank.high:.1f})"
                rows[rank.title][rank.variant == "tuned"] = text
        print(table([["", "default", "tuned"], *([title, *cells] for title, cells in rows.items())], indent="  "))
    print_files(found.files)
    return DONE
