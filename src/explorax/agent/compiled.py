"""The compiled programs of an agent: a decision, and learning from rewards, on a state that is packed in few arrays.

Programs are compiled for shapes, and a process keeps those that it used last (`programs.py`).

**Packed states.**  Calling a compiled program costs time for each array that goes in or comes out.  Small arrays are
laid end to end, one vector for each dtype (bools go with the whole numbers); large ones stay as they are, which copies
nothing.  In float64 the whole numbers, which have 64 bits too, stand bit by bit before the floats, in one vector.  In
the same way, all that a reward is learned from goes in as one vector.

**Learning** is one `update` after the other, in the order given.  A batch is learned in pieces of a few fixed sizes, so
that a handful of programs serves batches of any length.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache, cached_property, lru_cache, partial
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
CHUNK = 4  # decisions whose repetitions are computed at a time: what they need fits into the caches of a processor
LEAST_BATCH = 8  # what a batch of decisions is padded to, at the least
PIECES = (1024, 128, 16)  # rewards learned at a time, and the rest one by one
LARGE = 1024  # elements of an array that is not worth copying

# Programs of a decision are small: handing their parts to several threads costs more than it saves.
SEQUENTIAL = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}

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

    @cached_property
    def whole(self) -> int:
        """The number of whole numbers in a packed state; the last of them tells whether the state is finite."""
        return 1 + sum(math.prod(self.shapes[i]) for i in next(iter(self.groups().values())))

    def pack(self, state: State) -> Arrays:
        """Return the state as few arrays; the last of its whole numbers tells whether the state is finite."""
        leaves = jax.tree.leaves(state)
        (whole, counts), *others = self.groups().items()
        packed = {
            group: leaves[members[0]]
            if group.startswith("large")
            else jnp.concatenate([leaves[i].reshape(-1).astype(group) for i in members])
            for group, members in others
        }
        looked_at = {id(leaf) for leaf in computed(state)}
        finite = [
            jnp.all(jnp.isfinite(packed[group]))
            for group, members in others
            if jnp.issubdtype(packed[group].dtype, jnp.inexact)
            and (not group.startswith("large") or id(leaves[members[0]]) in looked_at)
        ]
        numbers = [*(leaves[i] for i in counts), jnp.all(jnp.asarray(finite, bool))]
        vector = jnp.concatenate([each.reshape(-1).astype(whole) for each in numbers])
        if "float64" in packed:
            vector = jnp.concatenate([vector.view("float64"), packed.pop("float64")])
        return vector, *packed.values()

    def unpack(self, arrays: Arrays) -> State:
        """Return the state that was packed into these arrays."""
        groups, (vector, *others) = self.groups(), arrays
        whole, *rest = groups
        vectors = dict(zip((group for group in rest if group != "float64"), others, strict=True))
        if "float64" in groups:
            vectors["float64"], vector = vector[self.whole :], vector[: self.whole].view(whole)
        vectors[whole] = vector
        leaves: list[Any] = [None] * len(self.shapes)
        for group, members in groups.items():
            start = 0
            for i in members:
                if group.startswith("large"):
                    leaves[i] = vectors[group]
                    continue
                size = math.prod(self.shapes[i])
                leaves[i] = vectors[group][start : start + size].reshape(self.shapes[i]).astype(self.dtypes[i])
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
        vector = np.asarray(self.arrays[0])
        return bool(vector.view(f"i{vector.itemsize}")[self.packing.whole - 1])


def on_packed(function: Callable[..., Any], packing: Packing) -> Callable[..., Any]:
    """Return a function of (keys, state, …) as a function of (keys, packed arrays, …)."""
    return lambda keys, arrays, *others: function(keys, packing.unpack(arrays), *others)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a small program."""
    return jax.jit(function, compiler_options=options())


@cache
def options() -> dict[str, str] | None:
    """Return the options to compile small programs with: those for a CPU, if there is one and jaxlib knows them."""
    if jax.default_backend() != "cpu":
        return None
    try:
        jax.jit(lambda: 0, compiler_options=SEQUENTIAL).lower().compile()
    except RuntimeError:
        return None
    return dict(SEQUENTIAL)


