"""The files of the package that three calls pass through, in the order of their first visit.

    python benchmarks/walks.py [--against REV] [--without-the-command]

The walks are those of ARCHITECTURE.md: one round of GLM-FPL with fixed arms (`act` and `update`), `choose` and `learn`
of an agent with it, and `explorax reproduce logistic` from the command to its outputs, where policies and their fits
are left out, since they are the first walk.  Calls are watched as they happen, the first time, when compiled functions
run as Python.  Helpers that anything may use (`HELPERS`) are left out.  A return is a function that is called for the
first time in a file which the walk has been in and left before.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
HELPERS = {
    "__init__.py",
    "batching.py",
    "checks.py",
    "errors.py",
    "extras.py",
    "files.py",
    "keys.py",
    "places.py",
    "programs.py",
    "text.py",
}


class Walk(NamedTuple):
    """Where a call went."""

    files: list[str]  # in the order of their first visit
    returns: int


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", help="a revision to compare with, such as HEAD~1")
    parser.add_argument("--json", action="store_true", help="print a JSON object in place of text")
    parser.add_argument(
        "--without-the-command", action="store_true", help="leave out the third walk, which takes longest"
    )
    options = parser.parse_args()
    found = walks(not options.without_the_command)
    if options.json:
        print(json.dumps(found))
        return 0
    before = elsewhere(options.against) if options.against else {}
    for name, walk in found.items():
        print(f"{name}: {len(walk.files)} files, {walk.returns} returns")
        if name in before:
            print(f"    {options.against}: {len(before[name][0])} files, {before[name][1]} returns")
        print("    " + " ".join(walk.files))
    return 0


def walks(of_the_command: bool) -> dict[str, Walk]:
    """Return the walks of the three calls, or of the first two."""
    import jax
    import numpy as np

    import explorax
    from explorax.cli import main as command

    arms = np.random.default_rng(0).uniform(-1, 1, (6, 3))
    policy = explorax.make("glm_fpl")
    state = policy.init(arms)

    def play() -> None:
        action = policy.act(jax.random.key(0), state, arms, 9)
        policy.update(state, int(action.arm), arms[int(action.arm)], 1.0)

    agent = explorax.Agent(explorax.make("glm_fpl", scale=0.3), arms=arms, draws=0)

    def decide() -> None:
        agent.learn(agent.choose().id, 1.0)

    with tempfile.TemporaryDirectory() as out:
        quick = ["reproduce", "logistic", "--quick", "--out", out, "--processes", "2", "--policies", "glm_fpl"]
        quick += ["--dims", "5", "--rounds", "60", "--instances", "2"]
        calls: dict[str, Callable[[], Any]] = {"a round of GLM-FPL": play, "choose and learn": decide}
        if of_the_command:
            calls["reproduce logistic"] = lambda: command(quick)
        left_out = {"reproduce logistic": ("policies/", "glm/")}
        return {name: watched(call, left_out.get(name, ())) for name, call in calls.items()}


def watched(call: Callable[[], Any], left_out: tuple[str, ...]) -> Walk:
    """Return the walk of a call without some folders; what it prints is not shown."""
    source = os.sep + os.path.join("src", "explorax") + os.sep
    seen: set[tuple[str, str]] = set()
    files: list[str] = []
    returns, last = 0, ""

    def watch(frame: Any, event: str, _: object) -> None:
        nonlocal returns, last
        path = frame.f_code.co_filename
        if event != "call" or source not in path or not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return  # not a call, not ours, or the body of a module or class that is being imported
        file = path.partition(source)[2].replace(os.sep, "/")
        if file in HELPERS or file.startswith(left_out):
            return
        if file not in files:
            files.append(file)
        elif (file, frame.f_code.co_qualname) not in seen and file != last:
            returns += 1
        seen.add((file, frame.f_code.co_qualname))
        last = file

    shown = os.dup(1)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        sys.setprofile(watch)
        try:
            call()
        finally:
            sys.setprofile(None)
            os.dup2(shown, 1)
            os.close(shown)
    return Walk(files, returns)


def elsewhere(revision: str) -> dict[str, list[Any]]:
    """Return the walks in another revision, watched by this program."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, capture_output=True, check=True)
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        environment = os.environ | {"PYTHONPATH": os.path.join(folder, "src")}
        arguments = [sys.executable, str(Path(__file__)), "--json"]
        done = subprocess.run(arguments, env=environment, cwd=folder, capture_output=True, text=True, check=True)
        found: dict[str, list[Any]] = json.loads(done.stdout.splitlines()[-1])
        return found


if __name__ == "__main__":
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())
