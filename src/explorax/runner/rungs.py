"""Which tasks of a study to play next: all of them at once, or the rungs of its races one after the other.

Who goes on to the next rung is a function of the records of the rungs before, of nothing else.  So a run that was
killed makes the same choices when it is started again, on any number of processes.  Each race of each panel goes on by
itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from explorax.experiments.study import Curve, Panel, Study
from explorax.halving import Race, best
from explorax.record import Result
from explorax.runner.tasks import Task, divide, sharing_programs
from explorax.summarize import measured

Ends = Mapping[str, np.ndarray]  # the measure of each instance at the end of the run, by the label of the curve


class Climb(NamedTuple):
    """How far a race has come in a panel.

    Attributes:
        known: The tasks that are finished, and those that can be played now.
        later: As many tasks as will follow, each as long as one of these; the first curves stand in for the best.
    """

    known: list[Task]
    later: list[Task]


class Plan:
    """The tasks of a study, of which some are known only when others are finished.

    Args:
        study: The study.
        together: Whether a task is all curves of a policy, as on a GPU.
        finished: The digests of finished tasks, each with its results.
    """

    def __init__(self, study: Study, together: bool, finished: Iterable[tuple[str, Sequence[Result]]] = ()):
        self.study, self.together = study, together
        self.races = study.races()
        self.chooses = any(len(race.rungs) > 1 for race in self.races)
        self.sharing = [sharing_programs(study, panel, together) for panel in study.panels]
        self.finished: dict[str, Ends] = {}
        self.digests: set[str] = set()  # of the tasks that are known
        self.done = 0  # of these
        for digest, results in finished:
            self.note(digest, results)
        self.climb()

    @property
    def todo(self) -> list[Task]:
        """The tasks that can be played now."""
        return [one for one in self.known if one.digest not in self.finished]

    @property
    def left(self) -> list[Task]:
        """All tasks that are not finished, with others that take as long in the place of those not known yet."""
        return self.todo + self.later

    @property
    def all(self) -> int:
        """The number of all tasks."""
        return len(self.known) + len(self.later)

    def note(self, digest: str, results: Iterable[Result]) -> None:
        """Note that a task is finished, with what choices need of its results."""
        self.done += digest in self.digests and digest not in self.finished
        measure = self.study.measure
        self.finished[digest] = (
            {one.curve: measured(one.records, measure)[:, -1] for one in results} if self.chooses else {}
        )

    def climb(self) -> None:
        """Choose who goes on wherever a rung is finished."""
        climbs = [
            climb(self.study, panel, race, sharing, self.together, self.finished)
            for panel, sharing in zip(self.study.panels, self.sharing, strict=True)
            for race in self.races
        ]
        self.known = [one for climb in climbs for one in climb.known]
        self.later = [one for climb in climbs for one in climb.later]
        self.digests = {one.digest for one in self.known}
        self.done = len(self.known) - len(self.todo)

    def next_tasks(self) -> list[Task]:
        """Return the tasks to play now that all those returned before are finished; none at the end."""
        if self.later:
            self.climb()
        return self.todo


def climb(
    study: Study,
    panel: Panel,
    race: Race,
    sharing: Mapping[str, tuple[str, ...]],
    together: bool,
    finished: Mapping[str, Ends],
) -> Climb:
    """Return how far a race has come in a panel.

    Args:
        study: The study.
        panel: The panel.
        race: The race.
        sharing: What `tasks.sharing_programs` returns for the panel.
        together: Whether a task is all curves of a policy.
        finished: What choices need of the results of finished tasks, by their digests.

    Returns:
        The tasks of all rungs.
    """
    curves = {curve.label: curve for curve in study.curves}
    found, playing, first, open_ = Climb([], []), race.curves, 0, False
    for number, rung in enumerate(race.rungs):
        if number and open_:
            playing = playing[: rung.curves]
        elif number:
            playing = chosen(found.known, playing, rung.curves, study.measure, finished)
        here: list[Curve] = [curves[label] for label in playing]
        tasks = divide(study, panel, here, range(first, rung.until), sharing, together)
        (found.later if open_ else found.known).extend(tasks)
        open_ = open_ or any(one.digest not in finished for one in tasks)
        first = rung.until
    return found


def chosen(
    tasks: Sequence[Task], labels: Sequence[str], count: int, measure: str, finished: Mapping[str, Ends]
) -> tuple[str, ...]:
    """Return the labels of the curves that go on: those of the best means over all instances so far."""
    means = {
        label: float(np.mean(np.concatenate([ends[label] for one in tasks if label in (ends := finished[one.digest])])))
        for label in labels
    }
    return best(means, count, measure)
