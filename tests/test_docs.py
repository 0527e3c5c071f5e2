"""What the docs show runs, and what they list is what there is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import explorax

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_readme_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) >= 5
    namespace = {}
    for block in blocks:
        exec(block, namespace)
    printed = capsys.readouterr().out
    assert "did you mean 'glm_tsl'?" in printed
    assert "glm_fpl" in printed


def test_readme_table_is_the_registry():
    rows = [
        f"| `{e.name}` | {e.title} | {e.randomized} | {', '.join(e.families)} | "
        f"{', '.join(e.designs) or '-'} | {e.cost} |"
        for e in explorax.policies().values()
    ]
    assert "\n".join(rows) in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), target


def test_architecture_names_every_module():
    text = (ROOT / "ARCHITECTURE.md").read_text()
    named = {"<name>.py", *(f"{e.name}.py" for e in explorax.policies().values())}
    for module in (ROOT / "src/explorax").rglob("*.py"):
        assert module.name == "__init__.py" or module.name in named or module.name in text, module


def test_every_public_name_exists():
    for name in explorax.__all__:
        assert hasattr(explorax, name)


EXAMPLES = {
    "logistic_bandit.py": (["--arms", "8", "--features", "3"], {"GLM-TSL", "GLM-FPL", "Greedy", "Uniform"}),
    "labelled_data.py": (["--arms", "4"], {"DeepFPL", "DeepFL", "NeuralLinear", "LinTS", "Uniform"}),
}


@pytest.mark.parametrize("example", sorted(ROOT.glob("examples/*.py")), ids=lambda path: path.name)
def test_examples_run(example):
    options, titles = EXAMPLES[example.name]
    command = [sys.executable, example, "--rounds", "30", "--instances", "2", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    table = dict(line.split()[:2] for line in done.stdout.splitlines()[3:])
    assert set(table) == titles
    assert all(0 < float(measure) < 30 for measure in table.values())


def test_the_stress_command_runs():
    command = [sys.executable, ROOT / "benchmarks/fit_stress.py", "--cases", "84"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"^84 cases, 0 failures, at most \d+ of 1000 steps", done.stdout, re.MULTILINE)
