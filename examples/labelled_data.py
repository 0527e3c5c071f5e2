"""Play a labeled data set as a bandit with deep and linear policies, and print a table of their average rewards.

    python examples/labelled_data.py [--data digits] [--label COLUMN] [--rounds 1000] [--instances 20] [--arms 10]
                                     [--figure labelled_data.png]

`--data` is mnist, fashion, digits, adult, mushroom, or a CSV or Parquet file, whose column of labels `--label` names.
Adult and Mushroom have categorical columns, which become one feature for each value.  The examples of one label pay
with probability 0.75, others with 0.25; labels take turns over the instances.
"""

import argparse
import time

import explorax
from explorax import datasets, environments
from explorax.environments.labelled import optimum
from explorax.record import Records

POLICIES = ("deep_fpl", "deep_fl", "neural_linear", "lin_ts", "uniform")


def draw(path: str, found: dict[str, Records], best: float) -> None:
    """Draw the average reward of each policy up to each round, below the best possible average."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    axes = figure.add_subplot(xlabel="round", ylabel="average reward")
    axes.axhline(best, color="black", linewidth=1, linestyle="--", label="best possible")
    colors = ["#0072B2", "#009E73", "#E69F00", "#D55E00", "#666666"]
    for (title, records), color in zip(found.items(), colors, strict=True):
        average = records.reward.mean(axis=0) / records.rounds
        later = records.rounds >= records.rounds[-1] // 20  # the first averages are mostly noise
        axes.plot(records.rounds[later], average[later], color=color, linewidth=2, label=title)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(frameon=False, loc="outside right center")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits", help="name of a data set, or a file (default: digits)")
    parser.add_argument("--label", help="column of labels in a file (default: label, target, class or y)")
    parser.add_argument("--rounds", type=int, default=1000, help="number of rounds n (default: 1000)")
    parser.add_argument("--instances", type=int, default=20, help="number of instances (default: 20)")
    parser.add_argument("--arms", type=int, default=10, help="number of arms K on offer in a round (default: 10)")
    parser.add_argument("--figure", metavar="FILE", help="also draw average rewards over the rounds into this PNG file")
    options = parser.parse_args()
    dataset = datasets.load(options.data, label=options.label)
    environment = environments.classification(data=dataset, n_arms=options.arms)
    best = optimum(dataset, options.arms)
    count, features = dataset.features.shape
    print(f"{dataset.name}: {count} examples, {features} features, labels {', '.join(dataset.classes)}")
    print(f"{options.instances} instances, K = {options.arms}, n = {options.rounds}; best possible reward {best:.3f}")
    print(f"{'policy':14s} {'reward':>8s} {'s.e.':>7s} {'seconds':>8s}")
    found = {}
    for name in POLICIES:
        began = time.perf_counter()
        settings = {"capacity": options.rounds + 32} if name == "neural_linear" else {}
        title = explorax.list_policies()[name].title
        records = found[title] = explorax.simulate(
            explorax.make(name, **settings), environment, rounds=options.rounds, instances=options.instances
        )
        average = records.reward[:, -1] / options.rounds
        error = average.std(ddof=1) / len(average) ** 0.5
        print(f"{title:14s} {average.mean():8.3f} {error:7.3f} {time.perf_counter() - began:8.1f}", flush=True)
    if options.figure:
        draw(options.figure, found, best)


if __name__ == "__main__":
    main()
