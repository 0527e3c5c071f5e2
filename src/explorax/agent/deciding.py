"""One decision, compiled: which arm, and how often it comes up when the decision is repeated (`propensity.py`).

Programs are made for shapes, and a process keeps those that it used last (`programs.py`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from explorax.agent.menus import Menu, Menus
from explorax.agent.packing import Packed, Packing
from explorax.policies.base import Action, Policy, State
from explorax.policies.exploration import counted
from explorax.programs import kept

BATCH = 1024  # decisions computed at a time
LEAST_BATCH = 8  # what a batch of decisions is padded to, at the least

# Programs of a decision are small: handing their parts to several threads costs more than it saves.
OPTIONS = {"xla_cpu_enable_concurrency_optimized_scheduler": False}


@dataclass(frozen=True, eq=False)
class Rule:
    """What a compiled decision depends on; there is one object for equal ones (`Rule.of`)."""

    act: Callable[..., Action]
    probabilities: Callable[..., Array] | None
    redraw: Callable[[Array, State], State] | None
    draws: int  # M; 0 where the propensity is not asked for, or known otherwise
    floor: float = 0.0  # the probability of an arm that is drawn uniformly in place of the policy's

    @classmethod
    def of(cls, policy: Policy, draws: int, floor: float = 0.0) -> "Rule":
        """The rule of a policy whose propensities are estimated by that many draws, if not by a formula."""
        return unique(policy.act, policy.probabilities, policy.redraw, draws, floor)

    def decide(
        self, keys: Array, state: State, arms: Array, t: Array, offered: Array | None
    ) -> tuple[Array, Array | None]:
        """[arm, forced, converged, C], and the policy's P(arm) if there is a formula for it.

        C counts how often the policy chose the arm, in the decision and its repetitions.  `keys` holds one for
        decisions, one for their repetitions, and one for the floor.
        """
        action = self.act(key_at(keys[0], t), state, arms, t, offered)
        arm, count, probability = action.arm, jnp.ones((), int), None
        if self.floor:
            arm = self.floored(keys[2], action.arm, arms, t, offered)
            count = jnp.asarray(arm == action.arm, int)
        if self.probabilities is not None:
            probability = self.probabilities(state, arms, t, offered)[arm]
        elif self.draws:
            count = count + jnp.sum(self.drawn(keys[1], state, arms, t, offered) == arm)
        whole = jnp.stack([jnp.asarray(each, int) for each in (arm, action.forced, action.converged, count)])
        return whole, probability

    def floored(self, lots: Array, arm: Array, arms: Array, t: Array, offered: Array | None) -> Array:
        """The arm, or with the probability of the floor one that is drawn uniformly from those on offer."""
        whether, which = jax.random.split(key_at(lots, t))
        everything = jnp.ones(arms.shape[0], bool) if offered is None else offered
        another = counted(jax.random.randint(which, (), 0, jnp.sum(everything)), everything)
        threshold = min(round(self.floor * 2**32), 2**32 - 1)  # whole numbers: float32 would round a small floor
        return jnp.where(jax.random.bits(whether, (), jnp.uint32) < jnp.uint32(threshold), another, arm)

    def frequencies(self, keys: Array, state: State, arms: Array, t: Array, offered: Array | None) -> Array:
        """(K,) how often each arm comes up in a decision and its repetitions; by the formula, where there is one."""
        if self.probabilities is not None:
            return self.probabilities(state, arms, t, offered)
        found = self.act(key_at(keys[0], t), state, arms, t, offered).arm[None]
        if self.draws:
            found = jnp.concatenate([found, self.drawn(keys[1], state, arms, t, offered)])
        return jnp.bincount(found, length=arms.shape[0])

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


unique = lru_cache(maxsize=1024)(Rule)  # so that a program is found by what a rule is, not by what it says


def key_at(key_data: Array, t: Array) -> Array:
    """The key of decision t."""
    return jax.random.fold_in(jax.random.wrap_key_data(key_data), t)


def compiled(function: Callable[..., Any], **axes: Any) -> Callable[..., Any]:
    """The function compiled for small programs; with `in_axes` for a batch."""
    if axes:
        function = jax.vmap(function, **axes)
    return jax.jit(function, compiler_options=OPTIONS if jax.default_backend() == "cpu" else None)


def decide(rule: Rule, packing: Packing, keys: Array, packed: Packed, menu: Menu, t: int) -> tuple[list[int], Any]:
    """`Rule.decide` for decision t with these arms; where there is no formula, C stands for what it would tell."""
    program = decision(rule, packing, menu.arms.shape, menu.offered is None)
    whole, exact = program(keys, packed, menu.arms, t, menu.offered)
    numbers = np.asarray(whole).tolist()
    return numbers, numbers[-1] if exact is None else exact


def decide_many(
    rule: Rule, packing: Packing, keys: Array, packed: Packed, menus: Menus, first: int
) -> tuple[np.ndarray, np.ndarray]:
    """The same for decisions first, first + 1, …, one after the other."""
    arms, offered = menus.arms, menus.offered
    each_arms, each_offered = arms.ndim == 3, offered is not None and offered.ndim == 2
    found = []
    for start, room, piece in pieces(menus.number):
        some = arms[piece] if each_arms else arms
        which = offered[piece] if offered is not None and each_offered else offered
        program = decisions(rule, packing, some.shape, None if which is None else which.shape, room)
        found.append(program(keys, packed, some, np.arange(first + start, first + start + room), which))
    numbers = np.concatenate([np.asarray(whole) for whole, _ in found])[: menus.number]
    if rule.probabilities is None:
        return numbers, numbers[:, -1]
    return numbers, np.concatenate([np.asarray(exact) for _, exact in found])[: menus.number]


def pieces(number: int, least: int = LEAST_BATCH) -> Iterator[tuple[int, int, Any]]:
    """What is computed together of so many decisions: the first, and how many and which, padded with the last one."""
    for start in range(0, number, BATCH):
        count = min(BATCH, number - start)
        room = max(least, 1 << (count - 1).bit_length())
        piece: Any = slice(start, start + count)
        yield start, room, piece if room == count else np.minimum(np.arange(start, start + room), number - 1)


@kept
def decision(rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool) -> Callable[..., Any]:
    """`rule.decide` on a packed state, compiled."""
    return compiled(on_packed(rule.decide, packing))


@kept
def decisions(
    rule: Rule, packing: Packing, shape: tuple[int, ...], offered: tuple[int, ...] | None, count: int
) -> Callable[..., Any]:
    """The same for a batch of decisions, with the same arms on offer or with arms of their own.

    The repetitions of a decision fill a processor's caches, so with these it is one decision after the other.
    """
    arms_differ, offers_differ = len(shape) == 3, offered is not None and len(offered) == 2
    if not rule.draws:
        axes = (None, None, 0 if arms_differ else None, 0, 0 if offers_differ else None)
        return compiled(on_packed(rule.decide, packing), in_axes=axes)

    def in_turn(keys: Array, state: State, arms: Array, times: Array, offered: Array | None) -> Any:
        def one(own: Any) -> Any:
            t, its_arms, its_offered = own
            return rule.decide(
                keys, state, its_arms if arms_differ else arms, t, its_offered if offers_differ else offered
            )

        return lax.map(one, (times, arms if arms_differ else None, offered if offers_differ else None))

    return compiled(on_packed(in_turn, packing))


@kept
def directions(rule: Rule, packing: Packing, count: int) -> Callable[..., Any]:
    """`rule.directions` of so many decisions on a packed state, compiled."""
    return compiled(on_packed(rule.directions, packing), in_axes=(None, None, None, 0))


@kept
def frequencies(rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool) -> Callable[..., Any]:
    """`rule.frequencies` on a packed state, compiled."""
    return compiled(on_packed(rule.frequencies, packing))


def on_packed(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """The function (keys, state, …) of a packed state."""
    return lambda keys, packed, *others: function(keys, packing.unpack(packed), *others)
