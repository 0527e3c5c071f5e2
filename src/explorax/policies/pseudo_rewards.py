"""Perturbed-history exploration: the rewards are fitted together with random pseudo-rewards, in LogPHE and LinPHE.

    M_x = ⌈a N_x⌉ pseudo-rewards of each arm, U_x ~ Bin(M_x, ½) of which are 1, fresh in every round
    θ̃ = ridge maximum-likelihood estimate on the counts N_x + M_x and sums Y_x + U_x, with ridge (1 + a) λ

Pseudo-rewards make the mean of an arm noisy, and less so as rewards come, and pull it towards ½.  Rewards may lie in
[b, c] in place of [0, 1]: pseudo-rewards are then b or c.

If arms change, each reward is an arm of its own, and ⌈a⌉ pseudo-rewards for each would be too many.  The i-th row of
the history, counted from 0, gets ⌈a(i+1)⌉ − ⌈ai⌉ pseudo-rewards.  That is a whole number, and the first i rows have
⌈ai⌉ pseudo-rewards together.  With a = ½ every second row has one.

With a discount (`glm.history`) N_x is a weight and may fall below 1.  Each pseudo-reward then has the weight
min(N_x, 1), so that pseudo-rewards fade together with the rewards of their arm.

A summary of the past (memory="constant" or "refitted") does not know from which arms the rewards came, and is refused.

**Coin flips.**  Up to 32 coin flips are counted in the bits of a random word, which is exact.  For more flips U is a
rounded normal number: with s² = M/4 − 1/12 (rounding adds the 1/12 again) and z ~ N(0, 1),

    U = round(M/2 + s (z − (z³ − 3z) M / (192 s⁴))).

The cubic term gives U the fourth moment of a binomial number, too.  The total variation distance from Bin(M, ½) is
3.2e-5 for M = 33 and falls as 1/M² (8e-6 for M = 65).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from explorax.checks import check_positive
from explorax.glm.history import Grouped, Rows
from explorax.glm.memory.base import Estimator, RowMemory
from explorax.policies.base import Policy
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState

BITS = 32  # coin flips counted one by one


class Numbers(NamedTuple):
    """The numbers of perturbed-history exploration.

    Attributes:
        scale: The number a of pseudo-rewards for each reward.
        low: The smaller pseudo-reward b.
        high: The larger pseudo-reward c.
    """

    scale: float | Array
    low: float | Array
    high: float | Array


def perturbed_history(model: GLMModel, scale: float, low: float = 0.0, high: float = 1.0) -> Policy:
    """Return the policy that explores by adding pseudo-rewards to the past.

    Args:
        model: The settings of the GLM.
        scale: The number a of pseudo-rewards for each reward.
        low: The smaller pseudo-reward b.
        high: The larger pseudo-reward c.

    Returns:
        The policy.
    """
    check_positive("scale", scale, "Use 'greedy' for a policy that does not explore.")
    model.check_knows_rows("pseudo-rewards, which belong to arms", ", or glm_fpl, which perturbs the estimate")
    return model.policy(perturbed_scores, lambda arms: Numbers(scale, low, high))


def perturbed_scores(
    estimator: Estimator, key: Array, state: GLMState[RowMemory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ̃ for the estimate on a past with fresh pseudo-rewards, and whether the fit converged."""
    past = perturbed(key, state.memory.past, state.numbers)
    ridge = (1 + state.numbers.scale) * state.ridge
    # In a linear model this is where the estimate goes if all pseudo-rewards are 0; a score of 0 means a reward of ½.
    start = state.theta_hat / (1 + state.numbers.scale)
    return state.memory.scores_on(estimator, ridge, arms, past, start)


def perturbed(key: Array, past: Grouped | Rows, numbers: Numbers) -> Grouped:
    """Return the past with fresh pseudo-rewards."""
    flips = pseudo_rewards(past, jnp.asarray(numbers.scale))
    heads = binomial(key, flips)
    weights = jnp.minimum(past.counts, 1)
    counts = past.counts + weights * flips
    sums = past.sums + weights * (numbers.low * (flips - heads) + numbers.high * heads)
    return Grouped(past.features, counts, sums)


def pseudo_rewards(past: Grouped | Rows, scale: Array) -> Array:
    """Return the number of pseudo-rewards of each row."""
    first, last = past.numbers()
    return jnp.where(past.counts > 0, ceiling(scale * last) - ceiling(scale * first), 0)


def ceiling(numbers: Array) -> Array:
    """Return ⌈x⌉ of a number x ≥ 0 that rounding may have made a little too large."""
    return jnp.ceil(numbers * (1 - 4 * jnp.finfo(numbers.dtype).eps))


def binomial(key: Array, flips: Array) -> Array:
    """Draw Bin(M, ½) for each number M of coin flips, in its dtype."""
    few, many = jax.random.split(key)
    spare = jnp.clip(BITS - flips, 0, BITS - 1).astype(jnp.uint32)
    words = jax.random.bits(few, flips.shape, jnp.uint32) >> spare
    counted = lax.population_count(jnp.where(flips > 0, words, 0)).astype(flips.dtype)
    noise = jax.random.normal(many, flips.shape, flips.dtype)
    return jnp.where(flips <= BITS, counted, rounded(jnp.maximum(flips, BITS), noise))


def rounded(flips: Array, noise: Array) -> Array:
    """Return the number of heads among many flips that corresponds to a standard normal number."""
    variance = flips / 4 - 1 / 12
    noise = noise - (noise**3 - 3 * noise) * flips / (192 * variance**2)
    return jnp.clip(jnp.round(flips / 2 + jnp.sqrt(variance) * noise), 0, flips)