# A decision


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

    def changed(self, **fields: Any) -> "Rule":
        """Return this rule with other fields."""
        return one_rule(**{field.name: getattr(self, field.name) for field in dataclass_fields(self)} | fields)

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
        lots = jax.random.split(key_at(keys[1], t), self.draws) if self.draws else None
        return self.told(keys, state, arms, t, mask, None if lots is None else self.drawn(lots, state, arms, t, mask))

    def told(
        self, keys: Array, state: State, arms: Array, t: Array, mask: Array | None, drawn: Array | None
    ) -> tuple[Array, Array | None]:
        """Make decision t, whose repetitions are known.

        Args:
            keys: (3, …) The keys of decisions, of their repetitions, and of the floor.
            state: The state of the policy.
            arms: (K, d) The features of the arms.
            t: The number of the decision.
            mask: (K,) Whether each arm may be pulled; None if all may be.
            drawn: (M,) The arms of the repetitions; None if there are none.

        Returns:
            (5,) The whole numbers [arm, forced, converged, C, own], where C counts how often the policy chose the arm
            in the decision and its repetitions, and `own` is the policy's own arm, which a floor may have replaced.
            Then the policy's P(arm), if there is a formula for it, or None; with `vector`, P or C of every arm.
        """
        action = self.act(key_at(keys[0], t), state, arms, t, mask)
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

    All decisions of a batch are repeated with the same M keys, so that the noise is drawn once.  Each decision is still
    exchangeable with its own repetitions, which is all that its propensity needs.

    Args:
        rule: The rule by which decisions are made.
        packing: The layout of the packed state.
        shape: The shape of the arms: (K, d) if they are the same for all decisions, else (count, K, d).
        mask: The shape of the mask, (K,) or (count, K); None if all arms may be pulled.
        count: The number of decisions, a multiple of `CHUNK`.

    Returns:
        The program, a function of keys, packed arrays, arms, numbers of decisions, mask, and the number of the decision
        whose repetitions have the same keys.
    """
    in_axes = (0 if len(shape) == 3 else None, 0, 0 if mask is not None and len(mask) == 2 else None)

    def decide(keys: Array, state: State, arms: Array, times: Array, mask: Array | None, like: Array) -> Any:
        if not rule.draws:
            return jax.vmap(partial(rule.decide, keys, state), in_axes)(arms, times, mask)
        lots = jax.random.split(key_at(keys[1], like), rule.draws)

        def some(parts: Any) -> Any:
            given = [whole if own is None else own for whole, own in zip((arms, times, mask), parts, strict=True)]

            def again(key: Array) -> Array:
                redrawn = rule.redrawn(key, state)
                return jax.vmap(lambda *own: rule.act(key, redrawn, *own).arm, in_axes)(*given)

            drawn = jax.vmap(again, out_axes=1)(lots)
            return jax.vmap(partial(rule.told, keys, state), (*in_axes, 0))(*given, drawn)

        def in_chunks(leaf: Any) -> Any:
            return leaf.reshape(-1, CHUNK, *leaf.shape[1:])

        parts = tuple(
            None if axis is None else in_chunks(leaf) for axis, leaf in zip(in_axes, (arms, times, mask), strict=True)
        )
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), lax.map(some, parts))

    return compiled(on_packed(decide, packing))


@kept
def repetitions(rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool) -> Callable[..., Any]:
    """Return the compiled `rule.repeated`, on a packed state."""
    return compiled(on_packed(rule.repeated, packing))


@kept
def directions(rule: Rule, packing: Packing, count: int) -> Callable[..., Any]:
    """Return the compiled `rule.directions` for a batch of `count` decisions, on a packed state."""
    return compiled(jax.vmap(on_packed(rule.directions, packing), in_axes=(None, None, None, 0)))


# Learning


def learn(
    update: Callable[..., State], packed: Packed, rows: np.ndarray, features: np.ndarray, rewards: np.ndarray
) -> Packed:
    """Return the packed state after learning rewards of arms that were pulled; raise if it would not be finite."""
    packing, arrays, start = packed.packing, packed.arrays, 0
    pulled = together(rows, features, rewards)
    for size in PIECES:
        while len(rewards) - start >= size > 1:
            arrays = updates(update, packing, size)(arrays, pulled[start : start + size])
            start += size
    for i in range(start, len(rewards)):
        arrays = one_update(update, packing)(arrays, pulled[i])
    learned = Packed(packing, arrays)
    if not learned.is_finite() and packed.is_finite():
        raise NotFinite(
            f"reward must leave a finite state, got {rewards[:3].tolist()} for arms with features up to "
            f"{np.max(np.abs(features)):g}. The state stays as it was and the decisions still wait for their "
            "rewards. Scale features and rewards to sizes of about 1."
        )
    return learned


def together(rows: np.ndarray, features: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    """Return one row of numbers for each reward: the features of the arm, the reward, and the row of the arm.

    The row of an arm takes two places, of which each holds a number that float32 has exactly.
    """
    size = features.shape[1]
    pulled = np.empty((len(rewards), size + 3), features.dtype)
    if len(rewards) == 1:  # number by number, in half the time
        pulled[0, :size], pulled[0, size] = features[0], rewards[0]
        pulled[0, size + 1], pulled[0, size + 2] = divmod(int(rows[0]), 1 << 16)
        return pulled
    pulled[:, :size], pulled[:, size] = features, rewards
    pulled[:, size + 1], pulled[:, size + 2] = np.divmod(rows, 1 << 16)
    return pulled


def apart(pulled: Array) -> tuple[Array, Array, Array]:
    """Return the row, the features and the reward of an arm that was pulled, from what `together` returns."""
    *_, reward, high, low = pulled[-3:]
    return (high.astype(int) << 16) + low.astype(int), pulled[:-3], reward


@kept
def one_update(update: Callable[..., State], packing: Packing) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by one reward."""
    return compiled(lambda arrays, pulled: packing.pack(update(packing.unpack(arrays), *apart(pulled))))


@kept
def updates(update: Callable[..., State], packing: Packing, size: int) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by `size` rewards, one after the other."""

    def one(state: State, pulled: Array) -> tuple[State, None]:
        return update(state, *apart(pulled)), None

    def all_of_them(arrays: Arrays, pulled: Array) -> Arrays:
        return packing.pack(lax.scan(one, packing.unpack(arrays), pulled)[0])

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
