"""What each subcommand does; returns its exit code."""

import argparse
import importlib
import os
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from explorax.cli.stopping import exit_code
from explorax.cli.texts import EXAMPLE
from explorax.errors import InvalidArgument

if TYPE_CHECKING:
    from explorax.experiments.study import Study
    from explorax.runner import Outputs

DONE, FAILED, BAD_USAGE, CLAIM_FAILED = 0, 1, 2, 3


def complain(text: str) -> None:
    """Print an error."""
    print(f"explorax: {text}", file=sys.stderr)


def reproduce_logistic(options: argparse.Namespace) -> int:
    """Run Figure 1, or a variation on it."""
    from explorax.experiments import logistic

    names = ["dims", "rounds", "instances", "policies", "ridge", "seed", "tolerance", "parameter_variance"]
    names += ["checkpoints", "spacing"]
    return reproduce(logistic.quick if options.quick else logistic.study, names, options)


def reproduce_deep(options: argparse.Namespace) -> int:
    """Run Figure 2, or a variation on it."""
    from explorax.experiments import deep

    use_data(options.data)
    names = [
        "datasets",
        "label",
        "activations",
        "rounds",
        "instances",
        "percents",
        "replay",
        "scale",
        "policies",
        "seed",
    ]
    names += ["checkpoints"]
    return reproduce(deep.quick if options.quick else deep.study, names, options)


def use_data(directory: Path | None) -> None:
    """Look for data sets there, if it is given."""
    if directory is not None:
        if not directory.is_dir():
            raise InvalidArgument(f"--data {directory} is no directory: give the one that holds the data sets")
        os.environ["EXPLORAX_DATA"] = str(directory.resolve())  # which workers inherit


def reproduce_theorems(options: argparse.Namespace) -> int:
    """Play what the theorems are about, next to their bounds."""
    from explorax.experiments import theorems

    names = ["environment", "dims", "rounds", "instances", "seed", "checkpoints"]
    return reproduce(theorems.quick if options.quick else theorems.study, names, options)


def reproduce(build: "Callable[..., Study]", names: Sequence[str], options: argparse.Namespace) -> int:
    """Run an experiment of the paper with those of its settings that are given."""
    study = build(**{name: getattr(options, name) for name in names if getattr(options, name) is not None})
    return play(study, options.out or Path("results", f"{study.name}-quick" if options.quick else study.name), options)


def run_own(options: argparse.Namespace) -> int:
    """Run the study of a settings file."""
    if options.example:
        print(EXAMPLE, end="")
        return DONE
    if options.settings is None:
        raise InvalidArgument(
            "no settings file was given: `explorax run --example > mine.toml` makes one to start from"
        )
    from explorax.experiments.study import from_settings

    try:
        settings = tomllib.loads(options.settings.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidArgument(f"{options.settings} cannot be read: {error}; `explorax run --help` says how") from error
    study = from_settings(settings)
    return play(study, options.out or Path("results", study.name), options)


def play(study: "Study", out: Path, options: argparse.Namespace) -> int:
    """Run a study and print what came of it."""
    from explorax.runner import Figure, RunFailed, kept, run

    figure = Figure(options.log, options.bound)
    try:
        outputs = run(study, out, processes=options.processes, figure=figure, command=options.command)
    except KeyboardInterrupt as stop:
        complain(f"stopped: {kept(out)}")
        return exit_code(stop)
    except RunFailed as error:
        complain(f"{error}\n{kept(out)}")
        return FAILED
    return conclude(outputs, options)


def report(options: argparse.Namespace) -> int:
    """Rebuild what follows from the records of a run."""
    from explorax.runner import Figure, rebuild

    return conclude(rebuild(options.directory, Figure(options.log, options.bound)), options)


def conclude(outputs: "Outputs", options: argparse.Namespace) -> int:
    """Print what was measured, claims and paths; the exit code says whether --strict is satisfied."""
    for warning in outputs.warnings:
        complain(f"warning: {warning}")
    if not outputs.complete:
        print(f"UNFINISHED: {outputs.done} of {outputs.tasks} tasks; run the study again to go on\n")
    rows = outputs.summaries
    name, digits = {"regret": ("Regret", 1), "reward": ("Average reward", 4)}[outputs.measure]
    counts = sorted({row.instances for row in rows})
    over = f"{counts[0]} instances" if len(counts) == 1 else f"the instances in brackets, {counts[0]} to {counts[-1]}"
    print(f"{name} after {rows[0].rounds} rounds, mean ± standard error over {over}\n")
    curves, panels = ({getattr(row, kind): None for row in rows} for kind in ("curve", "panel"))  # in their order
    cells = {}
    for row in rows:
        its_count = f" ({row.instances})" if len(counts) > 1 else ""
        cells[row.curve, row.panel] = with_error(row.mean, row.stderr, digits) + its_count
    body = [[curve, *(cells.get((curve, panel), "-") for panel in panels)] for curve in curves]
    print(table([["", *panels], *body]))
    overall = [claim for claim in outputs.claims if claim.panel is None]
    if overall:
        print("\nClaims of the paper\n")
        each: dict[str, list[str]] = {one.name: [] for one in overall}
        for claim in outputs.claims:
            if claim.panel is not None:
                each[claim.name].append(f"{claim.panel}: {claim.verdict}")
        for claim in overall:
            print(f"  {claim.verdict:14s} {claim.statement} ({'; '.join(each[claim.name])})")
    print("\nWritten\n")
    for path in outputs.files:
        print(f"  {path}")
    return CLAIM_FAILED if options.strict and any(claim.holds is False for claim in overall) else DONE


def with_error(mean: float, stderr: float | None, digits: int) -> str:
    """A mean and its standard error."""
    return f"{mean:.{digits}f}" + ("" if stderr is None else f" ± {stderr:.{digits}f}")


def show_policies(options: argparse.Namespace) -> int:
    """Print the registry."""
    from explorax.registry import list_policies

    entries = list(list_policies().values())
    rows = [["name", "algorithm", "randomized", "families", "designs", "cost of a round"]]
    for e in entries:
        rows.append([e.name, e.title, e.randomized, ", ".join(e.families), ", ".join(e.designs) or "-", e.cost])
    print(table(rows, right=False))
    print("\nK arms, d features, s steps; a network of P weights with h last units, batches of B.  References:\n")
    print(table([[e.name, e.reference] for e in entries], right=False))
    return DONE


def show_theory(options: argparse.Namespace) -> int:
    """Print what the theorems say."""
    from explorax import theory

    names = ("rounds", "family", "noise_std", "min_slope", "max_slope", "max_gap")
    given = {name: getattr(options, name) for name in names}
    found = [str(theory.describe(options.arms, n_features=features, **given)) for features in options.features]
    print("\n\n".join(found))
    return DONE


def bench_engine(options: argparse.Namespace) -> int:
    """Measure the engine."""
    importlib.import_module("explorax.bench").engine(quick=options.quick)
    return DONE


def table(rows: Sequence[Sequence[str]], right: bool = True) -> str:
    """Rows as aligned text; all columns but the first to the right if wanted."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(w) if right and i else cell.ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(cells).rstrip())
    return "\n".join(lines)
