"""How far to go along a direction: what plain steps (`glm.warm`) and those of the GPU kernel (`glm.kernel`) share.

A step δ changes the scores by xᵀδ.  As long as no score of a row seen changes by more than r, self-concordance bounds
how much the curvature does, by e^{±Mr}; so all lengths are judged by that change, the reach of a step.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from explorax.glm.families import Family

LONGEST = 4.0  # change of a score that a step with a kept curvature may make
FULL_STEP = 0.5  # change of a score up to which a Newton step is taken in full
TRIALS = 6  # step lengths tried for a longer one


class Descent(NamedTuple):
    """A place on the way down."""

    theta: Array  # (d,)
    scores: Array  # (K,) xᵀθ of every arm
    steps: Array  # () taken so far
    converged: Array  # () bool
    step: Array  # (d,) the last one; infinite where steps did not get as small as wanted, and rounding had to do


def largest(seen: Array, scores: Array) -> Array:
    """max |score| over the arms seen."""
    return jnp.max(jnp.where(seen, jnp.abs(scores), 0))


def kept_length(family: Family, reach: Array) -> Array:
    """The length of a step made with a kept curvature: all of it, up to a reach of `LONGEST`."""
    return jnp.minimum(1, LONGEST / jnp.maximum(family.self_concordance * reach, LONGEST))


def newton_length(
    family: Family,
    counts: Array,
    sums: Array,
    tilt: Array,
    ridge: Array,
    theta: Array,
    scores: Array,
    direction: Array,
    moves: Array,
) -> Array:
    """A step that nearly minimizes the loss along a direction, without passing its minimum.

    The derivative along the direction is increasing.  From the step that self-concordance calls safe, lengths are
    tried upwards (1, 4, 16, …) until it is positive, then between.
    """
    reach = family.self_concordance * largest(counts > 0, moves)
    constant = jnp.sum((ridge * theta - tilt) * direction) - jnp.sum(sums * moves)
    growth = ridge * jnp.sum(direction * direction)
    seen_scores, seen_moves = jnp.where(counts > 0, scores, 0), jnp.where(counts > 0, moves, 0)

    def goes_down(length: Array) -> Array:
        means = family.mean(seen_scores + length * seen_moves)
        return constant + growth * length + jnp.sum(counts * means * seen_moves) <= 0

    low, high = jnp.log1p(reach) / reach, jnp.full_like(reach, jnp.inf)
    for _ in range(TRIALS):  # written out, because a loop in a loop is slow on a GPU
        trial = jnp.where(jnp.isinf(high), jnp.where(low < 1, 1, 4 * low), jnp.sqrt(low * high))
        down = goes_down(trial)
        low, high = jnp.where(down, trial, low), jnp.where(down, high, trial)
    return low
