"""Time and memory of `explorax.evaluate` with the length of a log: both should grow in proportion to the rows.

    python benchmarks/evaluation_speed.py

Each length runs in a process of its own: a log with 20 arms and all propensities, one target given as an array, the
default estimators with anytime intervals.  Printed are ratios to the shortest log: time per row, and the peak of memory
beyond the arrays that go in, and of the whole process.  The quickest of three calls counts, after another one for
compiling.
"""

import json
import resource
import subprocess
import sys
import time

ROWS, ARMS = (100_000, 300_000, 1_000_000), 20
MEGABYTES = 1024  # the largest resident size comes in kilobytes


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / MEGABYTES


def measure(rows: int) -> None:
    import numpy as np

    import explorax

    def log(count: int) -> tuple[explorax.LoggedData, np.ndarray]:
        rng = np.random.default_rng(0)
        every = np.full((count, ARMS), 0.5 / ARMS)
        every[:, 0] += 0.5
        arms = np.where(rng.random(count) < 0.5, 0, rng.integers(0, ARMS, count))
        rewards = (rng.random(count) < np.linspace(0.2, 0.8, ARMS)[arms]).astype(float)
        target = np.tile(np.linspace(0, 2 / ARMS, ARMS), (count, 1))
        target /= target.sum(axis=1, keepdims=True)
        chosen = every[np.arange(count), arms]
        return explorax.LoggedData(arms, rewards, None, range(ARMS), chosen, all_propensities=every), target

    explorax.evaluate(*log(10_000))
    made = log(rows)
    before, times = peak(), []
    for _ in range(3):
        start = time.perf_counter()
        explorax.evaluate(*made)
        times.append(time.perf_counter() - start)
    print(json.dumps({"rows": rows, "seconds": min(times), "beyond": peak() - before, "whole": peak()}))


def main() -> None:
    if len(sys.argv) > 1:
        measure(int(sys.argv[1]))
        return
    found = []
    for rows in ROWS:
        done = subprocess.run([sys.executable, __file__, str(rows)], capture_output=True, text=True, check=True)
        found.append(json.loads(done.stdout))
    first = found[0]
    print(f"{'rows':>9}  {'time per row':>12}  {'beyond arrays':>13}  {'whole process':>13}")
    for one in found:
        per_row = one["seconds"] / one["rows"] / (first["seconds"] / first["rows"])
        print(f"{one['rows']:>9}  {per_row:>12.2f}  {one['beyond']:>10.0f} MB  {one['whole']:>10.0f} MB")
    print(f"\n{first['rows']} rows take {first['seconds']:.2f} s here.")


if __name__ == "__main__":
    main()
