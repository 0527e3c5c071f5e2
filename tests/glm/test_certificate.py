"""What `converged` promises, against float64: scores that err by no more than the cube root of the precision."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from tests.problems import FAMILIES

ARMS, FEATURES, RIDGE = 12, 3, 1.0
PROMISED = float(np.finfo(np.float32).eps) ** (1 / 3)
SCALES, COUNTS, KINDS = (0.1, 1.0, 10.0, 100.0, 1000.0), (1, 100, 10_000), 4
GRID = list(itertools.product(SCALES, COUNTS, range(KINDS)))


def hard(family):
    """Histories on a grid of scales and counts: all rewards at the end of their range, or drawn; in float32."""
    rng = np.random.default_rng(0)
    batch = []
    for scale, count, kind in GRID:
        x = scale * rng.uniform(-1 + kind % 2, 1, (ARMS, FEATURES))
        scores, counts = x @ rng.normal(size=FEATURES) / scale, np.full(ARMS, count)
        drawn = {
            "bernoulli": rng.binomial(counts, 1 / (1 + np.exp(-scores))),
            "poisson": rng.poisson(counts * np.exp(scores)),
            "gaussian": counts * scores + np.sqrt(counts) * rng.normal(size=ARMS),
        }[family]
        extreme = {"bernoulli": counts, "poisson": 0 * counts, "gaussian": 100.0 * counts}[family]
        batch.append((x, counts, extreme if kind < 2 else drawn))
    return Grouped(*(jnp.asarray(np.stack(part), jnp.float32) for part in zip(*batch, strict=True)))


def off(history, theta, exact):
    """The largest error of a score of each history."""
    x = np.asarray(history.features, float)
    return np.abs(np.einsum("skd,sd->sk", x, np.asarray(theta, float) - np.asarray(exact))).max(axis=1)


@pytest.mark.parametrize("family", FAMILIES)
def test_scores_are_right_wherever_a_fit_says_so(family):
    history = hard(family)
    solve = jax.vmap(partial(fit, family, ridge=RIDGE))
    found, exact = solve(history), solve(jax.tree.map(lambda part: jnp.asarray(part, float), history))
    errors, said = off(history, found.theta, exact.theta), np.asarray(found.converged)
    assert np.all(errors[said] <= PROMISED)
    assert np.all(errors[said] <= 1.1 * np.asarray(found.score_error)[said] + 1e-6)
    if family == "bernoulli":  # what float32 cannot do is not promised
        assert np.sum(errors > PROMISED) > 5
    easy = np.array([scale <= 1 and kind >= 2 for scale, _, kind in GRID])
    assert np.all(said[easy])
    assert np.mean(said) > 0.5


def test_scores_are_right_wherever_a_round_of_a_bandit_says_so():
    history, family = hard("bernoulli"), families.bernoulli
    ridge, nothing = jnp.float32(RIDGE), jnp.zeros(FEATURES, jnp.float32)

    @jax.jit
    @jax.vmap
    def descend(history):
        kept = warm.start(history.features, ridge)
        return warm.descend(family, kept, history, nothing, nothing, ridge, float(np.finfo(np.float32).eps) ** (2 / 3))

    found = descend(history)
    exact = jax.vmap(partial(fit, "bernoulli", ridge=RIDGE))(
        jax.tree.map(lambda part: jnp.asarray(part, float), history)
    )
    errors, said = off(history, found.theta, exact.theta), np.asarray(found.converged)
    assert np.all(errors[said] <= 1.01 * PROMISED)
    assert np.all(said[np.array([scale <= 1 and kind >= 2 for scale, _, kind in GRID])])


@pytest.mark.parametrize("grouped", [True, False])
def test_ordinary_problems_converge_in_float32(grouped):
    # A hundred thousand rewards of arms with norm 1, by arm or one by one.
    rng, size = np.random.default_rng(1), 100_000
    arms = rng.normal(size=(50, 10))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    order = rng.integers(0, 50, size)
    rewards = rng.random(size) < 1 / (1 + np.exp(-2 * arms[order, 0]))
    history = Grouped(arms[order], np.ones(size), rewards.astype(float))
    if grouped:
        history = Grouped(arms, np.bincount(order, minlength=50), np.bincount(order, rewards, minlength=50))
    found = fit("bernoulli", Grouped(*(np.asarray(part, np.float32) for part in history)))
    assert found.converged
    exact = fit("bernoulli", Grouped(*(jnp.asarray(part, float) for part in history))).theta
    assert np.max(np.abs(arms @ (np.asarray(found.theta, float) - np.asarray(exact)))) <= float(found.score_error)


def test_a_curvature_that_is_lost_is_not_trusted():
    # Gaussian features of 1e20: the second arm's direction is lost in the rounding of the first one's square.
    arms = jnp.asarray([[1e20, 1e20], [1.0, -1.0]])
    found = fit("gaussian", Grouped(arms, jnp.ones(2), jnp.ones(2)), ridge=1e-3)
    assert np.all(np.isfinite(found.theta))
    assert not found.converged
