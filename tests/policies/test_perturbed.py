"""Policies that perturb a loss, a width or a history: EVILL, RandUCB, LogPHE and LinPHE.

Identities are checked against NumPy, SciPy and `fit`; laws with fixed seeds and a false-alarm rate of 1e-6.
"""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import expit

import explorax
from explorax import theory
from explorax.errors import InvalidArgument
from explorax.glm import families, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped, Rows
from explorax.glm.memory.base import Estimator
from explorax.policies.evill import draw_tilt
from explorax.policies.pseudo_rewards import Numbers, binomial, ceiling, perturbed, pseudo_rewards, rounded
from explorax.policies.rand_ucb import draw
from tests.statistics import FALSE_ALARM, assert_standard_normal

RNG = np.random.default_rng(11)
ARMS = RNG.uniform(-1, 1, (10, 4))
PULLS = RNG.integers(0, 10, 60)
REWARDS = RNG.integers(0, 2, 60).astype(float)
COUNTS = np.bincount(PULLS, minlength=10).astype(float)
SUMS = np.bincount(PULLS, REWARDS, minlength=10)
HISTORY = Grouped(jnp.asarray(ARMS), jnp.asarray(COUNTS), jnp.asarray(SUMS))
ROWS = Rows.of(60, 4, jnp.dtype(float), forgets=False)._replace(
    features=jnp.asarray(ARMS[PULLS]), counts=jnp.ones(60), sums=jnp.asarray(REWARDS), seen=jnp.asarray(60)
)
HISTORIES = {"fixed": HISTORY, "changing": ROWS}
KINDS = pytest.mark.parametrize("kind", HISTORIES)
KEY = jax.random.key(5)


RIDGE = 0.7


@functools.cache
def estimate(family):
    """θ̄ on the history."""
    return fit(family, HISTORY, ridge=RIDGE).theta


def learned(name, kind="fixed", family="bernoulli", **settings):
    """A policy and its state after the history, put together without the rounds that led there."""
    policy = explorax.make(name, family=family, ridge=RIDGE, capacity=60, **settings)
    state = policy.init(ARMS if kind == "fixed" else 4)
    theta = estimate(family)
    memory = state.memory._replace(past=HISTORIES[kind], theta_hat=theta)
    if kind == "fixed":
        kept = warm.afresh(families.get(family), HISTORY, theta, state.ridge)
        memory = memory._replace(warm=kept, whitened=None)
    return policy, policy.complete(state._replace(memory=memory))


def scores(name, kind="fixed", family="bernoulli", **settings):
    policy, state = learned(name, kind, family, **settings)
    action = policy.act(KEY, state, ARMS, 60)
    assert action.converged
    assert action.arm == np.argmax(action.scores)
    return np.asarray(action.scores)


def many(policy, state, count, arms=ARMS, mask=None):
    """Actions of so many keys."""
    keys = jax.random.split(jax.random.key(1), count)
    return jax.vmap(policy.act, (0, None, None, None, None))(keys, state, arms, 60, mask)


def curvature(family, theta):
    slopes = {"bernoulli": expit(ARMS @ theta) * expit(-ARMS @ theta), "poisson": np.exp(ARMS @ theta)}[family]
    return (ARMS.T * COUNTS * slopes) @ ARMS + RIDGE * np.eye(4)


def assert_frequencies(counts, chances):
    """Chi-square; what is expected less than five times counts together."""
    expected = np.asarray(chances) * np.sum(counts)
    common = expected >= 5
    observed, expected = (np.append(v[common], v[~common].sum()) for v in (np.asarray(counts, float), expected))
    observed, expected = (v if expected[-1] > 0 else v[:-1] for v in (observed, expected))
    assert stats.chisquare(observed, expected).pvalue > FALSE_ALARM


# EVILL


@pytest.mark.parametrize(("kind", "family"), [("fixed", "bernoulli"), ("changing", "bernoulli"), ("fixed", "poisson")])
def test_the_first_newton_step_of_evill_is_the_draw_of_glm_tsl(kind, family):
    _, state = learned("evill", kind, family, scale=1.7)
    tilt = np.asarray(draw_tilt(Estimator(families.get(family)), KEY, state))
    theta = np.asarray(state.theta_hat)
    step = theta + np.linalg.solve(curvature(family, theta), tilt)
    np.testing.assert_allclose(ARMS @ step, scores("glm_tsl", kind, family, scale=1.7), rtol=1e-6)
    # … and the policy goes on from there to the fit with that tilt.
    fitted = fit(family, HISTORY, ridge=RIDGE, tilt=tilt)
    found = scores("evill", kind, family, scale=1.7)
    np.testing.assert_allclose(found, ARMS @ fitted.theta, rtol=1e-6)
    assert np.max(np.abs(found - ARMS @ step)) > 0.01


