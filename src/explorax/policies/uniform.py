"""Uniform: pull an arm uniformly at random, whatever has been seen.

The policy that other policies' data is compared with: each arm has probability 1/K in every round.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, checked
from explorax.policies.exploration import best
from explorax.policies.linear_model import check_finite_rewards


class UniformState(NamedTuple):
    """Nothing is remembered but how many rewards came."""

    rewards: Array  # () count


def uniform() -> Policy:
    """Build the uniform policy."""

    def init(arms: Array | int, key: Array) -> UniformState:
        return UniformState(jnp.zeros((), int))

    def act(key: Array, state: UniformState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        scores = jax.random.uniform(key, arms.shape[:1], arms.dtype)
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.asarray(True))

    def update(state: UniformState, arm: Array, x: Array, reward: Array) -> UniformState:
        return UniformState(state.rewards + 1)

    def expected(state: UniformState) -> Expected:
        return Expected(None, None, None)

    policy = checked(
        init=init, act=act, update=update, expected=expected, check=check_finite_rewards, families=None
    )  # it plays anything
    return policy._replace(probabilities=equal_chances)


def equal_chances(state: UniformState, arms: Array, t: Array, mask: Array | None = None) -> Array:
    """1/K of each arm on offer."""
    everything = jnp.ones_like(arms[:, 0]) if mask is None else mask.astype(arms.dtype)
    return everything / jnp.sum(everything)
