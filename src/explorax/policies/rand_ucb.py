"""RandUCB: the width of a confidence interval at random, the same for all arms.

    pull argmax_i x_iᵀθ̄ + Z α ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

One number Z is drawn in each round.  It is one of m points 0 = z_1 < … < z_m = 1, evenly spaced, with

    P(Z = z_j) ∝ exp(−½ z_j² / s²) for j < m,    P(Z = z_m) = ε.

Mostly Z is small and arms are pulled nearly greedily.  The last point is the whole interval of UCB-GLM; that it has a
chance at all is what the proof needs, and 1e-8 keeps it from mattering.

    m   `points`   20
    s   `spread`   0.125
    α   `width`    of UCB-GLM in the theory's design, (σ/μ̇min) √((d/2) log(1 + 2n/d) + log n), as in the paper;
                   σ / (μ̇(0) s) in the informal one, which is ours

In the informal design s α = σ/μ̇(0), so that Z α ‖x‖ spreads as GLM-TSL's scores do to first order, were it not that
Z has one sign only: those have the deviation ‖x‖_{H⁻¹}, H is about μ̇(0) G, and σ²/μ̇ is 1 (σ² in the Gaussian
family).  For Bernoulli rewards α is 16; in Poisson's family, which has no σ, 8.

The points, s and α are those of the paper's experiments.  There ε is 1e-8, as we remember it; public code of these
experiments has a weight of 1e-6 next to densities that add up to 11, hence 9e-8.  Neither is ever drawn in a run of
common length.

The probability of each arm has a formula: the sum of the chances of those points at which the arm wins.  Logged data
of this policy therefore carry exact propensities.  (In float32 a chance below 1e-7, other than ε, is one of never.)

Reference: Vaswani, Mehrabian, Durand & Kveton, Old Dog Learns New Tricks: Randomized UCB for Bandit Problems, AISTATS
2020.
"""

from typing import NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.checks import check_positive, check_whole
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.exploration import best
from explorax.policies.glm_model import GLMModel, GLMState
from explorax.policies.settings import Design, GLMSettings

LAST = 1e-8  # ε


class Numbers(NamedTuple):
    """The widths that RandUCB draws from."""

    widths: ArrayLike  # (m,) α z_j
    chances: ArrayLike  # (m,) P(Z = z_j)


def rand_ucb(
    *,
    design: Design = "informal",
    width: float | None = None,
    points: int = 20,
    spread: float = 0.125,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build RandUCB."""
    model = GLMModel(theory_of="ucb_glm", **settings)
    check_whole("points", points, 2)
    check_positive("spread", spread)
    informal = model.informal / (float(model.glm.slope(jnp.zeros(()))) * spread)
    width_of = model.designed(design, "width", width, informal, lambda d: theory.width("ucb_glm", model.problem(d)))

    def numbers(arms: Array | int) -> Numbers:
        grid = np.linspace(0, 1, points)
        weights = np.exp(-0.5 * (grid[:-1] / spread) ** 2)
        chances = np.append((1 - LAST) * weights / weights.sum(), LAST)
        return Numbers(width_of(arms) * grid, chances)

    return model.policy(randomized_scores, numbers, widths=True, law=chances)


def randomized_scores(
    estimator: Estimator, key: Array, state: GLMState[Memory, Numbers], arms: Array
) -> tuple[Array, Array]:
    """Return x_iᵀθ̄ + Z α ‖x_i‖_{G⁻¹}."""
    widths, chances = map(jnp.asarray, state.numbers)
    width = widths[draw(key, chances)]
    return state.memory.scores(arms) + width * state.memory.widths(arms), state.converged


def draw(key: Array, chances: Array) -> Array:
    """Draw the number of a point; the last apart, an event too rare for the digits of one number in float32."""
    first, *rare = jax.random.uniform(key, (3,), chances.dtype)
    inverse = jnp.sum(first * jnp.sum(chances[:-1]) >= jnp.cumsum(chances[:-1])[:-1])
    last = jnp.maximum(*rare) < jnp.sqrt(chances[-1])
    return jnp.where(last, len(chances) - 1, inverse)


def chances(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return the chances of the points at which an arm wins, added up."""
    widths, weights = map(jnp.asarray, state.numbers)
    scores = state.memory.scores(arms) + widths[:, None] * state.memory.widths(arms)
    winners = jax.vmap(best, (0, None))(scores, mask)
    return jnp.zeros_like(arms[:, 0]).at[winners].add(weights)
