"""Uniform: pull an arm uniformly at random, whatever has been seen.

The policy that other policies' data is compared with: each arm has probability 1/K in every round.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.policies.base import Action, Expected, Policy, checked
from explorax.policies.linear_model import check_finite_reward


class UniformState(NamedTuple):
    """Nothing is remembered but how many rewards came."""

    rewards: Array  # () count


def uniform() -> Policy:
    """Build the uniform policy."""

    def init(arms: Array | int, key: Array) -> UniformState:
        return UniformState(jnp.zeros((), int))

    def act(key: Array, state: UniformState, arms: Array, t: Array) -> Action:
        scores = jax.random.uniform(key, arms.shape[:1], arms.dtype)
        return Action(jnp.argmax(scores), scores, jnp.asarray(False), jnp.asarray(True))

    def update(state: UniformState, arm: Array, x: Array, reward: Array) -> UniformState:
        return UniformState(state.rewards + 1)

    def expected(state: UniformState) -> Expected:
        return Expected(None, None, None)

    return checked(init=init, act=act, update=update, expected=expected, check_update=check_finite_reward)
