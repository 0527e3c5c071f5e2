"""The command `explorax`: reproduce the paper, run studies of your own, and report their results.

Only the standard library is imported before a subcommand is known and its names are checked, so that
`explorax --help`, `explorax policies` and an answer to a mistyped name come at once.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from explorax.cli import arena, commands, evaluate, log, texts
from explorax.cli.arena import add_arena, add_caching
from explorax.cli.commands import BAD_USAGE, FAILED, complain, directory
from explorax.cli.evaluate import add_evaluate
from explorax.cli.executors import add_executors
from explorax.cli.stopping import Stopped, stoppable
from explorax.errors import ExploraxError, RunFailed

PLACES = ("--out", "--ou", "--o", "--data", "--cluster")  # options without influence on results, as they may be written


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, with the arguments of the process by default; return the exit code."""
    try:
        with stoppable():
            return run(list(sys.argv[1:] if arguments is None else arguments))
    except KeyboardInterrupt as stop:
        stopped = stop if isinstance(stop, Stopped) else Stopped()
        complain(str(stopped))
        return stopped.exit_code


def run(given: Sequence[str]) -> int:
    """Run the command with the given arguments; return the exit code."""
    options = parser().parse_args(given)
    options.command = shlex.join(["explorax", *without_places(given)])
    try:
        code: int = options.action(options)
        print(end="", flush=True)
        return code
    except BrokenPipeError:  # whoever read what we print has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except RunFailed as error:
        complain(str(error))
        return FAILED
    except ExploraxError as error:
        complain(str(error))
        return BAD_USAGE
    except ImportError as error:
        if "explorax[" not in str(error):  # a missing extra is explained, anything else is a mistake of ours
            raise
        complain(str(error))
        return BAD_USAGE
    except OSError as error:
        complain(str(error))
        return FAILED


def without_places(given: Sequence[str]) -> list[str]:
    """Return the arguments without places and --no-cache, which have no influence on results."""
    kept, values = [], iter(given)
    for one in values:
        name, sign, _ = one.partition("=")
        if name in PLACES:
            if not sign:
                next(values, None)
        elif one != "--no-cache":
            kept.append(one)
    return kept


def parser() -> argparse.ArgumentParser:
    """Build the parser of all commands and their options."""
    from explorax import __version__

    top = argparse.ArgumentParser(
        "explorax",
        description=texts.ABOUT,
        epilog=texts.EXAMPLES + texts.EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"explorax {__version__}")
    every = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    reproduce = add(every, "reproduce", "reproduce an experiment of the paper")
    experiments = reproduce.add_subparsers(title="experiments", metavar="EXPERIMENT", required=True)
    add_logistic(
        add(
            experiments,
            "logistic",
            "reproduce Figure 1: regret in logistic bandits",
            texts.LOGISTIC,
            texts.AROUND_LOGISTIC,
        )
    )
    add_deep(
        add(experiments, "deep", "reproduce Figure 2: average reward in deep bandits", texts.DEEP, texts.AROUND_DEEP)
    )
    add_theorems(
        add(
            experiments,
            "theorems",
            "compare regret with the bounds of the theorems",
            texts.THEOREMS,
            texts.AROUND_THEOREMS,
        )
    )

    add_arena(add(every, "arena", "play every policy on families of problems", arena.ABOUT, arena.AROUND))

    add_evaluate(add(every, "evaluate", "tell what other policies would have earned", evaluate.ABOUT, evaluate.AROUND))

    own = add(every, "run", "run a study of your own", texts.RUN, texts.FILES)
    own.add_argument("settings", nargs="?", type=Path, metavar="SETTINGS.toml", help="settings of the study")
    own.add_argument("--example", action="store_true", help="print a complete settings file and exit")
    add_running(own, "results/NAME")
    add_drawing(own)
    own.set_defaults(action=commands.run_own)

    again = add(every, "report", "write tables, claims, figures and report of a run anew", texts.REPORT, texts.FILES)
    again.add_argument("directory", type=directory, metavar="DIR", help="output directory or address of a run")
    add_drawing(again)
    add_judging(again)
    again.set_defaults(action=commands.report)

    logs = add(every, "log", "show, export or check the log of an agent", log.ABOUT)
    doing = logs.add_subparsers(title="commands", metavar="COMMAND", required=True)
    log.add_show(add(doing, "show", "print what is in a log", log.SHOW))
    log.add_export(add(doing, "export", "write a log in another format", log.EXPORT))
    log.add_check(add(doing, "check", "look for what is wrong in a log", log.CHECK))

    listing = add(every, "policies", "list all policies")
    listing.set_defaults(action=commands.show_policies)
    add_theory(add(every, "theory", "print constants and regret bounds of the theorems", texts.THEORY))

    bench = add(every, "bench", "measure speed on this machine")
    benches = bench.add_subparsers(title="benchmarks", metavar="BENCHMARK", required=True)
    engine = add(benches, "engine", "measure decisions per second of each policy")
    engine.add_argument("--quick", action="store_true", help="a rough measurement that takes little time")
    add_caching(engine)
    engine.set_defaults(action=commands.bench_engine)
    return top


