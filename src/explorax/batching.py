"""Batching rules: what `vmap` does with functions that are better not vectorized.

**One by one.**  On a CPU, JAX hands a batch of matrices to LAPACK on threads of XLA's pool, and the call waits there
for other threads of the same pool.  If as many such calls are under way as the pool has threads (two, on a small
machine), all of them wait forever.  Calls of LAPACK therefore take one matrix of a batch at a time on a CPU, which
never waits.

**Where needed.**  Under `vmap`, a `cond` computes both of its branches for all elements.  `where_needed` skips the
computation if no element of a batch needs it.  On a CPU, the elements that need it are taken out of a large batch and
served ten at a time.  On other devices, and if the batch is small, all elements get it as soon as one needs it, which
costs the same.

**Only where.**  `only_where` is for work that all elements of a batch need in the same rounds, and for large states.

**Once for all.**  On a GPU, every `where_needed` costs a kernel and a branch even if nothing is needed.  `if_any` skips
a piece of work with several of them at once.

**At a place.**  `put` and `add` change one entry of a vector.  On a GPU they pass over the whole vector, because that
becomes part of the operations around it, where a scatter is two kernels of its own.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import custom_vmap
from jax.typing import ArrayLike

GROUP = 10  # elements of a batch that rare work is done for at a time: a fifth of a block of instances


def one_by_one(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of arrays so that `vmap` on a CPU calls it for one element of the batch at a time."""
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
    """Compute a function only for the elements of a batch that need it.

    Args:
        needed: Whether the function is needed, a scalar truth value.
        function: The function to compute.
        arguments: Its arguments.
        otherwise: A result that is right if the function is not needed, of the structure that the function returns.

    Returns:
        `function(*arguments)` for elements that need it.  For others, either `otherwise` or the function's result, so
        that both must be right.
    """

    def one(needed: Array, arguments: tuple[Any, ...], otherwise: Any) -> Any:
        return lax.cond(needed, lambda: function(*arguments), lambda: otherwise)

    def many(needed: Array, arguments: tuple[Any, ...], otherwise: Any) -> Any:
        if jax.default_backend() != "cpu" or len(needed) <= GROUP:
            return lax.cond(jnp.any(needed), lambda: jax.vmap(function)(*arguments), lambda: otherwise)

        def serve(carry: tuple[Array, Any]) -> tuple[Array, Any]:
            needed, result = carry
            # The first of them; `nonzero` would compile to a dozen loops.
            who = jnp.sort(jnp.where(needed, jnp.arange(len(needed)), len(needed)))[:GROUP]
            theirs = jax.tree.map(lambda leaf: leaf.at[who].get(mode="clip"), arguments)
            found = jax.vmap(function)(*theirs)
            result = jax.tree.map(lambda old, new: old.at[who].set(new, mode="drop"), result, found)
            return needed.at[who].set(False, mode="drop"), result

        return lax.while_loop(lambda carry: jnp.any(carry[0]), serve, (needed, otherwise))[1]

    return batched_by(one, many)(needed, arguments, otherwise)


def if_any(needed: Array, function: Callable[..., Any], arguments: tuple[Any, ...], otherwise: Any) -> Any:
    """Compute a function that skips needless work by itself: on a CPU always, elsewhere if an element needs it.

    Args:
        needed: Whether the function is needed, a scalar truth value.
        function: The function to compute.
        arguments: Its arguments.
        otherwise: A result that is right if the function is not needed, of the structure that the function returns.

    Returns:
        `function(*arguments)`, or `otherwise` if no element of the batch needs more.
    """
    if jax.default_backend() == "cpu":
        return function(*arguments)
    return where_needed(needed, function, arguments, otherwise)


def put(values: Array, place: ArrayLike, value: ArrayLike) -> Array:
    """Return a vector with another value at one place."""
    if jax.default_backend() == "cpu":
        return values.at[place].set(value)
    return jnp.where(jnp.arange(len(values)) == place, value, values)


def add(values: Array, place: ArrayLike, value: ArrayLike) -> Array:
    """Return a vector with a value added at one place."""
    if jax.default_backend() == "cpu":
        return values.at[place].add(value)
    return jnp.where(jnp.arange(len(values)) == place, values + value, values)


def only_where(needed: bool | Array, function: Callable[..., Any], state: Any, arguments: tuple[Any, ...]) -> Any:
    """Update the state of the elements of a batch that need it, and leave the states of all others as they are.

    On a CPU, this is a loop of one turn or none, because a `cond` would copy a large state even if nothing is done.  On
    a GPU, such a loop gave wrong results (jax 0.11, with the graphs of `devices.py`), and copies are cheap.

    Args:
        needed: Whether the update is needed, a scalar truth value, or a bool if that is known for all elements.
        function: A function of the state and the arguments, which returns a new state.
        state: The state.
        arguments: The other arguments of the function.

    Returns:
        `function(state, *arguments)` for elements that need it, and `state` for all others.
    """
    if isinstance(needed, bool):
        return function(state, *arguments) if needed else state

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


def alone_or_in_batch(element: Array, alone: int, in_batch: int) -> Array:
    """Return one number for an element that is computed alone, and another for the elements of a batch."""
    numbers = batched_by(lambda _: jnp.asarray(alone), lambda batch: jnp.full(len(batch), in_batch))
    number: Array = numbers(element)
    return number


def batched_by(one: Callable[..., Any], many: Callable[..., Any]) -> Callable[..., Any]:
    """Build a function that calls `one` for a single element, and `many` for a batch under one or several `vmap`s."""
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
    """Repeat the arguments of a batching rule that have no batch axis, up to the size of the batch."""
    return jax.tree.map(
        lambda has, leaf: leaf if has else jnp.broadcast_to(leaf, (size, *jnp.shape(leaf))), tuple(batched), arguments
    )
