"""The proximal step on one reward: the minimum of its loss plus a parabola that stands for all earlier rewards.

    minimize ½ (θ − θ_t)ᵀ H (θ − θ_t) + b(xᵀθ) − y xᵀθ

The minimum lies on a line, θ = θ_t + c H⁻¹x, and c is the root of an increasing function of one variable:

    c = y − μ(xᵀθ_t + c q),    q = xᵀH⁻¹x

It lies between 0 and the residual r = y − μ(xᵀθ_t), in every family and for every reward.

References: Kulis & Bartlett, Implicit Online Learning, ICML 2010; Faury et al., Jointly Efficient and Optimal
Algorithms for Logistic Bandits, AISTATS 2022 (this step for logistic bandits).
"""

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from explorax.glm.families import Family

ROOT_STEPS = 200  # safeguarded Newton steps for c; three or four are enough, unless a reward is huge


def residual_after(family: Family, score: Array, q: Array, reward: Array) -> Array:
    """Return the root c of c + μ(score + c q) − reward, which is the residual after the proximal step.

    A step is Newton's if that stays in the bracket and is at most half as long as the last step; else it goes to the
    middle of the bracket, on the scale of asinh(c q), so that a bracket many powers of ten wide gets narrow soon.

    Args:
        family: The reward family.
        score: The score xᵀθ_t before the step, a scalar.
        q: xᵀH⁻¹x, a scalar.
        reward: The reward y, a scalar.

    Returns:
        The root, between 0 and the residual before the step.
    """
    largest, eps = jnp.finfo(score.dtype).max / 4, float(jnp.finfo(score.dtype).eps)
    residual = jnp.clip(reward - family.mean(score), -largest, largest)

    def middle(low: Array, high: Array) -> Array:
        ends = jnp.arcsinh(jnp.clip(jnp.stack([low, high]) * q, -largest, largest))
        return jnp.where(q > 0, jnp.clip(jnp.sinh(jnp.mean(ends)) / q, low, high), (low + high) / 2)

    def step(c: Array, excess: Array, low: Array, high: Array, last: Array) -> tuple[Array, Array, Array]:
        """Return the next c, its distance from this one, and whether the distance is small enough to stop."""
        slope = 1 + q * family.slope(score + c * q)
        trial = c - excess / slope
        good = jnp.isfinite(slope) & (trial >= low) & (trial <= high) & (jnp.abs(trial - c) <= last / 2)
        trial = jnp.where(good, trial, middle(low, high))
        moved = jnp.abs(trial - c)
        # Newton's last step squares the error, a halving does not.
        return trial, moved, moved <= jnp.where(good, eps ** (2 / 3), 2 * eps) * jnp.abs(trial)

    def narrow(carry: Any) -> Any:
        low, high, c, last, _, steps = carry
        excess = c + family.mean(score + c * q) - reward
        low, high = jnp.where(excess > 0, low, c), jnp.where(excess > 0, c, high)
        return low, high, *step(c, excess, low, high, last), steps + 1

    low, high, far = jnp.minimum(residual, 0), jnp.maximum(residual, 0), jnp.full_like(score, jnp.inf)
    start, _, _ = step(jnp.zeros_like(score), -residual, low, high, far)
    carry = low, high, start, far, jnp.asarray(False), jnp.zeros((), int)
    return lax.while_loop(lambda carry: (carry[5] < ROOT_STEPS) & ~carry[4], narrow, carry)[2]
