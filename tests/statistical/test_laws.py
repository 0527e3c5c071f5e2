"""Laws of the randomized parameters.  Seeds are fixed; each test's false-alarm rate is FALSE_ALARM = 1e-6."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.linalg import draw_tilt, factorize
from explorax.glm.problem import hessian, posed
from explorax.policies.glm_tsl import sample
from tests.problems import FAMILIES, random_history
from tests.statistics import FALSE_ALARM, assert_standard_normal, same_law_pvalue

DRAWS = 4000


def tilted_fits(family, history, tilts, ridge=1.0):
    return np.asarray(jax.vmap(lambda tilt: fit(family, history, ridge=ridge, tilt=tilt).theta)(jnp.asarray(tilts)))


@pytest.fixture(scope="module")
def setting():
    """A short bandit history: 5 arms of 3 features, a few pulls of each, one of none."""
    rng = np.random.default_rng(8)
    arms = rng.uniform(-1, 1, (5, 3))
    pulls = np.array([4, 1, 0, 7, 2])
    rewards = [rng.integers(0, 2, count).astype(float) for count in pulls]
    return (
        arms,
        pulls,
        rewards,
        Grouped(jnp.asarray(arms), jnp.asarray(pulls, float), jnp.asarray([*map(np.sum, rewards)])),
    )


def perturb_every_reward(setting, rng, scale):
    """GLM-FPL as defined: fresh noise on each of the 14 rewards, then a fit to the 14 rows."""
    arms, pulls, rewards, _ = setting
    rows = np.repeat(arms, pulls, axis=0)
    noisy = np.concatenate(rewards) + scale * rng.normal(size=(DRAWS, pulls.sum()))

    def one(targets):
        return fit("bernoulli", Grouped(jnp.asarray(rows), jnp.ones(len(rows)), targets)).theta

    return np.asarray(jax.vmap(one)(jnp.asarray(noisy)))


def perturb_sums(setting, rng, scale):
    """The paper's section 3.3: noise N(0, N_x a²) on the reward sum of each arm."""
    _, pulls, _, history = setting
    noisy = np.asarray(history.sums) + scale * np.sqrt(pulls) * rng.normal(size=(DRAWS, len(pulls)))

    def one(sums):
        return fit("bernoulli", history._replace(sums=sums)).theta

    return np.asarray(jax.vmap(one)(jnp.asarray(noisy)))


def draw_tilts(setting, seed, scale):
    """What the policy does: one d-vector S ~ N(0, a² G)."""
    *_, history = setting
    keys = jax.random.split(jax.random.key(seed), DRAWS)
    return scale * np.asarray(jax.vmap(lambda key: draw_tilt(key, history.gram(), 0.0))(keys))


@pytest.mark.parametrize("scale", [0.5, 4.0])
def test_three_ways_to_perturb_have_one_law(setting, scale):
    every = perturb_every_reward(setting, np.random.default_rng(1), scale)
    sums = perturb_sums(setting, np.random.default_rng(2), scale)
    tilts = tilted_fits("bernoulli", setting[-1], draw_tilts(setting, 3, scale))
    assert same_law_pvalue(every, sums) > FALSE_ALARM / 3
    assert same_law_pvalue(every, tilts) > FALSE_ALARM / 3
    assert same_law_pvalue(sums, tilts) > FALSE_ALARM / 3


def test_that_test_would_notice_a_wrong_scale(setting):
    every = perturb_every_reward(setting, np.random.default_rng(1), 0.5)
    wrong = tilted_fits("bernoulli", setting[-1], draw_tilts(setting, 3, 0.5 * 1.2))
    assert same_law_pvalue(every, wrong) < FALSE_ALARM / 3


