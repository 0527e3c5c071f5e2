"""What the docs show runs, and what they list is what there is."""

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

import explorax
from explorax import cli, runner
from explorax.runner import outputs
from explorax.runner.worker import Player
from tests.runner.inline import Inline

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
WITHOUT_LINKS = {"CHANGELOG.md", "SECURITY.md", "errata.md"}
SHOWN = {
    "index.md": 2,
    "install.md": 2,
    "first-agent.md": 4,
    "contexts.md": 5,
    "late-rewards.md": 6,
    "decision-log.md": 9,
    "propensities.md": 3,
    "choosing-a-policy.md": 4,
    "evaluation.md": 5,
    "simulation.md": 4,
    "networks.md": 2,
    "fit.md": 2,
    "inside.md": 1,
    "faq.md": 1,
    "adding-a-policy.md": 5,
    "adding-a-memory.md": 2,
    "adding-an-environment.md": 4,
    "theory.md": 3,
    "migration/mabwiser.md": 2,
    "migration/contextualbandits.md": 2,
    "migration/vowpal-wabbit.md": 2,
    "migration/bayesianbandits.md": 2,
}  # page -> blocks of code


def test_readme_code_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # it saves an agent
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len(blocks) == 2  # an agent, a simulation
    for block in blocks:
        exec(block, {})
    arm, propensity, *regrets = capsys.readouterr().out.split()
    assert arm in ("red", "green", "blue")
    assert 0 < float(propensity) <= 1
    names, values = regrets[::2], [float(value) for value in regrets[1::2]]
    assert names == ["glm_tsl:", "glm_fpl:", "uniform:"]
    assert max(values[:2]) < values[2] / 2  # what is learned in 200 rounds; uniform choices have 67, the others 15


@pytest.mark.parametrize(("page", "least"), SHOWN.items())
def test_pages_print_what_they_show(page, least):
    text = (ROOT / "docs" / page).read_text()
    blocks = re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", text, re.DOTALL)
    assert len(blocks) >= least
    namespace = {}
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        assert printed.getvalue() == shown, code


@pytest.mark.usefixtures("on_the_cpu")
def test_the_study_of_the_guide_runs(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/simulation.md").read_text()
    (settings,) = re.findall(r"Write this to `first.toml`,\n\n```toml\n(.*?)```", text, re.DOTALL)
    assert "```console\nexplorax run first.toml\n```" in text
    monkeypatch.chdir(tmp_path)
    Path("first.toml").write_text(settings)
    assert cli.main(["run", "first.toml", "--processes", "1"]) == 0
    printed = capsys.readouterr().out
    assert all(label in printed for label in ("GLM-TSL (informal)", "GLM-TSL, a = 1/2", "Uniform"))
    assert Path("results/first/report.html").stat().st_size > 0


@pytest.mark.usefixtures("on_the_cpu")
def test_the_sweeps_of_the_guide_print_what_is_shown(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs/sweeps.md").read_text()
    (whole, more), shown = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("toml", "text"))

    players = {}

    def played(study, task):  # in this process, which takes less time
        if study.name not in players:  # of both sweeps, which compiles once
            players[study.name] = Player(study)
        return players[study.name].play(task, lambda rounds: None)

    monkeypatch.setattr(runner, "default_executor", lambda: Inline(played))
    monkeypatch.setattr(outputs, "draw", lambda *about: ([], []))
    monkeypatch.chdir(tmp_path)
    for settings in (whole, whole.replace("instances = 200\n", more)):
        Path("mine.toml").write_text(settings)
        assert cli.main(["run", "mine.toml", "--out", f"out-{len(shown)}"]) == 0
        assert shown.pop(0) in capsys.readouterr().out
    assert shown == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?://)([^)#]+)", page.read_text())
    assert bool(links) == (page.name not in WITHOUT_LINKS)
    for target in links:
        assert (page.parent / target).exists(), target


def test_every_public_name_exists():
    for name in explorax.__all__:
        assert hasattr(explorax, name)


SIMULATIONS = {  # example -> options, titles of its table
    "logistic_bandit.py": (["--arms", "8", "--features", "3"], {"GLM-TSL", "GLM-FPL", "Greedy", "Uniform"}),
    "labelled_data.py": (["--arms", "4"], {"DeepFPL", "DeepFL", "NeuralLinear", "LinTS", "Uniform"}),
}
AGENTS = {  # example -> rounds, and what else it prints
    "articles.py": (1200, r"editors( +[\d.]+){4}\nnewest( +[\d.]+){4}\n"),
    "prices.py": (200, r"( [\d.]{4} +\d+ +[\d.]+ +[\d.]+\n){12}"),
    "doses.py": (150, r"( *\d+ to \d+ kg +\d+( +[\d.]+){2}\n){3}"),
    "new_arm.py": (400, r"absent .* 0% +0\nadded .*\nretired .* 0% +0\nrestored .*\n"),
    "crash.py": (160, r"exit code -9 after 81 decisions\n(\d+) of \1 rows of the log"),
}


def example_prints(name, *options):
    command = [sys.executable, ROOT / "examples" / name, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def check_figure(path):
    """Check that a figure is a PNG image of 800 x 450 pixels with something on it."""
    content = path.read_bytes()
    assert content[:16] == b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"
    assert (int.from_bytes(content[16:20]), int.from_bytes(content[20:24])) == (800, 450)
    assert len(content) > 5_000


def test_every_example_is_run_and_has_a_figure_in_the_gallery():
    names = {path.stem for path in ROOT.glob("examples/*.py")}
    assert {f"{name}.py" for name in names} == {*SIMULATIONS, *AGENTS}
    assert {path.stem for path in ROOT.glob("docs/gallery/*.png")} == names
    for path in ROOT.glob("docs/gallery/*.png"):
        check_figure(path)
        assert path.stat().st_size < 60_000


@pytest.mark.parametrize("name", SIMULATIONS)
def test_simulations_run(name, tmp_path):
    options, titles = SIMULATIONS[name]
    figure = tmp_path / "figure.png"
    printed = example_prints(name, "--rounds", "30", "--instances", "2", "--figure", figure, *options)
    check_figure(figure)
    table = dict(line.split()[:2] for line in printed.splitlines()[3:])
    assert set(table) == titles
    assert all(0 < float(measure) < 30 for measure in table.values())


@pytest.mark.parametrize("name", AGENTS)
def test_agents_do_better_than_chance(name, tmp_path):
    rounds, shown = AGENTS[name]
    figure = tmp_path / "figure.png"
    printed = example_prints(name, "--rounds", str(rounds), "--seed", "0", "--figure", figure)
    check_figure(figure)
    assert re.search(shown, printed), printed
    measures = re.search(r"([\d.]+) with the agent, ([\d.]+) at random, ([\d.]+) at best", printed)
    agent, at_random, best = map(float, measures.groups())
    assert at_random + (best - at_random) / 4 < agent <= best


def test_the_stress_command_runs():
    command = [sys.executable, ROOT / "benchmarks/fit_stress.py", "--cases", "28", "--families", "bernoulli"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.search(r"^28 cases, 0 failures, at most \d+ of 1000 steps", done.stdout, re.MULTILINE)
