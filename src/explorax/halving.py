"""Successive halving: who plays the first problems, who goes on, and up to which problem.

    rung 0    n settings               play the instances 0 … m − 1
    rung 1    the best ⌈n / k⌉          go on to instance k m − 1
    rung 2    the best ⌈⌈n / k⌉ / k⌉    go on to instance k² m − 1
    …         until one is left, which plays all instances

m is `instances` and k is `keep`.  The resource is instances of the problem, so what was played is never played again.
The instances of the last rung that no other setting has played are *fresh*: none of them had a say in any choice, and
the mean over them is an honest estimate.  The mean over all instances is too good, because some of them chose.

References: Jamieson & Talwalkar, Non-stochastic Best Arm Identification and Hyperparameter Optimization, AISTATS 2016;
Li et al., Hyperband, JMLR 18 (2018).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from explorax.checks import MOST_INSTANCES, check_whole
from explorax.errors import InvalidArgument, check_names
from explorax.simulation import BLOCK

MOST_KEPT = 1000  # one in how many goes on


class Rung(NamedTuple):
    """A stage of a race: how many curves play it, and the number of instances that they have played at its end."""

    curves: int
    until: int


class Race(NamedTuple):
    """Curves, by label, of which in each panel the best of one rung go on to the next; of one rung if all play all."""

    curves: tuple[str, ...]
    rungs: tuple[Rung, ...]

    @property
    def chosen_on(self) -> int:
        """The number of instances, the first ones, that had a say in the choices."""
        return self.rungs[-2].until if len(self.rungs) > 1 else 0


@dataclass(frozen=True)
class Halving:
    """The settings of successive halving.

    Attributes:
        instances: The number of instances of the first rung, a multiple of the block that tasks are made of.
        keep: One in so many goes on to the next rung, and plays so many times as many instances.
    """

    instances: int = BLOCK
    keep: int = 3

    def __post_init__(self) -> None:
        check_whole("halving.instances", self.instances, 1, MOST_INSTANCES)
        if self.instances % BLOCK:
            raise InvalidArgument(
                f"halving.instances must be a multiple of {BLOCK}, the instances of a task, got {self.instances}. "
                f"Give {math.ceil(self.instances / BLOCK) * BLOCK}."
            )
        check_whole("halving.keep", self.keep, 2, MOST_KEPT)

    @classmethod
    def of(cls, given: Any) -> "Halving":
        """Return the settings from plain data, or raise `InvalidArgument` if they cannot be used."""
        if not isinstance(given, Mapping):
            raise InvalidArgument(f"halving must be a table, like {{ instances = 50, keep = 3 }}, got {given!r}.")
        check_names("setting of halving", given, ("instances", "keep"))
        return cls(**given)

    def race(self, label: str, curves: tuple[str, ...], instances: int) -> Race:
        """Return the race of the settings of a curve.

        Args:
            label: What the curve is called in an error.
            curves: The labels of its settings.
            instances: The number of instances of the study, which the last one plays.

        Returns:
            The race, with a rung for each choice and a last one.

        Raises:
            InvalidArgument: If the choices leave no instance that had no say in them.
        """
        rungs, count, until = [], len(curves), self.instances
        while count > 1:
            rungs.append(Rung(count, until))
            count, until = math.ceil(count / self.keep), until * self.keep
        race = Race(curves, (*rungs, Rung(1, instances)))
        if instances <= race.chosen_on:
            raise InvalidArgument(
                f"instances must be more than {race.chosen_on}, on which halving chooses among the {len(curves)} "
                f"settings of {label!r}, got {instances}. The others tell how good the chosen one is: give twice as "
                f"many, {2 * race.chosen_on}, fewer settings, or another keep."
            )
        return race


def best(means: Mapping[str, float], count: int, measure: str) -> tuple[str, ...]:
    """Return the labels of the best curves.

    Args:
        means: The mean measure of each curve, by label.
        count: How many to return.
        measure: "regret", the less the better, or "reward", the more the better.

    Returns:
        The labels, in their order among all; of equal means the first come first.
    """
    sign = -1 if measure == "reward" else 1
    ranked = sorted(means, key=lambda label: sign * means[label])[:count]
    return tuple(label for label in means if label in ranked)