def add(to: Any, name: str, summary: str, description: str = "", epilog: str = "") -> argparse.ArgumentParser:
    """Add a subcommand and return its parser."""
    made: argparse.ArgumentParser = to.add_parser(
        name,
        help=summary,
        description=description or f"{summary[0].upper()}{summary[1:]}.",
        epilog=epilog + texts.EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return made


def add_logistic(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax reproduce logistic` to its parser."""
    to.add_argument("--quick", action="store_true", help="smaller defaults: 2 000 rounds and 50 instances")
    to.add_argument("--dims", type=int, nargs="+", metavar="D", help="numbers of features (default: 5 10 20)")
    to.add_argument("--rounds", type=int, metavar="N", help="length of a run (default: 50 000)")
    to.add_argument("--instances", type=int, metavar="M", help="random problems that every curve plays (default: 100)")
    to.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="policies that play, see `explorax policies` (default: the paper's four)",
    )
    to.add_argument("--ridge", type=float, metavar="L", help="L2 regularization of the fits (default: 1)")
    to.add_argument("--seed", type=int, metavar="S", help="seed of the random problems and policies (default: 0)")
    to.add_argument("--checkpoints", type=int, metavar="C", help="how many times regret is recorded (default: 100)")
    to.add_argument("--spacing", choices=("even", "log"), help="spacing of the checkpoints (default: even)")
    to.add_argument(
        "--tolerance",
        type=float,
        metavar="T",
        help="error of a score that a fit may leave; smaller is slower (default: 0.001)",
    )
    to.add_argument(
        "--parameter-variance",
        type=number_or_printed,
        metavar="V",
        help="variance of theta: a number, or `printed` for the 3/d^2 of the paper's text (default: 3/d)",
    )
    add_running(to, "results/logistic, with --quick results/logistic-quick")
    add_drawing(to)
    to.set_defaults(action=commands.reproduce, experiment="logistic")


def add_deep(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax reproduce deep` to its parser."""
    to.add_argument(
        "--quick", action="store_true", help="smaller defaults: the digits data set, 2 000 rounds and 50 instances"
    )
    to.add_argument("--data", type=Path, metavar="DIR", help="directory of the data sets (default: downloaded once)")
    to.add_argument(
        "--datasets",
        nargs="+",
        metavar="NAME",
        help="mnist, fashion, digits, or paths of files (default: mnist fashion)",
    )
    to.add_argument(
        "--activations", nargs="+", metavar="F", help="activations of the hidden units (default: relu tanh)"
    )
    to.add_argument("--rounds", type=int, metavar="N", help="length of a run (default: 10 000)")
    to.add_argument("--instances", type=int, metavar="M", help="random problems that every curve plays (default: 500)")
    to.add_argument("--label", metavar="COLUMN", help="column of a file that holds the labels (default: label)")
    to.add_argument(
        "--percents",
        type=float,
        nargs="+",
        metavar="P",
        help="training lengths of repGLM-FPL, in percent of the rounds (default: 1 5 10 20)",
    )
    to.add_argument("--replay", choices=("recent", "uniform"), help="examples of a training step (default: recent)")
    to.add_argument("--scale", type=float, metavar="A", help="scale of DeepFPL's perturbation (default: 1)")
    to.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="policies that play, see `explorax policies` (default: the paper's three)",
    )
    to.add_argument("--seed", type=int, metavar="S", help="seed of the random problems and policies (default: 0)")
    to.add_argument("--checkpoints", type=int, metavar="C", help="how many times the reward is recorded (default: 100)")
    add_running(to, "results/deep, with --quick results/deep-quick")
    to.set_defaults(action=commands.reproduce, experiment="deep", log=False, bound=False)


def add_theorems(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax reproduce theorems` to its parser."""
    to.add_argument("--quick", action="store_true", help="smaller defaults: fewer dimensions and rounds")
    to.add_argument(
        "--environment",
        choices=("logistic", "gaussian"),
        help="logistic for rewards of 0 and 1, gaussian for normal ones (default: logistic)",
    )
    to.add_argument(
        "--dims", type=int, nargs="+", metavar="D", help="numbers of features (default: 1 2; gaussian: 2 5 10)"
    )
    to.add_argument("--rounds", type=int, metavar="N", help="length of a run (default: 1 000 000; gaussian: 200 000)")
    to.add_argument("--instances", type=int, metavar="M", help="random problems that both policies play (default: 50)")
    to.add_argument("--seed", type=int, metavar="S", help="seed of the random problems and policies (default: 0)")
    to.add_argument("--checkpoints", type=int, metavar="C", help="how many times regret is recorded (default: 100)")
    add_running(to, "results/theorems or results/theorems-gaussian, with --quick followed by -quick")
    to.set_defaults(action=commands.reproduce, experiment="theorems", log=False, bound=False)


def add_running(to: argparse.ArgumentParser, out: str) -> None:
    """Add the options that all runs have in common."""
    to.add_argument("--out", type=directory, metavar="DIR", help=f"{texts.OUT} (default: {out})")
    add_executors(to)
    add_caching(to)
    add_judging(to)


def add_judging(to: argparse.ArgumentParser) -> None:
    """Add the option that makes claims decide the exit code."""
    to.add_argument("--strict", action="store_true", help="exit with code 3 if a claim does not hold")


def add_drawing(to: argparse.ArgumentParser) -> None:
    """Add the options of figures of regret."""
    to.add_argument("--log", action="store_true", help="add a figure with logarithmic axes")
    to.add_argument(
        "--bound", action="store_true", help="draw the theorems' regret bounds into that figure; implies --log"
    )


def add_theory(to: argparse.ArgumentParser) -> None:
    """Add the options of `explorax theory` to its parser."""
    to.add_argument(
        "--features", "--dims", type=int, nargs="+", metavar="D", required=True, help="numbers of features d"
    )
    to.add_argument("--rounds", type=int, metavar="N", required=True, help="number of rounds n")
    to.add_argument("--arms", type=int, metavar="K", default=100, help="number of arms K (default: 100)")
    to.add_argument(
        "--family",
        default="bernoulli",
        help="family of the rewards: bernoulli, gaussian or poisson (default: bernoulli)",
    )
    to.add_argument(
        "--noise-std",
        type=float,
        metavar="S",
        help="standard deviation sigma of the rewards (default: that of the family)",
    )
    to.add_argument(
        "--min-slope", type=float, metavar="A", help="smallest slope of the mean (default: the largest slope)"
    )
    to.add_argument(
        "--max-slope", type=float, metavar="B", help="largest slope of the mean (default: that of the family)"
    )
    to.add_argument(
        "--max-gap", type=float, metavar="G", default=1.0, help="largest gap between the means of two arms (default: 1)"
    )
    to.set_defaults(action=commands.show_theory)


def number_or_printed(text: str) -> float | str:
    """Convert an argument that is a number or the word "printed".

    Args:
        text: The argument.

    Returns:
        The number, or the word.

    Raises:
        argparse.ArgumentTypeError: If the argument is neither.
    """
    try:
        return text if text == "printed" else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number or the word 'printed', got {text!r}.") from None
