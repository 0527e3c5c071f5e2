"""A study: which policies play which environment, how long, how often, and what is said and drawn of that.

Its settings are plain data, checked when made.  An experiment of the paper is a `Study` with claims, a title and a
figure of its own: a class in its own module.

Curves whose policies take a `family` get that of the environment's rewards; it need not be set, and no other may be.
Policies that do not model these rewards are refused, but for linear ones on rewards of 0 and 1 (`registry`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from explorax import environments
from explorax.builders import setting_names
from explorax.checks import MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.environments import Environment
from explorax.environments.glm import ARMS
from explorax.errors import InvalidArgument, UnknownName, check_names
from explorax.policies.base import Policy
from explorax.record import Result
from explorax.registry import check_family, entry_of, make
from explorax.summarize import MEASURES, Claim, Summary, series

if TYPE_CHECKING:
    from explorax.plot import Bound

SPACINGS = ("even", "log")
CHECKPOINTS = 100
LONGEST_NAME = 100  # characters
MEASURED = {"regret": "Regret", "reward": "Average reward"}


class Panel(NamedTuple):
    """One panel of the figure: what it adds to the settings of the study, under a label that is unique there."""

    label: str  # "d = 5"
    environment_settings: dict[str, Any]  # beyond the study's: {"n_features": 5}
    curve_settings: dict[str, Any]  # beyond each curve's, where its policy takes them: {"activation": "relu"}
    tags: dict[str, str | int]  # what tables call it, a column each: {"dim": 5}


class Curve(NamedTuple):
    """One line of the figure: a policy with settings, under a label that is unique in its study."""

    label: str
    policy: str
    design: str  # "theory", "informal", or "" for a policy without designs
    settings: dict[str, Any]  # further arguments of explorax.make


class Figure(NamedTuple):
    """What is asked for beside the usual figure."""

    log: bool = False  # one with logarithmic axes
    bound: bool = False  # with the theorems' bounds, which need such axes


class Drawing(NamedTuple):
    """A figure of a study: its axes, and what is laid over the curves."""

    scale: str = "linear"
    bounds: "Sequence[Bound]" = ()
    suffix: str = ""  # of its file's name
    remark: str = ""  # at the end of its caption


@dataclass(frozen=True, kw_only=True)
class Study:
    """Every curve plays the same `instances` random problems of each panel for `rounds` rounds."""

    stem: ClassVar[str] = "figure1"  # of the names of its figures

    environment: str
    panels: tuple[Panel, ...]
    rounds: int
    curves: tuple[Curve, ...]
    name: str = "study"
    measure: str = "regret"  # or "reward"
    instances: int = 100
    seed: int = 0
    checkpoints: int | tuple[int, ...] | None = None  # None becomes 100, or every round of a shorter run
    spacing: str = "even"
    environment_settings: dict[str, Any] = field(default_factory=dict)
    family: str = field(init=False)  # of the environment's rewards: not chosen, but recorded

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, MOST_ROUNDS)
        check_whole("instances", self.instances, 1, MOST_INSTANCES)
        check_whole("seed", self.seed, 0, MOST_SEED)
        check_name(self.name)
        if not isinstance(self.environment, str):
            raise InvalidArgument(f"environment={self.environment!r} must be text")
        for name, known in (("spacing", SPACINGS), ("measure", MEASURES)):
            if getattr(self, name) not in known:
                raise UnknownName(name, getattr(self, name), known)
        object.__setattr__(self, "family", environments.family_of(self.environment))
        self._check_checkpoints()
        check_labels("panels", self.panels)
        check_labels("curves", self.curves)
        self._check_panels()
        self._check_curves()

    def _check_checkpoints(self) -> None:
        if self.checkpoints is None:
            object.__setattr__(self, "checkpoints", min(CHECKPOINTS, self.rounds))
        elif isinstance(self.checkpoints, tuple):
            for point in self.checkpoints:
                check_whole("checkpoints", point, 1)
            grow = all(one < other for one, other in pairwise(self.checkpoints))
            if not grow or self.checkpoints[-1:] != (self.rounds,):
                raise InvalidArgument(
                    f"checkpoints must be a list of rounds that grows and ends at rounds={self.rounds}, "
                    f"got {list(self.checkpoints)}. Sort it, or give a number of checkpoints."
                )
        else:
            check_whole("checkpoints", self.checkpoints, 1)
            if self.checkpoints > self.rounds:
                raise InvalidArgument(
                    f"checkpoints={self.checkpoints} are more than rounds={self.rounds}: ask for fewer"
                )

    def _check_panels(self) -> None:
        tags = [panel.tags for panel in self.panels]
        for panel in self.panels:
            if panel.tags.keys() != tags[0].keys():
                raise InvalidArgument(f"panels: tags {panel.tags!r} and {tags[0]!r}: give all panels the same names")
            if tags.count(panel.tags) > 1:
                raise InvalidArgument(f"panels: the tags {panel.tags!r} are used twice: give each panel its own")
            for name, value in panel.tags.items():
                if name in Summary._fields and name != "panel":
                    raise InvalidArgument(f"panels: the tag {name!r} is the name of another column; choose another")
                if isinstance(value, bool) or not isinstance(value, str | int):
                    raise InvalidArgument(f"panels: the tag {name}={value!r} must be text or a whole number")
            for name in panel.environment_settings:
                if name in self.environment_settings:
                    raise InvalidArgument(f"panel {panel.label!r} and the study both set {name!r}: leave one out")
            known = {name for one in self.curves for name in setting_names(entry_of(one.policy).builder())}
            check_names("setting of the curves' policies", panel.curve_settings, known)

    def _check_curves(self) -> None:
        for curve in self.curves:
            if curve.settings.get("design", curve.design) != curve.design:
                raise InvalidArgument(f"curve {curve.label!r} has two designs: leave the one in its settings out")
            for panel in self.panels:
                self.make(curve, panel)  # complains about names and values
                features = self.environment_arguments(panel).get("n_features", 0)
                if curve.design == "theory" and isinstance(features, int) and self.rounds <= features:
                    raise InvalidArgument(
                        f"rounds={self.rounds} with n_features={features}: "
                        "the theory's designs need more rounds than features"
                    )

    def environment_arguments(self, panel: Panel) -> dict[str, Any]:
        """What `explorax.environments.make` needs for a panel."""
        return self.environment_settings | panel.environment_settings

    def make_environment(self, panel: Panel, **more: object) -> Environment:
        """The environment of a panel, with more settings if need be."""
        return environments.make(self.environment, **self.environment_arguments(panel), **more)

    def arms(self, panel: Panel) -> int:
        """K, the number of arms on offer in a panel."""
        given = self.environment_arguments(panel)
        return len(given["fixed_arms"]) if given.get("fixed_arms") is not None else given.get("n_arms") or ARMS

    def arguments(self, curve: Curve, panel: Panel) -> dict[str, Any]:
        """What `explorax.make` needs: settings of curve and panel, the family of the rewards, the design and, for the
        theory's, the horizon.
        """
        found: dict[str, Any] = {"design": curve.design} if curve.design else {}
        if curve.design == "theory":
            found["horizon"] = self.rounds
        found |= curve.settings
        for name in panel.curve_settings:
            if name in found:
                raise InvalidArgument(
                    f"curve {curve.label!r} and panel {panel.label!r} both set {name!r}: leave one out"
                )
        return entry_of(curve.policy).for_family(self.family) | found | taken(curve.policy, panel.curve_settings)

    def make(self, curve: Curve, panel: Panel, **more: object) -> Policy:
        """The policy of a curve in a panel, with more settings if need be."""
        policy = make(curve.policy, **self.arguments(curve, panel), **more)
        check_family(policy, self.family, f"curve {curve.label!r}")
        return policy

    def settings(self) -> dict[str, Any]:
        """The study as plain data, for TOML or JSON; `from_settings` is the way back."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain |= {name: [one._asdict() for one in plain[name]] for name in ("panels", "curves")}
        if isinstance(self.checkpoints, tuple):
            plain["checkpoints"] = list(self.checkpoints)
        return plain

    @classmethod
    def covers(cls, name: str, environment: str, measure: str) -> bool:
        """Whether settings that say so are those of a study of this kind."""
        return True

    @property
    def title(self) -> str:
        """What its report is called."""
        return f"{MEASURED[self.measure]} in the study {self.name!r}"

    @property
    def optima(self) -> dict[str, float]:
        """The largest possible average reward of each panel where it is known."""
        return {}

    def claims(self, results: Sequence[Result]) -> list[Claim]:
        """What is said of the results, judged: in every panel, then in each."""
        return []

    def check_figure(self, asked: Figure) -> None:
        """Raise if a figure that is asked for cannot be drawn."""
        if self.measure == "reward" and (asked.log or asked.bound):
            raise InvalidArgument("--log and --bound are about regret, and this study measures reward: leave them out")

    def drawings(self, results: Sequence[Result], asked: Figure) -> list[Drawing]:
        """Its figures: one on linear axes, and what is asked for."""
        found = [Drawing()]
        if asked.log or asked.bound:
            found.append(Drawing("log", self.bounds(results) if asked.bound else (), "-log"))
        return found

    def bounds(self, results: Sequence[Result]) -> "list[Bound]":
        """The theorems' bounds in the panels whose number of features is known."""
        from explorax import plot  # here, so that workers need not load matplotlib

        found = []
        for panel in self.panels:
            if "dim" in panel.tags:
                here = series((one for one in results if one.panel == panel.label), self.measure)
                features, arms = int(panel.tags["dim"]), self.arms(panel)
                found += plot.bounds(here, n_features=features, n_arms=arms, family=self.family)
        return found