def test_the_tilt_of_evill_has_the_curvature_for_its_covariance():
    _, state = learned("evill", scale=2.0)
    estimator = Estimator(families.bernoulli)
    keys = jax.random.split(KEY, 20_000)
    tilts = np.asarray(jax.jit(jax.vmap(lambda key: draw_tilt(estimator, key, state)))(keys))
    root = np.linalg.cholesky(4.0 * curvature("bernoulli", np.asarray(state.theta_hat)))
    assert_standard_normal(np.linalg.solve(root, tilts.T).T)


def test_gaussian_evill_is_glm_tsl():
    first, second = (explorax.make(name, family="gaussian", noise_std=0.3) for name in ("evill", "glm_tsl"))
    state = second.init(ARMS)
    for t in range(40):
        found, expected = (policy.act(jax.random.key(t), state, ARMS, t) for policy in (first, second))
        np.testing.assert_allclose(found.scores, expected.scores, rtol=1e-9, atol=1e-12)
        assert found.arm == expected.arm
        state = second.update(state, found.arm, ARMS[found.arm], float(np.sin(t) + ARMS[found.arm, 0]))
    # The same scale, and so the same state.
    np.testing.assert_array_equal(first.init(ARMS).numbers.scale, state.numbers.scale)


def test_evill_is_glm_tsl_where_the_past_is_a_summary():
    first, second = (explorax.make(name, memory="constant", scale=1.3) for name in ("evill", "glm_tsl"))
    state = first.init(4)
    memory = state.memory._replace(theta_hat=estimate("bernoulli"), root=jnp.tri(4) + jnp.eye(4))
    state = state._replace(memory=memory)
    np.testing.assert_array_equal(first.act(KEY, state, ARMS, 60).scores, second.act(KEY, state, ARMS, 60).scores)


# RandUCB


def grid(points=20, spread=0.125):
    """The points and their chances, the last of which is 1e-8."""
    places = np.linspace(0, 1, points)
    chances = stats.norm.pdf(places[:-1], scale=spread)
    return places, np.append((1 - 1e-8) * chances / chances.sum(), 1e-8)


def parts(state):
    """x_iᵀθ̄ and ‖x_i‖_{G⁻¹}."""
    gram = (ARMS.T * np.asarray(state.memory.past.counts)) @ ARMS + 1e-6 * np.eye(4)
    return ARMS @ np.asarray(state.theta_hat), np.sqrt(np.sum(ARMS @ np.linalg.inv(gram) * ARMS, axis=1))


WIDTHS = {
    "informal": ({}, 16.0),
    "theory": (
        {"design": "theory", "horizon": 1000},
        theory.width("ucb_glm", theory.problem(n_features=4, rounds=1000)),
    ),
    "given": ({"width": 3.0, "points": 5, "spread": 0.5}, 3.0),
}


@pytest.mark.parametrize("how", WIDTHS)
def test_rand_ucb_adds_a_random_part_of_its_bonus(how):
    settings, width = WIDTHS[how]
    policy, state = learned("rand_ucb", **settings)
    means, norms = parts(state)
    factors = (np.asarray(many(policy, state, 10_000).scores) - means) / (width * norms)
    places, chances = grid(*(5, 0.5) if how == "given" else (20, 0.125))
    nearest = np.argmin(np.abs(factors[:, :1] - places), axis=1)
    # One place for all arms, …
    np.testing.assert_allclose(factors, np.broadcast_to(places[nearest, None], factors.shape), atol=1e-5)
    # … drawn from the law of the paper.
    assert_frequencies(np.bincount(nearest, minlength=len(places)), chances)


