"""Imports go up the list of ARCHITECTURE.md only, tests lie where the source does, and the library needs no more than
jax and numpy."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import EVERY_POLICY, ROOT, SOURCE, listed_paths, ranks

TESTS = Path(__file__).parent
EXTRAS = {  # beside jax and numpy
    "plot.py": {"matplotlib"},
    "arena/figure.py": {"matplotlib"},
    "evaluation/figure.py": {"matplotlib"},
    "runner/progress.py": {"rich"},
}
# Modules whose tests lie elsewhere, with where and why; a folder stands for what is in it.
TESTED_ELSEWHERE = {
    "__init__.py": "test_public_names.py looks at its names, cli/test_cli.py at what it imports",
    "__main__.py": "test_runner.py in runner/ and test_commands.py in cli/ start it",
    "data_files.py": "test_datasets.py and test_open_bandit.py, whose files they are",
    "lockstep.py": "test_simulation.py, whose simulations are this loop",
    "remote.py": "runner/test_ray.py, whose workers it is; test_software.py looks at what it imports",
    "runner/executor.py": "runner/test_runner.py, which refuses what is none; the three have tests of their own",
    "cli/executors.py": "cli/test_commands.py: options of runs",
    "registry.py": "contract/test_policies.py puts every entry to the test, test_public_names.py its builders",
    "agent/learner.py": "agent/test_reward_window.py and agent/test_warm_start.py; test_agent.py learns in any order",
    "agent/saved_parts.py": "agent/test_snapshot.py, which spoils every part of a snapshot",
    "agent/shell.py": "agent/test_agent.py, whose arms come and go; test_own_arms.py has what they do",
    "experiments/labels.py": "experiments/test_settings.py, whose studies, panels and curves have names",
    "glm/weighted.py": "glm/memory/test_absorbed.py: the record that memories absorb",
    "environments/base.py": "environments/test_environments.py: the records that all environments fill",
    "environments/glm.py": "environments/test_environments.py takes the drawn ones together",
    "glm/ball.py": "policies/test_ofuglb.py and test_constant_cost.py, whose estimates lie in a ball",
    "glm/basis.py": "glm/test_linalg.py, beside the factors that it is made with",
    "glm/polya_gamma.py": "policies/test_pg_ts.py, the policy that draws them",
    "glm/project.py": "policies/test_decision_rules.py, of GLM-UCB",
    "policies/": "contract/ puts every policy to the same tests; policies/ holds what is special, by idea",
}
MODULES = [path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))]
RANKS = ranks()


def imports(module):
    """What a module imports: modules of ours as paths, the names of other packages."""
    for node in ast.walk(ast.parse((SOURCE / module).read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if path_of(name) else node.module for name in inside]
        else:
            continue
        yield from (path_of(name) or name.split(".")[0] for name in names)


def path_of(name):
    """The path of a module of ours by its name, `None` for everything else."""
    package, *parts = name.split(".")
    if package != "explorax":
        return None
    folder = "/".join(parts)
    return next((path for path in (f"{folder}.py", f"{folder}/__init__.py".lstrip("/")) if path in MODULES), None)


def needs_no_place(module):
    """Whether a module is a package's docstring alone."""
    return module.endswith("__init__.py") and not list(imports(module))


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_up(module):
    for name in imports(module):
        if name in MODULES:
            assert RANKS[name] <= RANKS[module], f"{module} imports {name}"
        else:
            assert name in {"jax", "numpy"} | EXTRAS.get(module, set()) | set(sys.stdlib_module_names), name


def test_the_order_is_that_of_the_table():
    """Some of it is known, so that a table that is not read would be noticed."""
    assert RANKS["errors.py"] < RANKS["policies/base.py"] < RANKS["policies/glm_tsl.py"] == RANKS["policies/uniform.py"]
    assert RANKS["registry.py"] < RANKS["experiments/study.py"] < RANKS["runner/__init__.py"] < RANKS["__main__.py"]
    assert EVERY_POLICY in listed_paths()


def test_imports_are_found():
    """Those inside functions and those of single names too."""
    found = set(imports("runner/outputs.py"))
    assert {"record.py", "plot.py", "experiments/study.py", "runner/rungs.py", "collections"} <= found
    assert "environments/__init__.py" in set(imports("experiments/study.py"))


def test_architecture_lists_every_module_and_no_other():
    assert set(RANKS) == {module for module in MODULES if not needs_no_place(module)}


@pytest.mark.usefixtures("on_the_cpu")
def test_the_walks_are_those_that_calls_take():
    """The first two; the third takes as long as a run, and its files need only be there."""
    _, _, text = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Three walks\n")
    text, _, _ = text.partition("\n## What to touch\n")
    written = [re.findall(r"`([\w/]+\.py)`", part) for part in re.split(r"\n\*\*", text)[1:]]
    command = [sys.executable, str(ROOT / "benchmarks/walks.py"), "--json", "--without-the-command"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"PYTHONPATH": "src"}, cwd=ROOT
    )
    (first, _), (second, _) = json.loads(done.stdout.splitlines()[-1]).values()
    assert written[0] == first
    assert set(written[1]) == set(second) - set(first)
    assert set(first) <= set(second)
    assert len(written[2]) > 20
    assert set(written[2]) <= set(MODULES)


def test_the_runner_names_no_experiment():
    known = {name for module in MODULES if module.startswith("runner/") for name in imports(module)}
    assert {name for name in known if name.startswith(("experiments/", "arena/"))} == {"experiments/study.py"}


MEMORIES = {"Memory", "RowMemory", "FixedArms", "KeptRows", "Summary", "Buffer", "Grouped", "Rows", "Recent", "Moments"}


@pytest.mark.parametrize("module", [path for path in MODULES if not path.startswith(("glm/memory/", "glm/history"))])
def test_nobody_asks_what_kind_of_memory_there_is(module):
    for node in ast.walk(ast.parse((SOURCE / module).read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            kinds = {part.id for part in ast.walk(node.args[1]) if isinstance(part, ast.Name)}
            assert not kinds & MEMORIES, ast.unparse(node)


def mirrored(module):
    """The tests of a module, in the place that mirrors its own."""
    folder, _, name = module.removesuffix(".py").rpartition("/")
    return TESTS / folder / f"test_{Path(folder).name if name == '__init__' else name}.py"


def exemptions(module):
    """The entries that say where else a module is tested."""
    return {entry for entry in TESTED_ELSEWHERE if module == entry or (entry[-1] == "/" and module.startswith(entry))}


def test_tests_mirror_the_source():
    missing = [module for module in MODULES if not mirrored(module).exists() and not needs_no_place(module)]
    assert [module for module in missing if not exemptions(module)] == []
    needed = {entry for module in missing for entry in exemptions(module)}
    assert needed == set(TESTED_ELSEWHERE), "an exemption is needed no more"


def test_every_test_module_of_a_package_has_a_module():
    """Where tests lie by module, there are no others."""
    for package in ("runner", "experiments", "arena", "cli"):
        wanted = {mirrored(module) for module in MODULES if module.startswith(f"{package}/")}
        assert set((TESTS / package).glob("test_*.py")) <= wanted


@pytest.mark.parametrize("module", MODULES)
def test_no_file_outgrows_its_idea(module):
    assert len((SOURCE / module).read_text().splitlines()) <= 400
