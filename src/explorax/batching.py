"""What a batch under `vmap` does otherwise than one element alone.

**One by one.**  On a CPU, JAX hands a batch of matrices to LAPACK on threads of XLA's pool, and the call waits there
for other threads of the same pool.  With as many such calls under way as the pool has threads (two, on a small machine)
all wait forever.  Calls of LAPACK therefore take one matrix of a batch at a time on a CPU, which never waits.

**Where needed.**  Under `vmap` a `cond` computes both of its branches for all elements.  `where_needed` computes
nothing as long as no element of a batch needs it.  On a CPU those that do are taken out of a large batch and served in
small groups; elsewhere, and in small batches, all get it once one does, which costs the same.

**Only where.**  The same for work that comes in phases, and with large states, for all elements at a time.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap

GROUP = 8  # elements of a batch that rare work is done for at a time


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, which `vmap` on a CPU maps over the batch one element at a time."""
    mapped = custom_vmap(function)

    @mapped.def_vmap
    def rule(size: int, batched: list[bool], *args: Array) -> tuple[Any, Any]:
        result = lax.platform_dependent(
            *full(size, batched, args),
            cpu=lambda *each: lax.map(lambda one: mapped(*one), each),
            default=jax.vmap(function),
        )
        return result, jax.tree.map(lambda _: True, result)

    return mapped


def where_needed(needed: Array, function: Callable[..., Any], arguments: tuple[Any, ...], otherwise: Any) -> Any:
    """function(*arguments) where it is needed, else `otherwise`, or the function there too: both must be right."""

    def one(needed: Array, arguments: tuple[Any, ...], otherwise: Any) -> Any:
        return lax.cond(needed, lambda: function(*arguments), lambda: otherwise)

    def many(needed: Array, arguments: tuple[Any, ...], otherwise: Any) -> Any:
        if jax.default_backend() != "cpu" or len(needed) <= GROUP:
            return lax.cond(jnp.any(needed), lambda: jax.vmap(function)(*arguments), lambda: otherwise)

        def serve(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            needed, result = carry
            (who,) = jnp.nonzero(needed, size=GROUP, fill_value=len(needed))
            theirs = jax.tree.map(lambda leaf: leaf.at[who].get(mode="clip"), arguments)
            found = jax.vmap(function)(*theirs)
            result = jax.tree.map(lambda old, new: old.at[who].set(new, mode="drop"), result, found)
            return needed.at[who].set(False, mode="drop"), result

        return lax.while_loop(lambda carry: jnp.any(carry[0]), serve, (needed, otherwise))[1]

    return batched_by(one, many)(needed, arguments, otherwise)


def only_where(needed: Array, function: Callable[..., Any], state: Any, arguments: tuple[Any, ...]) -> Any:
    """function(state, *arguments) where it is needed, and the state elsewhere: for work that a batch does all at once.

    On a CPU it is a loop of one turn or none: a `cond` would copy a large state even where nothing is done.  On a GPU
    such a loop gave wrong results (jax 0.11, with the graphs of `devices.py`), and copies are cheap.
    """

    def one(needed: Array, state: Any, arguments: tuple[Any, ...]) -> Any:
        return lax.cond(needed, lambda: function(state, *arguments), lambda: state)

    def some(state: Any, needed: Array, arguments: tuple[Any, ...]) -> Any:
        found = jax.vmap(function)(state, *arguments)
        return jax.tree.map(partial(jax.vmap(jnp.where), needed), found, state)

    def many(needed: Array, state: Any, arguments: tuple[Any, ...]) -> Any:
        if jax.default_backend() != "cpu":
            return lax.cond(jnp.any(needed), lambda: some(state, needed, arguments), lambda: state)

        def turn(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            # Without the barrier XLA would move what does not depend on the state out of the loop, to be done always.
            _, given = lax.optimization_barrier((carry[0], arguments))
            return jnp.asarray(False), some(carry[1], needed, given)

        return lax.while_loop(lambda carry: carry[0], turn, (jnp.any(needed), state))[1]

    return batched_by(one, many)(needed, state, arguments)


def batched_by(one: Callable[..., Any], many: Callable[..., Any]) -> Callable[..., Any]:
    """A function that does `one` alone, and `many` under `vmap`; a batch of batches is one large batch."""
    alone, batch = custom_vmap(one), custom_vmap(many)

    @alone.def_vmap
    def a_batch(size: int, batched: list[Any], *given: Any) -> tuple[Any, Any]:
        result = batch(*full(size, batched, given))
        return result, jax.tree.map(lambda _: True, result)

    @batch.def_vmap
    def a_batch_of_batches(size: int, batched: list[Any], *given: Any) -> tuple[Any, Any]:
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), full(size, batched, given))
        result = jax.tree.map(lambda leaf: leaf.reshape(size, -1, *leaf.shape[1:]), batch(*flat))
        return result, jax.tree.map(lambda _: True, result)

    return alone


def full(size: int, batched: Any, arguments: Any) -> tuple[Any, ...]:
    """The arguments of a batching rule, repeated where they are the same for all of the batch."""
    return jax.tree.map(
        lambda has, leaf: leaf if has else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf))), tuple(batched), arguments
    )
