"""Runs a study: cuts it into tasks, spreads these over processes, keeps what is finished, resumes, writes it up.

    tasks.py      a study as tasks
    worker.py     one process that does tasks
    compiling.py  how much of its time is compilation
    pool.py       many of them
    progress.py   what one sees meanwhile
    lock.py       one run at a time in a directory
    journal.py    what is finished, and by what it was made
    outputs.py    tables, claims, figures and the report from what has been recorded

On a CPU a task is one curve and a block of instances, done by one of several single-threaded processes; on a GPU it is
all instances of all curves of a policy, done in this process.
"""

import math
import os
from pathlib import Path
from typing import TextIO

from explorax.checks import check_whole
from explorax.errors import InvalidArgument, RunFailed
from explorax.experiments.study import Study
from explorax.extras import optional
from explorax.runner import outputs, pool
from explorax.runner.journal import Journal
from explorax.runner.lock import locked
from explorax.runner.outputs import Figure, Outputs, kept, rebuild
from explorax.runner.pool import Watcher
from explorax.runner.progress import display
from explorax.runner.tasks import Task
from explorax.runner.worker import Outcome
from explorax.simulation import BLOCK

__all__ = ["Figure", "Outputs", "RunFailed", "kept", "play", "rebuild", "run"]


def run(
    study: Study,
    out: Path | str,
    *,
    processes: int | None = None,
    figure: Figure = outputs.LINEAR,
    command: str = "",
    stream: TextIO | None = None,
) -> Outputs:
    """Play a study and leave its records, tables, claims, figures and report in the directory `out`.

    What is there of the same study is kept and not played again.  `processes` (all usable cores unless given) matters
    on a CPU only, and for the time it takes alone.  `stream` is where progress is shown, standard output unless given.
    """
    outputs.check_figure(study, figure)
    check_directory(Path(out))
    outputs.check_free(study, Path(out))
    warnings = play(study, out, processes=processes, command=command, stream=stream)
    return outputs.write(Path(out), figure, warnings)


def play(
    study: Study,
    out: Path | str,
    *,
    processes: int | None = None,
    command: str = "",
    stream: TextIO | None = None,
) -> list[str]:
    """Play a study and leave its records alone; returns what was odd about those that were there."""
    out = Path(out)
    check_directory(out)
    if processes is not None:
        check_whole("processes", processes, 1)
    together = on_accelerator()
    for panel in study.panels:
        features = study.make_environment(panel).n_features  # complains now
        if not together:
            check_memory(outputs.arms_of(study, panel), features)
    for module in ("pyarrow", "matplotlib"):
        optional(module, "an experiment")  # now, and not after hours of computing
    with locked(out):
        journal = Journal(study, out, together, command)
        todo = journal.todo
        count = min(processes or pool.usable_cores(), len(todo))
        where = "in this process" if together else f"on {count} process{'es' if count > 1 else ''}"
        with display(todo, len(journal.tasks), stream, where) as shown:
            keeper = Keeper(journal, shown)
            if together:
                pool.run_here(study, todo, keeper)
            else:
                pool.run_spread(study, todo, count, keeper)
        journal.finish()
        return journal.warnings


def check_directory(out: Path) -> None:
    """Raise if a file is in the way of a directory."""
    for path in (out, *out.parents):
        if path.exists() and not path.is_dir():
            raise InvalidArgument(f"out={str(out)!r} cannot be made: {str(path)!r} is a file: give a directory")


def check_memory(arms: int, features: int) -> None:
    """Raise if the arms of the instances that are played in lockstep are more than this machine can hold."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    needed = BLOCK * arms * features * 4  # bytes
    if needed > there:
        raise InvalidArgument(
            f"arms times features must fit into memory for {BLOCK} instances at a time, got {arms} times {features}, "
            f"which takes {needed / 2**30:.0f} GiB of {there / 2**30:.0f}. Give fewer arms or features."
        )


class Keeper:
    """Keeps what is finished, then shows it."""

    def __init__(self, journal: Journal, shown: Watcher):
        self.journal, self.shown = journal, shown
        self.started, self.advanced = shown.started, shown.advanced

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Keep first."""
        self.journal.keep(task, outcome)
        self.shown.finished(worker, task, outcome)


def on_accelerator() -> bool:
    """Whether JAX computes on something else than the CPU."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False  # spares this process a backend that it does not need
    import jax

    return jax.default_backend() != "cpu"
