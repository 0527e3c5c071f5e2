"""What a policy plays against: an environment is three pure functions.

    draw(key, number)            -> instance    one random problem, a pytree of arrays; `number` is its place in the run
    offer(key, instance, t)      -> Offer       the arms on offer in round t, the same in every round if fixed
    reward(key, offer, arm)      -> ()          one reward of the arm that was pulled

Randomness is an argument, so a key always gives the same instance, alone or in a batch of any size.  All three can be
used inside `jit`, `vmap` over instances and `lax.scan` over rounds.  Arms that change depend on the key *and* on t: one
key is enough for all rounds of an instance.  What all instances have in common, such as a large data set, is part of
each instance and yet there only once: `axes` says to `vmap` what is shared.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

Instance = Any  # a pytree of arrays; each environment has its own


class Offer(NamedTuple):
    """The arms of one round."""

    arms: Array  # (K, d) their features: all that a policy sees
    means: Array  # (K,) their expected rewards
    scores: Array  # (K,) natural parameters of the laws of their rewards


class Environment(NamedTuple):
    """`draw`, `offer` and `reward`; see the module's docstring."""

    name: str
    n_features: int  # d
    arms_change: bool  # whether the arms on offer differ from round to round
    draw: Callable[..., Instance]
    offer: Callable[..., Offer]
    reward: Callable[..., Array]
    axes: Any = 0  # of an instance, as `jax.vmap` takes them: None for what all instances share
    family: str | None = None  # of the rewards, which policies must model; None where it does not say: all may play
