"""A real browser, offline, and the pages that it visits: report, arena, evaluation and site (`make browser`)."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import sync_playwright

from explorax import LoggedData, evaluate, plot, summarize
from explorax.arena import page as arena_page
from tests import fabricate
from tests.browser.visits import Visit
from tests.test_report import page as fabricated_report

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / "results" / "browser"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run",
)  # fmt: skip


def pytest_terminal_summary(terminalreporter):
    terminalreporter.write_line(f"Screenshots are in {SHOTS}.")


@pytest.fixture(scope="session")
def browser():
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, "There is no Chromium: install Debian's package with `apt install chromium`."
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=QUIET)
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Open pages at a width and in a scheme of colors; none may fail, complain or ask anything of the network."""
    visits = []

    def opened(address, width=1400, scheme="light", **more):
        made = Visit(browser, address, width, scheme, **more)
        visits.append(made)
        return made

    yield opened
    for made in visits:
        made.context.close()
    for made in visits:
        assert not made.complaints, made.complaints


@pytest.fixture(scope="session")
def shots():
    """The folder of the screenshots, emptied."""
    shutil.rmtree(SHOTS, ignore_errors=True)
    SHOTS.mkdir(parents=True)
    return SHOTS


@pytest.fixture(scope="session")
def report_address(tmp_path_factory):
    """A report of Figure 1 as a run leaves it."""
    png = plot.to_bytes(plot.figure(summarize.series(fabricate.results(), "regret")), "png", dpi=100)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(fabricated_report(png), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="session")
def arena_address(tmp_path_factory):
    """The arena of the docs: 28 policies on 13 problems, with a time that was not measured."""
    kept = arena_page.unpack((ROOT / "docs" / "arena.json.gz").read_bytes())
    kept["rows"][0]["microseconds"] = None
    path = tmp_path_factory.mktemp("arena") / "arena.html"
    path.write_text(arena_page.render(kept), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="session")
def evaluation_address(tmp_path_factory):
    """An evaluation of two policies, of which the log can judge one."""
    rng = np.random.default_rng(0)
    chances = np.tile([0.6, 0.4, 0.0], (2000, 1))
    arms = (rng.random(2000) < 0.4).astype(int)
    rewards = (rng.random(2000) < np.array([0.2, 0.6])[arms]).astype(float)
    log = LoggedData.of(arms, rewards, names=["plain", "picture", "never"], all_propensities=chances)
    targets = {"picture, always": np.tile([0.0, 1.0, 0.0], (2000, 1)), "never": np.tile([0.0, 0.0, 1.0], (2000, 1))}
    folder = tmp_path_factory.mktemp("evaluation")
    evaluate(log, targets).write(folder)
    return (folder / "index.html").as_uri()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site, built; its address ends with a slash."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return f"{folder.as_uri()}/"
