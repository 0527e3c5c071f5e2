"""Studies from their settings: plain data, as in a settings file or the manifest of a run.

In a settings file (TOML) everything except `environment`, `rounds` and `curves` is optional:

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

Panels that differ in something other than the number of features are tables, each with a label.  Their
`environment_settings` are added to those of the study, and their `curve_settings` to those of the curves whose policies
take them.  Their `tags` are the columns of summary.csv that name the panel, as in tags = { arms = 10, ridge = 1 }.
Default: one column with the label.

    panels = [
      { label = "few arms", environment_settings = { n_features = 5, n_arms = 10 } },
      { label = "ridge", environment_settings = { n_features = 5, n_arms = 50 }, curve_settings = { ridge = 9.0 } },
    ]

Without `dims` and `panels` there is one panel, for an environment that needs no further settings.

A list in the place of one value is a grid: each of them is played.  Lists may be in the settings of curves, whose
`design` may be one, too, and in `environment_settings` and `curve_settings`.  A curve with lists becomes a curve for
each combination, and a panel a panel.  With a table `halving`, settings that look bad are given up early.

    curves = [
      { policy = "glm_tsl", settings = { scale = [0.5, 1, 2], ridge = [0.1, 1] } },
      { policy = "glm_fpl", design = ["informal", "theory"] },
    ]
    environment_settings = { n_arms = [10, 100] }
    halving = { instances = 50, keep = 3 }   # of the first rung; one in three goes on to three times as many
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from explorax import environments, record
from explorax.builders import setting_names
from explorax.errors import InvalidArgument, check_names, shown
from explorax.experiments.deep import Figure2
from explorax.experiments.grid import Grid
from explorax.experiments.logistic import Figure1
from explorax.experiments.study import Curve, Panel, Study, curve, for_features
from explorax.experiments.sweep import Sweep
from explorax.experiments.theorems import Theorems
from explorax.halving import Halving
from explorax.places import Place, place
from explorax.registry import entry_of

KINDS: tuple[type[Study], ...] = (Figure1, Figure2, Theorems, Study)  # the last covers everything
NAMED = ("name", "environment", "measure")  # what an experiment is known by
MAY_BE_LISTS = ("dims", "panels", "curves", "checkpoints")


def from_settings(settings: Mapping[str, Any]) -> Study:
    """Build a study from its settings.

    A study with the name, the environment and the measure of an experiment of the paper is that experiment.  One with
    lists of values is a sweep.

    Args:
        settings: Plain data, as read from TOML or JSON.

    Returns:
        The study, with the claims, title and figures of the experiment if it is one.

    Raises:
        InvalidArgument: If a setting is missing, of the wrong kind, or outside its range.
        UnknownName: If there is no such setting, environment or policy.

    Example:
        >>> from explorax.experiments.settings import from_settings
        >>> curves = [{"policy": "glm_tsl"}, {"policy": "uniform"}]
        >>> study = from_settings({"environment": "logistic", "dims": [2, 3], "rounds": 100, "curves": curves})
        >>> [panel.label for panel in study.panels]
        ['d = 2', 'd = 3']
    """
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"settings must be a table, got {settings!r}. `explorax run --example` prints one.")
    known = {one.name: one for one in fields(Study)}
    check_names("setting of a study", settings, [*known, "dims", "halving"])
    for name, one in known.items():
        needed = one.init and one.default is MISSING and one.default_factory is MISSING
        if needed and name not in (*settings, "panels"):
            raise InvalidArgument(f"The settings of the study lack {name!r}. Add it.")
    given = dict(settings)
    for name, value in given.items():
        if isinstance(value, list) and name not in MAY_BE_LISTS:
            raise InvalidArgument(
                f"{name} must be one value, got {shown(value)}. A list is a grid in the settings of curves and "
                "environments only: settings, environment_settings and curve_settings."
            )
    for name in {"dims", "panels", "curves"} & given.keys():
        if isinstance(given[name], str) or not isinstance(given[name], Sequence):
            raise InvalidArgument(f"{name} must be a list, got {given[name]!r}.")
    if not isinstance(given.get("environment_settings", {}), Mapping):
        raise InvalidArgument(f"environment_settings must be a table, got {given['environment_settings']!r}.")
    if "dims" in given and "panels" in given:
        raise InvalidArgument("The study has both dims and panels. Leave one of the two out.")
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
    found = _sweep_or_study(given)
    if family not in (None, found.family):
        raise InvalidArgument(
            f"family must be {found.family!r}, that of the rewards of the environment {found.environment!r}, "
            f"got {family!r}. Leave it out, or choose another environment."
        )
    return found


def _sweep_or_study(given: dict[str, Any]) -> Study:
    """Return a sweep if there are lists of values or halving, else the study or the experiment of the paper."""
    known = {one.name: one.default for one in fields(Study)}
    in_grid = {name: given[name] for name in ("environment", "panels", "curves")}
    grid = Grid(environment_settings=given.get("environment_settings", {}), **in_grid)
    halving = Halving.of(given["halving"]) if "halving" in given else None
    if halving or grid.has_lists():
        others = {name: value for name, value in given.items() if name not in (*Grid._fields, "halving")}
        return Sweep.of(grid, halving, **others)
    kind = next(kind for kind in KINDS if kind.covers(**{name: given.get(name, known[name]) for name in NAMED}))
    return kind(**given)


def _panel_from(plain: Any) -> Panel:
    if not isinstance(plain, Mapping) or "label" not in plain:
        raise InvalidArgument(f"A panel must be a table with a label, like {{ label = 'few arms' }}, got {plain!r}.")
    check_names("setting of a panel", plain, Panel._fields)
    tables = {"environment_settings": {}, "curve_settings": {}, "tags": {"panel": plain["label"]}} | dict(plain)
    for name, value in tables.items():
        if name != "label" and not isinstance(value, Mapping):
            raise InvalidArgument(f"{name} of a panel must be a table, like {{ n_arms = 10 }}, got {value!r}.")
    return Panel(**tables)


def _curve_from(plain: Any) -> Curve:
    if not isinstance(plain, Mapping) or "policy" not in plain:
        raise InvalidArgument(f"A curve must be a table with a policy, like {{ policy = 'glm_tsl' }}, got {plain!r}.")
    check_names("setting of a curve", plain, Curve._fields)
    settings = plain.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"settings of a curve must be a table, like {{ scale = 0.5 }}, got {settings!r}.")
    designs, label = plain.get("design"), plain.get("label")
    if not isinstance(designs, list):
        return curve(plain["policy"], designs, label, settings)
    entry = entry_of(plain["policy"])
    for design in designs:
        curve(entry.name, design)  # complains if there is no such design
    return Curve(entry.title if label is None else label, entry.name, plain["design"], dict(settings))


def study_in(directory: Place | str) -> Study:
    """Return the study whose run is in a directory.

    Args:
        directory: The directory that a run has written to, or is still writing to.

    Returns:
        The study, with its claims, title and figures.

    Raises:
        InvalidArgument: If the directory has no manifest, or one that cannot be used.
    """
    settings = record.read_manifest(directory)["settings"]
    try:
        return from_settings(settings)
    except InvalidArgument as error:
        path = place(directory) / record.MANIFEST
        raise InvalidArgument(f"{path} cannot be used: {error} {record.REPAIR}") from error
