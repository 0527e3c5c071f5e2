"""Figure 1 at the paper's scale in one process: seconds from the imports to the last record, compilation included.

    python benchmarks/figure1.py [--rounds 50000] [--instances 100] [--dims 5 10 20] [--out FILE.npz]

Needs jax and numpy only, so it runs from a source tree (`PYTHONPATH=src`) on a machine with a GPU and nothing else.
`explorax reproduce logistic` plays the same study with the same code and also draws it.
"""

import argparse
import time

import jax
import numpy as np

from explorax import devices
from explorax.experiments import logistic
from explorax.runner.here import Here
from explorax.runner.tasks import Task, expand
from explorax.runner.worker import Outcome

BEGAN = time.perf_counter()


class Watcher:
    """Prints when a task ends, and keeps its records."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}

    def lost(self, worker: int, task: Task) -> None:
        """Nothing to say."""

    def noted(self, text: str) -> None:
        """Nothing to say."""

    def started(self, worker: int, task: Task) -> None:
        """Nothing to say."""

    def advanced(self, worker: int, task: Task, rounds: int) -> None:
        """Nothing to say."""

    def finished(self, worker: int, task: Task, outcome: Outcome) -> None:
        """One line for each curve."""
        for curve, records in zip(task.curves, outcome.records, strict=True):
            last = records.regret[:, -1]
            error = last.std(ddof=1) / len(last) ** 0.5
            print(
                f"{time.perf_counter() - BEGAN:6.1f} s  {task.panel.label:6s}  {curve.label:20s} "
                f"regret {last.mean():8.1f} "
                f"+- {error:6.1f}  unconverged {records.unconverged.sum()}",
                flush=True,
            )
            for name, values in records._asdict().items():
                self.arrays[f"{task.panel.label}/{curve.label}/{name}"] = values


def main() -> None:
    devices.prepare()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=50_000)
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--dims", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--policies", nargs="+", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", default=None)
    options = parser.parse_args()
    study = logistic.study(
        dims=tuple(options.dims),
        rounds=options.rounds,
        instances=options.instances,
        seed=options.seed,
        policies=options.policies,
    )
    print(f"{jax.devices()[0].device_kind}, jax {jax.__version__}", flush=True)
    watcher = Watcher()
    Here(study).run(expand(study, together=True), watcher)
    seconds = time.perf_counter() - BEGAN
    plays = len(study.curves) * len(study.panels) * study.instances * study.rounds
    print(f"{plays:.3g} decisions in {seconds:.1f} s: {seconds / plays * 1e6:.3f} us each, compilation included")
    if options.out:
        np.savez_compressed(options.out, allow_pickle=False, **watcher.arrays)


if __name__ == "__main__":
    main()
