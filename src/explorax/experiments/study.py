"""A study: which policies play which environment, for how long and how often, and how the results are written up.

The settings of a study are plain data that is checked when the study is made.  An experiment of the paper is a subclass
of `Study` in its own module, with claims, a title and figures of its own.

Curves whose policies take a `family` get the family of the environment's rewards; it need not be set, and no other
family may be set.  Policies that do not model these rewards are refused, except linear ones on rewards of 0 and 1
(see `registry`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from explorax import environments
from explorax.builders import setting_names
from explorax.checks import MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.claims import Claim
from explorax.environments import Environment
from explorax.environments.glm import ARMS
from explorax.errors import InvalidArgument, UnknownName, check_names
from explorax.experiments.labels import check_labels, check_name
from explorax.halving import Race, Rung
from explorax.policies.base import Policy
from explorax.record import Result
from explorax.registry import check_family, entry_of, make
from explorax.summarize import MEASURES, Summary, series
from explorax.text import Table, grouped, listed

if TYPE_CHECKING:
    from explorax.plot import Bound

SPACINGS = ("even", "log")
CHECKPOINTS = 100
MEASURED = {"regret": "Regret", "reward": "Average reward"}
DEFINED = {
    "regret": "Regret is the expected reward of the best arm minus that of the pulled arm, summed over the rounds.",
    "reward": "The measure is the average reward per round.",
}
MOST_TITLES = 8  # of policies that are named in a sentence
MOST_PANELS = 12  # that are named there


class Panel(NamedTuple):
    """One panel of the figure: settings that are added to those of the study, under a label that is unique in it."""

    label: str  # "d = 5"
    environment_settings: dict[str, Any]  # added to the study's: {"n_features": 5}
    curve_settings: dict[str, Any]  # added to each curve whose policy takes them: {"activation": "relu"}
    tags: dict[str, str | int]  # columns of summary.csv that name the panel: {"dim": 5}


class Curve(NamedTuple):
    """One curve of the figure: a policy with settings, under a label that is unique in the study."""

    label: str
    policy: str
    design: str  # "theory", "informal", or "" for a policy without designs
    settings: dict[str, Any]  # further arguments of explorax.make


class Figure(NamedTuple):
    """The figures to draw in addition to the one with linear axes."""

    log: bool = False  # a figure with logarithmic axes
    bound: bool = False  # the theorems' regret bounds in that figure; implies `log`


class Drawing(NamedTuple):
    """A figure of a study: its axes, and the bounds that are drawn over the curves."""

    scale: str = "linear"
    bounds: "Sequence[Bound]" = ()
    suffix: str = ""  # of the file's name
    remark: str = ""  # a sentence at the end of the caption


@dataclass(frozen=True, kw_only=True)
class Study:
    """A study in which every curve plays the same random problems of each panel.

    Attributes:
        environment: Name of the environment, such as "logistic".
        panels: Panels of the figure.
        rounds: Length n of a run.
        curves: Policies that play, with their settings and labels.
        name: Name of the study, a plain file name.
        measure: "regret", or "reward" for the average reward per round.
        instances: Number of random problems in each panel.
        seed: Seed of the random problems and of the policies.
        checkpoints: How many times the measure is recorded, or the rounds after which it is.
        spacing: "even" or "log", the spacing of the checkpoints.
        environment_settings: Settings of the environment that all panels share.
        family: Family of the environment's rewards.
    """

    stem: ClassVar[str] = "figure1"  # how the names of its figures begin
    purpose: ClassVar[str] = ""  # a sentence that says why the study is run
    paper_rounds: ClassVar[int] = 0  # length of a run in the paper

    environment: str
    panels: tuple[Panel, ...]
    rounds: int
    curves: tuple[Curve, ...]
    name: str = "study"
    measure: str = "regret"  # or "reward"
    instances: int = 100
    seed: int = 0
    checkpoints: int | tuple[int, ...] | None = None  # None: 100, or every round of a shorter run
    spacing: str = "even"
    environment_settings: dict[str, Any] = field(default_factory=dict)
    family: str = field(init=False)  # of the environment's rewards: recorded, not chosen

    def __post_init__(self) -> None:
        check_whole("rounds", self.rounds, 1, MOST_ROUNDS)
        check_whole("instances", self.instances, 1, MOST_INSTANCES)
        check_whole("seed", self.seed, 0, MOST_SEED)
        check_name(self.name)
        if not isinstance(self.environment, str):
            known = listed(list(environments.BUILDERS))
            raise InvalidArgument(f"environment must be a name, got {self.environment!r}. The known ones are {known}.")
        for name, known in (("spacing", SPACINGS), ("measure", MEASURES)):
            if getattr(self, name) not in known:
                raise UnknownName(name, getattr(self, name), known)
        object.__setattr__(self, "family", self._family_of_panels())
        self._check_checkpoints()
        check_labels("panels", [panel.label for panel in self.panels])
        check_labels("curves", [curve.label for curve in self.curves])
        self._check_panels()
        self._check_curves()

    def _family_of_panels(self) -> str:
        """Return the family of the rewards, which must be the same in all panels."""
        given = [self.environment_arguments(panel) for panel in self.panels]
        found = {environments.family_of(self.environment, one): one for one in given or [{}]}
        if len(found) > 1:
            raise InvalidArgument(
                f"panels must have rewards of one family, got {listed(sorted(found))}. Make a study of each."
            )
        return next(iter(found))

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
                    f"checkpoints must be at most the number of rounds, {self.rounds}, got {self.checkpoints}. "
                    "Ask for fewer checkpoints or more rounds."
                )

    def _check_panels(self) -> None:
        tags = [panel.tags for panel in self.panels]
        for panel in self.panels:
            if panel.tags.keys() != tags[0].keys():
                raise InvalidArgument(
                    f"tags must have the same names in all panels, got {panel.tags!r} and {tags[0]!r}. "
                    "Give every panel all of them."
                )
            if tags.count(panel.tags) > 1:
                raise InvalidArgument(
                    f"tags must be different in each panel, got {panel.tags!r} twice. Give each panel its own."
                )
            for name, value in panel.tags.items():
                if name in Summary._fields and name != "panel":
                    raise InvalidArgument(
                        f"The name of a tag must not be that of another column of summary.csv, got {name!r}. "
                        "Choose another name."
                    )
                if isinstance(value, bool) or not isinstance(value, str | int):
                    raise InvalidArgument(
                        f"The tag {name} must be text or a whole number, got {value!r}. Write it as text."
                    )
            for name in panel.environment_settings:
                if name in self.environment_settings:
                    raise InvalidArgument(
                        f"Panel {panel.label!r} and the study both set {name!r}. Leave one of the two out."
                    )
            known = {name for one in self.curves for name in setting_names(entry_of(one.policy).builder())}
            check_names("setting of the curves' policies", panel.curve_settings, known)

    def _check_curves(self) -> None:
        for curve in self.curves:
            if curve.settings.get("design", curve.design) != curve.design:
                raise InvalidArgument(
                    f"design must be the same in the settings of a curve, got {curve.settings['design']!r} and "
                    f"{curve.design!r} for {curve.label!r}. Leave it out of the settings."
                )
            for panel in self.panels:
                self.make(curve, panel)  # complains about names and values
                features = self.environment_arguments(panel).get("n_features", 0)
                if curve.design == "theory" and isinstance(features, int) and self.rounds <= features:
                    raise InvalidArgument(
                        f"rounds must be more than the number of features, {features}, for a theory design, "
                        f"got {self.rounds}. Play more rounds or use the informal design."
                    )

    def environment_arguments(self, panel: Panel) -> dict[str, Any]:
        """Return the arguments of `explorax.environments.make` for a panel."""
        return self.environment_settings | panel.environment_settings

    def make_environment(self, panel: Panel, **more: object) -> Environment:
        """Build the environment of a panel, with `more` settings if given."""
        return environments.make(self.environment, **(self.environment_arguments(panel) | more))

    def arms(self, panel: Panel) -> int:
        """Return K, the number of arms that can be pulled in a round of a panel."""
        given = self.environment_arguments(panel)
        return len(given["fixed_arms"]) if given.get("fixed_arms") is not None else given.get("n_arms") or ARMS

    def arguments(self, curve: Curve, panel: Panel) -> dict[str, Any]:
        """Return the arguments of `explorax.make` for a curve in a panel.

        Args:
            curve: A curve of this study.
            panel: A panel of this study.

        Returns:
            The settings of curve and panel, the family of the rewards, the design, and the horizon of a theory design.

        Raises:
            InvalidArgument: If curve and panel set the same argument.
        """
        found: dict[str, Any] = {"design": curve.design} if curve.design else {}
        if curve.design == "theory":
            found["horizon"] = self.rounds
        found |= curve.settings
        for name in panel.curve_settings:
            if name in found:
                raise InvalidArgument(
                    f"Curve {curve.label!r} and panel {panel.label!r} both set {name!r}. Leave one of the two out."
                )
        return entry_of(curve.policy).for_family(self.family) | found | taken(curve.policy, panel.curve_settings)

    def make(self, curve: Curve, panel: Panel, **more: object) -> Policy:
        """Build the policy of a curve in a panel, with `more` settings if given."""
        policy = make(curve.policy, **self.arguments(curve, panel), **more)
        check_family(policy, self.family, f"curve {curve.label!r}")
        return policy

    def settings(self) -> dict[str, Any]:
        """Return the study as plain data for TOML or JSON, which `from_settings` turns back into a study."""
        return self.plain(self.panels, self.curves)

    def plain(self, panels: Iterable[Panel], curves: Iterable[Curve]) -> dict[str, Any]:
        """Return a study of these panels and curves, with all other settings of this one, as plain data."""
        plain = {one.name: getattr(self, one.name) for one in fields(Study)}
        plain |= {"panels": [one._asdict() for one in panels], "curves": [one._asdict() for one in curves]}
        if isinstance(self.checkpoints, tuple):
            plain["checkpoints"] = list(self.checkpoints)
        return plain

    def races(self) -> list[Race]:
        """Return the races of the curves, by which it is chosen who plays how many instances; here all play all."""
        return [Race(tuple(one.label for one in self.curves), (Rung(len(self.curves), self.instances),))]

    @classmethod
    def covers(cls, name: str, environment: str, measure: str) -> bool:
        """Return whether a study with this name, environment and measure is of this class."""
        return True

    @property
    def title(self) -> str:
        """The title of the report."""
        return f"{MEASURED[self.measure]} in the study {self.name!r}"

    @property
    def about(self) -> str:
        """The purpose of the study, and who plays what for how long, as one paragraph of text."""
        titles = list(dict.fromkeys(entry_of(one.policy).title for one in self.curves))
        who = listed(titles) if len(titles) <= MOST_TITLES else f"{len(titles)} policies"
        verb = "plays" if len(titles) == 1 else "play"
        labels = f": {listed([panel.label for panel in self.panels])}" if len(self.panels) <= MOST_PANELS else ""
        where = f"in each of {len(self.panels)} panels{labels}" if len(self.panels) > 1 else f"in one panel{labels}"
        problems = "random problem" if self.instances == 1 else "random problems"
        played = (
            f"{who} {verb} the same {grouped(self.instances)} {problems} of the environment {self.environment} "
            f"for {grouped(self.rounds)} {'round' if self.rounds == 1 else 'rounds'}, {where}."
        )
        paper = f"The paper plays {grouped(self.paper_rounds)} rounds; its claims may not hold in shorter runs."
        shorter = paper if self.rounds < self.paper_rounds else ""
        return " ".join(filter(None, [self.purpose, played, DEFINED[self.measure], shorter]))

    @property
    def optima(self) -> dict[str, float]:
        """The largest possible average reward of each panel in which it is known, by the panel's label."""
        return {}

    def claims(self, results: Sequence[Result]) -> list[Claim]:
        """Judge the claims about the results: each one for all panels together, then for each panel."""
        return []

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return tables that say more than the mean measure of each curve in each panel; none here."""
        return []

    def columns(self, results: Sequence[Result]) -> list[dict[str, object]]:
        """Return the cells in the row of summary.csv of each result that only this study has, by column."""
        return [{} for _ in results]

    def shown(self, results: Sequence[Result]) -> Sequence[Result]:
        """Return the results that figures show; here all."""
        return results

    def check_figure(self, asked: Figure) -> None:
        """Raise `InvalidArgument` if a figure that is asked for cannot be drawn of this study."""
        if self.measure == "reward" and (asked.log or asked.bound):
            raise InvalidArgument("Figures of average reward have no --log and --bound. Leave these options out.")

    def drawings(self, results: Sequence[Result], asked: Figure) -> list[Drawing]:
        """Return the figures of the study: one with linear axes, and those that are asked for."""
        found = [Drawing()]
        if asked.log or asked.bound:
            found.append(Drawing("log", self.bounds(results) if asked.bound else (), "-log"))
        return found

    def bounds(self, results: Sequence[Result]) -> "list[Bound]":
        """Return the theorems' regret bounds for the panels whose number of features is known."""
        from explorax import plot  # here, so that workers need not load matplotlib

        found = []
        for panel in self.panels:
            if "dim" in panel.tags:
                here = series((one for one in results if one.panel == panel.label), self.measure)
                features, arms = int(panel.tags["dim"]), self.arms(panel)
                found += plot.bounds(here, n_features=features, n_arms=arms, family=self.family)
        return found


