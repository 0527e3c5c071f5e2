"""Play a logistic bandit with GLM-TSL, GLM-FPL and two references, and print a table of their regret.

    python examples/logistic_bandit.py [--rounds 2000] [--instances 20] [--arms 50] [--features 5] [--seed 0]
                                       [--figure logistic_bandit.png]

All policies meet the same random instances.
"""

import argparse
import time

import explorax
from explorax import environments
from explorax.record import Records

POLICIES = {"GLM-TSL": "glm_tsl", "GLM-FPL": "glm_fpl", "Greedy": "greedy", "Uniform": "uniform"}


def draw(path: str, found: dict[str, Records]) -> None:
    """Draw the mean regret of each policy over the rounds, on logarithmic axes, with a band of ± 1 standard error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot(xscale="log", yscale="log", xlabel="round", ylabel="regret")
    for (title, records), color in zip(found.items(), ["#0072B2", "#009E73", "#D55E00", "#666666"], strict=True):
        mean, count = records.regret.mean(axis=0), len(records.regret)
        error = records.regret.std(axis=0, ddof=1) / count**0.5
        axes.plot(records.rounds, mean, color=color, linewidth=2, label=title)
        axes.fill_between(records.rounds, mean - error, mean + error, color=color, alpha=0.2, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000, help="number of rounds n (default: 2000)")
    parser.add_argument("--instances", type=int, default=20, help="number of random instances (default: 20)")
    parser.add_argument("--arms", type=int, default=50, help="number of arms K (default: 50)")
    parser.add_argument("--features", type=int, default=5, help="number of features d (default: 5)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    parser.add_argument("--figure", metavar="FILE", help="also draw the regret over the rounds into this PNG file")
    options = parser.parse_args()
    environment = environments.logistic(n_features=options.features, n_arms=options.arms)
    print(f"{options.instances} instances, K = {options.arms}, d = {options.features}, n = {options.rounds}")
    print()
    print(f"{'policy':10s} {'regret':>8s} {'s.e.':>7s} {'seconds':>8s}")
    found = {}
    for title, name in POLICIES.items():
        began = time.perf_counter()
        records = found[title] = explorax.simulate(
            explorax.make(name), environment, rounds=options.rounds, instances=options.instances, seed=options.seed
        )
        last = records.regret[:, -1]
        error = last.std(ddof=1) / len(last) ** 0.5
        print(f"{title:10s} {last.mean():8.1f} {error:7.1f} {time.perf_counter() - began:8.1f}", flush=True)
    if options.figure:
        draw(options.figure, found)


if __name__ == "__main__":
    main()
