"""One `choose` and one `learn` of `explorax.Agent`, next to the same of other libraries, in one run.

    python benchmarks/agent_speed.py DIR [--repeats 5] [--rounds 2000] [--sizes 10x5 100x20 1000x20] [--all]

DIR holds the environments of the other libraries: `python benchmarks/peers/environments.py DIR` makes them.  Every
library plays the same rounds (`peers/common.py`), on one core, one process after the other; then all of them again.
There is a table for each size, K arms with d features, once with fixed arms and once with arms that come as a table
with every decision.  It has medians over the repeats of the median and of the 99th percentile, in microseconds, and the
ratio of choose + learn to the fastest of the other libraries in the same repeat: its median, least and most.  Below 1,
explorax is faster.

With `--all` come the libraries that take a hundred times as long.  A last table is about `choose_many`: the time of one
of 10 000 decisions, and how many of them one `choose` costs.
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
OWN = {f"explorax {name}": ("explorax", name, 1.0) for name in ("lin_ucb", "lin_ts", "glm_tsl", "glm_fpl")}
OWN |= {"explorax glm_tsl, propensity": ("explorax", "glm_tsl propensity", 1.0)}
OTHERS = {  # library, algorithm and scale
    "contextualbandits linreg": ("contextualbandits", "linreg UCB", 0.25),
    "vowpalwabbit SquareCB, propensity": ("vowpalwabbit", "SquareCB", 1000.0),
}
SLOW = {  # the shape of their problem, too
    "bayesianbandits logit TS": ("bayesianbandits", "logistic TS", 1.0, "shared"),
    "bayesianbandits logit TS, per arm": ("bayesianbandits", "logistic TS per arm", 1.0, "disjoint"),
    "contextualbandits LinTS, per arm": ("contextualbandits", "LinTS per arm", 0.25, "disjoint"),
    "mabwiser LinTS, per arm": ("mabwiser", "LinTS per arm", 0.25, "disjoint"),
}
WARMUP = 6000  # rounds before those that count: agents decide ahead after 5000
SHAPES = {"fixed": "fixed arms", "shared": "a table with every decision"}


def measure(directory: Path, library: str, played: dict[str, Any]) -> dict[str, Any]:
    """One run of one library in its own environment."""
    python = Path(sys.executable) if library == "explorax" else directory / library / "bin" / "python"
    task = {"rewards": "logistic", "warmup": WARMUP} | played
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


def compare(directory: Path, arms: int, features: int, shape: str, repeats: int, rounds: int, slow: bool) -> None:
    """All libraries with arms of one size and kind, in turn, and the table of their times."""
    runs = {name: (*who, shape) for name, who in (OWN | OTHERS).items()}
    runs |= SLOW if slow and shape == "shared" else {}
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in runs}
    for repeat in range(repeats):
        for name, (library, algorithm, scale, its_shape) in runs.items():
            task = {"algorithm": algorithm, "scale": scale, "shape": its_shape, "arms": arms, "features": features}
            found[name].append(measure(directory, library, task | {"rounds": rounds, "seed": repeat}))

    def of(name: str, what: str, quantile: str) -> np.ndarray:
        return np.array([run[what][quantile] for run in found[name]])

    fastest = np.min([of(name, "both_us", "median") for name in OTHERS], axis=0)
    title = f"K = {arms}, d = {features}, {SHAPES[shape]}"
    print(f"\n{title:42}       choose            learn             both         ratio to the fastest")
    print(f"{'microseconds':34} {'median':>8} {'p99':>8} {'median':>8} {'p99':>8} {'median':>8} {'p99':>8}  other")
    for name in runs:
        columns = [
            np.median(of(name, what, q)) for what in ("choose_us", "learn_us", "both_us") for q in ("median", "p99")
        ]
        ratios = of(name, "both_us", "median") / fastest
        line = f"{name:34} " + " ".join(f"{value:8.1f}" for value in columns)
        print(f"{line}  {np.median(ratios):.2f} ({ratios.min():.2f}-{ratios.max():.2f})", flush=True)


def batches(repeats: int) -> None:
    """`choose_many` of 10 000 contexts against single calls, alternating, on one core."""
    from explorax import devices

    devices.decide_inline()
    from explorax import Agent, make

    contexts = np.random.default_rng(0).uniform(-1, 1, (10_000, 100, 20))
    title = "choose_many of 10 000 contexts, K = 100, d = 20"
    print(f"\n{title:48} {'us each':>9} {'one call':>9} {'ratio':>7}  least-most")
    rows: tuple[tuple[str, str, int, bool, dict[str, Any]], ...] = (
        ("fixed arms, no propensity", "float64", 0, True, {}),
        ("fixed arms, 100 draws", "float64", 100, True, {}),
        ("fixed arms, 100 draws, all propensities", "float64", 100, True, {"all_propensities": True}),
        ("a matrix each, no propensity", "float64", 0, False, {}),
        ("a matrix each, no propensity, float32", "float32", 0, False, {}),
        ("a matrix each, 100 draws (1000 contexts)", "float64", 100, False, {}),
        ("the same with all propensities", "float64", 100, False, {"all_propensities": True}),
    )
    for label, dtype, draws, fixed, asked in rows:
        policy = make("glm_tsl") if fixed else make("glm_tsl", memory="constant")
        own: dict[str, Any] = {"arms": contexts[0]} if fixed else {"n_features": 20}
        agent = Agent(policy, **own, draws=draws, dtype=dtype, max_pending=20_000)
        given = contexts.astype(dtype)
        count = 1_000 if draws and not fixed else 10_000
        many = count if fixed else given[:count]
        agent.learn(np.asarray(agent.choose_many(many, **asked).ids)[:300], np.tile([0.0, 1.0], 150))
        for context in given[:50]:
            agent.choose(None if fixed else context, **asked)
        each, single = [], []
        for _ in range(repeats):
            began = time.perf_counter()
            agent.choose_many(many, **asked)
            each.append((time.perf_counter() - began) / count * 1e6)
            times = []
            for context in given[:500]:
                began = time.perf_counter()
                agent.choose(None if fixed else context, **asked)
                times.append((time.perf_counter() - began) * 1e6)
            single.append(np.median(times))
        ratios = np.divide(single, each)
        middle = f"{np.median(each):9.2f} {np.median(single):9.1f} {np.median(ratios):7.1f}"
        print(f"{label:48} {middle}  {ratios.min():.1f}-{ratios.max():.1f}", flush=True)


def size(text: str) -> tuple[int, int]:
    """The numbers of arms and of features in a text such as 100x20."""
    arms, features = map(int, text.split("x"))
    return arms, features


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="environments of the other libraries")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--sizes", type=size, nargs="+", default=[(10, 5), (100, 20), (1000, 20)], metavar="KxD")
    parser.add_argument("--all", action="store_true", help="the slow libraries, too, at 100x20")
    options = parser.parse_args()
    directory = options.directory.resolve()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # of this process and of those that it starts
    for arms, features in options.sizes:
        for shape in SHAPES:
            slow = options.all and (arms, features) == (100, 20)
            compare(directory, arms, features, shape, options.repeats, options.rounds, slow)
    batches(options.repeats)


if __name__ == "__main__":
    main()
