"""The pages of the API reference: for every public name a place, filled by mkdocstrings from the source.

Public are the names of `src/explorax/__init__.pyi`, the functions and classes of the modules among them, and those of
the modules that `Area.modules` lists beside.  Which page a name is on depends on the module that it comes from, so that
a new name needs no line here.  One that would have no page fails the build.
"""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from texts import escaped, row

import explorax


class Area(NamedTuple):
    """One page of the reference."""

    title: str
    introduction: str
    homes: tuple[str, ...]  # modules whose public names are on this page, with all that is in them
    modules: tuple[str, ...] = ()  # modules that users import from, beside those that `explorax` exports


AREAS = {
    "agent": Area(
        "Agent",
        "Decide for real: an agent keeps arms, decisions that wait for rewards, and what was learned.",
        ("explorax.agent",),
    ),
    "logs": Area(
        "Logs",
        "Logs of decisions and rewards as arrays and tables: read from agents, made of anyone's data, exchanged with "
        "other packages.",
        ("explorax.log",),
    ),
    "policies": Area(
        "Policies",
        "What a policy is, how one is found by name, the settings that policies share, and networks. The policies "
        "themselves are on [the page of their builders](builders.md); [Algorithms](../algorithms.md) explains them.",
        ("explorax.policies", "explorax.registry", "explorax.networks"),
    ),
    "builders": Area(
        "Builders of policies",
        "Each function builds one policy from keyword settings. [Algorithms](../algorithms.md) compares them.",
        tuple(f"explorax.policies.{name}" for name in explorax.list_policies()),
    ),
    "simulation": Area(
        "Simulation",
        "Play a policy against random problems, and read what came of it.",
        ("explorax.simulation", "explorax.record", "explorax.program_cache"),
    ),
    "environments": Area(
        "Environments and data",
        "Random problems to play against, and labelled data to make them from.",
        ("explorax.environments", "explorax.datasets"),
    ),
    "fit": Area(
        "Fit and theory",
        "The estimate of a generalized linear model, reward families, and the constants of the theorems.",
        ("explorax.glm", "explorax.theory"),
        ("explorax.glm.history",),
    ),
    "evaluation": Area(
        "Evaluation",
        "What other policies would have earned, from the log of the policy that decided. "
        "[The guide](../evaluation.md) says which estimator and which interval to take.",
        ("explorax.evaluation",),
    ),
    "studies": Area(
        "Studies",
        "Comparisons that are worth keeping: settings as data, played on all cores, resumed, and written up. The "
        "command `explorax` does the same from a shell.",
        ("explorax.experiments", "explorax.runner"),
        (
            "explorax.runner",
            "explorax.experiments.study",
            "explorax.experiments.settings",
            "explorax.experiments.logistic",
            "explorax.experiments.deep",
            "explorax.experiments.theorems",
        ),
    ),
    "errors": Area("Errors", "Every error that explorax raises on purpose.", ("explorax.errors",)),
}
# What public modules hold for other modules of the package, and not for users.
INTERNAL = {
    "explorax.agent.arm_sets": "Corner Program bounding_box checked ellipsoidal frame framed normalized numbers "
    "opposites scale_of scaled solve",
    "explorax.datasets": "Published as_array as_path check digest digits fetch find finished known_name pixels "
    "published read_idx",
    "explorax.environments": "known_name",
    "explorax.errors": "check_names shortened shown",
    "explorax.experiments.deep": "optimum claims",
    "explorax.experiments.study": "Drawing check_labels check_name each_policy_once taken",
    "explorax.experiments.theorems": "Kind Promise kind_of",
    "explorax.glm.families": "as_rewards bernoulli_slope check_rewards sample_bernoulli sample_gaussian sample_poisson",
    "explorax.glm.history": "check_room discounted limited_rows weighted_gram",
    "explorax.networks": "Layer check_network glorot",
    "explorax.runner": "Keeper on_accelerator",
}
INTRODUCTION = """# API reference

All public names, with the first sentence of their docstrings. These pages are made from the code.
"""


class Name(NamedTuple):
    """A public name."""

    path: str  # by which users reach it, for example "explorax.theory.describe"
    found: Any  # a function, a class or a module
    home: str  # the module that it belongs to


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the reference to the files of the site."""
    names = list(public_names())
    files.append(File.generated(config, "reference/index.md", content=overview(names)))
    for uri in AREAS:
        files.append(File.generated(config, f"reference/{uri}.md", content=page(uri, names)))
    return files


def public_names() -> Iterator[Name]:
    """Yield every public name: classes and functions first, then each module followed by what is in it."""
    exported = {name: getattr(explorax, name) for name in vars(explorax)["__all__"]}
    modules = {f"explorax.{name}": one for name, one in exported.items() if inspect.ismodule(one)}
    modules |= {path: importlib.import_module(path) for area in AREAS.values() for path in area.modules}
    listed = [
        Name(f"explorax.{name}", one, one.__module__) for name, one in exported.items() if not inspect.ismodule(one)
    ]
    yield from listed
    shown = {id(name.found) for name in listed}
    for path, module in modules.items():
        yield Name(path, module, module.__name__)
        for name, found in members(module).items():
            if id(found) not in shown:
                shown.add(id(found))
                yield Name(f"{path}.{name}", found, module.__name__)


def members(module: ModuleType) -> dict[str, Any]:
    """Return the public functions and classes of a module by name."""
    internal = INTERNAL.get(module.__name__, "").split()
    exported = getattr(module, "__all__", ())
    return {
        name: found
        for name, found in vars(module).items()
        if (inspect.isroutine(found) or inspect.isclass(found))
        and (name in exported or found.__module__ == module.__name__)
        and not name.startswith("_")
        and name not in internal
    }


def area_of(name: Name) -> str:
    """Return the page that a name is on: that of its module, or of the nearest package around it.

    Args:
        name: A public name.

    Returns:
        The key of the page in `AREAS`.

    Raises:
        PluginError: If no page is for that module.
    """
    home = name.home
    while home:
        for uri, area in AREAS.items():
            if home in area.homes:
                return uri
        home = home.rpartition(".")[0]
    raise PluginError(f"{name.path} is public and has no page. Add {name.home} to AREAS in docs/hooks/reference.py.")


def overview(names: list[Name]) -> str:
    """Write the table of all names, page by page."""
    text = INTRODUCTION
    for uri, area in AREAS.items():
        rows = [row(f"[`{name.path}`][{name.path}]", summary(name)) for name in names if area_of(name) == uri]
        table = "\n".join([row("name", "what it is"), row("---", "---"), *rows])
        text += f"\n## [{area.title}]({uri}.md)\n\n{area.introduction}\n\n{table}\n"
    return text


def summary(name: Name) -> str:
    """Return the first line of the docstring of a name."""
    return escaped((inspect.getdoc(name.found) or "").partition("\n")[0]).replace("|", "\\|")


def page(uri: str, names: list[Name]) -> str:
    """Write one page: a directive of mkdocstrings for each name."""
    area = AREAS[uri]
    directives = (directive(name) for name in names if area_of(name) == uri)
    return f"# {area.title}\n\n{area.introduction}\n{''.join(directives)}"


def directive(name: Name) -> str:
    """Write what makes mkdocstrings document a name; a module without what is in it, which follows with its own."""
    is_module = inspect.ismodule(name.found)
    within = name.path.removeprefix("explorax.")
    level = 3 if "." in within and not is_module else 2
    label = within if is_module else within.rpartition(".")[2]
    members = "\n      members: false" if is_module else ""
    return f"\n::: {name.path}\n    options:\n      heading_level: {level}\n      toc_label: {label}{members}\n"
