"""PG-TS and the Pólya-Gamma numbers it draws: against formulas, characteristic functions and posteriors on a grid.

Laws are tested with fixed seeds; each test's false-alarm rate is FALSE_ALARM = 1e-6.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, log_expit

import explorax
from explorax.errors import InvalidArgument
from explorax.glm import polya_gamma, warm
from explorax.glm.families import bernoulli
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.policies.pg_ts import sweep
from tests.statistics import FALSE_ALARM

CASES = [(1.0, 0.0), (1.0, 2.0), (1.0, -12.0), (2.0, 0.3), (7.0, 4.0), (60.0, 1.0), (0.4, 1.0)]
DRAWS = 100_000
draw_many = jax.jit(lambda key, n, z: polya_gamma.draw(key, jnp.full(DRAWS, n), jnp.full(DRAWS, z)))


def drawn(seed, n, z):
    return np.asarray(draw_many(jax.random.key(seed), n, z))


def assert_mean(values, expected):
    deviation = (np.mean(values) - expected) / (np.std(values) / len(values) ** 0.5)
    assert 2 * stats.norm.sf(abs(deviation)) > FALSE_ALARM


@pytest.mark.parametrize(("dtype", "accuracy"), [("float32", 1e-6), ("float64", 1e-11)])
def test_mean_and_variance(dtype, accuracy):
    tilts = np.asarray([1e-30, 1e-4, 0.05, 0.3, 0.4999, 0.5, 1, -2, 7, 30, 80, 1000], dtype)
    z = np.abs(tilts).astype(np.longdouble)
    # Below 0.01 two terms of the series are exact enough, and the formulas lose too many digits.
    mean = np.where(z < 0.01, 0.25 - z**2 / 48, np.tanh(z / 2) / (2 * z))
    variance = (np.sinh(z) - z) / (2 * z**3 * (1 + np.cosh(z)))
    variance = np.where(z < 0.01, 1 / np.longdouble(24) - z**2 / 120, variance)
    for n in (1.0, 2.5):
        counts = jnp.full(len(tilts), n, dtype)
        np.testing.assert_allclose(polya_gamma.mean(counts, tilts), n * mean, rtol=accuracy)
        np.testing.assert_allclose(polya_gamma.variance(counts, tilts), n * variance, rtol=accuracy)
    assert polya_gamma.mean(jnp.ones(1), jnp.zeros(1)) == 0.25
    np.testing.assert_allclose(polya_gamma.variance(jnp.ones(1), jnp.zeros(1)), 1 / 24, rtol=1e-15)


@pytest.mark.parametrize(("n", "z"), CASES)
def test_moments_and_laplace_transforms(n, z):
    values = drawn(0, n, z)
    mean, variance = (float(of(jnp.asarray(n), jnp.asarray(z))) for of in (polya_gamma.mean, polya_gamma.variance))
    assert_mean(values, mean)
    assert_mean((values - mean) ** 2, variance)
    for s in np.asarray([0.3, 1.0, 3.0]) / mean:
        assert_mean(np.exp(-s * values), (np.cosh(z / 2) / np.cosh(np.sqrt(z**2 + 2 * s) / 2)) ** n)


def distribution(n, z):
    """P(ω ≤ x) of PG(n, z) on a grid of x, by inversion of its characteristic function (Gil-Pelaez)."""
    mean, variance = (float(of(jnp.asarray(n), jnp.asarray(z))) for of in (polya_gamma.mean, polya_gamma.variance))
    step, places = 0.01 / variance**0.5, np.linspace(0, mean + 12 * variance**0.5, 1201)
    t = step * (np.arange(60_000) + 0.5)
    root = np.sqrt((z**2 - 2j * t) / 4)
    log_cosh = root + np.log1p(np.exp(-2 * root)) - np.log(2)  # of a root in the right half plane
    transform = np.exp(n * (np.log(np.cosh(z / 2)) - log_cosh)) / t
    kept = t[np.abs(transform) > 1e-12 * np.abs(transform[0])]
    transform = transform[: len(kept)]
    values = [0.5 - step / np.pi * np.sum(np.imag(np.exp(-1j * kept * x) * transform)) for x in places]
    return places, np.asarray(values)


@pytest.mark.parametrize(("n", "z", "stated"), [(1.0, 0.0, 5e-4), (1.0, 10.0, 2.2e-3), (4.0, 4.0, 1e-4)])
def test_draws_are_as_near_to_the_law_as_stated(n, z, stated):
    places, chances = distribution(n, z)
    values = np.sort(np.concatenate([drawn(seed, n, z) for seed in range(4)]))
    found = stats.kstest(values, lambda x: np.interp(x, places, chances)).statistic
    noise = stats.kstwo.isf(FALSE_ALARM, len(values))
    assert found < stated + 4e-4 + noise  # of the remainder, of gamma numbers, and of chance


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_draws_are_finite(dtype):
    counts, tilts = np.meshgrid([0, 1e-12, 0.3, 1, 1e3, 1e7], [0, 1e-20, -3, 50, 1e4, -1e9])
    counts, tilts = (jnp.asarray(part.ravel(), dtype) for part in (counts, tilts))
    for seed in range(20):
        values = np.asarray(polya_gamma.draw(jax.random.key(seed), counts, tilts))
        assert values.dtype == dtype
        assert np.all(np.isfinite(values) & (values >= 0))
        assert np.all(values[counts == 0] == 0)
        assert np.all(values[counts >= 1] > 0)


def test_a_draw_does_not_depend_on_what_comes_after_it():
    counts, tilts = jnp.asarray([3.0, 1.0, 8.0, 2.0, 5.0]), jnp.asarray([0.1, -2.0, 1.0, 0.0, 9.0])
    first, second = (polya_gamma.draw(jax.random.key(0), counts[:size], tilts[:size]) for size in (3, 5))
    np.testing.assert_allclose(first, second[:3], rtol=1e-15)


def test_a_sweep_draws_from_the_two_conditional_laws():
    rng = np.random.default_rng(0)
    rows, counts = rng.normal(size=(6, 3)), np.asarray([4.0, 0.0, 1.0, 30.0, 2.0, 7.0])
    sums, theta, ridge, key = np.floor(counts / 3), rng.normal(size=3), 0.6, jax.random.key(2)
    found = sweep(key, *map(jnp.asarray, (rows.T, counts, sums, ridge, theta)))
    key_of_omega, key_of_theta = jax.random.split(key)
    omega = np.asarray(polya_gamma.draw(key_of_omega, jnp.asarray(counts), jnp.asarray(rows @ theta)))
    covariance = np.linalg.inv((rows.T * omega) @ rows + ridge * np.eye(3))
    noise = np.asarray(jax.random.normal(key_of_theta, (3,)))
    root = np.linalg.inv(np.linalg.cholesky(np.linalg.inv(covariance))).T
    np.testing.assert_allclose(found, covariance @ rows.T @ (sums - counts / 2) + root @ noise, rtol=1e-9)


# A posterior of two features on a grid: skewed, since one arm has only seen rewards of 1.

ARMS = np.asarray([[1.0, 0.4], [-0.5, 1.2], [0.8, -0.9]])
COUNTS, SUMS, RIDGE = np.asarray([6.0, 3.0, 9.0]), np.asarray([6.0, 0.0, 4.0]), 0.5
AXIS = np.linspace(-7, 10, 1501)


def posterior():
    """The density on the grid, normalized to a sum of 1."""
    grid = np.stack(np.meshgrid(AXIS, AXIS, indexing="ij"), axis=-1)
    log_density = -RIDGE / 2 * np.sum(grid**2, axis=-1)
    for x, count, total in zip(ARMS, COUNTS, SUMS, strict=True):
        scores = grid @ x
        log_density += total * log_expit(scores) + (count - total) * log_expit(-scores)
    density = np.exp(log_density - log_density.max())
    return density / density.sum()


DENSITY = posterior()


def exact_draws(count):
    """Draws from the posterior: a cell of the grid, and a place in it."""
    rng = np.random.default_rng(0)
    cells = np.searchsorted(np.cumsum(DENSITY), rng.random(count) * DENSITY.sum())
    places = np.stack(np.unravel_index(np.minimum(cells, DENSITY.size - 1), DENSITY.shape), axis=1)
    return AXIS[places] + (AXIS[1] - AXIS[0]) * (rng.random((count, 2)) - 0.5)


def assert_posterior(draws):
    """Both coordinates have the posterior's marginal laws, and their product and squares its moments."""
    edges = AXIS + (AXIS[1] - AXIS[0]) / 2
    for i in range(2):
        chances = np.cumsum(DENSITY.sum(axis=1 - i))
        assert stats.kstest(draws[:, i], lambda x, c=chances: np.interp(x, edges, c)).pvalue > FALSE_ALARM
    assert_mean(draws[:, 0] * draws[:, 1], AXIS @ DENSITY @ AXIS)


