"""What each subcommand does: one function each, which returns the exit code."""

import argparse
import importlib
import inspect
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

from explorax import devices
from explorax.cli.executors import executor
from explorax.cli.stopping import resumable
from explorax.cli.texts import EXAMPLE
from explorax.errors import InvalidArgument
from explorax.garbage import collect_rarely
from explorax.text import Table, table

if TYPE_CHECKING:
    from explorax.claims import Claim
    from explorax.experiments.study import Study
    from explorax.places import Place
    from explorax.runner import Outputs

WIDTH = 100  # of notes under a table, in characters
DONE, FAILED, BAD_USAGE, CLAIM_FAILED = 0, 1, 2, 3


def complain(text: str) -> None:
    """Print a line to standard error, after the name of the command."""
    print(f"explorax: {text}", file=sys.stderr)


def reproduce(options: argparse.Namespace) -> int:
    """Run an experiment of the paper, with the settings that were given on the command line; return the exit code."""
    check_policies(getattr(options, "policies", None))
    use_data(getattr(options, "data", None))
    prepare(options)
    experiment = importlib.import_module(f"explorax.experiments.{options.experiment}")
    given = {name: getattr(options, name, None) for name in inspect.signature(experiment.study).parameters}
    build = experiment.quick if options.quick else experiment.study
    study: Study = build(**{name: value for name, value in given.items() if value is not None})
    return play(study, options.out or Path("results", f"{study.name}-quick" if options.quick else study.name), options)


