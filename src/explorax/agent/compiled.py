"""The compiled programs of an agent: a decision, and learning from rewards, on a state that is packed in few arrays.

Programs are compiled for shapes, and a process keeps those that it used last (`programs.py`).

**Packed states.**  Calling a compiled program costs some microseconds for each array that goes in or comes out.  Small
arrays are laid end to end, one vector for each dtype (bools go with the whole numbers); large ones stay as they are,
which copies nothing.

**Learning** is one `update` after the other, in the order given.  A batch is learned in pieces of a few fixed sizes, so
that a handful of programs serves batches of any length.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from explorax.checks import check_reward_size, computed
from explorax.errors import HistoryFull, InvalidShape, NotFinite
from explorax.glm import families
from explorax.glm.history import check_room, limited_rows
from explorax.policies.base import Action, Policy, State
from explorax.policies.exploration import counted
from explorax.programs import kept

BATCH = 1024  # decisions computed at a time
LEAST_BATCH = 8  # what a batch of decisions is padded to, at the least
PIECES = (1024, 128, 16)  # rewards learned at a time, and the rest one by one
LARGE = 1024  # elements of an array that is not worth copying

# Programs of a decision are small: handing their parts to several threads costs more than it saves.
OPTIONS = {"xla_cpu_enable_concurrency_optimized_scheduler": False}

Arrays = tuple[Array, ...]


# Packed states


@dataclass(frozen=True, eq=False)
class Packing:
    """The layout of packed states of one shape; there is one object for each shape (`Packing.of`)."""

    structure: Any
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]

    @classmethod
    def of(cls, state: State) -> "Packing":
        """Return the packing of states like this one."""
        leaves, structure = jax.tree.flatten(state)
        return one_packing(structure, tuple(leaf.shape for leaf in leaves), tuple(str(leaf.dtype) for leaf in leaves))

    def groups(self) -> dict[str, list[int]]:
        """Return the leaves that share a vector, by its dtype, whole numbers first; each large leaf is alone."""
        whole = str(jnp.zeros((), int).dtype)
        groups: dict[str, list[int]] = {whole: []}
        for i, (shape, dtype) in enumerate(zip(self.shapes, self.dtypes, strict=True)):
            vector = whole if dtype == "bool" else dtype
            groups.setdefault(f"large {i}" if np.prod(shape) > LARGE else vector, []).append(i)
        return groups

    def pack(self, state: State) -> Arrays:
        """Return the state as few arrays; the last of its whole numbers tells whether the state is finite."""
        leaves = jax.tree.leaves(state)
        (whole, counts), *others = self.groups().items()
        packed = [
            leaves[members[0]]
            if group.startswith("large")
            else jnp.concatenate([leaves[i].reshape(-1).astype(group) for i in members])
            for group, members in others
        ]
        looked_at = {id(leaf) for leaf in computed(state)}
        finite = [
            jnp.all(jnp.isfinite(vector))
            for (group, members), vector in zip(others, packed, strict=True)
            if jnp.issubdtype(vector.dtype, jnp.inexact)
            and (not group.startswith("large") or id(leaves[members[0]]) in looked_at)
        ]
        numbers = [*(leaves[i] for i in counts), jnp.all(jnp.asarray(finite, bool))]
        return jnp.concatenate([each.reshape(-1).astype(whole) for each in numbers]), *packed

    def unpack(self, arrays: Arrays) -> State:
        """Return the state that was packed into these arrays."""
        leaves: list[Any] = [None] * len(self.shapes)
        for (group, members), vector in zip(self.groups().items(), arrays, strict=True):
            start = 0
            for i in members:
                if group.startswith("large"):
                    leaves[i] = vector
                    continue
                size = int(np.prod(self.shapes[i]))
                leaves[i] = vector[start : start + size].reshape(self.shapes[i]).astype(self.dtypes[i])
                start += size
        return jax.tree.unflatten(self.structure, leaves)


one_packing = lru_cache(maxsize=1024)(Packing)  # a program is found by the identity of its packing


class Packed(NamedTuple):
    """A state as compiled programs take it."""

    packing: Packing
    arrays: Arrays

    @classmethod
    def of(cls, state: State) -> "Packed":
        """Return the packed form of a state."""
        packing = Packing.of(state)
        return cls(packing, packing.pack(state))

    def state(self) -> State:
        """Return the state as the policy knows it."""
        return self.packing.unpack(self.arrays)

    def is_finite(self) -> bool:
        """Tell whether the state has no NaN or infinity in it."""
        return bool(np.asarray(self.arrays[0])[-1])


def on_packed(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """Return a function of (keys, state, …) as a function of (keys, packed arrays, …)."""
    return lambda keys, arrays, *others: function(keys, packing.unpack(arrays), *others)


def compiled(function: Callable[..., Any], **axes: Any) -> Callable[..., Any]:
    """Compile a small program; with `in_axes` map it over a batch first."""
    if axes:
        function = jax.vmap(function, **axes)
    return jax.jit(function, compiler_options=OPTIONS if jax.default_backend() == "cpu" else None)


# A decision


@dataclass(frozen=True, eq=False)
class Rule:
    """All that a compiled decision depends on; equal rules are the same object (`one_rule`)."""

    act: Callable[..., Action]
    probabilities: Callable[..., Array] | None
    redraw: Callable[[Array, State], State] | None
    draws: int  # M; 0 if the propensity is not asked for, or known by a formula
    floor: float = 0.0  # the probability of an arm that is drawn uniformly in place of the policy's

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
            (4,) The whole numbers [arm, forced, converged, C], where C counts how often the policy chose the arm in
            the decision and its repetitions; and the policy's P(arm) if there is a formula for it, else None.
        """
        action = self.act(key_at(keys[0], t), state, arms, t, mask)
        arm, count, probability = action.arm, jnp.ones((), int), None
        if self.floor:
            arm = self.floored(keys[2], action.arm, arms, t, mask)
            count = jnp.asarray(arm == action.arm, int)
        if self.probabilities is not None:
            probability = self.probabilities(state, arms, t, mask)[arm]
        elif self.draws:
            count = count + jnp.sum(self.drawn(keys[1], state, arms, t, mask) == arm)
        whole = jnp.stack([jnp.asarray(each, int) for each in (arm, action.forced, action.converged, count)])
        return whole, probability

    def floored(self, lots: Array, arm: Array, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return the arm, or with the probability of the floor another one, drawn uniformly from those on offer."""
        whether, which = jax.random.split(key_at(lots, t))
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        another = counted(jax.random.randint(which, (), 0, jnp.sum(everything)), everything)
        threshold = min(round(self.floor * 2**32), 2**32 - 1)  # whole numbers: float32 would round a small floor
        return jnp.where(jax.random.bits(whether, (), jnp.uint32) < jnp.uint32(threshold), another, arm)

    def frequencies(self, keys: Array, state: State, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return a vector (K,) of how often each arm comes up in a decision and its repetitions, or of P(arm)."""
        if self.probabilities is not None:
            return self.probabilities(state, arms, t, mask)
        found = self.act(key_at(keys[0], t), state, arms, t, mask).arm[None]
        if self.draws:
            found = jnp.concatenate([found, self.drawn(keys[1], state, arms, t, mask)])
        return jnp.bincount(found, length=arms.shape[0])

    def drawn(self, lots: Array, state: State, arms: Array, t: Array, mask: Array | None) -> Array:
        """Return a vector (M,) of the arms of repeated decisions."""

        def again(key: Array) -> Array:
            redrawn = state if self.redraw is None else self.redraw(key, state)
            return self.act(key, redrawn, arms, t, mask).arm

        return jax.vmap(again)(jax.random.split(key_at(lots, t), self.draws))

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
    return jax.random.fold_in(jax.random.wrap_key_data(key_data), t)


def pieces(number: int, least: int = LEAST_BATCH) -> Iterator[tuple[int, int, Any]]:
    """Yield batches of decisions: the first decision, the padded size, and the indices, padded with the last one."""
    for start in range(0, number, BATCH):
        count = min(BATCH, number - start)
        room = max(least, 1 << (count - 1).bit_length())
        piece: Any = slice(start, start + count)
        yield start, room, piece if room == count else np.minimum(np.arange(start, start + room), number - 1)


@kept
def decision(rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool) -> Callable[..., Any]:
    """Return the compiled `rule.decide`, on a packed state."""
    return compiled(on_packed(rule.decide, packing))


@kept
def decisions(
    rule: Rule, packing: Packing, shape: tuple[int, ...], mask: tuple[int, ...] | None, count: int
) -> Callable[..., Any]:
    """Return the compiled `rule.decide` for a batch of decisions, with the same arms on offer or with arms for each.

    The repetitions of one decision fill the caches of a processor, so decisions with repetitions are made one after
    the other.

    Args:
        rule: The rule by which decisions are made.
        packing: The layout of the packed state.
        shape: The shape of the arms: (K, d) if they are the same for all decisions, else (count, K, d).
        mask: The shape of the mask, (K,) or (count, K); None if all arms may be pulled.
        count: The number of decisions.

    Returns:
        The program, a function of keys, packed arrays, arms, numbers of decisions, and mask.
    """
    arms_differ, masks_differ = len(shape) == 3, mask is not None and len(mask) == 2
    if not rule.draws:
        axes = (None, None, 0 if arms_differ else None, 0, 0 if masks_differ else None)
        return compiled(on_packed(rule.decide, packing), in_axes=axes)

    def in_turn(keys: Array, state: State, arms: Array, times: Array, mask: Array | None) -> Any:
        def one(own: Any) -> Any:
            t, its_arms, its_mask = own
            return rule.decide(keys, state, its_arms if arms_differ else arms, t, its_mask if masks_differ else mask)

        return lax.map(one, (times, arms if arms_differ else None, mask if masks_differ else None))

    return compiled(on_packed(in_turn, packing))


@kept
def directions(rule: Rule, packing: Packing, count: int) -> Callable[..., Any]:
    """Return the compiled `rule.directions` for a batch of `count` decisions, on a packed state."""
    return compiled(on_packed(rule.directions, packing), in_axes=(None, None, None, 0))


@kept
def frequencies(rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool) -> Callable[..., Any]:
    """Return the compiled `rule.frequencies`, on a packed state."""
    return compiled(on_packed(rule.frequencies, packing))


# Learning


def learn(
    update: Callable[..., State], packed: Packed, rows: np.ndarray, features: np.ndarray, rewards: np.ndarray
) -> Packed:
    """Return the packed state after learning rewards of arms that were pulled; raise if it would not be finite."""
    packing, arrays, start = packed.packing, packed.arrays, 0
    for size in PIECES:
        while len(rewards) - start >= size > 1:
            piece = slice(start, start + size)
            arrays = updates(update, packing, size)(arrays, rows[piece], features[piece], rewards[piece])
            start += size
    for i in range(start, len(rewards)):
        arrays = one_update(update, packing)(arrays, rows[i], features[i], rewards[i])
    learned = Packed(packing, arrays)
    if not learned.is_finite() and packed.is_finite():
        raise NotFinite(
            f"reward must leave a finite state, got {rewards[:3].tolist()} for arms with features up to "
            f"{np.max(np.abs(features)):g}. The state stays as it was and the decisions still wait for their "
            "rewards. Scale features and rewards to sizes of about 1."
        )
    return learned


@kept
def one_update(update: Callable[..., State], packing: Packing) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by one reward."""
    return compiled(lambda arrays, *pulled: packing.pack(update(packing.unpack(arrays), *pulled)))


@kept
def updates(update: Callable[..., State], packing: Packing, size: int) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by `size` rewards, one after the other."""

    def one(state: State, pulled: Any) -> tuple[State, None]:
        return update(state, *pulled), None

    def all_of_them(arrays: Arrays, rows: Any, features: Any, rewards: Any) -> Arrays:
        return packing.pack(lax.scan(one, packing.unpack(arrays), (rows, features, rewards))[0])

    return compiled(all_of_them)


def as_rewards(rewards: object, count: int, single: bool) -> np.ndarray:
    """Return rewards as an array with one number for each of `count` decisions; raise for another shape."""
    array, shape = families.as_rewards(rewards), () if single else (count,)
    if array.shape != shape:
        raise InvalidShape(f"reward must have shape {shape}, got {array.shape}. Give one number for each decision.")
    return array.reshape(count)


def check_possible(policy: Policy, rewards: np.ndarray, dtype: str) -> None:
    """Raise unless the policy can learn from all of these rewards."""
    values = float(rewards[0]) if len(rewards) == 1 else rewards
    if policy.check is None:
        families.check_rewards(families.gaussian, values)
    else:
        policy.check(values)
    check_reward_size(values, dtype)


def room(state: State) -> float:
    """Return the number of rewards for which a state has room; infinite if it forgets, or keeps no rows."""
    return min((rows.capacity - int(rows.seen) for rows in limited_rows(state)), default=math.inf)


def check_room_for(policy: Policy, state: State, count: int) -> None:
    """Raise if a state has no room for `count` more rewards."""
    for rows in limited_rows(state):
        try:
            check_room(rows, count)
        except HistoryFull as error:
            name, settings = policy.recipe or ("…", {})
            larger = {**settings, "capacity": 2 * rows.capacity}
            listed = "".join(f", {key}={value!r}" for key, value in larger.items())
            raise HistoryFull(
                f"{error} Save the agent and load it with more room: agent.save(path), then "
                f"Agent.load(path, make({name!r}{listed}))."
            ) from None
