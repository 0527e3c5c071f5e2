"""The display of progress: live bars on a terminal, and one line for each finished task elsewhere."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from explorax.files import writing
from explorax.runner.tasks import Task
from explorax.runner.worker import Outcome
from explorax.text import duration


class Lines:
    """A display that prints one line for each finished task, with an estimate of the time left."""

    def __init__(self, todo: Sequence[Task], count: int, stream: TextIO, where: str = ""):
        self.stream, self.count, self.where = stream, count, where
        self.done = count - len(todo)  # including the tasks of earlier runs
        self.cost = sum(task.cost for task in todo)
        self.paid: dict[int, float] = {}  # cost so far of each running task, by worker
        self.finished_cost = 0.0
        self.began = time.monotonic()

    def __enter__(self) -> Self:
        if self.done:
            self.say(f"{self.done} of {self.count} tasks are done already.")
        if todo := self.count - self.done:
            tasks = "1 task" if todo == 1 else f"{todo} tasks"
            self.say(f"Running {tasks} {self.where}. Programs are compiled first, which may take a minute or more.")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def started(self, worker: int, task: Task) -> None:
        """Note that a worker has started a task."""
        self.paid[worker] = 0.0

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Note how many rounds of a task are done."""
        self.paid[worker] = task.cost * rounds / task.rounds

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Print a line about a finished task."""
        self.count_in(worker, task)
        running = outcome.seconds - (outcome.compiling or 0.0)
        compiling = "" if outcome.compiling is None else f"{duration(outcome.compiling)} compiling, "
        speed = rate(task.plays / max(running, 1e-9))
        self.say(f"[{self.done}/{self.count}] {task}: {compiling}{duration(running)} running, {speed}{self.left()}")

    def lost(self, worker: int, task: Task) -> None:
        """Forget what a worker that is gone has played of its task."""
        self.paid.pop(worker, None)

    def noted(self, text: str) -> None:
        """Print a sentence about the workers."""
        self.say(text)

    def count_in(self, worker: int, task: Task) -> None:
        """Count a finished task."""
        self.done += 1
        self.finished_cost += task.cost
        del self.paid[worker]

    @property
    def total_paid(self) -> float:
        """The cost of all rounds that are done, including those of unfinished tasks."""
        return self.finished_cost + sum(self.paid.values())

    def left(self) -> str:
        """Return the estimated time left, as the end of a line; empty if it is unknown."""
        if self.done == self.count or self.total_paid == 0:
            return ""
        spent = time.monotonic() - self.began
        return f", about {duration(spent * (self.cost - self.total_paid) / self.total_paid)} left"

    def say(self, text: str) -> None:
        """Print a line and flush it, so that it appears at once in a file or a pipe."""
        with writing(Path("standard output")):
            print(text, file=self.stream, flush=True)


class Live(Lines):
    """A live display: one bar for the whole run, and one for each running task with its speed."""

    def __init__(self, todo: Sequence[Task], count: int, stream: TextIO, where: str = ""):
        super().__init__(todo, count, stream, where)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn

        self.display = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            TaskProgressColumn(),
            TextColumn("{task.fields[note]}", style="progress.remaining"),
            console=Console(file=stream),
            transient=True,  # the tables printed at the end say more
        )
        self.overall = self.display.add_task("", total=self.cost, note="")
        self.bars: dict[int, tuple[TaskID, float]] = {}  # worker -> its bar, and when its task began
        self.refresh()

    def __enter__(self) -> Self:
        super().__enter__()
        self.display.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.display.stop()

    def started(self, worker: int, task: Task) -> None:
        """Add the bar of a task that has started."""
        super().started(worker, task)
        self.bars[worker] = self.display.add_task(str(task), total=task.rounds, note="compiling"), time.monotonic()

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Move the bar of a task, and show its speed."""
        super().advanced(worker, task, rounds)
        bar, began = self.bars[worker]
        speed = rounds * task.plays / task.rounds / max(time.monotonic() - began, 1e-9)
        self.display.update(bar, completed=rounds, note=rate(speed))
        self.refresh()

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Remove the bar of a finished task."""
        self.count_in(worker, task)
        self.display.remove_task(self.bars.pop(worker)[0])
        self.refresh()

    def lost(self, worker: int, task: Task) -> None:
        """Remove the bar of a task whose worker is gone."""
        super().lost(worker, task)
        self.display.remove_task(self.bars.pop(worker)[0])
        self.refresh()

    def noted(self, text: str) -> None:
        """Print a sentence above the bars."""
        self.display.console.print(text, markup=False, highlight=False)

    def refresh(self) -> None:
        """Move the bar of the whole run."""
        description = f"{self.done} of {self.count} tasks{self.left()}"
        self.display.update(self.overall, description=description, completed=self.total_paid)


def display(todo: Sequence[Task], count: int, stream: TextIO | None = None, where: str = "") -> Lines:
    """Return a live display if the stream is a terminal, and one that prints lines otherwise.

    Args:
        todo: Tasks that are to be run.
        count: Number of all tasks, including those that are done.
        stream: Where progress is shown. Default: standard output.
        where: What runs the tasks, such as "on 2 processes", for the first line.

    Returns:
        The display, a context manager.
    """
    stream = stream or sys.stdout
    if stream.isatty():
        try:
            return Live(todo, count, stream, where)
        except ImportError:  # rich comes with the `experiments` extra; lines will do
            pass
    return Lines(todo, count, stream, where)


def rate(speed: float) -> str:
    """Return a speed in rounds of one instance of one curve per second, as text."""
    return f"{speed:,.0f} rounds/s"
