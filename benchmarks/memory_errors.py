"""How far each kind of memory is from the exact fit where arms change, against d, n and how steep the rewards are.

    python benchmarks/memory_errors.py [--features 5 10 50] [--rewards 1000 4000] [--steepness 1 3 6] [--instances 10]
                                       [--memories constant refitted …]

Rows come from [−1, 1]^d, rewards are logistic with scores of that standard deviation (1: ordinary, 3 and 6: steep, most
rewards are nearly certain).  A GLM policy learns them one by one, and is compared with an exact fit to all of them:

    error      the largest error of a score xᵀθ̄ over 1000 test rows, in standard deviations ‖x‖_{H⁻¹} of the exact fit:
               the median and the worst over the instances
    variance   the least and the largest ratio ‖x‖² in the norms of the kept and of the exact H⁻¹: 1 where it is right

After these come rewards that turn, on rows from [0, 1]^d: all 0 for the first half, and all 1 from then on.
"""

import argparse
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax import make
from explorax.glm import families
from explorax.glm.fit import MAX_STEPS, default_tolerance, hessian, newton, posed
from explorax.glm.history import Grouped

TEST_ROWS = 1000
TURNS = "turns"  # in place of a steepness


def settings(rewards: int) -> dict[str, dict[str, Any]]:
    """Each kind of memory, for so many rewards."""
    return {
        "constant": {"memory": "constant"},
        "constant, buffer 64": {"memory": "constant", "buffer": 64},
        "constant, buffer 256": {"memory": "constant", "buffer": 256},
        "refitted": {"memory": "refitted", "capacity": rewards},
        "refitted, window n/5": {"memory": "refitted", "window": max(rewards // 5, 1)},
    }


def problems(features: int, rewards: int, steepness: float | str, instances: int) -> tuple[np.ndarray, ...]:
    """Rows, rewards and test rows of each instance."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, (instances, rewards, features))
    tests = rng.uniform(-1, 1, (instances, TEST_ROWS, features))
    if isinstance(steepness, str):
        turned = np.broadcast_to(np.arange(rewards) >= rewards // 2, rows.shape[:2]).astype(float)
        return np.abs(rows), turned, np.abs(tests)
    theta = rng.normal(size=(instances, features, 1))
    theta *= steepness / (np.linalg.norm(theta, axis=1, keepdims=True) / 3**0.5)
    means = 1 / (1 + np.exp(-(rows @ theta)[..., 0]))
    return rows, (rng.random(means.shape) < means).astype(float), tests


@partial(jax.jit, static_argnames=("update", "kept"))
def errors(update: Any, kept: int, state: Any, rows: jax.Array, rewards: jax.Array, tests: jax.Array) -> jax.Array:
    """(instances, 3) the largest error of a score, and the least and largest ratio of variances."""

    def one(rows: jax.Array, rewards: jax.Array, tests: jax.Array) -> jax.Array:
        end, _ = jax.lax.scan(lambda now, each: (update(now, 0, *each), None), state, (rows, rewards))
        history = Grouped(rows[-kept:], jnp.ones(kept), rewards[-kept:])
        exact = newton(families.bernoulli, history, 1.0, None, None, default_tolerance(rows.dtype), MAX_STEPS).theta
        inverse = jnp.linalg.inv(hessian(families.bernoulli, posed(history, ridge=1.0), exact))
        variances = jnp.sum(tests @ inverse * tests, axis=1)
        ratios = jnp.sum((tests @ end.history.root) ** 2, axis=1) / variances
        off = jnp.abs(tests @ (end.theta_hat - exact)) / jnp.sqrt(variances)
        return jnp.stack([jnp.max(off), jnp.min(ratios), jnp.max(ratios)])

    return jax.lax.map(lambda each: one(*each), (rows, rewards, tests))


def table(
    features: list[int],
    rewards: list[int],
    steepness: list[float | str],
    instances: int,
    memories: list[str] | None = None,
) -> Iterator[tuple[int, int, float | str, str, np.ndarray]]:
    """(d, n, steepness, memory, errors) of each."""
    for size, count, steep in itertools.product(features, rewards, steepness):
        given = problems(size, count, steep, 1 if steep == TURNS else instances)
        for name, kind in settings(count).items():
            if memories is not None and name not in memories:
                continue
            policy = make("glm_tsl", warmup="none", **kind)
            off = errors(policy.update, kind.get("window", count), policy.init(size), *given)
            yield size, count, steep, name, np.asarray(off)


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--features", type=int, nargs="+", default=[5, 10, 50])
    parser.add_argument("--rewards", type=int, nargs="+", default=[1000, 4000])
    parser.add_argument("--steepness", type=float, nargs="+", default=[1.0, 3.0, 6.0])
    parser.add_argument("--instances", type=int, default=10)
    parser.add_argument("--memories", nargs="+", choices=list(settings(1)), metavar="MEMORY", help="all unless given")
    options = parser.parse_args()
    print("| d | n | steepness | memory | error, median | worst | variance |\n|---|---|---|---|---|---|---|")
    for size, count, steep, name, off in table(
        options.features, options.rewards, [*options.steepness, TURNS], options.instances, options.memories
    ):
        middle, worst = np.median(off[:, 0]), off[:, 0].max()
        shown = steep if isinstance(steep, str) else f"{steep:g}"
        ratios = f"{off[:, 1].min():.2f} to {off[:, 2].max():.2f}"
        print(f"| {size} | {count} | {shown} | {name} | {middle:.2g} | {worst:.2g} | {ratios} |", flush=True)


if __name__ == "__main__":
    main()
