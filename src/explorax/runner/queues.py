"""Queues of tasks: which worker plays which task next.

Tasks that share a compiled program are queued for one worker, so that the program is compiled once.  A worker whose
queue is empty takes tasks from the end of the longest queue: as many of one program as take longer than compiling it.
What is left of a program that takes less time stays with the worker that already has it.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import takewhile

from explorax.errors import InvalidArgument, RunFailed
from explorax.runner.executor import Watcher
from explorax.runner.tasks import SHORT, Task
from explorax.runner.worker import Failure, Outcome


class Queue:
    """The tasks that wait for one worker, with their total cost.

    Args:
        tasks: The tasks, the next one first.
    """

    def __init__(self, tasks: Iterable[Task] = ()):
        self.tasks: deque[Task] = deque()
        self.cost = 0.0
        self.extend(tasks)

    def __len__(self) -> int:
        return len(self.tasks)

    def extend(self, tasks: Iterable[Task]) -> None:
        """Add tasks at the end."""
        for task in tasks:
            self.tasks.append(task)
            self.cost += task.cost

    def push(self, task: Task) -> None:
        """Add a task in front of all others."""
        self.tasks.appendleft(task)
        self.cost += task.cost

    def first(self) -> Task:
        """Remove and return the next task."""
        return self._removed(self.tasks.popleft())

    def last(self) -> Task:
        """Remove and return the last task."""
        return self._removed(self.tasks.pop())

    def _removed(self, task: Task) -> Task:
        self.cost = self.cost - task.cost if self.tasks else 0.0  # so that no rounding error is left
        return task

    def last_of_program(self) -> list[Task]:
        """Return the tasks at the end that share a program, from the last one on, until they take longer than it."""
        found: list[Task] = []
        plays = 0
        for task in takewhile(lambda one: one.program == self.tasks[-1].program, reversed(self.tasks)):
            found.append(task)
            plays += task.plays
            if plays > SHORT:
                break
        return found


class Seat:
    """The place of a worker among others: its number, its queue, and the task that it is playing.

    Args:
        number: The number of the worker, from 0.
    """

    def __init__(self, number: int):
        self.number = number
        self.queue = Queue()
        self.task: Task | None = None

    def take(self, seats: "Sequence[Seat]") -> Task | None:
        """Take the next task of the queue, or of the queue of another worker if it is empty.

        Args:
            seats: The seats of all workers.

        Returns:
            The task, which is that of the seat now; None if no worker has one to spare.
        """
        if not self.queue:
            longest_first = sorted(seats, key=lambda seat: seat.queue.cost, reverse=True)
            giver = next((seat for seat in longest_first if seat.can_spare()), self)
            self.queue.extend([giver.queue.last() for _ in giver.queue.last_of_program()])
        self.task = self.queue.first() if self.queue else None
        return self.task

    def can_spare(self) -> bool:
        """Return whether the queue has tasks that another worker would help with."""
        if not self.queue:
            return False
        begun = self.task is not None and self.task.program == self.queue.tasks[-1].program
        return not (begun and sum(task.plays for task in self.queue.last_of_program()) <= SHORT)

    def hear(self, message: int | Outcome | Failure, watcher: Watcher) -> None:
        """Handle a message about the task that is being played.

        Args:
            message: Rounds that are done, or the end of the task, after which the seat has none.
            watcher: The observer.

        Raises:
            InvalidArgument: If the settings of the task cannot be used.
            RunFailed: If the task has failed.
        """
        assert self.task is not None
        match message:
            case int(rounds):
                watcher.advanced(self.number, self.task, rounds)
            case Outcome():
                watcher.finished(self.number, self.task, message)
                self.task = None
            case Failure(wrong_input=True):
                raise InvalidArgument(f"{self.task}: {message.text}")
            case Failure():
                raise RunFailed(f"A worker process failed at {self.task}:\n{message.text}")


def share_out(tasks: Sequence[Task], seats: Sequence[Seat]) -> None:
    """Give each seat a queue of tasks: tasks of one program in one queue, the costliest programs first."""
    programs: dict[tuple[object, ...], list[Task]] = {}
    for task in tasks:
        programs.setdefault(task.program, []).append(task)
    for seat in seats:
        seat.queue = Queue()
    for group in sorted(programs.values(), key=total_cost, reverse=True):
        min(seats, key=lambda seat: seat.queue.cost).queue.extend(group)


def total_cost(tasks: Sequence[Task]) -> float:
    """Return the approximate duration of tasks, in an arbitrary unit."""
    return sum(task.cost for task in tasks)
