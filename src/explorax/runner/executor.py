"""What can run the tasks of a study: the interface of local processes, of this process, and of a Ray cluster."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from explorax.experiments.study import Study
from explorax.runner.tasks import Task
from explorax.runner.worker import Outcome


class Watcher(Protocol):
    """An observer that is told what the workers, numbered from 0, are doing."""

    def started(self, worker: int, task: Task) -> None:
        """Note that a worker has started a task."""

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Note how many rounds of a task are done."""

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """Take the outcome of a finished task."""

    def lost(self, worker: int, task: Task) -> None:
        """Note that a worker is gone, and its task with it, which is not finished."""

    def noted(self, text: str) -> None:
        """Show a sentence about the workers."""


class Crew(Protocol):
    """Workers that are ready for the tasks of one study."""

    def run(self, tasks: Sequence[Task], watcher: Watcher) -> None:
        """Run tasks, and hand each outcome to the watcher as soon as it is there."""


@runtime_checkable
class Executor(Protocol):
    """A way to run the tasks of studies, which changes no result among those with the same `together`.

    Attributes:
        together: Whether a task is all instances of all curves of a policy, as on a GPU, or a block of instances of
            one curve, as on a CPU.
        device: "cpu", or None for the first device of this process.
    """

    @property
    def together(self) -> bool:
        """Whether a task is all instances of all curves of a policy."""

    @property
    def device(self) -> str | None:
        """The kind of device that plays, for the manifest."""

    def check(self, study: Study) -> None:
        """Raise `InvalidArgument` if the study cannot be run in this way."""

    def where(self, tasks: int) -> str:
        """Return what runs so many tasks, such as "on 2 processes"."""

    def crew(self, study: Study, most: int) -> AbstractContextManager[Crew]:
        """Return workers for a study, which never has more than `most` tasks at a time, until the end of a context."""
