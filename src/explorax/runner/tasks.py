"""Tasks: the pieces of a study, each of which can be run, kept and repeated alone."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from explorax import environments
from explorax.experiments.study import Curve, Panel, Study
from explorax.policies.base import Policy
from explorax.policies.merged import merge
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
    policies: tuple[str, ...]  # of the study that learn alike, and so share a compiled program

    def __str__(self) -> str:
        labels = " + ".join(curve.label for curve in self.curves)
        return f"{labels}, {self.panel.label}, instances {self.first} to {self.first + self.instances - 1}"

    @property
    def program(self) -> tuple[str, ...]:
        """A key that is equal for tasks which are likely to share a compiled program."""
        return self.panel.label, *self.policies

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


class Size(NamedTuple):
    """The number of arms in a round of a panel, and that of their features."""

    arms: int
    features: int

    @property
    def memory(self) -> int:
        """The bytes that the arms of the instances of one task take on a CPU."""
        return BLOCK * self.arms * self.features * 4


def largest(study: Study) -> Size:
    """Return the size of the panel whose arms take most memory; raise `InvalidArgument` if one cannot be built."""
    sizes = [Size(study.arms(panel), study.make_environment(panel).n_features) for panel in study.panels]
    return max(sizes, key=lambda size: size.memory)


def is_brief(study: Study) -> bool:
    """Return whether the tasks of a study take less time than compiling the programs that play them."""
    return study.rounds * BLOCK <= SHORT


def expand(study: Study, together: bool) -> list[Task]:
    """Divide a study into tasks, as if every curve played all instances.

    Args:
        study: The study.
        together: Whether a task is all instances of all curves of a policy, as on a GPU, or a block of instances of one
            curve. The blocks are those that the simulation computes in lockstep on a CPU, whatever the number of
            processes.

    Returns:
        All tasks of the study.
    """
    return [
        one
        for panel in study.panels
        for sharing in [sharing_programs(study, panel, together)]
        for one in divide(study, panel, study.curves, range(study.instances), sharing, together)
    ]


def divide(
    study: Study,
    panel: Panel,
    curves: Sequence[Curve],
    instances: range,
    sharing: Mapping[str, tuple[str, ...]],
    together: bool,
) -> list[Task]:
    """Divide some instances of some curves in a panel into tasks.

    Args:
        study: The study.
        panel: The panel.
        curves: The curves.
        instances: The instances, from a multiple of a block on.
        sharing: What `sharing_programs` returns for the panel.
        together: Whether a task is all these instances of all these curves of a policy, or a block of one curve.

    Returns:
        The tasks, by policy or curve, then by instance.
    """
    groups: dict[object, list[Curve]] = {}
    for curve in curves:
        groups.setdefault(curve.policy if together else curve.label, []).append(curve)
    block = len(instances) if together else BLOCK
    return [
        task(study, panel, tuple(group), first, min(block, instances.stop - first), sharing[group[0].label])
        for group in groups.values()
        for first in range(instances.start, instances.stop, block)
    ]


def task(
    study: Study, panel: Panel, curves: tuple[Curve, ...], first: int, count: int, policies: tuple[str, ...]
) -> Task:
    """Return a task with its digest, which does not depend on other curves, panels and instances of the study."""
    settings = study.plain([panel], curves) | {"first": first, "instances": count, "name": "", "measure": ""}
    return Task(panel, curves, first, count, study.rounds, settings_digest(settings), policies)


def sharing_programs(study: Study, panel: Panel, together: bool) -> dict[str, tuple[str, ...]]:
    """Return for each curve, by its label, the names of all policies that share its program in a panel."""
    policies = policies_of(study, panel, together)
    names: dict[object, set[str]] = {}
    for curve in study.curves:
        names.setdefault(policies[curve.label].update, set()).add(curve.policy)
    return {label: tuple(sorted(names[policy.update])) for label, policy in policies.items()}


def policies_of(study: Study, panel: Panel, together: bool) -> dict[str, Policy]:
    """Build the policies of a panel, by the labels of their curves.

    Args:
        study: The study.
        panel: One of its panels.
        together: Whether a task is all curves of a policy.  If not, policies that learn alike are merged, so that a
            program is compiled once for all of them.

    Returns:
        The policies.
    """
    policies = [study.make(curve, panel) for curve in study.curves]
    if not together:
        policies = merge(policies, environments.arms_change(study.environment, study.environment_arguments(panel)))
    return {curve.label: policy for curve, policy in zip(study.curves, policies, strict=True)}