def test_the_check_of_the_posterior_is_one():
    draws = exact_draws(20_000)
    assert_posterior(draws)
    with pytest.raises(AssertionError):
        assert_posterior(1.05 * draws)


def test_sweeps_leave_the_posterior_as_it_is():
    start = jnp.asarray(exact_draws(20_000))
    again = jax.jit(jax.vmap(sweep, (0, None, None, None, None, 0)))
    keys = jax.random.split(jax.random.key(1), 20_000)
    ended = again(keys, *map(jnp.asarray, (ARMS.T, COUNTS, SUMS, RIDGE)), start)
    assert np.corrcoef(start[:, 0], ended[:, 0])[0, 1] < 0.9  # it moves
    assert_posterior(np.asarray(ended))


def decided(count, **settings):
    """θ̃ of so many decisions, from their scores; and θ̄."""
    policy = explorax.make("pg_ts", ridge=RIDGE, **settings)
    history = Grouped(jnp.asarray(ARMS), jnp.asarray(COUNTS), jnp.asarray(SUMS))
    state = policy.init(ARMS)
    theta = fit("bernoulli", history, ridge=RIDGE).theta
    kept = warm.afresh(bernoulli, history, theta, state.ridge)
    state = state._replace(memory=state.memory._replace(past=history, theta_hat=theta, warm=kept))
    keys = jax.random.split(jax.random.key(3), count)
    scores = jax.vmap(policy.act, (0, None, None, None))(keys, state, ARMS, 60).scores
    return np.linalg.lstsq(ARMS, np.asarray(scores).T, rcond=None)[0].T, np.asarray(theta)


