"""What a stranger's machine may do to `make test`: another clock, other hash seeds, folders that runs leave behind."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Loaded before anything else that is collected: a clock that is years ahead, and that runs.
SHIFTED = """
import time
for name, factor in (("time", 1), ("time_ns", 10**9)):
    real = getattr(time, name)
    setattr(time, name, lambda real=real, factor=factor: real() + 10**8 * factor)
"""


def test_ids_are_the_same_under_another_clock_and_other_hash_seeds(tmp_path, request):
    """Processes that share the tests must agree on them, so ids hold nothing that depends on when they are made."""
    (tmp_path / "shifted_clock.py").write_text(SHIFTED)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    other_seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    shifted = {"PYTHONHASHSEED": other_seed, "PYTHONPATH": path, "PYTEST_PLUGINS": "shifted_clock"}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider"]
    command += ["--assert", "plain"]  # nothing is asserted
    command += request.config.args  # what is collected here
    folder = request.config.invocation_params.dir
    done = subprocess.run(command, cwd=folder, env=os.environ | shifted, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    there = [line for line in done.stdout.splitlines() if "::" in line]
    here = [item.nodeid for item in request.session.items]  # all of these, but for what was deselected
    asked_for = set(here)
    assert [one for one in there if one in asked_for] == here


def test_the_tests_of_a_file_run_in_one_process(tmp_path):
    """What they compile, and the site that they build, is made once; a plugin that ignores our wish does it twice."""
    test = """
import os, pathlib, pytest
@pytest.mark.parametrize("number", range(4))
def test_where(number):
    with open(pathlib.Path(__file__).with_suffix(".txt"), "a") as file:
        print(os.environ["PYTEST_XDIST_WORKER"], file=file)
"""
    files = [tmp_path / f"test_{number}.py" for number in range(4)]
    for file in files:
        file.write_text(test)
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path)]
    command += ["-p", "no:cacheprovider", *map(str, files)]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    places = [file.with_suffix(".txt").read_text().split() for file in files]
    assert [(len(each), len(set(each))) for each in places] == [(4, 1)] * 4
    assert {worker for each in places for worker in each} == {"gw0", "gw1", "gw2"}


def test_the_clock_is_shifted(tmp_path):
    """The plugin does what the test above needs."""
    (tmp_path / "shifted_clock.py").write_text(SHIFTED)
    code = "import time; before = time.time(); import shifted_clock; print(time.time() - before > 9e7)"
    found = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert found.stdout == "True\n"


def test_style_does_not_depend_on_what_runs_leave(tmp_path):
    """Folders with the names of modules are no modules: imports are sorted the same with and without them."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for folder in ("benchmarks", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "snapshots"))
    for left in ("results", "site", "common", "tables"):
        (tmp_path / left).mkdir()
    check = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "I", "benchmarks", "tests"]
    found = subprocess.run(check, cwd=tmp_path, check=False, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def test_the_checks_name_what_they_look_at():
    """`ruff check .` would look into folders that runs leave behind."""
    makefile = (ROOT / "Makefile").read_text()
    assert makefile.count("/ruff check $(SOURCES)") == makefile.count("/ruff check") > 0
    assert makefile.count("/ruff format --check $(SOURCES)") == makefile.count("/ruff format") > 0
