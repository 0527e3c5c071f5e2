"""A memory of fixed arms: against the fit of the same counts, and against itself made otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.memory import constant, exact, refitted
from explorax.glm.memory.base import GRAM_RIDGE, Estimator
from explorax.glm.memory.fixed_arms import FixedArms
from explorax.glm.problem import hessian, posed
from tests.glm.memory.wanted import wanted
from tests.statistics import assert_standard_normal

RNG = np.random.default_rng(5)
ARMS = jnp.asarray(RNG.uniform(-1, 1, (6, 3)))
PULLS, REWARDS = RNG.integers(0, 6, 50), RNG.integers(0, 2, 50).astype(float)
RIDGE = jnp.asarray(0.7)
ESTIMATOR = Estimator(families.bernoulli)
WINDOW = 12


def learned(rounds=50, **settings):
    memory = FixedArms.of(wanted(ARMS, ridge=float(RIDGE), **settings))
    learn = jax.jit(lambda memory, arm, reward: memory.learn(ESTIMATOR, RIDGE, arm, ARMS[arm], reward))
    for arm, reward in zip(PULLS[:rounds], REWARDS[:rounds], strict=True):
        memory = learn(memory, arm, reward)
    return memory


def past_of(pulls, rewards):
    return Grouped(ARMS, jnp.bincount(pulls, length=6).astype(float), jnp.bincount(pulls, rewards, length=6))


@pytest.fixture(scope="module")
def plain():
    return learned()


@pytest.fixture(scope="module")
def windowed():
    return learned(window=WINDOW)


@pytest.mark.parametrize("kept", [True, False], ids=["kept curvature", "none kept"])
def test_the_estimate_is_that_of_the_counts(kept):
    memory = learned(keeps_curvature=kept)
    assert (memory.warm is not None) == kept
    past = past_of(PULLS, REWARDS)
    np.testing.assert_array_equal(memory.past.counts, past.counts)
    expected = fit("bernoulli", past, ridge=0.7).theta
    np.testing.assert_allclose(memory.theta_hat, expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(memory.scores(ARMS), ARMS @ expected, rtol=0, atol=1e-7)
    np.testing.assert_allclose(memory.scores_at(ARMS, jnp.ones(3)), ARMS @ jnp.ones(3), rtol=1e-12)
    root, curvature = (
        memory.inverse_root(ESTIMATOR, RIDGE),
        hessian(families.bernoulli, posed(past, ridge=0.7), expected),
    )
    np.testing.assert_allclose(root.T @ curvature @ root, np.eye(3), atol=0.1)
    tilt = jnp.asarray([0.3, -2.0, 1.0])
    scores, converged = memory.tilted(ESTIMATOR, RIDGE, ARMS, tilt)
    assert converged
    np.testing.assert_allclose(scores, ARMS @ fit("bernoulli", past, ridge=0.7, tilt=tilt).theta, rtol=0, atol=1e-6)
    scores, converged = memory.scores_on(ESTIMATOR, RIDGE, ARMS, past._replace(sums=past.sums / 2), memory.theta_hat)
    assert converged
    halved = fit("bernoulli", past._replace(sums=past.sums / 2), ridge=0.7).theta
    np.testing.assert_allclose(scores, ARMS @ halved, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kept", [True, False])
def test_widths_and_sums_over_arms(kept):
    memory = learned(keeps_curvature=kept, widths=True)
    assert (memory.whitened is not None) == kept
    gram = (ARMS.T * memory.past.counts) @ ARMS + GRAM_RIDGE * np.eye(3)
    expected = np.sqrt(np.sum(ARMS @ np.linalg.inv(gram) * ARMS, axis=1))
    for each in (memory, memory._replace(whitened=None)):
        np.testing.assert_allclose(each.widths(ARMS), expected, rtol=1e-7)
    np.testing.assert_allclose(memory.weighted_sum(jnp.arange(6.0)), jnp.arange(6.0) @ ARMS, rtol=1e-12)
    np.testing.assert_array_equal(memory.columns(), ARMS.T)


def test_tilts_have_the_gram_matrix_for_their_covariance(plain):
    keys = jax.random.split(jax.random.key(1), 5000)
    tilts = np.asarray(jax.vmap(lambda key: plain.tilt_noise(key, 0.5))(keys))
    gram = np.asarray((ARMS.T * plain.past.counts) @ ARMS + 0.5 * np.eye(3))
    assert_standard_normal(np.linalg.solve(np.linalg.cholesky(gram), tilts.T).T)


def test_a_window_forgets_what_it_says_is_leaving(plain, windowed):
    assert plain.leaving() is None
    change = windowed.leaving()
    assert (change.comes, float(change.leaves), change.ago) == (1.0, 1.0, WINDOW)
    np.testing.assert_array_equal(change.x, ARMS[PULLS[-WINDOW]])
    recent = past_of(PULLS[-WINDOW:], REWARDS[-WINDOW:])
    np.testing.assert_array_equal(windowed.past.counts, recent.counts)
    np.testing.assert_allclose(windowed.theta_hat, fit("bernoulli", recent, ridge=0.7).theta, rtol=0, atol=1e-7)
    assert float(learned(rounds=WINDOW - 1, window=WINDOW).leaving().leaves) == 0


def test_a_reward_that_does_not_count_changes_nothing(plain):
    for really, same in ((False, True), (True, False)):
        after = plain.learn(ESTIMATOR, RIDGE, 1, ARMS[1], 1.0, jnp.asarray(really))
        equal = jax.tree.all(jax.tree.map(lambda one, two: bool(jnp.array_equal(one, two)), after, plain))
        assert equal == same


def test_further_arms_have_nothing_seen(plain):
    more = plain.extended(ESTIMATOR, RIDGE, jnp.concatenate([ARMS, -ARMS[:2]]))
    assert (plain.n_arms, more.n_arms) == (6, 8)
    np.testing.assert_array_equal(more.past.counts, [*plain.past.counts, 0, 0])
    np.testing.assert_allclose(more.scores(None), [*plain.scores(ARMS), *-plain.scores(ARMS)[:2]], rtol=1e-6, atol=1e-9)


def test_only_rows_that_it_knows_are_taken(plain):
    plain.check_pulled(2, ARMS[2])
    with pytest.raises(InvalidArgument, match="x must be the row of arm 2 that the state was made with, got other"):
        plain.check_pulled(2, ARMS[3])


def test_its_past_goes_into_another_memory(plain, windowed):
    fresh = FixedArms.of(wanted(ARMS, ridge=2.0))
    adopted = fresh.adopting(ESTIMATOR, jnp.asarray(2.0), plain, RIDGE)
    np.testing.assert_allclose(adopted.theta_hat, fit("bernoulli", plain.past, ridge=2.0).theta, rtol=0, atol=1e-7)
    summary = constant(wanted(ARMS)).adopting(ESTIMATOR, jnp.asarray(1.0), plain, RIDGE)
    np.testing.assert_allclose(summary.theta_hat, fit("bernoulli", plain.past, ridge=1.0).theta, rtol=0, atol=1e-7)
    assert summary.known_rewards() is None
    for other, message in (
        (FixedArms.of(wanted(2 * ARMS)), "arms must be those of the state"),
        (FixedArms.of(wanted(ARMS, window=3)), "window of fixed arms must stay"),
        (exact(wanted(3)), "fixed arms on one side"),
        (refitted(wanted(3)), "fixed arms on one side"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            other.adopting(ESTIMATOR, jnp.asarray(1.0), plain, RIDGE)
    with pytest.raises(InvalidArgument, match="fixed arms on one side"):
        fresh.adopting(ESTIMATOR, jnp.asarray(2.0), exact(wanted(3)), RIDGE)
    np.testing.assert_array_equal(windowed.known_rewards().counts, windowed.past.counts)