def check_name(name: object) -> None:
    """Raise unless the name of a study can be that of a directory, in the place where it is made."""
    plain = isinstance(name, str) and name.isprintable() and 0 < len(name) <= LONGEST_NAME and name == name.strip()
    if not plain or name in (".", "..") or set("/\\:") & set(str(name)):
        raise InvalidArgument(
            f"name must be a plain file name of 1 to {LONGEST_NAME} characters without / \\ and :, got {name!r}. "
            "Choose where results go with --out."
        )


def each_policy_once(names: Iterable[str]) -> list[str]:
    """The policies of these names; raises if one is named twice, under whatever spelling."""
    found = [entry_of(name).name for name in names]
    for name in found:
        if found.count(name) > 1:
            raise InvalidArgument(f"policies must be different ones, got {name} twice. Leave one out.")
    return found


def taken(policy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that a policy takes."""
    known = setting_names(entry_of(policy).builder())
    return {name: value for name, value in settings.items() if name in known}


def check_labels(name: str, labelled: Sequence[Panel] | Sequence[Curve]) -> None:
    """Raise unless there are some, each with a label of its own."""
    if not labelled:
        raise InvalidArgument(f"{name} is empty: give at least one")
    labels = [one.label for one in labelled]
    for label in labels:
        if not isinstance(label, str) or not label:
            raise InvalidArgument(f"{name}: the label {label!r} must be text, and not empty; give another")
        if labels.count(label) > 1:
            raise InvalidArgument(f"{name}: the label {label!r} is used twice; give each of them a label of its own")


def for_features(dims: Sequence[int]) -> tuple[Panel, ...]:
    """A panel for each number of features."""
    for dim in dims:
        check_whole("dims", dim, 1)
    if not dims or len(set(dims)) < len(dims):
        raise InvalidArgument(f"dims={dims!r}: give at least one number of features, each once")
    return tuple(Panel(f"d = {dim}", {"n_features": int(dim)}, {}, {"dim": int(dim)}) for dim in dims)


def curve(
    policy: str, design: str | None = None, label: str | None = None, settings: Mapping[str, Any] | None = None
) -> Curve:
    """A curve of a policy; "GLM-TSL" is understood as "glm_tsl", the design is informal unless given."""
    entry = entry_of(policy)
    if design is None:
        design = "informal" if "informal" in entry.designs else ""
    if design and not entry.designs:
        raise InvalidArgument(f"design must be left out for {entry.name}, which has no designs, got {design!r}.")
    if design not in (entry.designs or ("",)):
        raise UnknownName(f"design of {entry.name}", design, entry.designs)
    title = f"{entry.title} ({design})" if design else entry.title
    return Curve(title if label is None else label, entry.name, design, dict(settings or {}))
