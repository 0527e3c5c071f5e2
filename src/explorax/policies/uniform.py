"""Uniform: pull an arm uniformly at random, regardless of the past.

Each arm on offer has probability 1/K in every round.  It is the baseline that every policy should beat, and its data
are the simplest for evaluating other policies.
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
    """The state of the uniform policy.

    Attributes:
        rewards: The number of rewards so far, of shape ().
    """

    rewards: Array


def uniform() -> Policy:
    """Build the uniform policy, which pulls an arm uniformly at random."""

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
    """Return the probability 1/K of each arm on offer."""
    everything = jnp.ones_like(arms[:, 0]) if mask is None else mask.astype(arms.dtype)
    return everything / jnp.sum(everything)