def test_decisions_follow_the_posterior_after_some_sweeps():
    draws, theta = decided(20_000, sweeps=30)
    assert_posterior(draws)
    # The Laplace approximation does not.
    means = expit(ARMS @ theta)
    curvature = (ARMS.T * COUNTS * means * (1 - means)) @ ARMS + RIDGE * np.eye(2)
    laplace = np.random.default_rng(0).multivariate_normal(theta, np.linalg.inv(curvature), 20_000)
    with pytest.raises(AssertionError):
        assert_posterior(laplace)


@pytest.mark.parametrize(
    ("count", "total", "stated"),
    [
        (10, 10, {0: 0.034, 1: 0.012, 2: 0.006, 4: 0.0, 8: 0.0}),
        (100, 98, {0: 0.043, 1: 0.035, 2: 0.026, 4: 0.015, 8: 0.0}),
        (1000, 500, dict.fromkeys((0, 1, 2, 4, 8), 0.0)),
        (1000, 1000, {0: 0.046, 1: 0.045, 2: 0.044, 4: 0.043, 8: 0.035}),
    ],
)
def test_chains_are_as_near_to_the_posterior_as_stated(count, total, stated):
    """Kolmogorov distances that the module's docstring states; those of 100 000 draws err by 0.0085 (alarm 1e-6)."""
    grid = np.linspace(-15, 15, 300_001)
    log_density = total * grid - count * np.logaddexp(0, grid) - grid**2 / 2
    law = np.cumsum(np.exp(log_density - log_density.max()))
    law /= law[-1]
    estimate = optimize.brentq(lambda x: total - count * expit(x) - x, -15, 15)
    slope = expit(estimate) * expit(-estimate)
    chains = 100_000
    begin = np.random.default_rng(0).normal(estimate, 1 / np.sqrt(count * slope + 1), (chains, 1))
    theta, ones = jnp.asarray(begin), jnp.ones((1, 1))
    counts, sums = jnp.asarray([float(count)]), jnp.asarray([float(total)])
    again = jax.jit(jax.vmap(lambda key, theta: sweep(key, ones, counts, sums, 1.0, theta)))
    for done in range(9):
        if done in stated:
            found = stats.kstest(np.asarray(theta[:, 0]), lambda x: np.interp(x, grid, law)).statistic
            assert abs(found - stated[done]) < 0.009 + 0.005 * (stated[done] == 0)  # a zero is anything below 0.005
        theta = again(jax.random.split(jax.random.key(done), chains), theta)


def test_a_scale_stretches_the_posterior_around_the_estimate():
    (exact, theta), (wide, _) = decided(20, sweeps=2), decided(20, sweeps=2, scale=1.5)
    np.testing.assert_allclose(wide - theta, 1.5 * (exact - theta), rtol=1e-9)


def test_changing_arms_have_the_posterior_of_their_rows():
    policy = explorax.make("pg_ts", ridge=RIDGE, capacity=30, sweeps=30)
    state = policy.init(2)
    rows = np.repeat(ARMS, COUNTS.astype(int), axis=0)
    rewards = np.concatenate([np.arange(n) < total for n, total in zip(COUNTS, SUMS, strict=True)])
    for x, reward in zip(rows, rewards, strict=True):
        state = policy.update(state, 0, x, float(reward))
    keys = jax.random.split(jax.random.key(4), 5000)
    assert_posterior(np.asarray(jax.vmap(policy.act, (0, None, None, None))(keys, state, np.eye(2), 60).scores))


BAD = [
    ({"sweeps": 0}, "sweeps must be a whole number of at least 1, got 0"),
    ({"scale": 0.0}, "scale must be a finite number above 0, got 0.0. Use 'greedy'"),
    ({"family": "gaussian"}, "family must be 'bernoulli' for PG-TS, .*, got 'gaussian'. Use 'glm_tsl'"),
    ({"memory": "constant"}, "memory must keep the rewards .* for sweeps over all of them, got 'constant'"),
]


@pytest.mark.parametrize(("settings", "message"), BAD)
def test_bad_settings_are_explained(settings, message):
    with pytest.raises(InvalidArgument, match=message):
        explorax.make("pg_ts", **settings)
