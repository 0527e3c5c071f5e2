"""Kill a service that decides, start it again, and check that it goes on exactly where it was.

    python examples/crash.py [--rounds 400] [--seed 0] [--figure crash.png]

The service saves a snapshot after every 50 decisions.  It appends each decision to a log before anybody acts on it, and
each reward before it learns from it.  When the service starts, it loads the snapshot and repeats what the log has after
it.  Decision t is a function of the seed, of t and of what was learned before.  So a service that was killed and
started again has the same log as one that was never killed: the same decisions and propensities, to the last bit.
Since every decision is in the log, a loaded agent may give out the same ids again (same_ids=True).
"""

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
from pathlib import Path

import numpy as np

from explorax import Agent, glm_tsl

ARMS = {"a": [1.0, 0.0, 0.3], "b": [0.2, 1.0, 0.0], "c": [0.0, 0.4, 1.0], "d": [0.5, 0.5, 0.5]}
SNAPSHOT, LATEST = 50, 20  # decisions from one snapshot to the next; decisions until a reward comes, at most


def success_rate(arm: str) -> float:
    """Return the true success rate of an arm, which the agent does not see."""
    return float(1 / (1 + np.exp(-np.dot(ARMS[arm], [-2.0, 1.0, -1.0]))))


def serve(place: Path, rounds: int, seed: int, killed_at: int = -1) -> list[str]:
    """Decide and learn up to a number of rounds, from where an earlier service stopped; return the log."""
    snapshot, log = place.with_suffix(".npz"), place.with_suffix(".jsonl")
    agent = Agent.load(snapshot, same_ids=True) if snapshot.exists() else Agent(glm_tsl(), arms=ARMS, seed=seed)
    shown = repeat(agent, log)
    world = np.random.default_rng(seed)  # goes on without the service: luck, and the delay of each reward
    luck, delays = world.random(rounds), world.integers(1, LATEST, rounds)
    with log.open("a") as file:

        def write(**entry: object) -> None:
            file.write(json.dumps(entry) + "\n")
            file.flush()  # enough if the process dies; if the machine may, os.fsync(file.fileno()) too

        while (t := agent.decisions) < rounds:
            for i in range(max(0, t - LATEST), t):
                if i + delays[i] == t and agent.is_pending(i):
                    reward = float(luck[i] < success_rate(shown[i]))
                    write(id=i, reward=reward)
                    agent.learn(i, reward)
            decision = agent.choose()
            if t == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            write(id=t, arm=decision.arm, propensity=decision.propensity)
            shown[t] = decision.arm
            if agent.decisions % SNAPSHOT == 0:
                agent.save(snapshot)
    return log.read_text().splitlines()


def repeat(agent: Agent, log: Path) -> dict[int, str]:
    """Let the agent repeat what is in the log but not in its snapshot; return all decisions of the log."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    if lines and not lines[-1].endswith(b"\n"):  # cut off in the middle: it never happened
        os.truncate(log, log.stat().st_size - len(lines.pop()))
    shown: dict[int, str] = {}
    for entry in map(json.loads, lines):
        if "arm" in entry:
            shown[entry["id"]] = entry["arm"]
            if entry["id"] == agent.decisions and agent.choose().arm != entry["arm"]:
                raise SystemExit(f"Decision {entry['id']} of {log} was made with another snapshot or seed.")
        elif agent.is_pending(entry["id"]):
            agent.learn(entry["id"], entry["reward"])
    return shown


def draw(path: str, killed: list[str], whole: list[str], made: int) -> None:
    """Draw the propensities in both logs: those of the killed and restarted service lie on those of the other one."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    whole_run, both_runs = (
        np.array([entry["propensity"] for entry in map(json.loads, lines) if "arm" in entry])
        for lines in (whole, killed)
    )
    saved, rounds = made - made % SNAPSHOT, np.arange(len(whole_run))
    axes.axvspan(saved, made, color="#E69F00", alpha=0.25, linewidth=0, label="repeated from the log")
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
        killed, whole = Path(folder, "killed"), Path(folder, "whole")
        arguments = (killed, options.rounds, options.seed, options.rounds // 2 - 9)
        child = multiprocessing.get_context("spawn").Process(target=serve, args=arguments)
        child.start()
        child.join()
        made = killed.with_suffix(".jsonl").read_text().count("arm")
        print(f"exit code {child.exitcode} after {made} decisions, {made % SNAPSHOT} of them since the last snapshot")
        logs = [serve(each, options.rounds, options.seed) for each in (killed, whole)]
    same = sum(one == other for one, other in zip(*logs, strict=True))
    print(f"{same} of {len(logs[1])} lines of the log are those of a service that was never killed\n")
    agents = np.mean([success_rate(json.loads(line)["arm"]) for line in logs[0] if "arm" in line])
    random, best = np.mean([success_rate(arm) for arm in ARMS]), max(map(success_rate, ARMS))
    print(f"successes: {agents:.3f} with the agent, {random:.3f} at random, {best:.3f} at best")
    if options.figure:
        draw(options.figure, logs[0], logs[1], made)


if __name__ == "__main__":
    main()
