"""DeepFPL against its scale a: average reward after the last round, for each data set, activation and replay.

    python benchmarks/deep_scales.py [--scales 0.25 0.5 1.5 2] [--replays recent uniform] [--datasets mnist fashion]
                                     [--activations relu tanh] [--rounds 10000] [--instances 500] [--data DIR]

The instances are those of `explorax reproduce deep`, which has a = 0 (DeepFL) and a = 1.
"""

import argparse
import os
import time

from explorax import data_files, devices


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.25, 0.5, 1.5, 2.0])
    parser.add_argument("--replays", nargs="+", default=["recent", "uniform"])
    parser.add_argument("--datasets", nargs="+", default=["mnist", "fashion"])
    parser.add_argument("--activations", nargs="+", default=["relu", "tanh"])
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--instances", type=int, default=500)
    parser.add_argument("--data", metavar="DIR", help="where the files of the data sets are")
    options = parser.parse_args()
    if options.data:
        os.environ[data_files.ENVIRONMENT_VARIABLE] = options.data
    devices.prepare()
    import explorax  # after that, since it starts JAX

    began = time.perf_counter()
    for replay in options.replays:
        for activation in options.activations:
            for data in options.datasets:
                world = explorax.environments.classification(data=data)
                for scale in options.scales:
                    policy = explorax.make("deep_fpl", scale=scale, activation=activation, replay=replay)
                    size = {"rounds": options.rounds, "instances": options.instances}
                    average = explorax.simulate(policy, world, **size).reward[:, -1] / options.rounds
                    error = average.std(ddof=1) / len(average) ** 0.5
                    where = f"{replay:8s} {data:8s} {activation:5s} a = {scale:<5g}"
                    print(
                        f"{time.perf_counter() - began:6.1f} s  {where} {average.mean():.4f} +- {error:.4f}", flush=True
                    )


if __name__ == "__main__":
    main()
