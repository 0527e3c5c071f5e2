"""The runner: it divides a study into tasks, runs these in processes, keeps and resumes them, and writes the report.

    tasks.py      a study as tasks
    rungs.py      the tasks to play next
    worker.py     the player of tasks, and the process that runs one
    compiling.py  the time spent compiling
    executor.py   what can run tasks: the interface of the three that follow
    here.py       this process, for a GPU
    local.py      processes of this machine
    ray.py        workers on the nodes of a Ray cluster
    queues.py     which worker plays which task next
    progress.py   the display of progress
    lock.py       only one run at a time in a directory
    journal.py    the directory of a run: its finished tasks, and the software that made them
    outputs.py    tables, claims, figures and the report of the recorded results

On a CPU a task is one curve and a block of instances, run by one of several single-threaded processes.  On a GPU a task
is all instances of all curves of a policy.  The journal, the display and the outputs do not know what runs the tasks,
and the runner knows no experiment by name: a study has its own claims, texts and figures.
"""

import os
from typing import TextIO

from explorax.errors import InvalidArgument, RunFailed, shown
from explorax.experiments.study import Figure, Study
from explorax.extras import optional
from explorax.places import Place, place
from explorax.runner import outputs
from explorax.runner.executor import Executor, Watcher
from explorax.runner.here import this_process
from explorax.runner.journal import Journal, check_free, kept, opened
from explorax.runner.local import local_processes
from explorax.runner.outputs import LINEAR, Outputs, rebuild
from explorax.runner.progress import display
from explorax.runner.ray import ray_cluster
from explorax.runner.tasks import Task
from explorax.runner.worker import Outcome

__all__ = [
    "Executor",
    "Figure",
    "Outputs",
    "RunFailed",
    "default_executor",
    "kept",
    "local_processes",
    "play",
    "ray_cluster",
    "rebuild",
    "run",
    "this_process",
]


def run(
    study: Study,
    out: Place | str,
    *,
    on: Executor | None = None,
    figure: Figure = LINEAR,
    command: str = "",
    stream: TextIO | None = None,
) -> Outputs:
    """Run a study and write its records, tables, claims, figures and report into a directory.

    Finished tasks of the same study that are in the directory already are kept and not run again.

    Args:
        study: The study, as `explorax.experiments` builds it.
        out: The directory, which is created if needed, or an address like s3://bucket/folder.
        on: What runs the tasks: `local_processes(count)`, `this_process()` or `ray_cluster(address)`. Default: this
            process if JAX has a GPU, and else a process for each usable core.
        figure: Figures to draw in addition to the one with linear axes.
        command: The command line, for the report.
        stream: Where progress is shown. Default: standard output.

    Returns:
        The results, and the files that were written.

    Raises:
        InvalidArgument: If the directory holds another run or foreign files, or a setting cannot be used.
        RunFailed: If a worker process failed. What is finished is kept.
    """
    out = place(out)
    study.check_figure(figure)
    check_free(out, outputs.names(study))
    warnings = play(study, out, on=on, command=command, stream=stream)
    return outputs.write(study, out, figure, warnings)


def play(
    study: Study,
    out: Place | str,
    *,
    on: Executor | None = None,
    command: str = "",
    stream: TextIO | None = None,
) -> list[str]:
    """Run a study and write its records, without tables, claims, figures and report.

    Args:
        study: The study.
        out: The directory, which is created if needed, or an address like s3://bucket/folder.
        on: What runs the tasks. Default: this process if JAX has a GPU, and else a process for each usable core.
        command: The command line, for the manifest.
        stream: Where progress is shown. Default: standard output.

    Returns:
        Warnings about records that were in the directory already.

    Raises:
        InvalidArgument: If the directory holds another run, or a setting cannot be used.
        RunFailed: If a worker process failed. What is finished is kept.
    """
    on = default_executor() if on is None else on
    if not isinstance(on, Executor):
        raise InvalidArgument(f"on must be an executor, got {shown(on)}. Build one, for example with ray_cluster().")
    for module in ("pyarrow", "matplotlib"):
        optional(module, "an experiment")  # now, and not after hours of computing
    on.check(study)
    with opened(study, place(out), on.together, command, on.device) as journal:
        plan = journal.plan
        most = len(plan.left)
        with display(plan.left, plan.all, stream, on.where(most)) as screen:
            if plan.todo:
                with on.crew(study, most) as crew:
                    keeper = Keeper(journal, screen)
                    while todo := plan.next_tasks():
                        crew.run(todo, keeper)
    return journal.warnings


def default_executor() -> Executor:
    """Return this process if JAX computes on a GPU or another accelerator, and else a process for each usable core."""
    return this_process() if on_accelerator() else local_processes()


class Keeper:
    """A watcher that records finished tasks in the journal before it shows them."""

    def __init__(self, journal: Journal, screen: Watcher):
        self.journal, self.screen = journal, screen
        self.started, self.lost, self.noted = screen.started, screen.lost, screen.noted

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Show how far a task is, unless the directory is another run's by now."""
        self.journal.check()
        self.screen.advanced(worker, task, rounds)

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Record a finished task, then show it."""
        self.journal.keep(task, outcome)
        self.screen.finished(worker, task, outcome)


def on_accelerator() -> bool:
    """Return whether JAX computes on a GPU or another accelerator."""
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        return False  # spares this process a backend that it does not need
    import jax

    return jax.default_backend() != "cpu"