def each_policy_once(names: Iterable[str]) -> list[str]:
    """Return the names of policies as the registry spells them; raise `InvalidArgument` if one is named twice."""
    found = [entry_of(name).name for name in names]
    for name in found:
        if found.count(name) > 1:
            raise InvalidArgument(f"policies must be different ones, got {name} twice. Leave one out.")
    return found


def taken(policy: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the settings that a policy takes."""
    known = setting_names(entry_of(policy).builder())
    return {name: value for name, value in settings.items() if name in known}


def for_features(dims: Sequence[int]) -> tuple[Panel, ...]:
    """Return one panel for each number of features."""
    for dim in dims:
        check_whole("dims", dim, 1)
    if not dims or len(set(dims)) < len(dims):
        raise InvalidArgument(f"dims must be one or more different numbers of features, got {dims!r}.")
    return tuple(Panel(f"d = {dim}", {"n_features": int(dim)}, {}, {"dim": int(dim)}) for dim in dims)


def curve(
    policy: str, design: str | None = None, label: str | None = None, settings: Mapping[str, Any] | None = None
) -> Curve:
    """Return a curve that plays one policy.

    Args:
        policy: Name of the policy in the registry. "GLM-TSL" is understood as "glm_tsl".
        design: "theory" or "informal", for a policy that has designs. Default: "informal".
        label: What the curve is called. Default: the title of the policy, with its design.
        settings: Further arguments of `explorax.make`.

    Returns:
        The curve, whose settings are checked when a study is made of it.

    Raises:
        InvalidArgument: If a design is given for a policy that has none.
        UnknownName: If there is no such policy or design.

    Example:
        >>> from explorax.experiments.study import curve
        >>> curve("GLM-TSL", settings={"scale": 0.5})
        Curve(label='GLM-TSL (informal)', policy='glm_tsl', design='informal', settings={'scale': 0.5})
    """
    entry = entry_of(policy)
    if design is None:
        design = "informal" if "informal" in entry.designs else ""
    if design and not entry.designs:
        raise InvalidArgument(f"design must be left out for {entry.name}, which has no designs, got {design!r}.")
    if design not in (entry.designs or ("",)):
        raise UnknownName(f"design of {entry.name}", design, entry.designs)
    title = f"{entry.title} ({design})" if design else entry.title
    return Curve(title if label is None else label, entry.name, design, dict(settings or {}))
