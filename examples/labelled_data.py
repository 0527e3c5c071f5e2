"""A labelled data set as a bandit, played by deep and by linear policies; prints a table of their average rewards.

    python examples/labelled_data.py [--data digits] [--label COLUMN] [--rounds 1000] [--instances 20] [--arms 10]

`--data` is mnist, fashion, digits, adult, mushroom, or a CSV or Parquet file, whose column of labels `--label` names.
Adult and Mushroom have categorical columns, which become one feature for each value.  The examples of one label pay
with probability 0.75, others with 0.25; labels take turns over the instances.
"""

import argparse
import time

import explorax
from explorax import datasets, environments
from explorax.environments.labelled import optimum

POLICIES = ("deep_fpl", "deep_fl", "neural_linear", "lin_ts", "uniform")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="digits")
    parser.add_argument("--label")
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--arms", type=int, default=10)
    options = parser.parse_args()
    dataset = datasets.load(options.data, label=options.label)
    environment = environments.classification(data=dataset, n_arms=options.arms)
    best = optimum(dataset, options.arms)
    count, features = dataset.features.shape
    print(f"{dataset.name}: {count} examples, {features} features, labels {', '.join(dataset.classes)}")
    print(f"{options.instances} instances, K = {options.arms}, n = {options.rounds}; best possible reward {best:.3f}")
    print(f"{'policy':14s} {'reward':>8s} {'s.e.':>7s} {'seconds':>8s}")
    for name in POLICIES:
        began = time.perf_counter()
        settings = {"capacity": options.rounds + 32} if name == "neural_linear" else {}
        records = explorax.simulate(
            explorax.make(name, **settings), environment, rounds=options.rounds, instances=options.instances
        )
        average = records.reward[:, -1] / options.rounds
        error = average.std(ddof=1) / len(average) ** 0.5
        title = explorax.list_policies()[name].title
        print(f"{title:14s} {average.mean():8.3f} {error:7.3f} {time.perf_counter() - began:8.1f}", flush=True)


if __name__ == "__main__":
    main()
