"""How long the command takes to answer when there is nothing to compute, as a share of the time of `import jax`.

    python benchmarks/answers.py [--repeats 15]

In each turn a process imports JAX, and then every command below runs in a process of its own.  The table has the median
time of each in milliseconds, start of Python included, and the median, least and largest ratio to the import of JAX in
the same turn.
"""

import argparse
import statistics
import subprocess
import sys
import time

IMPORT = [sys.executable, "-c", "import jax"]
COMMANDS = (
    "--help",
    "--version",
    "policies",
    "reproduce logistic --help",
    "reproduce logistic --quik",
    "reproduce logistic --policies glm_tls",
    "polices",
    "report",
    "report nowhere",
    "run --example",
    "run nowhere.toml",
    "arena --list",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    run = {given: [sys.executable, "-m", "explorax", *given.split()] for given in COMMANDS}
    turns = []
    for turn in range(-1, options.repeats):
        times = {given: seconds(command) for given, command in [("import jax", IMPORT), *run.items()]}
        if turn >= 0:  # the first turn reads the files from disk
            turns.append(times)
    print(f"{'command':<48} {'ms':>6}  ratio: median, least, largest")
    for given in ("import jax", *COMMANDS):
        ratios = sorted(times[given] / times["import jax"] for times in turns)
        middle = statistics.median(times[given] for times in turns)
        name = given if given == "import jax" else f"explorax {given}"
        print(f"{name:<48} {middle * 1e3:6.0f}  {statistics.median(ratios):.3f}, {ratios[0]:.3f}, {ratios[-1]:.3f}")


def seconds(command: list[str]) -> float:
    """Return how long a command takes, whatever it prints and however it ends."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
