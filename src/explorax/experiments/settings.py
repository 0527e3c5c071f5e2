"""A study from its settings: plain data, as a settings file or the manifest of a run has it.

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
      { label = "ridge", environment_settings = { n_features = 5, n_arms = 50 }, curve_settings = { ridge = 9.0 } },
    ]

Without either there is one panel, for an environment that needs no more settings.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from explorax import environments, record
from explorax.builders import setting_names
from explorax.errors import InvalidArgument, check_names
from explorax.experiments.deep import Figure2
from explorax.experiments.logistic import Figure1
from explorax.experiments.study import Curve, Panel, Study, curve, for_features
from explorax.experiments.theorems import Theorems

KINDS: tuple[type[Study], ...] = (Figure1, Figure2, Theorems, Study)  # the last covers everything
NAMED = ("name", "environment", "measure")  # what an experiment is known by


def from_settings(settings: Mapping[str, Any]) -> Study:
    """Return the study of these settings, as the experiment that it is.

    A study of one's own may have the name of an experiment, but hardly its environment and measure too.

    Args:
        settings: Plain data, as read from TOML or JSON.

    Returns:
        A study that knows its claims, title and figure; a plain `Study` if it is no experiment of the paper.

    Raises:
        InvalidArgument: The settings are not those of a study.
    """
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
    kind = next(kind for kind in KINDS if kind.covers(**{name: given.get(name, known[name].default) for name in NAMED}))
    found = kind(**given)
    if family not in (None, found.family):
        raise InvalidArgument(
            f"family must be {found.family!r}, that of the rewards of the environment {found.environment!r}, "
            f"got {family!r}. Leave it out, or choose another environment."
        )
    return found


def _panel_from(plain: Any) -> Panel:
    if not isinstance(plain, Mapping) or "label" not in plain:
        raise InvalidArgument(f"panels: {plain!r} must be a table with a label, like {{ label = 'few arms' }}")
    check_names("setting of a panel", plain, Panel._fields)
    tables = {"environment_settings": {}, "curve_settings": {}, "tags": {"panel": plain["label"]}} | dict(plain)
    for name, value in tables.items():
        if name != "label" and not isinstance(value, Mapping):
            raise InvalidArgument(f"panels: {name}={value!r} must be a table, like {{ n_arms = 10 }}")
    return Panel(**tables)


def _curve_from(plain: Any) -> Curve:
    if not isinstance(plain, Mapping) or "policy" not in plain:
        raise InvalidArgument(f"curves: {plain!r} must be a table with a policy, like {{ policy = 'glm_tsl' }}")
    check_names("setting of a curve", plain, Curve._fields)
    settings = plain.get("settings", {})
    if not isinstance(settings, Mapping):
        raise InvalidArgument(f"curves: settings={settings!r} must be a table, like {{ scale = 0.5 }}")
    return curve(plain["policy"], plain.get("design"), plain.get("label"), settings)


def study_in(directory: Path | str) -> Study:
    """Return the study whose run a directory holds.

    Args:
        directory: Where a run has left, or is leaving, its files.

    Returns:
        The study, with its claims, title and figure.

    Raises:
        InvalidArgument: The directory has no manifest that can be used.
    """
    settings = record.read_manifest(Path(directory))["settings"]
    try:
        return from_settings(settings)
    except InvalidArgument as error:
        path = Path(directory) / record.MANIFEST
        raise InvalidArgument(f"{path} cannot be used: {error} {record.REPAIR}") from error
