"""What `converged` promises, against float64: scores that err by no more than the cube root of the precision."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped, weighted_gram
from explorax.glm.linalg import draw_tilt
from explorax.glm.memory.base import Estimator, Forgetting
from explorax.glm.memory.fixed_arms import FixedArms
from tests.problems import FAMILIES, afresh

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
        problem = kept.posed(history, ridge=ridge)
        return warm.descend(family, kept, problem, nothing, float(np.finfo(np.float32).eps) ** (2 / 3))

    found = descend(history)
    exact = jax.vmap(partial(fit, "bernoulli", ridge=RIDGE))(
        jax.tree.map(lambda part: jnp.asarray(part, float), history)
    )
    errors, said = off(history, found.theta, exact.theta), np.asarray(found.converged)
    assert np.all(errors[said] <= 1.01 * PROMISED)
    assert np.all(said[np.array([scale <= 1 and kind >= 2 for scale, _, kind in GRID])])


@pytest.mark.parametrize("kind", ["kept curvature", "rows"])
def test_draws_err_by_a_share_of_the_noise_and_say_that_they_are_right(kind):
    # GLM-FPL with its informal scale of 0.5 up to ten times what its theory asks for at d = 20, in float32.
    rng, arms, features = np.random.default_rng(2), 50, 20
    x = rng.normal(size=(arms, features))
    x = jnp.asarray(x / np.linalg.norm(x, axis=1, keepdims=True), jnp.float32)
    counts = jnp.asarray(rng.integers(1, 100, arms), jnp.float32)
    history = Grouped(x, counts, jnp.asarray(rng.binomial(np.asarray(counts, int), 0.4), jnp.float32))
    estimate = fit("bernoulli", history, ridge=RIDGE)
    assert estimate.converged
    memory = memory_of(history, estimate.theta, kept=kind == "kept curvature")
    scales = jnp.repeat(jnp.asarray([0.5, 5.0, 50.0, 500.0], jnp.float32), 20)
    keys = jax.random.split(jax.random.key(0), len(scales))
    tilts = scales[:, None] * jax.jit(jax.vmap(lambda key: draw_tilt(key, weighted_gram(x, counts), 0.0)))(keys)
    estimator = Estimator(families.bernoulli)
    scores, said = jax.jit(jax.vmap(lambda tilt: memory.tilted(estimator, jnp.float32(RIDGE), x, tilt)))(tilts)
    assert np.all(said)

    exactly = jax.tree.map(lambda part: jnp.asarray(part, float), history)
    exact = jax.jit(jax.vmap(lambda tilt: fit("bernoulli", exactly, ridge=RIDGE, tilt=tilt)))(jnp.asarray(tilts, float))
    assert np.all(exact.converged)
    wanted = np.asarray(exact.theta) @ np.asarray(exactly.features).T
    moved = np.abs(wanted - np.asarray(exactly.features) @ np.asarray(estimate.theta, float)).max(axis=1)
    errors = np.abs(np.asarray(scores, float) - wanted).max(axis=1)
    assert np.max(moved) > 1000
    assert np.all(errors <= PROMISED * np.maximum(1, moved))


def test_a_draw_around_an_estimate_that_is_not_right_is_not_excused_by_its_size():
    # All rewards are 1 and features in the hundreds: float32 can tell neither the estimate nor the draw.
    x = jnp.full((1, 1), 1000.0, jnp.float32)
    history = Grouped(x, jnp.full(1, 100.0, jnp.float32), jnp.full(1, 100.0, jnp.float32))
    found = fit("bernoulli", history, ridge=RIDGE)
    assert not found.converged
    memory = memory_of(history, found.theta, kept=False)._replace(converged=found.converged)
    tilt = jnp.full(1, 1e4, jnp.float32)
    _, said = memory.tilted(Estimator(families.bernoulli), jnp.float32(RIDGE), x, tilt)
    assert not said


def memory_of(history, theta, *, kept):
    """A memory of fixed arms with this past, with or without a kept curvature."""
    near = afresh(families.bernoulli, history, theta, jnp.float32(RIDGE))
    return FixedArms(history, theta, jnp.asarray(True), near if kept else None, None, Forgetting())


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
