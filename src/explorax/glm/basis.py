"""A well-conditioned basis among the arms, for the rounds of forced exploration."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from explorax.checks import is_known
from explorax.errors import InvalidFeatures, InvalidShape
from explorax.programs import bounded_jit


class Basis(NamedTuple):
    """The arms that pivoted QR picks, in their order.

    Attributes:
        arms: The indices of the arms, of shape (min(K, d),).
        pivots: The norm of each arm's part that is orthogonal to the arms before it, of shape (min(K, d),).
    """

    arms: Array
    pivots: Array


@bounded_jit
def spanning_arms(arms: Array) -> Basis:
    """Pick a basis among the arms by QR with column pivoting: each is the farthest from the span of those before it.

    This greedy choice also makes det Σ v vᵀ grow fastest.  It is written out here because XLA's own pivoted QR does not
    run on every device.  Ties go to the lowest index.

    Args:
        arms: The features of the arms, of shape (K, d).

    Returns:
        The indices of min(K, d) arms, and their pivots.
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
    """Return how many arms of a basis are linearly independent, up to rounding, given the number of features."""
    return jnp.sum(basis.pivots > size * jnp.finfo(basis.pivots.dtype).eps * basis.pivots[0])


def check_spanning(shape: tuple[int, ...], basis: Basis, remedy: str) -> None:
    """Check that the arms of a basis span the feature space; inside compiled code, only their number is checked.

    Args:
        shape: The number of arms and the number of features.
        basis: The basis that `spanning_arms` picked.
        remedy: What the user can do, as an imperative without a full stop.

    Raises:
        InvalidShape: If there are fewer arms than features.
        InvalidFeatures: If the arms are linearly dependent.
    """
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
