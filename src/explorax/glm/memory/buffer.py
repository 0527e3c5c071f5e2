"""A buffer of the last B rewards in a memory of constant size: exact losses for these, parabolas for all earlier ones.

The loss of a reward becomes a parabola only when the reward leaves the buffer, at the θ of that time, which has seen B
more rewards.  The estimate is the minimum of

    ½ θᵀAθ − aᵀθ + Σ_{l in the buffer} b(X_lᵀθ) − Y_l X_lᵀθ,    A and a the sums of these parabolas and the prior,

found by `PASSES` damped Newton steps for each reward, from the last estimate, at a cost of O(B d² + d³) in place of
O(d²).  `benchmarks/memory_errors.py` prints how much nearer to the exact estimate the buffer gets.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from explorax.glm.families import Family
from explorax.glm.history import Rows, weighted_gram
from explorax.glm.linalg import factorize
from explorax.glm.memory.base import Estimator

PASSES = 2  # Newton steps for each reward
MOST_PASSES = 100  # as many times, if the rewards come all at once


class Minimum(NamedTuple):
    """The minimum of a parabola plus the losses of rewards."""

    theta: Array  # (d,)
    root: Array  # (d, d) the root W of H⁻¹ there
    converged: bool


class Buffer(NamedTuple):
    """The last rewards of a summary, and the sum of the parabolas that stand for all earlier ones."""

    curvature: Array  # (d, d) A
    slope: Array  # (d,) a
    rows: Rows  # the last B rewards, in a ring

    @classmethod
    def of(cls, size: int, features: int, dtype: jnp.dtype, ridge: ArrayLike) -> "Buffer":
        """Build an empty buffer for `size` rewards, with the ridge as its parabola."""
        prior = jnp.asarray(ridge, dtype) * jnp.eye(features, dtype=dtype)
        return cls(prior, jnp.zeros(features, dtype), Rows.of(size, features, dtype, forgets=True))

    def after(self, root: Array, theta: Array) -> "Buffer":
        """Return this empty buffer after a past of which only the estimate θ and the root W are known."""
        curvature = jnp.linalg.inv(root @ root.T)
        return self._replace(curvature=curvature, slope=curvature @ theta)

    def record(self, family: Family, theta: Array, x: Array, reward: Array, really: ArrayLike) -> "Buffer":
        """Record one more reward, and replace the loss of the reward that it drives out by a parabola at θ."""
        place = self.rows.seen % self.rows.capacity
        oldest, weight, past = self.rows.features[place], self.rows.counts[place], self.rows.sums[place]
        weight = jnp.where(really, weight, 0)
        score = oldest @ theta
        bend = weight * family.slope(score)
        pull = bend * score - weight * (family.mean(score) - past)
        rows = self.rows.record(0, x, reward, really)
        return Buffer(self.curvature + bend * jnp.outer(oldest, oldest), self.slope + pull * oldest, rows)

    def descend(self, family: Family, theta: Array) -> tuple[Array, Array]:
        """Make `PASSES` damped Newton steps from θ, and return the new θ with a root W of H⁻¹ there."""
        rows = self.rows

        def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], None]:
            theta = carry[0]
            scores = jnp.where(rows.counts > 0, rows.features @ theta, 0)
            residuals = rows.counts * family.mean(scores) - rows.sums
            slope = self.curvature @ theta - self.slope + residuals @ rows.features
            factor = factorize(self.curvature + weighted_gram(rows.features, rows.counts * family.slope(scores)))
            direction = -factor.solve(slope)
            reach = family.self_concordance * jnp.max(jnp.abs(rows.features @ direction))
            length = jnp.where(reach > 0, jnp.log1p(reach) / jnp.where(reach > 0, reach, 1), 1)
            return (theta + length * direction, factor.inverse_root()), None

        return lax.scan(step, (theta, self.curvature), None, length=PASSES)[0]

    def minimized(self, estimator: Estimator, theta: Array) -> Minimum:
        """Return the minimum, found by Newton steps from θ until no score moves any more; not for compiled code."""
        root = jnp.zeros_like(self.curvature)
        for _ in range(MOST_PASSES):
            before = theta
            theta, root = self.descend(estimator.family, before)
            moved = jnp.max(jnp.abs(self.rows.features @ (theta - before)))
            if moved <= estimator.last_step(theta.dtype):
                return Minimum(theta, root, True)
        return Minimum(theta, root, False)