def directory(text: str) -> "Place":
    """Convert an argument that is a directory, or an address on a shared or object store.

    Args:
        text: The argument.

    Returns:
        The place.

    Raises:
        argparse.ArgumentTypeError: If the address cannot be used.
    """
    from explorax.places import place

    try:
        return place(text)
    except (InvalidArgument, ImportError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def check_policies(names: Iterable[str] | None) -> None:
    """Raise `UnknownName` for a name that no policy has, before anything is imported that takes long."""
    from explorax.registry import entry_of

    for name in names or ():
        entry_of(name)


def use_data(directory: Path | None) -> None:
    """Look for data sets in a directory if it is given; raise `InvalidArgument` if there is no such directory."""
    if directory is not None:
        if not directory.is_dir():
            raise InvalidArgument(
                f"--data must be a directory, got {directory}. Give the one that holds the data sets."
            )
        os.environ["EXPLORAX_DATA"] = str(directory.resolve())  # which workers inherit


def prepare(options: argparse.Namespace) -> None:
    """Prepare this process to compute; keep compiled programs on disk for the next run, unless --no-cache was given."""
    devices.prepare()
    from explorax import program_cache

    collect_rarely()
    if options.cache:
        program_cache.cache_programs()
    else:
        program_cache.bequeath_none()


def run_own(options: argparse.Namespace) -> int:
    """Run the study of a settings file, or print an example of one.

    Args:
        options: The command line: `settings`, `example`, and those of all runs.

    Returns:
        The exit code.

    Raises:
        InvalidArgument: If there is no settings file, or one that cannot be read or used.
    """
    if options.example:
        print(EXAMPLE, end="")
        return DONE
    if options.settings is None:
        raise InvalidArgument(
            "No settings file was given. `explorax run --example > mine.toml` makes one to start from."
        )
    import tomllib

    try:
        settings = tomllib.loads(options.settings.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgument(
            f"{options.settings} cannot be read: {error}. `explorax run --help` describes the file."
        ) from error
    prepare(options)
    from explorax.experiments.settings import from_settings

    study = from_settings(settings)
    return play(study, options.out or Path("results", study.name), options)


def play(study: "Study", out: "Place", options: argparse.Namespace) -> int:
    """Run a study and print its results; return the exit code."""
    from explorax.runner import Figure, kept, run

    figure = Figure(options.log, options.bound)
    with resumable(lambda: kept(out)):
        outputs = run(study, out, on=executor(options), figure=figure, command=options.command)
    return conclude(outputs, options)


def report(options: argparse.Namespace) -> int:
    """Write tables, figures and report of a run anew, and print its results.

    Args:
        options: The command line: `directory`, and those of figures and claims.

    Returns:
        The exit code.

    Raises:
        InvalidArgument: If there is no such directory, or none that a run has written to.
    """
    if not options.directory.is_dir():
        raise InvalidArgument(f"DIR must be a directory, got {options.directory}. Give the directory of a run.")
    devices.prepare()
    from explorax.experiments.settings import study_in
    from explorax.runner import Figure, rebuild

    study = study_in(options.directory)
    return conclude(rebuild(study, options.directory, Figure(options.log, options.bound)), options)


def conclude(outputs: "Outputs", options: argparse.Namespace) -> int:
    """Print the results, claims and files of a run; return the exit code, which depends on --strict."""
    from explorax.summarize import overview

    print_warnings(outputs.warnings)
    if not outputs.complete:
        print(f"UNFINISHED: {outputs.done} of {outputs.tasks} tasks are done. Run the study again to finish it.\n")
    tables = outputs.tables or [overview(outputs.summaries, outputs.measure)]
    print("\n\n".join(as_text(one) for one in tables))
    print_claims(outputs.claims)
    if outputs.claims and getattr(options, "quick", False):
        print("\n  This is a small version. The claims are about the full experiment, without --quick.")
    print_files(outputs.files)
    return CLAIM_FAILED if options.strict and any(claim.holds is False for claim in outputs.claims) else DONE


def as_text(one: Table) -> str:
    """Return a table with its caption and its note as text."""
    body = table([one.head, *one.rows], indent="  ")
    note = f"\n\n{fill(one.note, WIDTH)}" if one.note else ""
    return f"{one.caption}:\n\n{body}{note}"


def print_claims(claims: "Sequence[Claim]") -> None:
    """Print how many claims hold, each claim with its verdict, and the evidence against those that do not hold."""
    if not claims:
        return
    from explorax.claims import headline

    print(f"\nClaims of the paper: {headline(claims)}\n")
    for claim in claims:
        if claim.panel is None:
            print(f"  {claim.verdict:14s} {claim.statement}")
        elif claim.holds is None:
            print(f"{'':17s}{claim.panel}: undecided. {claim.reason}")
        else:
            for one in claim.evidence:
                if not one.holds:
                    print(f"{'':17s}{claim.panel}: {one.sentence}")


def print_warnings(warnings: Sequence[str]) -> None:
    """Print the warnings of a run to standard error."""
    for warning in warnings:
        complain(f"warning: {warning}")


def print_files(files: "Sequence[Place]") -> None:
    """Print the files that a run has written."""
    print("\nFiles:\n")
    for path in files:
        print(f"  {path}")


def show_policies(options: argparse.Namespace) -> int:
    """Print the policies of the registry; return the exit code."""
    from explorax.registry import list_policies

    entries = list(list_policies().values())
    rows = [["name", "algorithm", "randomized", "families", "designs", "cost of a round"]]
    for e in entries:
        rows.append([e.name, e.title, e.randomized, ", ".join(e.families), ", ".join(e.designs) or "-", e.cost])
    print(table(rows, left=len(rows[0]), indent="  "))
    print(
        "\nCosts are for K arms and d features. s is a number of steps; a network has P weights and h units in its\n"
        "last hidden layer, and learns from batches of B examples.\n\nReferences:\n"
    )
    print(table([[e.name, e.reference] for e in entries], left=2, indent="  "))
    return DONE


def show_theory(options: argparse.Namespace) -> int:
    """Print the constants and regret bounds of the theorems; return the exit code."""
    devices.prepare()
    from explorax import theory

    names = ("rounds", "family", "noise_std", "min_slope", "max_slope", "max_gap")
    given = {name: getattr(options, name) for name in names}
    found = [str(theory.describe(options.arms, n_features=features, **given)) for features in options.features]
    print("\n\n".join(found))
    return DONE


def bench_engine(options: argparse.Namespace) -> int:
    """Measure and print the speed of simulations; return the exit code."""
    prepare(options)
    importlib.import_module("explorax.bench").engine(quick=options.quick)
    return DONE
