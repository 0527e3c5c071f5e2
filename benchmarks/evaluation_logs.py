"""Logs whose truth is known, for `evaluation_coverage.py`: contexts, arms, propensities and rewards by simulation.

A logistic problem with four contexts, in each of which six of 24 fixed arms may be pulled.  Logs are made by uniform
draws, by ε-greedy with exact propensities, and by GLM-TSL with propensities that are counted as an agent counts them
(`explorax.agent.propensity`): in M repetitions and the decision itself, with a floor and without one.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import explorax
from explorax.policies.base import Policy

CONTEXTS, ARMS, FEATURES, BATCH = 4, 6, 4, 50


class Player(NamedTuple):
    """A policy that makes logs."""

    policy: Policy | None  # None draws uniformly
    draws: int = 0  # M
    floor: float = 0.0


PLAYERS = {
    "uniform": Player(None),
    "ε-greedy": Player(explorax.epsilon_greedy(epsilon=0.2)),
    "GLM-TSL": Player(explorax.glm_tsl(), draws=20, floor=0.2),
    "GLM-TSL without floor": Player(explorax.glm_tsl(), draws=20),
}


class World(NamedTuple):
    """The problem: features, and the chance of a reward of 1, of each arm in each context."""

    arms: Array  # (CONTEXTS · ARMS, FEATURES)
    chances: Array  # (CONTEXTS · ARMS,)

    @property
    def table(self) -> np.ndarray:
        """The chances, (CONTEXTS, ARMS)."""
        return np.asarray(self.chances, float).reshape(CONTEXTS, ARMS)


class Log(NamedTuple):
    """A log, row by row: arms count from 0 in each context."""

    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray
    every: np.ndarray  # the propensities of all arms

    @property
    def chosen(self) -> np.ndarray:
        """The propensities of the arms that were chosen."""
        return self.every[np.arange(len(self.arms)), self.arms]


def world(seed: int = 0) -> World:
    """A problem, the same for the same seed."""
    rng = np.random.default_rng(seed)
    arms = rng.normal(size=(CONTEXTS * ARMS, FEATURES)) / 2
    theta = np.array([1.0, -0.7, 0.5, 0.3])
    return World(jnp.asarray(arms), jnp.asarray(1 / (1 + np.exp(0.5 - 2 * arms @ theta))))


def targets(problem: World) -> dict[str, np.ndarray]:
    """The targets, (CONTEXTS, ARMS): uniform, policies frozen after 300 uniform decisions, and a softmax."""
    found = {"uniform": np.full((CONTEXTS, ARMS), 1 / ARMS)}
    rng = np.random.default_rng(1)
    pulled = rng.integers(CONTEXTS * ARMS, size=300)
    paid = (rng.random(300) < np.asarray(problem.chances)[pulled]).astype(float)
    for name, policy in {"greedy": explorax.greedy(), "GLM-UCB": explorax.glm_ucb(width=3.0)}.items():
        state = policy.init(problem.arms)
        learn = partial(learned, policy, problem.arms)
        state, _ = lax.scan(learn, state, (jnp.asarray(pulled), jnp.asarray(paid, problem.arms.dtype)))
        masks = np.arange(CONTEXTS * ARMS) // ARMS == np.arange(CONTEXTS)[:, None]
        best = [int(policy.act(jax.random.key(0), state, problem.arms, 300, mask).arm) % ARMS for mask in masks]
        found[name] = np.eye(ARMS)[best]
    raised = np.exp(4 * problem.table)
    return found | {"softmax": raised / raised.sum(axis=1, keepdims=True)}


def learned(policy: Policy, arms: Array, state: Any, row: tuple[Array, Array]) -> tuple[Any, None]:
    """The state after a reward."""
    return policy.update(state, row[0], arms[row[0]], row[1]), None


def logs(player: Player, problem: World, rounds: int, count: int, seed: int) -> Iterator[Log]:
    """Yield logs of a policy, each with randomness of its own."""
    if player.policy is None:
        rng = np.random.default_rng(seed)
        for _ in range(count):
            contexts, arms = rng.integers(CONTEXTS, size=rounds), rng.integers(ARMS, size=rounds)
            rewards = (rng.random(rounds) < problem.table[contexts, arms]).astype(float)
            yield Log(contexts, arms, rewards, np.full((rounds, ARMS), 1 / ARMS))
        return
    play = jax.jit(jax.vmap(partial(one_log, player, problem, rounds)))
    keys = jax.random.split(jax.random.key(seed), -(-count // BATCH) * BATCH)
    for start in range(0, count, BATCH):
        batch = [np.asarray(part) for part in play(keys[start : start + BATCH])]
        for instance in range(min(BATCH, count - start)):
            contexts, arms, rewards, every = (part[instance] for part in batch)
            exact = every.astype(float)
            yield Log(contexts, arms, rewards.astype(float), exact / exact.sum(axis=1, keepdims=True))


def one_log(player: Player, problem: World, rounds: int, key: Array) -> tuple[Array, Array, Array, Array]:
    """The contexts, arms, rewards and propensities of one log."""
    policy, offered = player.policy, jnp.arange(CONTEXTS * ARMS) // ARMS
    assert policy is not None  # `logs` looks

    def decide(state: Any, t: Array) -> tuple[Any, tuple[Array, Array, Array, Array]]:
        where, how, whether, which, luck = jax.random.split(jax.random.fold_in(key, t), 5)
        context = jax.random.randint(where, (), 0, CONTEXTS)
        mask = offered == context
        picks = jax.vmap(lambda each: policy.act(each, state, problem.arms, t, mask).arm)(
            jax.random.split(how, 1 + player.draws)
        )
        if policy.probabilities is None:
            chances = jnp.bincount(picks, length=CONTEXTS * ARMS) / (1 + player.draws)
        else:
            chances = policy.probabilities(state, problem.arms, t, mask)
        every = (1 - player.floor) * lax.dynamic_slice(chances, (context * ARMS,), (ARMS,)) + player.floor / ARMS
        uniform = context * ARMS + jax.random.randint(which, (), 0, ARMS)
        arm = jnp.where(jax.random.uniform(whether) < player.floor, uniform, picks[0])
        reward = (jax.random.uniform(luck) < problem.chances[arm]).astype(problem.arms.dtype)
        return policy.update(state, arm, problem.arms[arm], reward), (context, arm % ARMS, reward, every)

    return lax.scan(decide, policy.init(problem.arms), jnp.arange(rounds))[1]
