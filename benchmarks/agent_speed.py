"""One `choose` and one `learn` of `explorax.Agent`, next to the same of other libraries, in one run.

    python benchmarks/agent_speed.py DIR [--repeats 5] [--rounds 2000]

DIR holds the environments of the other libraries: `python benchmarks/peers/environments.py DIR` makes them.  Every
library plays the same rounds (`peers/common.py`), K = 100 arms with d = 20 features, on one core, one process after the
other; then all of them again.  The table has medians over the repeats of the median and of the 99th percentile, in
microseconds, and the ratio of choose + learn to that of explorax in the same repeat: its median, least and most.

A second table is about `choose_many`: the time of one of 10 000 decisions, and how many of them one `choose` costs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

PEERS = Path(__file__).parent / "peers"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
RUNS = {  # library, algorithm, shape and scale; and which of explorax's entries it is compared with
    "explorax glm_tsl": ("explorax", "glm_tsl", "shared", 1.0, None),
    "explorax glm_tsl, propensity": ("explorax", "glm_tsl propensity", "shared", 1.0, None),
    "explorax lin_ts": ("explorax", "lin_ts", "shared", 1.0, None),
    "explorax lin_ucb": ("explorax", "lin_ucb", "shared", 1.0, None),
    "bayesianbandits logit TS, shared": ("bayesianbandits", "logistic TS", "shared", 1.0, "explorax glm_tsl"),
    "bayesianbandits logit TS, per arm": (
        "bayesianbandits",
        "logistic TS per arm",
        "disjoint",
        1.0,
        "explorax glm_tsl",
    ),
    "contextualbandits linreg, shared": ("contextualbandits", "linreg UCB", "shared", 0.25, "explorax lin_ucb"),
    "contextualbandits LinTS, per arm": ("contextualbandits", "LinTS per arm", "disjoint", 0.25, "explorax lin_ts"),
    "mabwiser LinTS, per arm": ("mabwiser", "LinTS per arm", "disjoint", 0.25, "explorax lin_ts"),
    "vowpalwabbit SquareCB, propensity": (
        "vowpalwabbit",
        "SquareCB",
        "shared",
        1000.0,
        "explorax glm_tsl, propensity",
    ),
}


def measure(directory: Path, library: str, played: dict[str, Any]) -> dict[str, Any]:
    """One run of one library in its own environment."""
    python = Path(sys.executable) if library == "explorax" else directory / library / "bin" / "python"
    task = {"rewards": "logistic", "arms": 100, "features": 20, "warmup": 1000} | played
    found = subprocess.run(
        [python, PEERS / f"{library}_adapter.py"],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        env=os.environ | ONE_THREAD,
    )
    if found.returncode:
        raise SystemExit(f"{library} failed:\n{found.stderr}")
    measured: dict[str, Any] = json.loads(found.stdout)
    return measured


def batches(repeats: int) -> None:
    """`choose_many` of 10 000 contexts against single calls, alternating, on one core."""
    from explorax import devices

    devices.decide_inline()
    from explorax import Agent, make

    contexts = np.random.default_rng(0).uniform(-1, 1, (10_000, 100, 20))
    title = "choose_many of 10 000 contexts, K = 100, d = 20"
    print(f"\n{title:48} {'us each':>9} {'one call':>9} {'ratio':>7}  least-most")
    rows = (
        ("fixed arms, no propensity", "float64", 0, True),
        ("fixed arms, 100 draws", "float64", 100, True),
        ("a matrix each, no propensity", "float64", 0, False),
        ("a matrix each, no propensity, float32", "float32", 0, False),
        ("a matrix each, 100 draws (1000 contexts)", "float64", 100, False),
    )
    for label, dtype, draws, fixed in rows:
        policy = make("glm_tsl") if fixed else make("glm_tsl", memory="constant")
        own: dict[str, Any] = {"arms": contexts[0]} if fixed else {"n_features": 20}
        agent = Agent(policy, **own, draws=draws, dtype=dtype, max_pending=20_000)
        given = contexts.astype(dtype)
        count = 1_000 if draws and not fixed else 10_000
        many = count if fixed else given[:count]
        agent.learn(np.asarray(agent.choose_many(many).ids)[:300], np.tile([0.0, 1.0], 150))
        for context in given[:50]:
            agent.choose(None if fixed else context)
        each, single = [], []
        for _ in range(repeats):
            began = time.perf_counter()
            agent.choose_many(many)
            each.append((time.perf_counter() - began) / count * 1e6)
            times = []
            for context in given[:500]:
                began = time.perf_counter()
                agent.choose(None if fixed else context)
                times.append((time.perf_counter() - began) * 1e6)
            single.append(np.median(times))
        ratios = np.divide(single, each)
        middle = f"{np.median(each):9.2f} {np.median(single):9.1f} {np.median(ratios):7.1f}"
        print(f"{label:48} {middle}  {ratios.min():.1f}-{ratios.max():.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="environments of the other libraries")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2000)
    options = parser.parse_args()
    directory = options.directory.resolve()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # of this process and of those that it starts
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in RUNS}
    for repeat in range(options.repeats):
        for name, (library, algorithm, shape, scale, _) in RUNS.items():
            played = {"algorithm": algorithm, "shape": shape, "scale": scale, "rounds": options.rounds, "seed": repeat}
            found[name].append(measure(directory, library, played))

    def of(name: str, what: str, quantile: str) -> np.ndarray:
        return np.array([run[what][quantile] for run in found[name]])

    print("K = 100, d = 20, one core; microseconds                choose            learn             both")
    print(f"{'':40} {'median':>8} {'p99':>8} {'median':>8} {'p99':>8} {'median':>8} {'p99':>8}  ratio to explorax")
    for name, (*_, reference) in RUNS.items():
        columns = [
            np.median(of(name, what, q)) for what in ("choose_us", "learn_us", "both_us") for q in ("median", "p99")
        ]
        line = f"{name:40} " + " ".join(f"{value:8.1f}" for value in columns)
        if reference is not None:
            ratios = of(name, "both_us", "median") / of(reference, "both_us", "median")
            spread = f"{np.median(ratios):.2f} ({ratios.min():.2f}-{ratios.max():.2f})"
            line += f"  {spread} of {reference.removeprefix('explorax ')}"
        print(line)
    rewards = {name: np.mean([run["mean_reward"] for run in runs]) for name, runs in found.items()}
    print("mean reward: " + ", ".join(f"{name} {reward:.3f}" for name, reward in rewards.items()))
    batches(options.repeats)


if __name__ == "__main__":
    main()
