"""The engine against a hand-written compiled loop, side by side: microseconds per instance-round and their ratio.

    python benchmarks/native_ratio.py PATH/native_loop.py [--dims 5 10 20] [--instances 100] [--rounds 5000]

The loop is a Numba program that does nothing but the logistic bandit with fixed arms; it is not part of the project
(any file with its `instances` and `run_many` will do) and needs `pip install numba`.  Both use all cores: the loop by
threads, the engine by one process for each core, with the instances divided among them.  Each is compiled before any
clock starts.  The two take turns, `--repeats` times; the table has the median of each and the median, least and
largest ratio.  Both fit to scores that err by 1e-3, with ridge 1 and the informal designs.
"""

import argparse
import atexit
import importlib
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

POLICIES = {"glm_tsl": (0, 1.0), "glm_fpl": (1, 0.5), "ucb_glm": (2, 0.5), "glm_ucb": (3, 0.5)}
TOLERANCE = 1e-3


def load(path: str) -> ModuleType:
    """The loop as a module that its own compiler's cache can find again, without a trace next to it."""
    os.environ["NUMBA_CACHE_DIR"] = cache = tempfile.mkdtemp(prefix="native-loop-")
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    sys.path.insert(0, str(Path(path).resolve().parent))
    return importlib.import_module(Path(path).stem)


def serve(pipe: Connection, core: int, instances: range, rounds: int, arms: int) -> None:
    """A worker: plays its instances whenever asked to and answers with the regrets."""
    os.sched_setaffinity(0, {core})
    os.environ["JAX_PLATFORMS"] = "cpu"
    from explorax import devices, environments, make
    from explorax.simulation import simulate

    os.environ["XLA_FLAGS"] = devices.with_flags(devices.ONE_THREAD)
    while (asked := pipe.recv()) is not None:
        name, dim, length = asked
        number = {"scale": POLICIES[name][1]} if name in ("glm_tsl", "glm_fpl") else {"width": POLICIES[name][1]}
        environment = environments.logistic(n_features=dim, n_arms=arms)
        policy = make(name, tolerance=TOLERANCE, **number)
        count, first = len(instances), instances.start
        played = simulate(
            policy, environment, rounds=length, instances=count, first=first, chunk=min(500, rounds), checkpoints=1
        )
        pipe.send(played.regret[:, -1].tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("anchor", help="path of native_loop.py")
    parser.add_argument("--dims", type=int, nargs="+", default=[5, 10, 20])
    parser.add_argument("--policies", nargs="+", default=list(POLICIES), choices=list(POLICIES))
    parser.add_argument("--instances", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--arms", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    native = load(options.anchor)
    import numpy as np

    cores = sorted(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    pipes = []
    for number, core in enumerate(cores):
        share = range(number * options.instances // len(cores), (number + 1) * options.instances // len(cores))
        if len(share):
            ours, theirs = context.Pipe()
            arguments = (theirs, core, share, options.rounds, options.arms)
            context.Process(target=serve, args=arguments, daemon=True).start()
            pipes.append(ours)

    def engine(name: str, dim: int, rounds: int) -> list[float]:
        for pipe in pipes:
            pipe.send((name, dim, rounds))
        return [regret for pipe in pipes for regret in pipe.recv()]

    print(
        f"{len(cores)} cores, K = {options.arms}, {options.instances} instances, {options.rounds} rounds; "
        "us per instance-round"
    )
    print(
        f"{'d':>3s} {'policy':8s} {'native':>8s} {'engine':>8s} {'ratio':>6s} {'least':>6s} {'most':>6s}"
        "   regret of both"
    )
    scale = 1e6 / options.instances / options.rounds
    for dim in options.dims:
        features, means = native.instances(options.instances, options.arms, dim, 7)
        for name in options.policies:
            policy, strength = POLICIES[name]
            regret = np.zeros((options.instances, 1))
            native.run_many(features[:2], means[:2], 50, strength, policy, regret)
            engine(name, dim, min(500, options.rounds))
            pairs = []
            for _ in range(options.repeats):
                began = time.perf_counter()
                native.run_many(features, means, options.rounds, strength, policy, regret)
                middle = time.perf_counter()
                regrets = engine(name, dim, options.rounds)
                pairs.append(((middle - began) * scale, (time.perf_counter() - middle) * scale))
            ratios = [engine_time / native_time for native_time, engine_time in pairs]
            medians = [statistics.median(times) for times in zip(*pairs, strict=True)]
            print(
                f"{dim:3d} {name:8s} {medians[0]:8.2f} {medians[1]:8.2f} {statistics.median(ratios):6.2f} "
                f"{min(ratios):6.2f} {max(ratios):6.2f}   {regret.mean():.0f}, {np.mean(regrets):.0f}",
                flush=True,
            )
    for pipe in pipes:
        pipe.send(None)


if __name__ == "__main__":
    main()
