"""Imports go up the list of ARCHITECTURE.md only, and the library needs nothing but jax and numpy."""

import ast
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
ORDER = [
    "explorax.errors",
    "explorax.checks",
    "explorax.batching",
    "explorax.programs",
    "explorax.extras",
    "explorax.builders",
    "explorax.files",
    "explorax.tables",
    "explorax.datasets",
    "explorax.glm.families",
    "explorax.glm.linalg",
    "explorax.glm.history",
    "explorax.glm.certificate",
    "explorax.glm.fit",
    "explorax.glm.steps",
    "explorax.glm.kernel",
    "explorax.glm.warm",
    "explorax.glm.online",
    "explorax.glm.basis",
    "explorax.glm.polya_gamma",
    "explorax.glm.ball",
    "explorax.glm.project",
    "explorax.theory",
    "explorax.networks",
    "explorax.policies.base",
    "explorax.policies.settings",
    "explorax.policies.adoption",
    "explorax.policies.exploration",
    "explorax.policies.glm_learner",
    "explorax.policies.glm_model",
    "explorax.policies.linear_model",
    "explorax.policies.deep_model",
    "explorax.policies.representation",
    "explorax.policies.",  # every algorithm; one may use another's parts
    "explorax.registry",
    "explorax.environments.base",
    "explorax.environments.glm",
    "explorax.environments.labelled",
    "explorax.environments",
    "explorax.record",
    "explorax.simulation",
    "explorax.agent.sets",
    "explorax.agent.encoding",
    "explorax.agent.arms",
    "explorax.agent.menus",
    "explorax.agent.decisions",
    "explorax.agent.ids",
    "explorax.agent.pending",
    "explorax.agent.propensity",
    "explorax.agent.packing",
    "explorax.agent.deciding",
    "explorax.agent.points",
    "explorax.agent.learning",
    "explorax.agent.snapshot",
    "explorax.agent.saving",
    "explorax.agent.agent",
    "explorax.agent",
    "explorax",
    "explorax.summarize",
    "explorax.plot",
    "explorax.report",
    "explorax.experiments",
    "explorax.experiments.study",
    "explorax.experiments.logistic",
    "explorax.experiments.deep",
    "explorax.experiments.theorems",
    "explorax.devices",
    "explorax.runner.tasks",
    "explorax.runner.compiling",
    "explorax.runner.worker",
    "explorax.runner.pool",
    "explorax.runner.progress",
    "explorax.runner.lock",
    "explorax.runner.journal",
    "explorax.runner.outputs",
    "explorax.runner",
    "explorax.arena",
    "explorax.arena.problems",
    "explorax.arena.contestants",
    "explorax.arena.standings",
    "explorax.arena.figure",
    "explorax.arena.page",
    "explorax.arena.tournament",
    "explorax.bench",
    "explorax.cli.texts",
    "explorax.cli.stopping",
    "explorax.cli.commands",
    "explorax.cli.arena",
    "explorax.cli",
    "explorax.__main__",
]
EXTRAS = {  # beside jax and numpy
    "explorax.plot": {"matplotlib"},
    "explorax.arena.figure": {"matplotlib"},
    "explorax.runner.progress": {"rich"},
}
MODULES = sorted(SOURCE.rglob("*.py"))


def module_name(path):
    return ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")


def rank(module):
    if module in ORDER:
        return ORDER.index(module)
    return ORDER.index("explorax.policies.") if module.startswith("explorax.policies.") else None


def imports(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            known = [name for name in inside if (SOURCE / Path(*name.split("."))).with_suffix(".py").exists()]
            yield from known or [node.module]


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_imports_go_up(path):
    own = rank(module_name(path))
    for name in imports(path):
        if name.split(".")[0] != "explorax":
            allowed = {"jax", "numpy"} | EXTRAS.get(module_name(path), set()) | set(sys.stdlib_module_names)
            assert name.split(".")[0] in allowed, name
        elif own is not None:
            assert rank(name) is not None, name
            assert rank(name) <= own, f"{module_name(path)} imports {name}"


@pytest.mark.parametrize("path", MODULES, ids=module_name)
def test_no_file_outgrows_its_idea(path):
    assert len(path.read_text().splitlines()) <= 400
