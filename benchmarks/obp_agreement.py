"""Off-policy estimates next to those of the Open Bandit Pipeline (obp 0.4.1), on the same arrays.

    PYTHONPATH=src python benchmarks/obp_agreement.py DIR [--rows 1000000] [--repeats 5]

makes obp's environment in DIR/obp (`obp_environment.py`), and compares

    values    of 10 000 rows with 20 arms and a random target: the largest relative difference, which must be at most
              1e-12 or the exit status is 1
    times     of many rows with 20 arms: seconds of one estimate from the arrays, the median of several that alternate
              between both libraries, and of all seven estimates from the same arrays, which explorax scores once
"""

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import obp_environment

from explorax.evaluation import estimators
from explorax.evaluation.estimate import Estimate
from explorax.evaluation.scores import Scores, scored

HERE = Path(__file__).parent
ARMS, FEW, LIMIT = 20, 10_000, 1e-12
THRESHOLD, SHRINKAGE = 5.0, 20.0
OURS: dict[str, Callable[[Scores], Estimate]] = {
    "ips": estimators.ips,
    "snips": estimators.snips,
    "dm": estimators.dm,
    "dr": estimators.dr,
    "sndr": estimators.sndr,
    "switch_dr": partial(estimators.switch_dr, threshold=THRESHOLD),
    "dr_shrinkage": partial(estimators.dr_shrinkage, shrinkage=SHRINKAGE),
}


class Peer:
    """obp in a process of its own."""

    def __init__(self, python: Path) -> None:
        command = [str(python), str(HERE / "obp_peer.py"), str(THRESHOLD), str(SHRINKAGE)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def estimate(self, file: Path, name: str) -> tuple[float, float]:
        """The value, and the seconds that it took."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(file, name, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().split()
        if len(answer) != 2:
            raise SystemExit("obp has stopped; its error is above")
        return float(answer[0]), float(answer[1])


def arrays(rows: int, seed: int) -> dict[str, Any]:
    """A log of random decisions with a random target and a random model."""
    rng = np.random.default_rng(seed)
    chances = rng.exponential(size=(rows, ARMS))
    chances /= chances.sum(axis=1, keepdims=True)
    arms = (rng.random(rows)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, ARMS - 1)
    target = rng.exponential(size=(rows, ARMS))
    target /= target.sum(axis=1, keepdims=True)
    predictions = rng.random((rows, ARMS))
    rewards = (rng.random(rows) < predictions[np.arange(rows), arms]).astype(float)
    propensities = chances[np.arange(rows), arms]
    return {
        "rewards": rewards,
        "arms": arms,
        "propensities": propensities,
        "target": target,
        "predictions": predictions,
    }


def kept(directory: Path, rows: int, seed: int) -> tuple[dict[str, Any], Path]:
    """The arrays, and the file that the peer reads them from."""
    found, file = arrays(rows, seed), directory / f"arrays-{rows}.npz"
    np.savez(file, **found)
    return found, file


def compare_values(peer: Peer, directory: Path) -> float:
    """Print both values of each estimator; return the largest relative difference."""
    found, file = kept(directory, FEW, seed=0)
    scores, largest = scored(**found), 0.0
    print(f"{FEW} rows, {ARMS} arms:\n{'':14}{'explorax':>22}{'obp':>22}{'difference':>12}")
    for name, estimate in OURS.items():
        ours, theirs = estimate(scores).value, peer.estimate(file, name)[0]
        difference = abs(ours - theirs) / abs(theirs)
        largest = max(largest, difference)
        print(f"{name:14}{ours:22.16f}{theirs:22.16f}{difference:12.1e}")
    file.unlink()
    print(f"the largest relative difference is {largest:.1e}\n", flush=True)
    return largest


def compare_times(peer: Peer, directory: Path, rows: int, repeats: int) -> None:
    """Print the seconds of both, and their ratios."""
    found, file = kept(directory, rows, seed=1)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in [*OURS, "all of them"]}
    peer.estimate(file, "ips")  # reads the file
    for _ in range(repeats):
        for name, estimate in OURS.items():
            needed = found if estimators.ESTIMATORS[name].needs else found | {"predictions": None}
            ours = timed(lambda estimate=estimate, needed=needed: estimate(scored(**needed)))  # type: ignore[misc]
            times[name].append((ours, peer.estimate(file, name)[1]))
        ours = timed(lambda: [estimate(scores) for scores in [scored(**found)] for estimate in OURS.values()])
        times["all of them"].append((ours, sum(times[name][-1][1] for name in OURS)))
    file.unlink()
    print(f"{rows} rows, {ARMS} arms, seconds, medians of {repeats}:\n{'':14}{'explorax':>12}{'obp':>12}{'ratio':>12}")
    for name, pairs in times.items():
        ours, theirs = (statistics.median(side) for side in zip(*pairs, strict=True))
        print(f"{name:14}{ours:12.3f}{theirs:12.3f}{ours / theirs:12.2f}")


def timed(work: Callable[[], Any]) -> float:
    """The seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path, help="where to make obp's environment")
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the arrays that times are of")
    parser.add_argument("--repeats", type=int, default=5, help="how often each estimate is timed")
    asked = parser.parse_args()
    asked.directory.mkdir(parents=True, exist_ok=True)
    peer = Peer(obp_environment.make(asked.directory / "obp"))
    largest = compare_values(peer, asked.directory.resolve())
    compare_times(peer, asked.directory.resolve(), asked.rows, asked.repeats)
    sys.exit(0 if largest <= LIMIT else 1)


if __name__ == "__main__":
    main()
