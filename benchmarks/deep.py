"""Speed of the deep bandit on one CPU core, against a plain matrix product in the same run.

    python benchmarks/deep.py [--instances 50] [--features 784] [--hidden 50] [--batch 32] [--repeats 5]

Measured in turn, so that a slow moment of the machine hits all alike; medians, with the least and the most:

    product         a float32 product of two square matrices: what the core can do
    training step   record an example, gradient of the loss on a mini-batch, Adam; all instances in lockstep
    round           the same and the rest: offer, decision, reward

A training step does two products of (hidden × features) with (features × batch), one forward and one for the gradient:
4 · batch · features · hidden operations, and only these are counted.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable, Sequence

os.environ |= {"JAX_PLATFORMS": "cpu", "NPROC": "1", "OMP_NUM_THREADS": "1"}

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import explorax
from explorax import devices, environments
from explorax.policies.deep_model import DeepModel, DeepState

os.environ["XLA_FLAGS"] = devices.with_flags(devices.ONE_THREAD)  # read when JAX starts, at the first array

SIDE = 1024  # of the matrices in the plain product
STEPS = 20  # training steps that are timed at once
ROUNDS = 60  # rounds that are timed at once
FULL = 500 * 10_000  # instance-rounds of one curve of Figure 2


def seconds_of(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    jax.block_until_ready(work())
    return time.perf_counter() - began


def product() -> Callable[[], object]:
    matrix = jax.random.normal(jax.random.key(0), (SIDE, SIDE), jnp.float32)
    multiply = jax.jit(lambda one: one @ one)
    return lambda: multiply(matrix)


def training_steps(options: argparse.Namespace) -> Callable[[], object]:
    model = DeepModel(hidden=(options.hidden,), batch=options.batch)
    trainer = model.trainer()
    keys = jax.random.split(jax.random.key(1), options.instances)
    state = jax.vmap(lambda key: trainer.init(options.features, key, model.kept, 1.0))(keys)
    shape = (STEPS, options.instances)
    rows = jax.random.uniform(jax.random.key(2), (*shape, options.features), jnp.float32)
    rewards = jax.random.bernoulli(jax.random.key(3), 0.5, shape).astype(jnp.float32)

    def step(state: DeepState, example: tuple[Array, Array]) -> tuple[DeepState, None]:
        return jax.vmap(trainer.learn)(state, *example), None

    run = jax.jit(lambda state: lax.scan(step, state, (rows, rewards))[0])
    return lambda: run(state)


def rounds(options: argparse.Namespace) -> Callable[[], object]:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (10_000, options.features), dtype=np.uint8) / np.float32(255)
    world = environments.classification(data=(images, np.arange(10_000) % 10), intercept=False)
    policy = explorax.make("deep_fpl", hidden=(options.hidden,), batch=options.batch)
    return lambda: explorax.simulate(policy, world, rounds=ROUNDS, instances=options.instances, chunk=ROUNDS)


def spread(values: Sequence[float], form: str) -> str:
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=50)
    parser.add_argument("--features", type=int, default=784)
    parser.add_argument("--hidden", type=int, default=50)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    played = -(-options.instances // 50) * 50  # the simulation plays blocks of 50, and instances are from the first on
    work = {"product": product(), "training step": training_steps(options), "round": rounds(options)}
    for each in work.values():
        jax.block_until_ready(each())  # compile
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(options.repeats):
        for name, each in work.items():
            times[name].append(seconds_of(each))

    per_step = 4 * options.batch * options.features * options.hidden * options.instances * STEPS
    plain = [2 * SIDE**3 / spent / 1e9 for spent in times["product"]]
    trained = [per_step / spent / 1e9 for spent in times["training step"]]
    ratio = [ours / theirs for ours, theirs in zip(trained, plain, strict=True)]
    speed = [played * ROUNDS / spent for spent in times["round"]]
    print(f"jax {jax.__version__}, one core; {options.features} features, {options.hidden} units, batches of", end=" ")
    print(f"{options.batch}, {options.instances} instances in lockstep; median of {options.repeats} (least to most)\n")
    print(f"product of two {SIDE} x {SIDE} matrices  {spread(plain, '.1f')} GFLOP/s")
    print(f"training step                        {spread(trained, '.1f')} GFLOP/s")
    print(f"ratio                                {spread(ratio, '.2f')}")
    print(f"whole rounds                         {spread(speed, '.0f')} instance-rounds/s")
    print(f"a curve of 500 instances x 10 000 rounds: {FULL / statistics.median(speed) / 60:.1f} min on one core")


if __name__ == "__main__":
    main()
