"""The runner: it divides a study into tasks, runs these in processes, keeps and resumes them, and writes the report.

    tasks.py      a study as tasks
    rungs.py      the tasks to play next
    worker.py     one process that runs tasks
    compiling.py  the time spent compiling
    pool.py       many worker processes
    progress.py   the display of progress
    journal.py    the directory of a run: its finished tasks, the software that made them, and its lock
    outputs.py    tables, claims, figures and the report of the recorded results

On a CPU a task is one curve and a block of instances, run by one of several single-threaded processes.  On a GPU a task
is all instances of all curves of a policy, run in this process.  The runner knows no experiment by name: a study has
its own claims, texts and figures.
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
    """Run a study and write its records, tables, claims, figures and report into a directory.

    Finished tasks of the same study that are in the directory already are kept and not run again.

    Args:
        study: The study, as `explorax.experiments` builds it.
        out: The directory, which is created if needed.
        processes: Number of worker processes on a CPU; it changes no result. Default: one for each usable core.
        figure: Figures to draw in addition to the one with linear axes.
        command: The command line, for the report.
        stream: Where progress is shown. Default: standard output.

    Returns:
        The results, and the files that were written.

    Raises:
        InvalidArgument: If the directory holds another run or foreign files, or a setting cannot be used.
        RunFailed: If a worker process failed. What is finished is kept.
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
    """Run a study and write its records, without tables, claims, figures and report.

    Args:
        study: The study.
        out: The directory, which is created if needed.
        processes: Number of worker processes on a CPU. Default: one for each usable core.
        command: The command line, for the manifest.
        stream: Where progress is shown. Default: standard output.

    Returns:
        Warnings about records that were in the directory already.

    Raises:
        InvalidArgument: If the directory holds another run, or a setting cannot be used.
        RunFailed: If a worker process failed. What is finished is kept.
    """
    if processes is not None:
        check_whole("processes", processes, 1)
    together = on_accelerator()
    for panel in study.panels:
        check_panel(study, panel, together)
    for module in ("pyarrow", "matplotlib"):
        optional(module, "an experiment")  # now, and not after hours of computing
    with opened(study, Path(out), together, command) as journal:
        plan = journal.plan
        count = min(processes or pool.usable_cores(), len(plan.todo))
        where = "in this process" if together else f"on {count} process{'es' if count > 1 else ''}"
        with display(plan.left, plan.all, stream, where) as shown:
            keeper = Keeper(journal, shown)
            while todo := plan.next_tasks():
                if together:
                    pool.run_here(study, todo, keeper)
                else:
                    pool.run_spread(study, todo, count, keeper)
    return journal.warnings


def check_panel(study: Study, panel: Panel, together: bool) -> None:
    """Raise `InvalidArgument` if the environment of a panel cannot be built or, on a CPU, does not fit into memory."""
    features = study.make_environment(panel).n_features
    if not together:
        check_memory(study.arms(panel), features)


def check_memory(arms: int, features: int) -> None:
    """Raise `InvalidArgument` if the arms of the instances that are played in lockstep do not fit into memory."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") if hasattr(os, "sysconf") else math.inf
    needed = BLOCK * arms * features * 4  # bytes
    if needed > there:
        raise InvalidArgument(
            f"arms times features must fit into memory for {BLOCK} instances at a time, got {arms} times {features}, "
            f"which takes {needed / 2**30:.0f} GiB of {there / 2**30:.0f}. Give fewer arms or features."
        )


class Keeper:
    """A watcher that records finished tasks in the journal before it shows them."""

    def __init__(self, journal: Journal, shown: Watcher):
        self.journal, self.shown = journal, shown
        self.started, self.advanced = shown.started, shown.advanced

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Record a finished task, then show it."""
        self.journal.keep(task, outcome)
        self.shown.finished(worker, task, outcome)


def on_accelerator() -> bool:
    """Return whether JAX computes on a GPU or another accelerator."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False  # spares this process a backend that it does not need
    import jax

    return jax.default_backend() != "cpu"
