"""A logistic bandit, played by GLM-TSL, GLM-FPL and two references; prints a table of their regret.

    python examples/logistic_bandit.py [--rounds 2000] [--instances 20] [--arms 50] [--features 5] [--seed 0]

Everything here is `init`, `act` and `update` inside a `lax.scan` over rounds and a `vmap` over random instances; all
policies meet the same instances.
"""

import argparse
import time
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

import explorax

POLICIES = {
    "GLM-TSL": explorax.make("glm_tsl"),
    "GLM-FPL": explorax.make("glm_fpl"),
    "Greedy": explorax.make("greedy"),
    "Uniform": explorax.make("uniform"),
}


class Instance(NamedTuple):
    """One random bandit."""

    arms: Array  # (K, d)
    means: Array  # (K,) expected reward of each arm


def random_instance(key: Array, arms: int, features: int) -> Instance:
    """Arms uniform on [−1, 1]^d and θ ~ N(0, (3/d) I), so that scores xᵀθ have variance 1."""
    arm_key, theta_key = jax.random.split(key)
    x = jax.random.uniform(arm_key, (arms, features), minval=-1, maxval=1)
    theta = jnp.sqrt(3 / features) * jax.random.normal(theta_key, (features,))
    return Instance(x, jax.nn.sigmoid(x @ theta))


def regret(policy: explorax.Policy, instance: Instance, key: Array, rounds: int) -> Array:
    """Expected regret after `rounds` rounds of one instance."""

    def play(state: object, t: Array) -> tuple[object, Array]:
        act_key, reward_key = jax.random.split(jax.random.fold_in(key, t))
        arm = policy.act(act_key, state, instance.arms, t).arm
        reward = jax.random.bernoulli(reward_key, instance.means[arm]).astype(float)
        return policy.update(state, arm, instance.arms[arm], reward), instance.means.max() - instance.means[arm]

    _, gaps = lax.scan(play, policy.init(instance.arms), jnp.arange(rounds))
    return gaps.sum()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--instances", type=int, default=20)
    parser.add_argument("--arms", type=int, default=50)
    parser.add_argument("--features", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if min(options.rounds, options.instances, options.features) < 1 or options.arms < options.features:
        parser.error("rounds, instances and features must be at least 1, and arms at least as many as features")

    instance_key, play_key = jax.random.split(jax.random.key(options.seed))
    keys = jax.random.split(instance_key, options.instances)
    instances = jax.vmap(lambda key: random_instance(key, options.arms, options.features))(keys)
    play_keys = jax.random.split(play_key, options.instances)

    print(f"Logistic bandit: {options.arms} arms, {options.features} features, {options.rounds} rounds, ", end="")
    print(f"{options.instances} instances\n")
    print(f"{'policy':10s} {'regret':>8s} {'std. error':>11s} {'seconds':>8s}")
    for name, policy in POLICIES.items():
        began = time.perf_counter()
        run = jax.jit(jax.vmap(lambda one, key, policy=policy: regret(policy, one, key, options.rounds)))
        total = run(instances, play_keys)
        error = total.std() / jnp.sqrt(options.instances)
        print(f"{name:10s} {total.mean():8.1f} {error:11.1f} {time.perf_counter() - began:8.1f}", flush=True)


if __name__ == "__main__":
    main()