def test_rand_ucb_with_changing_arms_has_the_same_scores():
    np.testing.assert_allclose(scores("rand_ucb"), scores("rand_ucb", "changing"), rtol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_point_has_its_chance(dtype):
    chances = jnp.asarray([0.5, 0.2, 0.25, 0.05], dtype)
    drawn = jax.vmap(draw, (0, None))(jax.random.split(KEY, 50_000), chances)
    assert_frequencies(np.bincount(drawn, minlength=4), np.asarray(chances, float))


@pytest.mark.parametrize("mask", [None, np.arange(10) % 3 != 1], ids=["all", "some"])
def test_the_law_of_rand_ucb(mask):
    policy, state = learned("rand_ucb", width=40.0)
    once = HISTORY._replace(counts=jnp.minimum(HISTORY.counts, 1))  # for wider bonuses
    state = state._replace(memory=state.memory._replace(past=once))
    found = np.asarray(policy.probabilities(state, ARMS, 60, mask))
    means, norms = parts(state)
    expected = np.zeros(10)
    for place, chance in zip(*grid(), strict=True):
        index = means + place * 40.0 * norms
        expected[np.argmax(index if mask is None else np.where(mask, index, -np.inf))] += chance
    assert np.sum(expected > 0.01) > 1
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    assert_frequencies(np.bincount(many(policy, state, 10_000, mask=mask).arm, minlength=10), expected)


# Pseudo-rewards


@pytest.mark.parametrize("flips", [0, 1, 5, 31, 32, 33, 64, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_coin_flips_are_binomial(flips, dtype):
    heads = np.asarray(binomial(jax.random.key(flips), jnp.full(100_000, flips, dtype)))
    assert heads.dtype == dtype
    assert np.all((heads >= 0) & (heads <= flips) & (heads == np.round(heads)))
    if flips:
        counts = np.bincount(heads.astype(int), minlength=flips + 1)
        assert_frequencies(counts, stats.binom.pmf(np.arange(flips + 1), flips, 0.5))


@pytest.mark.parametrize(("flips", "stated"), [(33, 3.2e-5), (65, 8.2e-6), (500, 1.4e-7)])
def test_many_flips_are_binomial_up_to_the_stated_distance(flips, stated):
    """Total variation distance of `rounded` from Bin(M, ½), by where it jumps as a function of its normal number."""
    heads = np.arange(flips)
    low, high = np.full(flips, -9.0), np.full(flips, 9.0)
    for _ in range(50):
        middle = (low + high) / 2
        above = np.asarray(rounded(jnp.full(flips, float(flips)), jnp.asarray(middle))) > heads
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    law = np.diff(np.concatenate([[0.0], stats.norm.cdf(low), [1.0]]))
    distance = np.sum(np.abs(law - stats.binom.pmf(np.arange(flips + 1), flips, 0.5))) / 2
    assert distance == pytest.approx(stated, rel=0.1)


@given(st.integers(1, 400), st.integers(1, 100), st.integers(0, 3000))
def test_ceilings_do_not_mind_rounding(numerator, denominator, count):
    exact = math.ceil(Fraction(numerator, denominator) * count)
    for dtype in (np.float32, np.float64):
        number = dtype(numerator / denominator) * dtype(count)
        assert int(ceiling(jnp.asarray(number))) == exact


@pytest.mark.parametrize("scale", [0.5, 0.3, 1.0, 2.5])
def test_every_row_has_its_share_of_pseudo_rewards(scale):
    np.testing.assert_array_equal(pseudo_rewards(HISTORY, jnp.asarray(scale)), np.ceil(scale * COUNTS - 1e-9))
    rows = np.asarray(pseudo_rewards(ROWS, jnp.asarray(scale)))
    np.testing.assert_array_equal(np.cumsum(rows), np.ceil(scale * np.arange(1, 61) - 1e-9))
    unfilled = ROWS._replace(counts=(jnp.arange(60) < 7).astype(float))
    np.testing.assert_array_equal(pseudo_rewards(unfilled, jnp.asarray(scale)), np.where(np.arange(60) < 7, rows, 0))


def test_pseudo_rewards_weigh_as_much_as_what_they_came_with():
    faded = HISTORY._replace(counts=jnp.asarray([2.5, 1.0, 0.25, 0.01, 0, 0, 0, 0, 0, 0]), sums=jnp.zeros(10))
    drawn = [perturbed(jax.random.key(seed), faded, Numbers(0.5, -1.0, 3.0)) for seed in range(60)]
    added = np.asarray([history.counts - faded.counts for history in drawn])
    np.testing.assert_allclose(added, np.broadcast_to([2, 1, 0.25, 0.01, 0, 0, 0, 0, 0, 0], added.shape), rtol=1e-12)
    sums = np.asarray([history.sums for history in drawn])
    assert set(sums[:, 0]) == {-2.0, 2.0, 6.0}
    np.testing.assert_allclose(
        np.unique(sums[:, 2:4], axis=0), [[-0.25, -0.01], [-0.25, 0.03], [0.75, -0.01], [0.75, 0.03]]
    )
    assert np.all(sums[:, 4:] == 0)


@KINDS
@pytest.mark.parametrize("scale", [0.5, 2.0, 0.3])
def test_log_phe_fits_the_perturbed_history(kind, scale):
    history = perturbed(KEY, HISTORIES[kind], Numbers(scale, 0.0, 1.0))
    fitted = fit("bernoulli", history, ridge=(1 + scale) * RIDGE)
    np.testing.assert_allclose(scores("log_phe", kind, scale=scale), ARMS @ fitted.theta, rtol=1e-6)


@KINDS
@pytest.mark.parametrize("scale", [0.5, 2.0, 0.3])
def test_lin_phe_is_ridge_regression_on_the_perturbed_history(kind, scale):
    history = perturbed(KEY, HISTORIES[kind], Numbers(scale, -1.0, 2.0))
    rows, counts, sums = (np.asarray(part) for part in history)
    theta = np.linalg.solve((rows.T * counts) @ rows + (1 + scale) * RIDGE * np.eye(4), sums @ rows)
    found = scores("lin_phe", kind, "gaussian", scale=scale, reward_range=(-1.0, 2.0))
    np.testing.assert_allclose(found, ARMS @ theta, rtol=1e-7)


@pytest.mark.parametrize("name", ["log_phe", "lin_phe"])
def test_the_law_of_perturbed_histories(name):
    """With one arm x = 1 the score tells how many of its pseudo-rewards were 1: Bin(⌈a N⌉, ½)."""
    arm, total, wins, scale = np.ones((1, 1)), 9, 3, 0.5
    policy = explorax.make(name, scale=scale)
    state = policy.init(arm)
    past = Grouped(jnp.asarray(arm), jnp.asarray([9.0]), jnp.asarray([3.0]))
    state = state._replace(memory=state.memory._replace(past=past))
    found = np.asarray(many(policy, state, 20_000, arm).scores)[:, 0]
    means = expit(found) if name == "log_phe" else found
    heads = (total + 5) * means + (1 + scale) * found - wins
    np.testing.assert_allclose(heads, np.round(heads), atol=1e-6)
    counts = np.bincount(np.round(heads).astype(int), minlength=6)
    assert_frequencies(counts, stats.binom.pmf(np.arange(6), 5, 0.5))


BAD = [
    ("evill", {"scale": 0.0}, "scale must be a finite number above 0, got 0.0. Use 'greedy'"),
    ("rand_ucb", {"width": -1.0}, "width must be a finite number above 0, got -1.0"),
    (
        "rand_ucb",
        {"width": 1.0, "design": "theory"},
        "width must be left out with design='theory', which chooses it, got 1.0",
    ),
    ("rand_ucb", {"design": "theory"}, "horizon must be the number of rounds for the theory, got None"),
    ("rand_ucb", {"points": 1}, "points must be a whole number of at least 2, got 1"),
    ("rand_ucb", {"spread": 0.0}, "spread must be a finite number above 0, got 0.0"),
    ("log_phe", {"scale": float("inf")}, "scale must be a finite number above 0, got inf"),
    ("log_phe", {"memory": "constant"}, "memory must keep the rewards .* for pseudo-rewards, .* got 'constant'"),
    ("lin_phe", {"memory": "refitted"}, "memory must keep the rewards .* for pseudo-rewards, .* got 'refitted'"),
    ("log_phe", {"family": "poisson"}, "family must be 'bernoulli' for LogPHE, .*, got 'poisson'. Use 'glm_fpl'"),
    ("lin_phe", {"family": "bernoulli"}, "family must be 'gaussian' for LinPHE, .*, got 'bernoulli'. Use 'log_phe'"),
    (
        "lin_phe",
        {"reward_range": (1.0, 0.0)},
        r"reward_range must be the smallest possible reward and a larger one, got \(1.0, 0.0\)",
    ),
    (
        "lin_phe",
        {"reward_range": (0.0, float("nan"))},
        r"reward_range must be the smallest possible reward and a larger one, got \(0.0, nan\)",
    ),
]


@pytest.mark.parametrize(("name", "settings", "message"), BAD)
def test_bad_settings_are_explained(name, settings, message):
    with pytest.raises(InvalidArgument, match=message):
        explorax.make(name, **settings)
