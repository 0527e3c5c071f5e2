"""CPU time of a first and of a second run of the command, here and in another revision: how long does a start take?

    python benchmarks/cold_start.py --against REV [--repeats 3] [-- reproduce logistic --quick]

The command of each revision runs in an empty directory with an empty cache of compiled programs; that of this revision
then runs once more with the programs that its first run has kept.  The revisions take turns, first the one and next
time the other ahead.  Times are seconds of user and system time of the command and all its processes.  The table has
the median of each run, and the median, least and largest ratio to the first run of the other revision in the same turn.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from digests import ROOT, extract

COMMAND = ["reproduce", "logistic", "--quick"]
HERE, AGAIN, THERE = "here, first run", "here, second run", "there, first run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", required=True, help="a revision to compare with, such as HEAD~1")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("command", nargs="*", default=COMMAND, help=f"what to run (default: {' '.join(COMMAND)})")
    options = parser.parse_args()
    turns: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        extract(options.against, folder)
        for repeat in range(options.repeats):
            order = (here, there) if repeat % 2 == 0 else (there, here)
            turn: dict[str, float] = {}
            for measure in order:
                turn |= measure(Path(folder), options.command)
            turns.append(turn)
            print(
                "  ".join(f"{name}: {turn[name]:.1f} s" for name in (HERE, AGAIN, THERE)), file=sys.stderr, flush=True
            )
    print(f"{'CPU seconds':<18} {'median':>7}  ratio: median, least, largest")
    for name in (HERE, AGAIN, THERE):
        ratios = sorted(turn[name] / turn[THERE] for turn in turns)
        median = statistics.median(turn[name] for turn in turns)
        print(f"{name:<18} {median:7.1f}  {statistics.median(ratios):.3f}, {ratios[0]:.3f}, {ratios[-1]:.3f}")


def here(_: Path, command: list[str]) -> dict[str, float]:
    """Measure a first and a second run of this revision."""
    with tempfile.TemporaryDirectory() as cache:
        return {name: cpu_seconds(ROOT, command, Path(cache)) for name in (HERE, AGAIN)}


def there(root: Path, command: list[str]) -> dict[str, float]:
    """Measure a first run of the revision in a folder."""
    with tempfile.TemporaryDirectory() as cache:
        return {THERE: cpu_seconds(root, command, Path(cache))}


def cpu_seconds(root: Path, command: list[str], cache: Path) -> float:
    """Run a command of the revision in a folder, in an empty directory; return the CPU time of all its processes."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_COMPILATION_CACHE")}
    environment |= {"PYTHONPATH": str(root / "src"), "JAX_PLATFORMS": "cpu", "EXPLORAX_PROGRAMS": str(cache)}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as results:
        program = [sys.executable, "-m", "explorax", *command]
        subprocess.run(program, cwd=results, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
