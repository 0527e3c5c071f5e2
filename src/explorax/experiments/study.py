"""A study: which policies play which environment, how long, how often.  Plain data, checked when made.

As a settings file (TOML), with everything but `environment`, `rounds` and `curves` optional:

    environment = "logistic"
    dims = [5, 10, 20]                       # numbers of features; one panel of the figure for each
    rounds = 50000
    curves = [
      { policy = "glm_tsl", design = "theory" },
      { policy = "glm_fpl", settings = { scale = 0.25 }, label = "GLM-FPL, a = 1/4" },
    ]
    name = "mine"
    measure = "regret"                       # or "reward": the average reward so far
    instances = 100
    seed = 0
    checkpoints = 100                        # how many, or a list of rounds that grows up to `rounds`
    spacing = "even"                         # or "log"
    environment_settings = { n_arms = 50 }

Panels that differ in something else than `dims` are tables, each with a label.  What they set is added to what the
study sets, and to what those curves set whose policies take it.  Their `tags` are what tables call them, a column for
each, as in tags = { arms = 10, ridge = 1 }; the label unless given:

    panels = [
      { label = "few arms", environment_settings = { n_features = 5, n_arms = 10 } },
      { label = "more ridge", environment_settings = { n_features = 5, n_arms = 50 }, curve_settings = { ridge = 9 } },
    ]

Without either there is one panel, for an environment that needs no more settings.

Curves whose policies take a `family` get that of the environment's rewards; it need not be set, and no other may be.
Policies that do not model these rewards are refused, but for linear ones on rewards of 0 and 1 (`registry`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from itertools import pairwise
from typing import Any, NamedTuple

from explorax import environments
from explorax.builders import setting_names
from explorax.checks import MOST_INSTANCES, MOST_ROUNDS, MOST_SEED, check_whole
from explorax.environments import Environment
from explorax.errors import InvalidArgument, UnknownName, check_names
from explorax.policies.base import Policy
from explorax.registry import check_family, entry_of, list_policies, make
from explorax.summarize import MEASURES, Summary

SPACINGS = ("even", "log")
CHECKPOINTS = 100
LONGEST_NAME = 100  # characters


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


@dataclass(frozen=True, kw_only=True)
class Study:
    """Every curve plays the same `instances` random problems of each panel for `rounds` rounds."""

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
            settings = {one for entry in list_policies().values() for one in setting_names(entry.builder())}
            check_names("setting of the policies", panel.curve_settings, settings)

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

    def arguments(self, curve: Curve, panel: Panel) -> dict[str, Any]:
        """What `explorax.make` needs: settings of curve and panel, the family of the rewards, the design and, for the
        theory's, the horizon.
        """
        found: dict[str, Any] = {"design": curve.design} if curve.design else {}
        if curve.design == "theory":
            found["horizon"] = self.rounds
        found |= curve.settings
        entry = entry_of(curve.policy)
        known = setting_names(entry.builder())
        for name, value in panel.curve_settings.items():
            if name in found:
                raise InvalidArgument(
                    f"curve {curve.label!r} and panel {panel.label!r} both set {name!r}: leave one out"
                )
            if name in known:
                found[name] = value
        return entry.for_family(self.family) | found

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


def from_settings(settings: Mapping[str, Any]) -> Study:
    """A study from plain data, as read from TOML or JSON."""
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"the settings of a study must be a table, got {settings!r}.")
    known = {one.name: one for one in fields(Study)}
    check_names("setting of a study", settings, [*known, "dims"])
    for name, one in known.items():
        needed = one.init and one.default is MISSING and one.default_factory is MISSING
        if needed and name not in (*settings, "panels"):
            raise InvalidArgument(f"the study lacks {name!r}: give it in the settings")
    given = dict(settings)
    for name in {"dims", "panels", "curves"} & given.keys():
        if isinstance(given[name], str) or not isinstance(given[name], Sequence):
            raise InvalidArgument(f"{name}={given[name]!r} must be a list")
    if not isinstance(given.get("environment_settings", {}), Mapping):
        raise InvalidArgument(f"environment_settings={given['environment_settings']!r} must be a table")
    if "dims" in given and "panels" in given:
        raise InvalidArgument(f"dims={given['dims']!r} and panels are both given: leave one out")
    if "dims" in given:
        builder = environments.BUILDERS.get(str(given["environment"]).lower())
        if builder is not None and "n_features" not in setting_names(builder):
            raise InvalidArgument(
                f"dims must be left out with environment={given['environment']!r}, whose data decides the number of "
                f"features, got dims={given['dims']!r}. Use panels for more than one data set."
            )
        given["panels"] = for_features(given.pop("dims"))
    else:
        given["panels"] = tuple(_panel_from(one) for one in given.get("panels", [{"label": given["environment"]}]))
    given["curves"] = tuple(_curve_from(one) for one in given["curves"])
    if isinstance(given.get("checkpoints"), list):
        given["checkpoints"] = tuple(given["checkpoints"])
    family = given.pop("family", None)  # as `settings` has it
    found = Study(**given)
    if family not in (None, found.family):
        raise InvalidArgument(
            f"family must be {found.family!r}, that of the rewards of the environment {found.environment!r}, "
            f"got {family!r}. Leave it out, or choose another environment."
        )
    return found


def for_features(dims: Sequence[int]) -> tuple[Panel, ...]:
    """A panel for each number of features."""
    for dim in dims:
        check_whole("dims", dim, 1)
    if not dims or len(set(dims)) < len(dims):
        raise InvalidArgument(f"dims={dims!r}: give at least one number of features, each once")
    return tuple(Panel(f"d = {dim}", {"n_features": int(dim)}, {}, {"dim": int(dim)}) for dim in dims)


def _panel_from(plain: Any) -> Panel:
    if not isinstance(plain, Mapping) or "label" not in plain:
        raise InvalidArgument(f"panels: {plain!r} must be a table with a label, like {{ label = 'few arms' }}")
    check_names("setting of a panel", plain, Panel._fields)
    tables = {"environment_settings": {}, "curve_settings": {}, "tags": {"panel": plain["label"]}} | dict(plain)
    for name, value in tables.items():
        if name != "label" and not isinstance(value, Mapping):
            raise InvalidArgument(f"panels: {name}={value!r} must be a table, like {{ n_arms = 10 }}")
    return Panel(**tables)


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


def _curve_from(plain: Any) -> Curve:
    if not isinstance(plain, Mapping) or "policy" not in plain:
        raise InvalidArgument(f"curves: {plain!r} must be a table with a policy, like {{ policy = 'glm_tsl' }}")
    check_names("setting of a curve", plain, Curve._fields)
    settings = plain.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"curves: settings={settings!r} must be a table, like {{ scale = 0.5 }}")
    return curve(plain["policy"], plain.get("design"), plain.get("label"), settings)
