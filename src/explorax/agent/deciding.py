"""One decision, compiled: which arm, and how often it comes up when the decision is repeated (`propensity.py`)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.agent.packing import Packing
from explorax.policies.base import Action, Policy, State

# Programs of a decision are small: handing their parts to several threads costs more than it saves.
OPTIONS = {"xla_cpu_enable_concurrency_optimized_scheduler": False}


@dataclass(frozen=True)
class Rule:
    """What a compiled decision depends on."""

    act: Callable[..., Action]
    probabilities: Callable[..., Array] | None
    redraw: Callable[[Array, State], State] | None
    draws: int  # M; 0 where the propensity is not asked for, or known otherwise

    @classmethod
    def of(cls, policy: Policy, draws: int) -> "Rule":
        """The rule of a policy whose propensities are estimated by that many draws, if not by a formula."""
        return cls(policy.act, policy.probabilities, policy.redraw, draws)

    def decide(self, keys: Array, state: State, arms: Array, t: Array, offered: Array | None) -> tuple[Array, Array]:
        """[arm, forced, converged, C], and P(arm) where it has a formula; 1 otherwise.

        `keys` holds one for decisions and one for their repetitions.
        """
        action = self.act(key_at(keys[0], t), state, arms, t, offered)
        count, probability = jnp.ones((), int), jnp.ones((), arms.dtype)
        if self.probabilities is not None:
            probability = self.probabilities(state, arms, t, offered)[action.arm]
        elif self.draws:
            count = count + jnp.sum(self.drawn(keys[1], state, arms, t, offered) == action.arm)
        whole = jnp.stack([jnp.asarray(each, int) for each in (action.arm, action.forced, action.converged, count)])
        return whole, probability

    def drawn(self, lots: Array, state: State, arms: Array, t: Array, offered: Array | None) -> Array:
        """(M,) the arms of repeated decisions."""

        def again(key: Array) -> Array:
            redrawn = state if self.redraw is None else self.redraw(key, state)
            return self.act(key, redrawn, arms, t, offered).arm

        return jax.vmap(again)(jax.random.split(key_at(lots, t), self.draws))

    def directions(self, keys: Array, state: State, units: Array, t: Array) -> tuple[Array, Array]:
        """(M + 1, d) θ̃ of the decision and of its repetitions; and [forced, converged].

        Where scores are linear in the features, those of the unit vectors are θ̃ itself.
        """
        action = self.act(key_at(keys[0], t), state, units, t)
        flags = jnp.stack([action.forced, action.converged])
        first = jnp.where(action.forced, units[action.arm], action.scores)
        if not self.draws:
            return first[None], flags
        lots = jax.random.split(key_at(keys[1], t), self.draws)
        others = jax.vmap(lambda key: self.act(key, state, units, t).scores)(lots)
        return jnp.concatenate([first[None], jnp.where(action.forced, first, others)]), flags


def key_at(key_data: Array, t: Array) -> Array:
    """The key of decision t."""
    return jax.random.fold_in(jax.random.wrap_key_data(key_data), t)


def compiled(function: Callable[..., Any], **axes: Any) -> Callable[..., Any]:
    """The function compiled for small programs; with `in_axes` for a batch."""
    if axes:
        function = jax.vmap(function, **axes)
    return jax.jit(function, compiler_options=OPTIONS if jax.default_backend() == "cpu" else None)


@lru_cache(maxsize=256)
def decision(rule: Rule, packing: Packing) -> Callable[..., tuple[Array, Array]]:
    """`rule.decide` on a packed state, compiled."""
    return compiled(on_packed(rule.decide, packing))


@lru_cache(maxsize=256)
def decisions(rule: Rule, packing: Packing, arms_differ: bool) -> Callable[..., tuple[Array, Array]]:
    """The same for a batch of decisions at t, t + 1, …, with the same arms on offer or with arms of their own.

    The repetitions of a decision fill a processor's caches, so with these it is one decision after the other.
    """
    each = 0 if arms_differ else None
    if not rule.draws:
        return compiled(on_packed(rule.decide, packing), in_axes=(None, None, each, 0, each))

    def in_turn(keys: Array, state: State, arms: Array, times: Array, offered: Array | None) -> tuple[Array, Array]:
        if arms_differ:
            return lax.map(lambda one: rule.decide(keys, state, *one), (arms, times, offered))
        return lax.map(lambda t: rule.decide(keys, state, arms, t, offered), times)

    return compiled(on_packed(in_turn, packing))


@lru_cache(maxsize=256)
def directions(rule: Rule, packing: Packing) -> Callable[..., tuple[Array, Array]]:
    """`rule.directions` of several decisions on a packed state, compiled."""
    return compiled(on_packed(rule.directions, packing), in_axes=(None, None, None, 0))


@lru_cache(maxsize=256)
def repeated(rule: Rule, packing: Packing) -> Callable[..., Array]:
    """(K,) how often each arm comes up in M repetitions of a decision; where there is a formula, its probability."""

    def of_arms(keys: Array, state: State, arms: Array, t: Array, offered: Array | None) -> Array:
        if rule.probabilities is not None:
            return rule.probabilities(state, arms, t, offered)
        return jnp.bincount(rule.drawn(keys[1], state, arms, t, offered), length=arms.shape[0])

    return compiled(on_packed(of_arms, packing))


def on_packed(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """The function (keys, state, …) of a packed state."""
    return lambda keys, packed, *others: function(keys, packing.unpack(packed), *others)
