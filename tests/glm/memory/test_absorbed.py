"""Rewards with weights: in every memory, the estimate is the fit of a past in which each reward counts so much."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import errors
from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.memory import builder_of
from explorax.glm.memory.base import Estimator
from explorax.glm.problem import hessian, posed
from explorax.glm.weighted import Weighted
from tests.glm.memory.wanted import wanted

RNG = np.random.default_rng(5)
ARMS = jnp.asarray(RNG.normal(size=(6, 3)))
ESTIMATOR, RIDGE = Estimator(families.bernoulli), jnp.asarray(0.7)
PULLED = np.array([0, 1, 1, 4, 5, 3, 0])
MORE = Weighted(
    jnp.asarray(PULLED),
    ARMS[PULLED],
    jnp.asarray(RNG.uniform(0.1, 3.0, 7)),
    jnp.asarray(RNG.integers(0, 2, 7).astype(float)),
)


def memory_of(name, arms, earlier=(0, 2, 5), **settings):
    """A memory that has learned some rewards of 1."""
    memory = builder_of(name)(wanted(arms, ridge=float(RIDGE), widths=True, **settings))
    for arm in earlier:
        memory = memory.learn(ESTIMATOR, RIDGE, jnp.asarray(arm), ARMS[arm], jnp.asarray(1.0))
    return memory


def whole(earlier=(0, 2, 5)):
    rows = [ARMS[jnp.asarray(earlier)], MORE.features] if earlier else [MORE.features]
    counts = np.concatenate([np.ones(len(earlier)), MORE.weights])
    sums = np.concatenate([np.ones(len(earlier)), MORE.weights * MORE.rewards])
    return Grouped(jnp.concatenate(rows), jnp.asarray(counts), jnp.asarray(sums))


@pytest.mark.parametrize(
    ("name", "arms", "settings", "atol"),
    [
        ("exact", ARMS, {}, 1e-7),
        ("exact", 3, {"roots": True}, 1e-7),
        ("refitted", 3, {}, 1e-7),
        ("constant", 3, {}, 0.05),  # a parabola stands for the first rewards
        ("constant", 3, {"buffer": 5}, 0.05),
    ],
)
def test_the_estimate_is_the_fit_of_all_rewards(name, arms, settings, atol):
    memory = memory_of(name, arms, **settings).absorbed(ESTIMATOR, RIDGE, MORE)
    exact, past = fit("bernoulli", whole(), ridge=float(RIDGE)), whole()
    assert memory.converged
    np.testing.assert_allclose(memory.theta_hat, exact.theta, atol=atol)
    root = memory.inverse_root(ESTIMATOR, RIDGE)
    curvature = hessian(families.bernoulli, posed(past, ridge=RIDGE), exact.theta)
    np.testing.assert_allclose(root.T @ curvature @ root, np.eye(3), atol=max(2 * atol, 1e-6))
    norms = np.sqrt(np.sum(ARMS @ np.linalg.inv(past.gram() + 1e-6 * np.eye(3)) * ARMS, axis=1))
    np.testing.assert_allclose(memory.widths(ARMS), norms, rtol=1e-6)
    later = memory.learn(ESTIMATOR, RIDGE, jnp.asarray(2), ARMS[2], jnp.asarray(0.0))
    past = Grouped(*(jnp.concatenate([a, b]) for a, b in zip(past, (ARMS[2:3], np.ones(1), np.zeros(1)), strict=True)))
    drift = atol if name == "exact" else 0.05  # a step around the curvature of before
    np.testing.assert_allclose(later.theta_hat, fit("bernoulli", past, ridge=float(RIDGE)).theta, atol=drift)


@pytest.mark.parametrize("settings", [{}, {"buffer": 5}])
def test_a_summary_that_knew_nothing_has_the_exact_estimate(settings):
    memory = memory_of("constant", 3, (), **settings).absorbed(ESTIMATOR, RIDGE, MORE)
    exact = fit("bernoulli", whole(()), ridge=float(RIDGE))
    np.testing.assert_allclose(memory.theta_hat, exact.theta, atol=1e-7)
    np.testing.assert_allclose(memory.gram_root @ memory.gram_inverse, np.eye(3), atol=1e-6)


def test_what_there_is_no_room_for():
    with pytest.raises(errors.HistoryFull, match="3 of 8 rows are taken"):
        memory_of("exact", 3, capacity=8).absorbed(ESTIMATOR, RIDGE, MORE)
    kept = memory_of("exact", 3, capacity=4, drops_oldest=True).absorbed(ESTIMATOR, RIDGE, MORE)
    order = np.argsort(np.asarray(kept.past.sums))
    expected = np.argsort(np.asarray((MORE.weights * MORE.rewards)[3:]))
    np.testing.assert_array_equal(kept.past.counts[order], MORE.weights[3:][expected])
    assert int(kept.past.seen) == 10
    with pytest.raises(errors.InvalidArgument, match="window must be None to learn rewards with weights"):
        memory_of("exact", ARMS, window=5).absorbed(ESTIMATOR, RIDGE, MORE)