def test_the_tilt_identity_is_exact_noise_by_noise(setting):
    # L(Y + Z; θ) = L(Y; θ) − Sᵀθ + const, S = Σ Z x: the same noise gives the same estimate, not only the same law.
    arms, pulls, _, history = setting
    noise = np.sqrt(pulls) * np.random.default_rng(0).normal(size=5)
    perturbed = fit("bernoulli", history._replace(sums=history.sums + noise)).theta
    tilted = fit("bernoulli", history, tilt=jnp.asarray(noise @ arms)).theta
    np.testing.assert_allclose(perturbed, tilted, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_tilts_have_the_covariance_of_the_gram_matrix(dtype):
    history = random_history(np.random.default_rng(5), "bernoulli", dtype=dtype)
    gram, prior = history.gram(), 0.7
    keys = jax.random.split(jax.random.key(0), DRAWS)
    tilts = np.asarray(jax.vmap(lambda key: draw_tilt(key, gram, prior))(keys), float)
    root = np.linalg.cholesky(np.asarray(gram, float) + prior * np.eye(4))
    assert_standard_normal(np.linalg.solve(root, tilts.T).T)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_thompson_samples_have_covariance_a2_inverse_hessian(family, dtype):
    history = random_history(np.random.default_rng(6), family, dtype=dtype)
    theta, scale = fit(family, history).theta, 1.7
    curvature = hessian(families.get(family), posed(history, ridge=1.0), theta)
    keys = jax.random.split(jax.random.key(0), DRAWS)
    draws = np.asarray(
        jax.vmap(lambda key: sample(key, theta, factorize(curvature).inverse_root(), scale))(keys), float
    )
    root = np.linalg.cholesky(np.asarray(curvature, float))
    assert_standard_normal((draws - np.asarray(theta, float)) @ root / scale)


def test_gaussian_fpl_with_prior_noise_is_thompson_sampling():
    # Both are N(θ̄, a² H⁻¹) with H = G + λI: checked against that law, not only against each other.
    history, ridge, scale = random_history(np.random.default_rng(7), "gaussian"), 0.6, 1.3
    center = np.asarray(fit("gaussian", history, ridge=ridge).theta)
    root = np.linalg.cholesky(np.asarray(history.gram()) + ridge * np.eye(4))
    keys = jax.random.split(jax.random.key(1), DRAWS)
    tilts = scale * jax.vmap(lambda key: draw_tilt(key, history.gram(), ridge))(keys)
    perturbed = tilted_fits("gaussian", history, tilts, ridge)
    assert_standard_normal((perturbed - center) @ root / scale)
    precision = jnp.asarray(root @ root.T)
    sampled = np.asarray(
        jax.vmap(lambda key: sample(key, jnp.asarray(center), factorize(precision).inverse_root(), scale))(keys)
    )
    assert_standard_normal((sampled - center) @ root / scale)
    assert same_law_pvalue(perturbed, np.asarray(sampled)) > FALSE_ALARM


def test_logistic_fpl_spreads_at_least_as_much_as_thompson_sampling():
    # Near θ̄ FPL's covariance is a² H⁻¹GH⁻¹ ⪰ 4a² H⁻¹: with many pulls, a = 0.5 explores at least like TSL with a = 1.
    history = random_history(np.random.default_rng(9), "bernoulli", pulls=2000)
    theta = fit("bernoulli", history, ridge=1e-6).theta
    curvature = np.asarray(hessian(families.bernoulli, posed(history, ridge=1e-6), theta))
    keys = jax.random.split(jax.random.key(2), DRAWS)
    tilts = 0.5 * jax.vmap(lambda key: draw_tilt(key, history.gram(), 0.0))(keys)
    draws = tilted_fits("bernoulli", history, tilts, 1e-6) - np.asarray(theta)
    inverse = np.linalg.inv(curvature)
    expected = 0.25 * inverse @ np.asarray(history.gram()) @ inverse
    assert np.linalg.eigvalsh(expected - inverse)[0] > 0
    covariance = np.cov(draws.T)
    # The largest relative error of 10 entries of a covariance from 4000 draws stays below 6 sd, 1e-8 each.
    sd = np.sqrt((expected**2 + np.outer(np.diag(expected), np.diag(expected))) / DRAWS)
    assert np.max(np.abs(covariance - expected) / sd) < 6
