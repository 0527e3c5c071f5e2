"""The rule of an agent's decisions: a decision, its repetitions and its floor, as functions of keys, state and arms."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from explorax.agent.unrolled import wrapped
from explorax.policies.base import Action, State
from explorax.policies.exploration import after_forced_rounds, counted


@dataclass(frozen=True, eq=False)
class Rule:
    """All that a compiled decision depends on; equal rules are the same object (`one_rule`)."""

    act: Callable[..., Action]
    probabilities: Callable[..., Array] | None
    redraw: Callable[[Array, State], State] | None
    draws: int  # M; 0 if the propensity is not asked for, or known by a formula
    floor: float = 0.0  # the probability of an arm that is drawn uniformly in place of the policy's
    stationary: bool = False  # whether decisions after the forced rounds have one law until the state changes
    vector: bool = False  # whether the propensities of all arms are asked for
    settled: bool = False  # whether the forced rounds are over, so that nobody has to look for them

    def changed(self, **others: Any) -> "Rule":
        """Return this rule with other fields."""
        return one_rule(**{field.name: getattr(self, field.name) for field in fields(self)} | others)

    @cached_property
    def after_forced_rounds(self) -> "Rule":
        """The same rule for decisions after the forced rounds, whose programs are smaller."""
        return self.changed(settled=True)

    def decide(
        self, keys: Array, state: State, arms: Array, t: Array, mask: Array | None
    ) -> tuple[Array, Array | None]:
        """Make decision t, and repeat it for its propensity.

        Args:
            keys: (3, …) The keys of decisions, of their repetitions, and of the floor.
            state: The state of the policy.
            arms: (K, d) The features of the arms.
            t: The number of the decision.
            mask: (K,) Whether each arm may be pulled; None if all may be.

        Returns:
            What `told` returns.
        """
        state = after_forced_rounds(state) if self.settled else state
        own = key_at(keys[0], t)
        if not self.draws:
            return self.told(keys, state, arms, t, mask, self.act(own, state, arms, t, mask), None)
        lots = jax.random.split(key_at(keys[1], t), self.draws)
        if self.redraw is not None:
            drawn = self.drawn(lots, state, arms, t, mask)
            return self.told(keys, state, arms, t, mask, self.act(own, state, arms, t, mask), drawn)
        # The decision and its repetitions are the same program, which is compiled once if they are made together.
        all_keys = jnp.concatenate([own[None], lots])
        actions = jax.vmap(lambda key: self.act(key, state, arms, t, mask))(all_keys)
        return self.told(keys, state, arms, t, mask, jax.tree.map(lambda leaf: leaf[0], actions), actions.arm[1:])

    def told(
        self,
        keys: Array,
        state: State,
        arms: Array,
        t: Array,
        mask: Array | None,
        action: Action,
        drawn: Array | None,
    ) -> tuple[Array, Array | None]:
        """Tell what decision t comes to, given what the policy does in it and in its repetitions.

        Args:
            keys: (3, …) The keys of decisions, of their repetitions, and of the floor.
            state: The state of the policy.
            arms: (K, d) The features of the arms.
            t: The number of the decision.
            mask: (K,) Whether each arm may be pulled; None if all may be.
            action: What the policy does.
            drawn: (M,) The arms of the repetitions; None if it is not repeated.

        Returns:
            (5,) The whole numbers [arm, forced, converged, C, own], where C counts how often the policy chose the arm
            in the decision and its repetitions, and `own` is the policy's own arm, which a floor may have replaced.
            Then the policy's P(arm), if there is a formula for it, or None; with `vector`, P or C of every arm.
        """
        arm, own, known = action.arm, action.arm, None
        if self.floor:
            arm = self.floored(keys[2], own, arms, t, mask)
        count = jnp.asarray(arm == own, int)
        if drawn is not None:
            count = count + jnp.sum(drawn == arm)
        if self.probabilities is not None:
            known = self.probabilities(state, arms, t, mask)
            known = known if self.vector else known[arm]
        elif self.vector:
            all_of_them = own[None] if drawn is None else jnp.concatenate([own[None], drawn])
            known = jnp.bincount(all_of_them, length=arms.shape[0])
        whole = jnp.stack([jnp.asarray(each, int) for each in (arm, action.forced, action.converged, count, own)])
        return whole, known

    def floored(self, lots: Array, arm: Array, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return the arm, or with the probability of the floor another one, drawn uniformly from those on offer."""
        whether, which = jax.random.split(key_at(lots, t))
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        another = counted(jax.random.randint(which, (), 0, jnp.sum(everything)), everything)
        threshold = min(round(self.floor * 2**32), 2**32 - 1)  # whole numbers: float32 would round a small floor
        return jnp.where(jax.random.bits(whether, (), jnp.uint32) < jnp.uint32(threshold), another, arm)

    def repeated(self, keys: Array, state: State, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return a vector (K,) of how often each arm comes up in the repetitions of decision t."""
        lots = jax.random.split(key_at(keys[1], t), self.draws)
        return jnp.bincount(self.drawn(lots, state, arms, t, mask), length=arms.shape[0])

    def drawn(self, lots: Array, state: State, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return a vector (M,) of the arms of decision t if it is repeated with each of M keys."""
        return jax.vmap(lambda key: self.act(key, self.redrawn(key, state), arms, t, mask).arm)(lots)

    def redrawn(self, key: Array, state: State) -> State:
        """Return the state in which a decision is repeated with a key."""
        return state if self.redraw is None else self.redraw(key, state)

    def directions(self, keys: Array, state: State, units: Array, t: Array) -> tuple[Array, Array]:
        """Draw θ̃ for decision t in an infinite set of arms, and again for its propensity.

        The scores of policies that maximize xᵀθ̃ are linear in the features, so those of the unit vectors are θ̃ itself.

        Args:
            keys: (3, …) The keys of decisions, of their repetitions, and of the floor.
            state: The state of the policy.
            units: (d, d) The unit vectors.
            t: The number of the decision.

        Returns:
            (M + 1, d) The θ̃ of the decision and of its repetitions, and (2,) the bools [forced, converged].
        """
        action = self.act(key_at(keys[0], t), state, units, t)
        flags = jnp.stack([action.forced, action.converged])
        first = jnp.where(action.forced, units[action.arm], action.scores)
        if not self.draws:
            return first[None], flags
        lots = jax.random.split(key_at(keys[1], t), self.draws)
        others = jax.vmap(lambda key: self.act(key, state, units, t).scores)(lots)
        return jnp.concatenate([first[None], jnp.where(action.forced, first, others)]), flags


one_rule = lru_cache(maxsize=1024)(Rule)  # a program is found by the identity of its rule


def key_at(key_data: Array, t: Array) -> Array:
    """Return the random key of decision t."""
    return jax.random.fold_in(wrapped(key_data), t)
