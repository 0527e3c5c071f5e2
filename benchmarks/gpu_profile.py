"""Where the time of a round of Figure 1 goes on a GPU: microseconds a round for each policy, and its longest kernels.

    python benchmarks/gpu_profile.py [--policies glm_tsl glm_fpl] [--rounds 7500] [--kernels 10]

Each policy plays all three dimensions and both designs as one batch of 600 instances, as `explorax reproduce logistic`
does.  The first line is about rounds as they are: the time until the first chunk of rounds is played, compilation
included, and microseconds a round in each chunk after it.  The table is from another process in which kernels are
started one by one, since a profiler does not see into recorded graphs: the share of each kernel in a round, how often
it is started, and how long it takes.  Needs jax and numpy only (`PYTHONPATH=src`).
"""

import argparse
import collections
import itertools
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from explorax import devices
from explorax.experiments.logistic import POLICIES

CHUNK = {"as they are": 2500, "one by one": 300}  # rounds
NO_GRAPHS = "--xla_gpu_enable_command_buffer="


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policies", nargs="+", default=POLICIES)
    parser.add_argument("--rounds", type=int, default=7500, help="rounds to play as they are, 2500 at a time")
    parser.add_argument("--kernels", type=int, default=10)
    parser.add_argument("--how", choices=CHUNK, help=argparse.SUPPRESS)  # set in the processes that play
    options = parser.parse_args()
    if options.how is not None:
        play(options.policies[0], options.how, options.rounds, options.kernels)
        return
    for policy in options.policies:
        for how in CHUNK:
            rounds = options.rounds if how == "as they are" else 8 * CHUNK[how]
            flags = {"XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {NO_GRAPHS}"} if how == "one by one" else {}
            given = ["--policies", policy, "--how", how, "--rounds", str(rounds), "--kernels", str(options.kernels)]
            subprocess.run([sys.executable, __file__, *given], env=os.environ | flags, check=True)


def play(policy: str, how: str, rounds: int, kernels: int) -> None:
    """Play a policy in this process; trace the last chunk if kernels are started one by one."""
    devices.prepare()
    import jax

    from explorax.checkpoints import check_schedule
    from explorax.experiments import logistic
    from explorax.runner.tasks import expand
    from explorax.simulation import Job, simulate_together

    study, laps, last = logistic.study(rounds=rounds, policies=[policy]), [], rounds // CHUNK[how] - 1
    with tempfile.TemporaryDirectory() as folder:

        def progress(done: int) -> None:
            laps.append(time.perf_counter())
            if how == "one by one" and len(laps) == last:
                jax.profiler.start_trace(folder)
            elif how == "one by one" and len(laps) == last + 1:
                jax.profiler.stop_trace()

        tasks = expand(study, together=True)
        largest = max(task.panel.environment_settings["n_features"] for task in tasks)
        jobs = []
        for task in tasks:
            own = task.panel.environment_settings["n_features"]
            environment = study.make_environment(task.panel, padded_to=largest)
            jobs += [Job(study.make(curve, task.panel, n_features=own), environment) for curve in task.curves]
        began = time.perf_counter()
        schedule = check_schedule(rounds, 100, "even", CHUNK[how], progress)
        simulate_together(jobs, schedule, range(study.instances), 0)
        if how == "as they are":
            paces = [f"{(end - begin) / CHUNK[how] * 1e6:.0f}" for begin, end in itertools.pairwise(laps)]
            ready = laps[0] - began
            print(f"\n{policy}: first chunk after {ready:.1f} s, then us a round: {' '.join(paces)}", flush=True)
        else:
            print_kernels(Path(folder), CHUNK[how], kernels)


def print_kernels(folder: Path, rounds: int, most: int) -> None:
    """Print the kernels of a trace that take the longest."""
    from jax.profiler import ProfileData

    counts: collections.Counter[str] = collections.Counter()
    times: collections.Counter[str] = collections.Counter()
    for path in folder.rglob("*.xplane.pb"):
        for plane in ProfileData.from_file(str(path)).planes:
            for line in plane.lines if "GPU" in plane.name else []:
                for event in line.events if "Stream" in (line.name or "") else []:
                    counts[event.name] += 1
                    times[event.name] += int(event.duration_ns)
    print(
        f"{sum(counts.values()) / rounds:.1f} kernels and copies a round, {sum(times.values()) / 1e3 / rounds:.0f} us"
    )
    for name, spent in times.most_common(most):
        each = f"{counts[name] / rounds:6.2f} x {spent / counts[name] / 1e3:7.2f} us"
        print(f"  {spent / 1e3 / rounds:8.2f} us a round  {each}  {name[:70]}", flush=True)


if __name__ == "__main__":
    main()
