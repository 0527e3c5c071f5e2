from decimal import Decimal
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from explorax.errors import InvalidReward, UnknownName
from explorax.glm import families
from tests.problems import FAMILIES
from tests.statistics import FALSE_ALARM

SCORES = np.linspace(-6, 6, 49)


@pytest.mark.parametrize("name", FAMILIES)
def test_mean_is_the_cumulants_derivative_and_slope_the_means(name):
    family = families.get(name)
    scores = jnp.asarray(SCORES)
    np.testing.assert_allclose(jax.vmap(jax.grad(family.cumulant))(scores), family.mean(scores), rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(jax.grad(family.mean))(scores), family.slope(scores), rtol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_self_concordance_bounds_the_change_of_slope(name):
    family = families.get(name)
    scores = jnp.asarray(SCORES)
    bend = jnp.abs(jax.vmap(jax.grad(jax.grad(family.mean)))(scores))
    assert np.all(bend <= family.self_concordance * family.slope(scores) * (1 + 1e-12))


@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_and_means_stay_in_their_ranges(name):
    family = families.get(name)
    scores = jnp.asarray(SCORES)
    low, high = family.mean_range
    assert np.all((family.mean(scores) > low) & (family.mean(scores) < high))
    assert np.all((family.slope(scores) > 0) & (family.slope(scores) <= family.max_slope))


def test_densities_match_scipy():
    # log p(y; η) − log p(y; 0) = y η − b(η) + b(0) in an exponential family with canonical link.
    for y in (0, 1):
        expected = stats.bernoulli.logpmf(y, 1 / (1 + np.exp(-SCORES))) - np.log(0.5)
        np.testing.assert_allclose(y * SCORES - families.bernoulli.cumulant(SCORES) + np.log(2), expected, atol=1e-12)
    for y in (0, 3, 11):
        expected = stats.poisson.logpmf(y, np.exp(SCORES)) - stats.poisson.logpmf(y, 1)
        np.testing.assert_allclose(y * SCORES - families.poisson.cumulant(SCORES) + 1, expected, atol=1e-9)
    expected = stats.norm.logpdf(0.7, SCORES) - stats.norm.logpdf(0.7)
    np.testing.assert_allclose(0.7 * SCORES - families.gaussian.cumulant(SCORES), expected, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("score", [-1.5, 0.0, 1.2])
def test_samples_have_the_mean_and_variance_of_the_family(name, score):
    # False alarms: two normal approximations at FALSE_ALARM each.
    family = families.get(name)
    draws = np.asarray(family.sample(jax.random.key(3), jnp.full(200_000, score)))
    variance = float(family.slope(jnp.asarray(score)))
    error = (draws.mean() - float(family.mean(jnp.asarray(score)))) / np.sqrt(variance / len(draws))
    assert 2 * stats.norm.sf(abs(error)) > FALSE_ALARM
    spread = (draws - draws.mean()) ** 2
    assert 2 * stats.norm.sf(abs(spread.mean() - variance) / (spread.std() / len(draws) ** 0.5)) > FALSE_ALARM
    families.check_rewards(family, draws)  # raises for an impossible one


def test_gaussian_samples_take_a_noise_level():
    draws = families.gaussian.sample(jax.random.key(0), jnp.zeros(100_000), noise_std=3.0)
    assert abs(float(jnp.std(draws)) - 3) < 3 * 5 / np.sqrt(2 * 100_000)


def test_float32_keeps_small_slopes():
    slope = families.bernoulli.slope(jnp.asarray(30.0, jnp.float32))
    np.testing.assert_allclose(slope, np.exp(-30.0), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "reward", "words"),
    [
        ("bernoulli", 1.5, "between 0 and 1"),
        ("bernoulli", -0.1, "between 0 and 1"),
        ("poisson", -1, "0 or more"),
        ("poisson", 1.5, "reward must be a whole number of 0 or more in the poisson family, got 1.5"),
        ("poisson", np.array([1.0, 0.5]), "reward must be .* in the poisson family, got 0.5"),
        ("gaussian", np.nan, "reward must be finite, got nan"),
        ("poisson", np.inf, "reward must be finite, got inf"),
        ("bernoulli", "a lot", "must be a number"),
        ("gaussian", "1", "reward must be a number, got '1'"),
        ("gaussian", 1j, "must be a number"),
    ],
)
def test_impossible_rewards_are_refused(name, reward, words):
    with pytest.raises(InvalidReward, match=words):
        families.check_rewards(families.get(name), reward)


def test_graded_rewards_and_whole_arrays_are_accepted():
    families.check_rewards(families.bernoulli, 0.3)
    families.check_rewards(families.poisson, np.arange(5))
    families.check_rewards(families.gaussian, -7)
    families.check_rewards(families.bernoulli, [True, Decimal("0.5"), Fraction(1, 3)])
    families.check_rewards(families.poisson, np.ma.array([3.0, 4.0]))


def test_unknown_families_suggest_the_nearest():
    with pytest.raises(UnknownName, match="Did you mean 'poisson'"):
        families.get("poison")
    with pytest.raises(UnknownName, match=r"family must be one of .*, got \['poisson'\]. Did you mean 'poisson'"):
        families.get(["poisson"])
