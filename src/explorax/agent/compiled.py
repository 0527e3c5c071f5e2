"""The compiled programs of an agent: a decision, and learning from rewards, on a packed state.

Programs are compiled for shapes, and a process keeps those that it used last (`programs.py`).

**Learning** is one `update` after the other, in the order given.  A batch is learned in pieces of a few fixed sizes, so
that a handful of programs serves batches of any length.  All that a reward is learned from goes in as one vector
(`pulled.py`).
"""

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array, lax

from explorax.agent.packing import Arrays, Packed, Packing, on_packed
from explorax.agent.pulled import Pulled, apart, number_next
from explorax.agent.rule import Rule, key_at
from explorax.checks import check_reward_size
from explorax.errors import HistoryFull, InvalidShape, NotFinite
from explorax.glm import families
from explorax.glm.history import check_room, limited_rows
from explorax.policies.base import Policy, State
from explorax.programs import kept

BATCH = 1024  # decisions computed at a time
GROUP = 8  # decisions with arms of their own that are repeated with the same noise
LEAST_BATCH = 8  # what a batch of decisions is padded to, at the least
PIECES = (1024, 128, 16)  # rewards learned at a time, and the rest one by one

# Programs of a decision are small: handing their parts to several threads costs more than it saves.
SEQUENTIAL = {"xla_cpu_scheduler_type": "CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"}


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


# Decisions


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

    If decisions have arms of their own, `GROUP` of them at a time are repeated with the same M keys, those of the first
    of them, because drawing the noise takes longer than all else.  Each decision is still exchangeable with its own
    repetitions, which is all that its propensity needs.  Other decisions are repeated one after the other, each with
    keys of its own.

    Args:
        rule: The rule by which decisions are made.
        packing: The layout of the packed state.
        shape: The shape of the arms: (K, d) if they are the same for all decisions, else (count, K, d).
        mask: The shape of the mask, (K,) or (count, K); None if all arms may be pulled.
        count: The number of decisions, a multiple of `GROUP`.

    Returns:
        The program, a function of keys, packed arrays, arms, numbers of decisions, and mask.
    """
    arms_differ, masks_differ = len(shape) == 3, mask is not None and len(mask) == 2
    axes = (0 if arms_differ else None, 0, 0 if masks_differ else None)

    def at_once(keys: Array, state: State, arms: Array, times: Array, mask: Array | None) -> Any:
        return jax.vmap(partial(rule.decide, keys, state), axes)(arms, times, mask)

    def in_turn(keys: Array, state: State, arms: Array, times: Array, mask: Array | None) -> Any:
        def one(own: Any) -> Any:
            t, its_mask = own
            return rule.decide(keys, state, arms, t, its_mask if masks_differ else mask)

        return lax.map(one, (times, mask if masks_differ else None))

    def in_groups(keys: Array, state: State, arms: Array, times: Array, mask: Array | None) -> Any:
        def some(own: Any) -> Any:
            its_arms, its_times, its_mask = own
            given = its_arms, its_times, its_mask if masks_differ else mask
            lots = jax.random.split(key_at(keys[1], its_times[0]), rule.draws)

            def again(key: Array) -> Array:
                redrawn = rule.redrawn(key, state)
                return jax.vmap(lambda *each: rule.act(key, redrawn, *each).arm, axes)(*given)

            drawn = jax.vmap(again, out_axes=1)(lots)

            def one(arms: Array, t: Array, mask: Array | None, drawn: Array) -> Any:
                action = rule.act(key_at(keys[0], t), state, arms, t, mask)
                return rule.told(keys, state, arms, t, mask, action, drawn)

            return jax.vmap(one, (*axes, 0))(*given, drawn)

        groups = [leaf.reshape(-1, GROUP, *leaf.shape[1:]) for leaf in (arms, times)]
        masks = mask.reshape(-1, GROUP, *mask.shape[1:]) if mask is not None and masks_differ else None
        return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), lax.map(some, (*groups, masks)))

    decide = at_once if not rule.draws else in_groups if arms_differ else in_turn
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


def learn(update: Callable[..., State], packed: Packed, pulled: Pulled) -> Packed:
    """Return the packed state after learning rewards of arms that were pulled; raise if it would not be finite."""
    packing, arrays, numbers, start = packed.packing, packed.arrays, pulled.numbers, 0
    for size in PIECES if len(numbers) > 1 else ():
        while len(numbers) - start >= size:
            arrays = updates(update, packing, size)(arrays, numbers[start : start + size])
            start += size
    for each in numbers[start:]:
        arrays = one_update(update, packing)(arrays, each)
    learned = Packed(packing, arrays)
    check_finite(learned.is_finite(), packed, pulled)
    return learned


class Coming(NamedTuple):
    """The decision that comes after a reward: decision t by a rule, with its keys, its arms, and their mask."""

    rule: Rule
    keys: Array
    arms: Array
    t: int
    mask: Array | None


def learn_and_decide(
    update: Callable[..., State], packed: Packed, pulled: Pulled, coming: Coming
) -> tuple[Packed, list[int], Any]:
    """Return the packed state after learning one reward, and what `rule.decide` returns for the decision after it.

    Raises like `learn`.
    """
    arrays, known = together(update, packed, pulled, coming)
    learned = Packed(packed.packing, arrays)
    finite, told = learned.told()
    check_finite(finite, packed, pulled)
    return learned, told, known


def together(update: Callable[..., State], packed: Packed, pulled: Pulled, coming: Coming) -> tuple[Arrays, Any]:
    """Return what the compiled `update_and_decision` returns for one reward and the decision after it."""
    rule, keys, arms, t, mask = coming
    program = update_and_decision(update, rule, packed.packing, arms.shape, mask is None)
    found: tuple[Arrays, Any] = program(keys, packed.arrays, arms, mask, pulled.before(t))
    return found


def check_finite(finite: bool, before: Packed, pulled: Pulled) -> None:
    """Raise if a state that has learned from what was pulled is not finite, and was so before."""
    if not finite and before.is_finite():
        raise NotFinite(
            f"reward must leave a finite state, got {pulled.rewards[:3].tolist()} for arms with features up to "
            f"{np.max(np.abs(pulled.features)):g}. The state stays as it was and the decisions still wait for their "
            "rewards. Scale features and rewards to sizes of about 1."
        )


@kept
def one_update(update: Callable[..., State], packing: Packing) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by one reward."""
    return compiled(lambda arrays, pulled: packing.pack(update(packing.unpack(arrays), *apart(pulled))))


