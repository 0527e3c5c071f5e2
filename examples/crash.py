"""A service that is killed, and goes on exactly where it was.

    python examples/crash.py [--rounds 400] [--seed 0]

The service saves a snapshot after every 50 decisions.  It appends to a log what it decided, before anybody acts on it,
and what it was told, before it learns from it.  When it starts it loads the snapshot and repeats what the log says has
happened since.  Decision t is a function of the seed, of t and of what was learned before, so the log of a service that
was killed and started again is that of one that was never killed: the same decisions and propensities, to the last bit.
Since every decision is in the log, an agent that is loaded may give out the same ids again (same_ids=True).
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
SNAPSHOT, LATEST = 50, 20  # decisions from one snapshot to the next; and decisions that a reward may take


def success_rate(arm: str) -> float:
    """The truth, which the agent does not see."""
    return float(1 / (1 + np.exp(-np.dot(ARMS[arm], [-2.0, 1.0, -1.0]))))


def serve(place: Path, rounds: int, seed: int, killed_at: int = -1) -> list[str]:
    """Decide and learn for so many rounds, from wherever an earlier service left off; returns the log."""
    snapshot, log = place.with_suffix(".npz"), place.with_suffix(".jsonl")
    agent = Agent.load(snapshot, same_ids=True) if snapshot.exists() else Agent(glm_tsl(), arms=ARMS, seed=seed)
    shown = repeat(agent, log)
    world = np.random.default_rng(seed)  # does not stop: luck, and how many decisions each reward takes
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
    """Let the agent do again what is in the log and not in its snapshot; returns all decisions of the log."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    if lines and not lines[-1].endswith(b"\n"):  # cut off in the middle: it never happened
        os.truncate(log, log.stat().st_size - len(lines.pop()))
    shown: dict[int, str] = {}
    for entry in map(json.loads, lines):
        if "arm" in entry:
            shown[entry["id"]] = entry["arm"]
            if entry["id"] == agent.decisions and agent.choose().arm != entry["arm"]:
                raise SystemExit(f"decision {entry['id']} of {log} was made with another snapshot or seed")
        elif agent.is_pending(entry["id"]):
            agent.learn(entry["id"], entry["reward"])
    return shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--seed", type=int, default=0)
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


if __name__ == "__main__":
    main()
