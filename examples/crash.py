"""Kill a service that decides, start it again, and check that it goes on exactly where it was.

    python examples/crash.py [--rounds 400] [--seed 0] [--figure crash.png]

The service logs to a file: each decision is there before anybody acts on it, and each reward before the agent learns
from it.  When the service starts, it recovers the agent from the log.  Decision t is a function of the seed, of t and
of what was learned before.  So a service that was killed and started again has the same log as one that was never
killed: the same decisions, propensities and rewards, to the last bit.
"""

import argparse
import multiprocessing
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from explorax import Agent, glm_tsl, log_table

Row = dict[str, Any]

ARMS = {"a": [1.0, 0.0, 0.3], "b": [0.2, 1.0, 0.0], "c": [0.0, 0.4, 1.0], "d": [0.5, 0.5, 0.5]}
LATEST = 20  # decisions until a reward comes, at most


def success_rate(arm: str) -> float:
    """Return the true success rate of an arm, which the agent does not see."""
    return float(1 / (1 + np.exp(-np.dot(ARMS[arm], [-2.0, 1.0, -1.0]))))


def serve(log: Path, rounds: int, seed: int, killed_at: int = -1) -> list[Row]:
    """Decide and learn up to a number of rounds, from where an earlier service stopped; return what is in the log."""
    agent = Agent.recover(log) if log.exists() else Agent(glm_tsl(), arms=ARMS, seed=seed, log=log)
    shown = [row["arm"] for row in recorded(log)]
    world = np.random.default_rng(seed)  # goes on without the service: luck, and the delay of each reward
    luck, delays = world.random(rounds), world.integers(1, LATEST, rounds)
    while (t := agent.decisions) < rounds:
        for i in range(max(0, t - LATEST), t):
            if i + delays[i] == t and agent.is_pending(i):
                agent.learn(i, float(luck[i] < success_rate(shown[i])))
        shown.append(agent.choose().arm)
        if t == killed_at:
            os.kill(os.getpid(), signal.SIGKILL)
    agent.close()
    return recorded(log)


def recorded(log: Path) -> list[Row]:
    """Return the decisions in a log with their rewards, in all columns that do not depend on the time of day."""
    table = log_table(log, package="pyarrow")
    rows: list[Row] = table.drop_columns(["time", "reward_time"]).to_pylist()
    return rows


def draw(path: str, killed: list[Row], whole: list[Row], made: int) -> None:
    """Draw the propensities in both logs: those of the killed and restarted service lie on those of the other one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    whole_run, both_runs = (np.array([row["propensity"] for row in rows]) for rows in (whole, killed))
    rounds = np.arange(len(whole_run))
    axes.axvline(made - 0.5, color="#E69F00", linewidth=2, label="killed here")
    axes.plot(whole_run, "o", ms=7, color="#BBBBBB", label="never killed")
    axes.plot(rounds[:made], both_runs[:made], "o", ms=3, color="#D55E00", label="until it was killed")
    axes.plot(rounds[made:], both_runs[made:], "o", ms=3, color="#0072B2", label="started again")
    axes.set(xlabel="decision", ylabel="propensity of the chosen arm", xlim=(0, len(rounds)), ylim=(0, 1.02))
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside upper center", ncols=4)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400, help="number of decisions (default: 400)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw the propensities of both logs into this PNG file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        killed, whole = Path(folder, "killed.db"), Path(folder, "whole.db")
        arguments = (killed, options.rounds, options.seed, options.rounds // 2)
        child = multiprocessing.get_context("spawn").Process(target=serve, args=arguments)
        child.start()
        child.join()
        made = len(recorded(killed))
        print(f"exit code {child.exitcode} after {made} decisions")
        logs = [serve(each, options.rounds, options.seed) for each in (killed, whole)]
    same = sum(one == other for one, other in zip(*logs, strict=True))
    print(f"{same} of {len(logs[1])} rows of the log are those of a service that was never killed\n")
    agents = np.mean([success_rate(row["arm"]) for row in logs[0]])
    random, best = np.mean([success_rate(arm) for arm in ARMS]), max(map(success_rate, ARMS))
    print(f"successes: {agents:.3f} with the agent, {random:.3f} at random, {best:.3f} at best")
    if options.figure:
        draw(options.figure, logs[0], logs[1], made)


if __name__ == "__main__":
    main()
