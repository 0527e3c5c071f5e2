"""A well-conditioned basis among the arms, for the rounds in which a policy has to explore."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from explorax.checks import is_known
from explorax.errors import InvalidFeatures, InvalidShape
from explorax.programs import bounded_jit


class Basis(NamedTuple):
    """Arms in the order in which pivoted QR takes them."""

    arms: Array  # (min(K, d),) indices
    pivots: Array  # (min(K, d),) what each arm adds: the norm of its part orthogonal to those before it


@bounded_jit
def spanning_arms(arms: Array) -> Basis:
    """The arms that QR with column pivoting picks: each the farthest from the span of those before it.

    Greedy, but good: it also is the choice that grows det Σ v vᵀ fastest.  Written out because XLA's own
    pivoted QR does not run on every device.  Ties go to the lowest index.
    """
    count = min(arms.shape)

    def pick(i: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        rest, chosen, pivots = carry
        norms = jnp.sum(rest**2, axis=1)
        best = jnp.argmax(norms)
        pivot = jnp.sqrt(norms[best])
        direction = rest[best] / jnp.where(pivot > 0, pivot, 1)
        # Twice, because one projection leaves rounding behind that later pivots would pick up.
        for _ in range(2):
            rest = rest - jnp.outer(rest @ direction, direction)
        rest = rest.at[best].set(0)
        return rest, chosen.at[i].set(best), pivots.at[i].set(pivot)

    start = (arms, jnp.zeros(count, int), jnp.zeros(count, arms.dtype))
    _, chosen, pivots = lax.fori_loop(0, count, pick, start)
    return Basis(chosen, pivots)


def rank(basis: Basis, size: int) -> Array:
    """How many of the picked arms are linearly independent, up to rounding, where there are `size` features."""
    return jnp.sum(basis.pivots > size * jnp.finfo(basis.pivots.dtype).eps * basis.pivots[0])


def check_spanning(shape: tuple[int, ...], basis: Basis, remedy: str) -> None:
    """Raise unless the chosen arms span the feature space (values are looked at only outside compiled code)."""
    count, size = shape
    if count < size:
        raise InvalidShape(f"arms must span the feature space, got {count} arms for {size} features. {remedy}.")
    if is_known(basis.pivots):
        spanned = int(rank(basis, size))
        if spanned < size:
            raise InvalidFeatures(
                f"arms must span the feature space, got arms that span only {spanned} of {size} dimensions. {remedy}, "
                "or drop collinear features."
            )
