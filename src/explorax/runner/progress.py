"""What one sees while a run goes on: a live display on a terminal, a line for each finished task elsewhere."""

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
    """Prints a line for each finished task; knows how much is done and how long the rest will take."""

    def __init__(self, todo: Sequence[Task], count: int, stream: TextIO, where: str = ""):
        self.stream, self.count, self.where = stream, count, where
        self.done = count - len(todo)  # what an earlier run has left included
        self.cost = sum(task.cost for task in todo)
        self.paid: dict[int, float] = {}  # cost so far of each running task, by worker
        self.finished_cost = 0.0
        self.began = time.monotonic()

    def __enter__(self) -> Self:
        if self.done:
            self.say(f"{self.done} of {self.count} tasks are done already")
        if todo := self.count - self.done:
            tasks = "1 task" if todo == 1 else f"{todo} tasks"
            self.say(f"{tasks} {self.where}; programs are compiled first, which may take a minute or more")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        pass

    def started(self, worker: int, task: Task) -> None:
        """A task begins."""
        self.paid[worker] = 0.0

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """A task moves on."""
        self.paid[worker] = task.cost * rounds / task.rounds

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """A task ends."""
        self.count_in(worker, task)
        running = outcome.seconds - (outcome.compiling or 0.0)
        compiling = "" if outcome.compiling is None else f"{duration(outcome.compiling)} compiling, "
        speed = rate(task.plays / max(running, 1e-9))
        self.say(f"[{self.done}/{self.count}] {task}: {compiling}{duration(running)} running, {speed}{self.left()}")

    def count_in(self, worker: int, task: Task) -> None:
        """One more is done."""
        self.done += 1
        self.finished_cost += task.cost
        del self.paid[worker]

    @property
    def total_paid(self) -> float:
        """The cost of all that is done, unfinished tasks included."""
        return self.finished_cost + sum(self.paid.values())

    def left(self) -> str:
        """How long the rest will take if it goes on like this."""
        if self.done == self.count or self.total_paid == 0:
            return ""
        spent = time.monotonic() - self.began
        return f", about {duration(spent * (self.cost - self.total_paid) / self.total_paid)} left"

    def say(self, text: str) -> None:
        """Print at once, also into a file or a pipe."""
        with writing(Path("standard output")):
            print(text, file=self.stream, flush=True)


class Live(Lines):
    """A bar for the whole, and one for each running task with its speed."""

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
            transient=True,  # the tables printed afterwards say more
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
        """Show the task."""
        super().started(worker, task)
        self.bars[worker] = self.display.add_task(str(task), total=task.rounds, note="compiling"), time.monotonic()

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Show how far it is, and how fast."""
        super().advanced(worker, task, rounds)
        bar, began = self.bars[worker]
        speed = rounds * task.plays / task.rounds / max(time.monotonic() - began, 1e-9)
        self.display.update(bar, completed=rounds, note=rate(speed))
        self.refresh()

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Remove its bar."""
        self.count_in(worker, task)
        self.display.remove_task(self.bars.pop(worker)[0])
        self.refresh()

    def refresh(self) -> None:
        """Move the bar of the whole."""
        description = f"{self.done} of {self.count} tasks{self.left()}"
        self.display.update(self.overall, description=description, completed=self.total_paid)


def display(todo: Sequence[Task], count: int, stream: TextIO | None = None, where: str = "") -> Lines:
    """The display that suits the stream (standard output unless given) for those of `count` tasks that are to do.

    `where` says in the first line what they are done by.
    """
    stream = stream or sys.stdout
    if stream.isatty():
        try:
            return Live(todo, count, stream, where)
        except ImportError:  # rich comes with the `experiments` extra; lines will do
            pass
    return Lines(todo, count, stream, where)


def rate(speed: float) -> str:
    """Plays (rounds of one instance of one curve) per second."""
    return f"{speed:,.0f} rounds/s"
