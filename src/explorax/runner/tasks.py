"""Tasks: the pieces of a study, each of which can be run, kept and repeated alone."""

import re
from typing import NamedTuple

from explorax.experiments.study import Curve, Panel, Study
from explorax.record import settings_digest
from explorax.simulation import BLOCK

SHORT = 1_000_000  # decisions that take less time than compiling the program that makes them
FEATURES = 10  # assumed for the cost of a panel whose number of features is not in its settings


class Task(NamedTuple):
    """Some instances of one panel, played by one curve or, on a GPU, by all curves of a policy."""

    panel: Panel
    curves: tuple[Curve, ...]
    first: int  # of the instances
    instances: int  # how many
    rounds: int
    digest: str  # of all that decides its outcome

    def __str__(self) -> str:
        labels = " + ".join(curve.label for curve in self.curves)
        return f"{labels}, {self.panel.label}, instances {self.first} to {self.first + self.instances - 1}"

    @property
    def program(self) -> tuple[object, ...]:
        """A key that is equal for tasks which are likely to share a compiled program."""
        return self.panel.label, *sorted({curve.policy for curve in self.curves})

    @property
    def plays(self) -> int:
        """The number of decisions of the task."""
        return self.rounds * self.instances * len(self.curves)

    @property
    def cost(self) -> float:
        """The approximate duration in an arbitrary unit: each decision has a fixed cost and one that grows with d."""
        features: int = self.panel.environment_settings.get("n_features", FEATURES)
        return self.plays * (10.0 + features)

    @property
    def filename(self) -> str:
        """The name of the file of the task's records: readable, and unique through the digest."""
        labels = self.panel.label, "+".join(curve.label for curve in self.curves)
        panel, curves = (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") for label in labels)
        return f"{panel[:30]}-{curves[:60]}-{self.first:06d}-{self.digest}.parquet"


def expand(study: Study, together: bool) -> list[Task]:
    """Divide a study into tasks.

    Args:
        study: The study.
        together: Whether a task is all instances of all curves of a policy, as on a GPU, or a block of instances of one
            curve. The blocks are those that the simulation computes in lockstep on a CPU, whatever the number of
            processes.

    Returns:
        All tasks of the study.
    """
    groups: dict[object, list[Curve]] = {}
    for curve in study.curves:
        groups.setdefault(curve.policy if together else curve.label, []).append(curve)
    block = study.instances if together else BLOCK
    return [
        task(study, panel, tuple(curves), first, min(block, study.instances - first))
        for panel in study.panels
        for curves in groups.values()
        for first in range(0, study.instances, block)
    ]


def task(study: Study, panel: Panel, curves: tuple[Curve, ...], first: int, count: int) -> Task:
    """Return a task with its digest, which does not depend on other curves, panels and instances of the study."""
    settings = study.settings() | {"panels": [panel._asdict()], "curves": [curve._asdict() for curve in curves]}
    settings |= {"first": first, "instances": count, "name": "", "measure": ""}
    return Task(panel, curves, first, count, study.rounds, settings_digest(settings))
