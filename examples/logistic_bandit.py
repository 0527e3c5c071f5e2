"""A logistic bandit, played by GLM-TSL, GLM-FPL and two references; prints a table of their regret.

    python examples/logistic_bandit.py [--rounds 2000] [--instances 20] [--arms 50] [--features 5] [--seed 0]

All policies meet the same random instances.
"""

import argparse
import time

import explorax
from explorax import environments

POLICIES = {"GLM-TSL": "glm_tsl", "GLM-FPL": "glm_fpl", "Greedy": "greedy", "Uniform": "uniform"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--arms", type=int, default=50)
    parser.add_argument("--features", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    environment = environments.logistic(n_features=options.features, n_arms=options.arms)
    print(f"{options.instances} instances, K = {options.arms}, d = {options.features}, n = {options.rounds}")
    print()
    print(f"{'policy':10s} {'regret':>8s} {'s.e.':>7s} {'seconds':>8s}")
    for title, name in POLICIES.items():
        began = time.perf_counter()
        records = explorax.simulate(
            explorax.make(name), environment, rounds=options.rounds, instances=options.instances, seed=options.seed
        )
        last = records.regret[:, -1]
        error = last.std(ddof=1) / len(last) ** 0.5
        print(f"{title:10s} {last.mean():8.1f} {error:7.1f} {time.perf_counter() - began:8.1f}", flush=True)


if __name__ == "__main__":
    main()
