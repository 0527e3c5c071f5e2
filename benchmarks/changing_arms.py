"""What each kind of memory costs and loses where arms change: regret, and microseconds of a decision, against n.

    python benchmarks/changing_arms.py [--rounds 500 2000 8000] [--instances 40]

A logistic bandit with K = 20 fresh arms in every round, d = 10, and GLM-TSL or GLM-FPL with each kind of memory, on the
same instances.  Regret is that of `simulate` after n rounds, with its standard error; what it is more than with the
exact memory is paired by instance.  The time is that of one `choose` (no propensity) and one `learn` of an `Agent` with
room for n rewards, on one core, alternating between the memories; medians.

The exact memory is left out where n is above --exact: its cost grows with n in every round.
"""

import argparse
import os
import time
from typing import Any

import numpy as np

import explorax
from explorax import Agent, devices, environments, make

FEATURES, ARMS, WINDOW, BUFFER = 10, 20, 500, 256


def memories(rounds: int, exact: int) -> dict[str, dict[str, Any]]:
    """The settings of each kind for so many rounds."""
    kinds: dict[str, dict[str, Any]] = {"exact": {"capacity": rounds}} if rounds <= exact else {}
    kinds |= {
        f"window {WINDOW}": {"window": WINDOW},
        "refitted": {"memory": "refitted", "capacity": rounds},
        "constant": {"memory": "constant"},
        f"constant, buffer {BUFFER}": {"memory": "constant", "buffer": BUFFER},
    }
    return kinds


def regrets(name: str, rounds: int, instances: int, exact: int) -> dict[str, np.ndarray]:
    """Of each instance, by kind."""
    environment = environments.logistic(n_features=FEATURES, n_arms=ARMS, arms_change=True)
    found = {}
    for kind, settings in memories(rounds, exact).items():
        policy = make(name, **settings)
        played = explorax.simulate(policy, environment, rounds=rounds, instances=instances, checkpoints=1)
        found[kind] = played.regret[:, -1]
    return found


def times(name: str, rounds: int, exact: int, decisions: int = 300) -> dict[str, float]:
    """Median microseconds of choose and learn together, by kind, once a memory of that size is full."""
    rng = np.random.default_rng(0)
    tables = rng.uniform(-1, 1, (decisions, ARMS, FEATURES))
    agents = {}
    for kind, settings in memories(rounds, exact).items():
        # A memory costs what it has room for; the last decisions are those that are timed.
        agents[kind] = Agent(make(name, **settings), features=FEATURES, draws=0)
        before = agents[kind].choose_many(tables[: min(128, rounds - decisions)])
        agents[kind].learn(np.asarray(before.ids), rng.integers(0, 2, len(before)).astype(float))
        agents[kind].learn(agents[kind].choose(tables[0]).id, 1.0)
    taken: dict[str, list[float]] = {kind: [] for kind in agents}
    for table in tables[: decisions - 1]:
        for kind, agent in agents.items():
            began = time.perf_counter()
            decision = agent.choose(table)
            agent.learn(decision.id, float(decision.id % 2))
            taken[kind].append((time.perf_counter() - began) * 1e6)
    return {kind: float(np.median(each)) for kind, each in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[500, 2000, 8000])
    parser.add_argument("--instances", type=int, default=40)
    parser.add_argument("--exact", type=int, default=2000)
    options = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    devices.decide_inline()
    print("| policy | n | memory | regret | more than exact | microseconds |\n|---|---|---|---|---|---|")
    for name in ("glm_tsl", "glm_fpl"):
        for rounds in options.rounds:
            regret = regrets(name, rounds, options.instances, options.exact)
            taken = times(name, rounds, options.exact)
            for kind, values in regret.items():
                print(f"| {name} | {rounds} | {kind} | {interval(values)} | {more(kind, regret)} | {taken[kind]:.0f} |")


def more(kind: str, regret: dict[str, np.ndarray]) -> str:
    """The paired difference to the exact memory, where there is one."""
    return "-" if "exact" not in regret or kind == "exact" else interval(regret[kind] - regret["exact"])


def interval(values: np.ndarray) -> str:
    """Mean ± standard error."""
    return f"{values.mean():.1f} ± {values.std(ddof=1) / len(values) ** 0.5:.1f}"


if __name__ == "__main__":
    main()
