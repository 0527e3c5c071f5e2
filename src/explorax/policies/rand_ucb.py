"""RandUCB: a confidence bound of random width, which is the same for all arms.

One number Z is drawn in each round, and multiplies the bonus of every arm:

    pull argmax_i x_iᵀθ̄ + Z α ‖x_i‖_{G⁻¹},    θ̄ the ridge maximum-likelihood estimate,  G = Σ_l X_l X_lᵀ

Z is one of m evenly spaced points 0 = z_1 < … < z_m = 1, with

    P(Z = z_j) ∝ exp(−½ z_j² / s²) for j < m,    P(Z = z_m) = ε.

    m   `points`   default: 20
    s   `spread`   default: 0.125
    α   `width`    that of UCB-GLM in the theory's design, (σ/μ̇min) √((d/2) log(1 + 2n/d) + log n), as in the paper;
                   σ / (μ̇(0) s) in the informal one, which is ours

Mostly Z is small, and arms are pulled nearly greedily.  The last point is the whole interval of UCB-GLM.  The proof
needs it to have a positive probability, and ε = 1e-8 is so small that it does not matter.

In the informal design s α = σ/μ̇(0), so that, to first order, Z α ‖x‖ has the spread of GLM-TSL's scores, except that Z
is never negative: those scores have the standard deviation ‖x‖_{H⁻¹}, H is about μ̇(0) G, and σ²/μ̇ is 1 (σ² in the
Gaussian family).  For Bernoulli rewards α is 16; in the Poisson family, which has no σ, it is 8.

The points, s and α are those of the paper's experiments.  As we remember it, ε is 1e-8 there; public code of these
experiments has a weight of 1e-6 next to densities that add up to 11, which is 9e-8.  Neither is ever drawn in a run of
common length.

The probability of each arm has a formula: the sum of the probabilities of the points at which the arm wins.  Data that
this policy logs therefore have exact propensities.  (In float32, a probability below 1e-7 other than ε is 0 in
practice.)

Reference: Vaswani, Mehrabian, Durand & Kveton, Old Dog Learns New Tricks: Randomized UCB for Bandit Problems,
AISTATS 2020.
"""

from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import theory
from explorax.builders import Setting
from explorax.checks import check_positive, check_whole
from explorax.glm.memory.base import Estimator, Memory
from explorax.policies.base import Policy
from explorax.policies.exploration import best
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.settings import Design, GLMSettings

LAST = 1e-8  # ε


class Numbers(NamedTuple):
    """The widths from which RandUCB draws.

    Attributes:
        widths: The (m,) widths α z_j.
        chances: The (m,) probabilities P(Z = z_j).
    """

    widths: ArrayLike
    chances: ArrayLike


def rand_ucb(
    *,
    design: Design = "informal",
    width: Annotated[
        float | None,
        Setting(None, "How much to explore: the largest width α of the bonus, above 0.", "chosen by `design`"),
    ] = None,
    points: Annotated[int, "The number m of widths to draw from, at least 2."] = 20,
    spread: Annotated[float, "The spread s of the random width, above 0."] = 0.125,
    **settings: Unpack[GLMSettings],
) -> Policy:
    """Build RandUCB, which adds a bonus of random width, the same for all arms, to the score of an arm."""
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
    """Return the scores x_iᵀθ̄ + Z α ‖x_i‖_{G⁻¹}, and whether the fit converged."""
    widths, chances = map(jnp.asarray, state.numbers)
    width = widths[draw(key, chances)]
    return state.memory.scores(arms) + width * state.memory.widths(arms), state.converged


def draw(key: Array, chances: Array) -> Array:
    """Draw the number of a point.

    The last point is drawn by itself, since its probability is too small for the digits of one number in float32.

    Args:
        key: The key.
        chances: The (m,) probabilities of the points.

    Returns:
        The number of the point, from 0.
    """
    first, *rare = jax.random.uniform(key, (3,), chances.dtype)
    inverse = jnp.sum(first * jnp.sum(chances[:-1]) >= jnp.cumsum(chances[:-1])[:-1])
    last = jnp.maximum(*rare) < jnp.sqrt(chances[-1])
    return jnp.where(last, len(chances) - 1, inverse)


def chances(estimator: Estimator, state: GLMState[Memory, Numbers], arms: Array, mask: Array) -> Array:
    """Return the probability of each arm: the sum of the probabilities of the points at which the arm wins."""
    widths, weights = map(jnp.asarray, state.numbers)
    scores = state.memory.scores(arms) + widths[:, None] * state.memory.widths(arms)
    winners = jax.vmap(best, (0, None))(scores, mask)
    return jnp.zeros_like(arms[:, 0]).at[winners].add(weights)
