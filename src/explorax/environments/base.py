"""What a policy plays against: an environment is four pure functions.

    draw(key)                            -> instance    one random problem, a pytree of arrays
    arms(key, instance, t)               -> (K, d)      the arms on offer in round t, the same in every round if fixed
    means(instance, arms)                -> (K,)        their expected rewards
    reward(key, instance, arms, arm)     -> ()          one reward of the arm that was pulled

Randomness is an argument, so a key always gives the same instance, alone or in a batch of any size.  All four can be
used inside `jit`, `vmap` over instances and `lax.scan` over rounds.  Arms that change depend on the key *and* on t: one
key is enough for all rounds of an instance.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jax import Array

Instance = Any  # a pytree of arrays; each environment has its own


class Environment(NamedTuple):
    """`draw`, `arms`, `means` and `reward`; see the module's docstring."""

    name: str
    features: int  # d
    arms_change: bool  # whether the arms on offer differ from round to round
    draw: Callable[[Array], Instance]
    arms: Callable[..., Array]
    means: Callable[..., Array]
    reward: Callable[..., Array]
