"""The compiled loop of a simulation: in each round all instances of a batch act and learn, in lockstep.

A program is compiled for the functions of policy and environment, the shapes of a state, and a number of rounds.
Policies that learn alike have the same function `update` and share a program (`policies.merged`), which is told whose
function `act` to call.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.environments.base import Offer
from explorax.policies.base import ActFn, Action, State
from explorax.programs import Bounded, bounded_jit

FNV_OFFSET, FNV_PRIME = 2166136261, 16777619  # the hash of the arms pulled: 32-bit FNV-1a over their indices


class Keys(NamedTuple):
    """The random keys of one instance."""

    arms: Array
    reward: Array
    policy: Array


@lru_cache(maxsize=64)
def compiled_chunk(
    acts: tuple[ActFn, ...],
    update: Callable[..., State],
    offer_of: Callable[..., Offer],
    reward_of: Callable[..., Array],
    axes: Any,
    length: int,
) -> Bounded:
    """Return the compiled function that plays `length` rounds on a batch of instances.

    Args:
        acts: The functions `act` of one or more policies whose function `update` is the same.
        update: Their function `update`.
        offer_of: The function `offer` of the environment.
        reward_of: The function `reward` of the environment.
        axes: The axes of the environment's problems along which they differ between instances.
        length: The number of rounds.

    Returns:
        The function, of the place in `acts`, the states, the digests, the problems, the keys, the first round, and the
        number of rounds of the whole run.
    """
    everyone: list[Callable[..., Action]] = [jax.vmap(act, (0, 0, 0, None)) for act in acts]

    def after(state: State, digest: Array, key: Array, offer: Offer, action: Action, t: Array, rounds: Array) -> Any:
        reward = reward_of(key, offer, action.arm)
        state = update(state, action.arm, offer.arms[action.arm], reward)
        more = (digest ^ action.arm.astype(jnp.uint32)) * jnp.uint32(FNV_PRIME)
        digest = jnp.where(t < rounds, more, digest)
        return (state, digest), (jnp.max(offer.means) - offer.means[action.arm], reward, ~action.converged)

    offers_of = jax.vmap(offer_of, (0, axes, None))
    learn = jax.vmap(after, (0, 0, 0, 0, 0, None, None))

    @bounded_jit
    def chunk(which: Array, state: State, digest: Array, world: Any, key: Keys, begin: Array, rounds: Array) -> Any:
        def one_round(carry: tuple[State, Array], now: tuple[Array, Array, Array]) -> tuple[tuple[State, Array], Any]:
            (state, digest), (t, reward_keys, policy_keys) = carry, now
            offers = offers_of(key.arms, world, t)
            actions = lax.switch(which, everyone, policy_keys, state, offers.arms, t)
            learned: tuple[tuple[State, Array], Any] = learn(state, digest, reward_keys, offers, actions, t, rounds)
            return learned

        # The keys of all rounds at once: in the loop each would cost as much as the rest of a cheap decision.
        times = begin + jnp.arange(length)
        of_rounds = jax.vmap(jax.vmap(jax.random.fold_in, (0, None)), (None, 0))
        keys = times, of_rounds(key.reward, times), of_rounds(key.policy, times)
        (state, digest), played = lax.scan(one_round, (state, digest), keys)
        return state, digest, played

    return chunk
