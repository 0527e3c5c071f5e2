"""Contestants: the policies that play a problem, with their settings.

A policy plays with its default settings, except what the problem dictates (the family of the rewards, the horizon, and
a bound on ‖θ*‖ if the policy needs one).  It plays again with each value of its exploration setting in the registry's
grid.  Instances 0 … T−1 choose among these values and the default.  Only the other instances are reported, which the
tuned policy has not seen.

Linear policies play logistic problems too, and are marked because their model is wrong there.  Networks play labelled
data and logs only.  There, GLM policies keep a summary of constant size; those that cannot do so do not play.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from explorax.arena.problems import MANY_FEATURES, Problem
from explorax.builders import setting_names
from explorax.errors import InvalidArgument
from explorax.experiments.study import Curve, Panel, Study, curve
from explorax.registry import Entry, list_policies, make, plays

CHECKPOINTS = 50
# Error of a score that a fit may leave, which is exact enough for a decision.
TOLERANCE = 1e-3


class Contestant(NamedTuple):
    """A policy that plays a problem, with its settings and the grid of its exploration setting (`knob`)."""

    policy: str
    title: str
    settings: dict[str, Any]
    knob: str
    grid: tuple[float, ...]
    misspecified: bool  # whether the policy's model of the rewards is wrong

    def label(self, value: float | None) -> str:
        """Return the label of the curve with a value of the exploration setting; None is the default."""
        return self.title if value is None else f"{self.title}, {self.knob} = {value:g}"


class Absence(NamedTuple):
    """A policy that does not play a problem, with the reason."""

    policy: str
    title: str
    reason: str


def contestant(entry: Entry, problem: Problem, rounds: int) -> Contestant | Absence:
    """Return a policy with its settings for a problem, or the reason why it cannot play."""
    names = setting_names(entry.builder())
    many = problem.group in MANY_FEATURES
    if "hidden" in names and not many:
        return Absence(entry.name, entry.title, "networks play labelled data and logs only")
    if many and "capacity" in names and not {"memory", "hidden"} & set(names):
        return Absence(entry.name, entry.title, "keeps every reward, which takes too long with so many features")
    wanted: dict[str, Any] = {"tolerance": TOLERANCE, "capacity": rounds, "horizon": rounds}
    wanted |= entry.for_family(problem.family)
    if problem.norm is not None:
        wanted["norm_bound"] = problem.norm
    if many and "hidden" not in names:
        wanted["memory"] = "constant"
    settings = {name: value for name, value in wanted.items() if name in names}
    try:
        policy = make(entry.name, **settings)
    except InvalidArgument as error:
        return Absence(entry.name, entry.title, str(error))
    if not plays(policy, problem.family):
        return Absence(entry.name, entry.title, f"has no model for {problem.family} rewards")
    misspecified = problem.family not in entry.families
    return Contestant(entry.name, entry.title, settings, entry.knob, entry.grid, misspecified)


def contestants(problem: Problem, names: Iterable[str], rounds: int) -> tuple[list[Contestant], list[Absence]]:
    """Return the policies that play a problem, and those that do not."""
    found = [contestant(list_policies()[name], problem, rounds) for name in names]
    return (
        [one for one in found if isinstance(one, Contestant)],
        [one for one in found if isinstance(one, Absence)],
    )


def study(
    problem: Problem, playing: Iterable[Contestant], *, rounds: int, tuning: int, instances: int, seed: int
) -> Study:
    """Return a problem as a study with `tuning` instances to tune on, followed by those that are reported."""
    curves = [curve_of(one, value) for one in playing for value in (None, *one.grid)]
    return Study(
        name=f"arena-{problem.name}",
        environment=problem.environment,
        panels=(Panel(problem.title, dict(problem.settings), {}, {"problem": problem.name}),),
        rounds=rounds,
        curves=tuple(curves),
        instances=tuning + instances,
        seed=seed,
        checkpoints=min(CHECKPOINTS, rounds),
    )


def curve_of(one: Contestant, value: float | None) -> Curve:
    """Return the curve of a contestant with a value of its exploration setting; None is the default."""
    settings = one.settings if value is None else one.settings | {one.knob: value}
    return curve(one.policy, label=one.label(value), settings=settings)
