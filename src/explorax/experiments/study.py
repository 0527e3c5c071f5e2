"""A study: which policies play which environment, how long, how often.  Plain data, checked when made.

As a settings file (TOML), with everything but the first four lines optional:

    environment = "logistic"
    dims = [5, 10, 20]                       # numbers of features; one panel of the figure for each
    rounds = 50000
    curves = [
      { policy = "glm_tsl", design = "theory" },
      { policy = "glm_fpl", settings = { scale = 0.25 }, label = "GLM-FPL, a = 1/4" },
    ]
    name = "mine"
    instances = 100
    seed = 0
    checkpoints = 100                        # how many, or a list that ends at `rounds`
    spacing = "even"                         # or "log"
    environment_settings = { arms = 50 }
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, NamedTuple

from explorax.checks import check_whole
from explorax.errors import InvalidArgument, UnknownName
from explorax.policies.base import Policy
from explorax.registry import entry_of, make

SPACINGS = ("even", "log")


class Curve(NamedTuple):
    """One line of the figure: a policy with settings, under a label that is unique in its study."""

    label: str
    policy: str
    design: str  # "theory", "informal", or "" for a policy without designs
    settings: dict[str, Any]  # further arguments of explorax.make


@dataclass(frozen=True, kw_only=True)
class Study:
    """Every curve plays the same `instances` random problems of each dimension for `rounds` rounds."""

    environment: str
    dims: tuple[int, ...]
    rounds: int
    curves: tuple[Curve, ...]
    name: str = "study"
    instances: int = 100
    seed: int = 0
    checkpoints: int | tuple[int, ...] = 100
    spacing: str = "even"
    environment_settings: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, least in (("rounds", 1), ("instances", 1), ("seed", 0)):
            check_whole(name, getattr(self, name), least)
        for name in ("name", "environment"):
            if not isinstance(getattr(self, name), str):
                raise InvalidArgument(f"{name}={getattr(self, name)!r} must be text")
        if not self.dims or len(set(self.dims)) < len(self.dims):
            raise InvalidArgument(f"dims={self.dims!r}: give at least one number of features, each once")
        for dim in self.dims:
            check_whole("dims", dim, 1)
        if self.spacing not in SPACINGS:
            raise UnknownName("spacing", self.spacing, SPACINGS)
        self._check_checkpoints()
        self._check_curves()

    def _check_checkpoints(self) -> None:
        if isinstance(self.checkpoints, tuple):
            last = 0
            for point in self.checkpoints:
                check_whole("checkpoints", point, last + 1)
                last = point
            if last != self.rounds:
                raise InvalidArgument(f"checkpoints end at {last}: let the last one be rounds={self.rounds}")
            return
        check_whole("checkpoints", self.checkpoints, 1)
        if self.checkpoints > self.rounds:
            raise InvalidArgument(f"checkpoints={self.checkpoints} are more than rounds={self.rounds}: ask for fewer")

    def _check_curves(self) -> None:
        if not self.curves:
            raise InvalidArgument("curves is empty: give at least one policy")
        labels = [curve.label for curve in self.curves]
        for label in labels:
            if not label or labels.count(label) > 1:
                raise InvalidArgument(f"curves: the label {label!r} must not be empty or used twice; give another")
        for curve in self.curves:
            if curve.settings.get("design", curve.design) != curve.design:
                raise InvalidArgument(f"curve {curve.label!r} has two designs: leave the one in its settings out")
            self.make(curve)  # complains about names and values
            if curve.design == "theory" and self.rounds <= max(self.dims):
                raise InvalidArgument(
                    f"rounds={self.rounds} with dims={self.dims}: the theory's designs need more rounds than features"
                )

    def arguments(self, curve: Curve) -> dict[str, Any]:
        """What `explorax.make` needs for a curve: its settings, its design and, for the theory's, the horizon."""
        found: dict[str, Any] = {"design": curve.design} if curve.design else {}
        if curve.design == "theory":
            found["horizon"] = self.rounds
        return found | curve.settings

    def make(self, curve: Curve, **more: object) -> Policy:
        """The policy of a curve, with more settings if need be."""
        return make(curve.policy, **self.arguments(curve), **more)

    def settings(self) -> dict[str, Any]:
        """The study as plain data, for TOML or JSON; `from_settings` is the way back."""
        plain = {one.name: getattr(self, one.name) for one in fields(self)}
        plain |= {"dims": list(self.dims), "curves": [curve._asdict() for curve in self.curves]}
        if isinstance(self.checkpoints, tuple):
            plain["checkpoints"] = list(self.checkpoints)
        return plain


def from_settings(settings: Mapping[str, Any]) -> Study:
    """A study from plain data, as read from TOML or JSON."""
    known = {one.name: one for one in fields(Study)}
    for name in settings:
        if name not in known:
            raise UnknownName("setting of a study", name, known)
    for name, one in known.items():
        if name not in settings and one.default is MISSING and one.default_factory is MISSING:
            raise InvalidArgument(f"the study lacks {name!r}: give it in the settings")
    given = dict(settings)
    for name in ("dims", "curves"):
        if isinstance(given[name], str) or not isinstance(given[name], Sequence):
            raise InvalidArgument(f"{name}={given[name]!r} must be a list")
    if not isinstance(given.get("environment_settings", {}), Mapping):
        raise InvalidArgument(f"environment_settings={given['environment_settings']!r} must be a table")
    given["dims"] = tuple(given["dims"])
    given["curves"] = tuple(_curve_from(one) for one in given["curves"])
    if isinstance(given.get("checkpoints"), list):
        given["checkpoints"] = tuple(given["checkpoints"])
    return Study(**given)


def curve(
    policy: str, design: str | None = None, label: str | None = None, settings: Mapping[str, Any] | None = None
) -> Curve:
    """A curve of a policy; "GLM-TSL" is understood as "glm_tsl", the design is informal unless given."""
    entry = entry_of(policy)
    if design is None:
        design = "informal" if "informal" in entry.designs else ""
    if design not in (entry.designs or ("",)):
        raise UnknownName(f"design of {entry.name}", design, entry.designs)
    title = f"{entry.title} ({design})" if design else entry.title
    return Curve(title if label is None else label, entry.name, design, dict(settings or {}))


def _curve_from(plain: Any) -> Curve:
    if not isinstance(plain, Mapping) or "policy" not in plain:
        raise InvalidArgument(f"curves: {plain!r} must be a table with a policy, like {{ policy = 'glm_tsl' }}")
    for name in plain:
        if name not in Curve._fields:
            raise UnknownName("setting of a curve", name, Curve._fields)
    settings = plain.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"curves: settings={settings!r} must be a table, like {{ scale = 0.5 }}")
    return curve(plain["policy"], plain.get("design"), plain.get("label"), settings)