@kept
def update_and_decision(
    update: Callable[..., State], rule: Rule, packing: Packing, shape: tuple[int, int], all_offered: bool
) -> Callable[..., tuple[Arrays, Any]]:
    """Return the compiled update of a packed state by one reward, with the decision that comes next.

    What `rule.decide` returns first is told with the packed state, the rest is returned apart.
    """

    def both(keys: Array, arrays: Arrays, arms: Array, mask: Array | None, pulled: Array) -> tuple[Arrays, Any]:
        # Neither half is compiled with regard to the other, so that it is computed as in a program of its own.
        state = lax.optimization_barrier(update(packing.unpack(arrays), *apart(pulled)))
        told, known = rule.decide(keys, state, arms, number_next(pulled), mask)
        return packing.pack(state, told), known

    return compiled(both)


@kept
def updates(update: Callable[..., State], packing: Packing, size: int) -> Callable[..., Arrays]:
    """Return the compiled update of a packed state by `size` rewards, one after the other."""

    def one(state: State, pulled: Array) -> tuple[State, None]:
        return update(state, *apart(pulled)), None

    def all_of_them(arrays: Arrays, pulled: Array) -> Arrays:
        return packing.pack(lax.scan(one, packing.unpack(arrays), pulled)[0])

    return compiled(all_of_them)


def as_rewards(rewards: object, count: int, single: bool) -> float | np.ndarray:
    """Return the number that rewards a single decision, or an array with one for each; raise for another shape."""
    if single and type(rewards) is float:
        return rewards
    array, shape = families.as_rewards(rewards), () if single else (count,)
    if array.shape != shape:
        raise InvalidShape(f"reward must have shape {shape}, got {array.shape}. Give one number for each decision.")
    return float(array) if single else array


def check_possible(policy: Policy, rewards: float | np.ndarray, dtype: str) -> None:
    """Raise unless the policy can learn from all of these rewards."""
    if policy.check is None:
        families.check_rewards(families.gaussian, rewards)
    else:
        policy.check(rewards)
    check_reward_size(rewards, dtype)


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
