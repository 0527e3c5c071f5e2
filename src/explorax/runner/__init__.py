"""Runs a study: cuts it into tasks, spreads these over processes, keeps what is finished, resumes, writes it up.

    tasks.py      a study as tasks
    worker.py     one process that does tasks
    compiling.py  how much of its time is compilation
    pool.py       many of them
    progress.py   what one sees meanwhile
    journal.py    what a directory knows of its run: what is finished, by what it was made, and who is at work there
    outputs.py    tables, claims, figures and the report from what has been recorded

On a CPU a task is one curve and a block of instances, done by one of several single-threaded processes; on a GPU it is
all instances of all curves of a policy, done in this process.  No experiment is named here: a study says itself what
its claims, texts and figures are.
"""

import math
import os
from pathlib import Path
from typing import TextIO

from explorax.checks import check_whole
from explorax.errors import InvalidArgument, RunFailed
from explorax.experiments.study import Figure, Panel, Study
from explorax.extras import optional
from explorax.runner import outputs, pool
from explorax.runner.journal import Journal, check_free, kept, opened
from explorax.runner.outputs import LINEAR, Outputs, rebuild
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
    figure: Figure = LINEAR,
    command: str = "",
    stream: TextIO | None = None,
) -> Outputs:
    """Play a study and leave its records, tables, claims, figures and report in the directory `out`.

    What is there of the same study is kept and not played again.  `processes` (all usable cores unless given) matters
    on a CPU only, and for the time it takes alone.  `stream` is where progress is shown, standard output unless given.
    """
    out = Path(out)
    study.check_figure(figure)
    check_free(out, outputs.names(study))
    warnings = play(study, out, processes=processes, command=command, stream=stream)
    return outputs.write(study, out, figure, warnings)


def play(
    study: Study,
    out: Path | str,
    *,
    processes: int | None = None,
    command: str = "",
    stream: TextIO | None = None,
) -> list[str]:
    """Play a study and leave its records alone; returns what was odd about those that were there."""
    if processes is not None:
        check_whole("processes", processes, 1)
    together = on_accelerator()
    for panel in study.panels:
        check_panel(study, panel, together)
    for module in ("pyarrow", "matplotlib"):
        optional(module, "an experiment")  # now, and not after hours of computing
    with opened(study, Path(out), together, command) as journal:
        todo = journal.todo
        count = min(processes or pool.usable_cores(), len(todo))
        where = "in this process" if together else f"on {count} process{'es' if count > 1 else ''}"
        with display(todo, len(journal.tasks), stream, where) as shown:
            keeper = Keeper(journal, shown)
            if together:
                pool.run_here(study, todo, keeper)
            else:
                pool.run_spread(study, todo, count, keeper)
    return journal.warnings


def check_panel(study: Study, panel: Panel, together: bool) -> None:
    """Raise if the environment of a panel cannot be made or, on a CPU, does not fit into memory."""
    features = study.make_environment(panel).n_features
    if not together:
        check_memory(study.arms(panel), features)


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
