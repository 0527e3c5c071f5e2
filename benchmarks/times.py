"""How long rounds and an agent's decisions take, here and in another revision: has a change of the code slowed them?

    python benchmarks/times.py --against REV [--cases round/glm_tsl agent …] [--repeats 15]

A process for each revision compiles everything first.  Then the two take turns on one core, first the one and next time
the other ahead.  The table has the median processor time of each in microseconds, and the median, least and largest
ratio of this revision to the other one within a turn.  A round is one of an instance, of 50 in lockstep; a decision of
an agent is one `choose` and one `learn` (`explorax.devices.decide_inline`).
"""

import argparse
import inspect
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from digests import ROOT, extract

ROUNDS, DECISIONS, ARMS, FEATURES, SEED = 1000, 1000, 100, 10, 7
SERVE = [sys.executable, __file__, "serve"]
PLAYED = ("glm_tsl", "glm_fpl", "ucb_glm", "glm_ucb")
CASES = (
    *(f"round/{name}" for name in PLAYED),
    "agent/fixed arms",
    "agent/fixed arms, propensity",
    "agent/changing arms",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", metavar="REV", required=True, help="a revision to compare with, such as HEAD~1")
    parser.add_argument(
        "--cases", nargs="+", default=list(CASES), choices=CASES, metavar="CASE", help="all unless given"
    )
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        extract(options.against, folder)
        here, there = worker(ROOT), worker(Path(folder))
        print(f"{'case':<30} {'here':>8} {'there':>8}  ratio: median, least, largest")
        for case in options.cases:
            report(case, here, there, options.repeats)
        for process in (here, there):
            process.communicate()


def worker(root: Path) -> subprocess.Popen[str]:
    """Start a process that times cases of the revision in that folder."""
    environment = os.environ | {"PYTHONPATH": str(root / "src"), "JAX_PLATFORMS": "cpu"}
    return subprocess.Popen(SERVE, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def report(case: str, here: subprocess.Popen[str], there: subprocess.Popen[str], repeats: int) -> None:
    """Let the two take turns at a case and print a line about it."""
    found: list[tuple[float, float]] = []
    for repeat in range(-1, repeats):
        order = (here, there) if repeat % 2 else (there, here)
        times = {process: asked(process, case) for process in order}
        if repeat >= 0:  # the first turn compiles
            found.append((times[here], times[there]))
    ratios = sorted(ours / theirs for ours, theirs in found)
    ours, theirs = (statistics.median(times) for times in zip(*found, strict=True))
    print(f"{case:<30} {ours:8.2f} {theirs:8.2f}  {statistics.median(ratios):.3f}, {ratios[0]:.3f}, {ratios[-1]:.3f}")


def asked(process: subprocess.Popen[str], case: str) -> float:
    """Return what a worker measures."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(case, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def serve() -> None:
    """Time the cases that are asked for, one a line, on one core."""
    from explorax import devices

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    devices.decide_inline()
    for case in map(str.strip, sys.stdin):
        kind, _, what = case.partition("/")
        prepared = {"round": prepared_rounds, "agent": prepared_decisions}[kind](what)
        start = time.process_time()
        count = prepared()
        print((time.process_time() - start) / count * 1e6, flush=True)


def prepared_rounds(policy: str) -> Callable[[], int]:
    """Return what plays a policy and tells the number of rounds."""
    import explorax
    from explorax import environments

    try:
        world = environments.make("logistic", n_features=FEATURES, n_arms=ARMS)
    except explorax.errors.UnknownName:  # as earlier revisions have it
        world = environments.make("logistic", features=FEATURES, arms=ARMS)

    def play() -> int:
        explorax.simulate(explorax.make(policy), world, rounds=ROUNDS, instances=50, seed=SEED, checkpoints=1)
        return 50 * ROUNDS

    return play


def prepared_decisions(kind: str) -> Callable[[], int]:
    """Return what lets an agent decide and learn, and tells the number of decisions."""
    import explorax

    rng = np.random.default_rng(SEED)
    tables, rewards = rng.uniform(-1, 1, (DECISIONS, ARMS, FEATURES)), rng.integers(0, 2, DECISIONS).astype(float)
    change, draws = kind == "changing arms", 100 if kind == "fixed arms, propensity" else 0
    policy = explorax.make("glm_tsl", **({"memory": "refitted"} if change else {}))
    known = inspect.signature(explorax.Agent).parameters
    count = "n_features" if "n_features" in known else "features"  # as earlier revisions have it
    agent = explorax.Agent(policy, seed=SEED, draws=draws, **({count: FEATURES} if change else {"arms": tables[0]}))

    def decide() -> int:
        for table, reward in zip(tables, rewards, strict=True):
            agent.learn(agent.choose(table if change else None).id, reward)
        return DECISIONS

    return decide


if __name__ == "__main__":
    serve() if sys.argv[1:] == SERVE[-1:] else main()
