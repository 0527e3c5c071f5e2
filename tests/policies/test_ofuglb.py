"""OFUGLB-e: its estimate on a ball by the conditions of optimality and against SciPy, its scores in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

import explorax
from explorax.errors import HistoryFull, InvalidArgument, UnknownName
from explorax.glm import families
from explorax.glm.ball import LEAST_RIDGE, fit_on_ball
from explorax.glm.fit import default_tolerance
from tests.problems import random_history

MEANS = {"bernoulli": special.expit, "poisson": np.exp}
FEATURES = 4
RADII = (0.1, 0.7, 2.0, 20.0)


def problems(family, dtype):
    """Histories with a minimum, and such as have none: nothing seen, few rows, and rewards at an end of their range."""
    rng = np.random.default_rng(5)
    histories = [random_history(rng, family, pulls=pulls, dtype=dtype) for pulls in (1, 20, 3000)]
    histories.append(histories[0]._replace(counts=jnp.zeros(12, dtype), sums=jnp.zeros(12, dtype)))
    few = jnp.asarray(np.arange(12) < 2, dtype)
    histories.append(histories[0]._replace(counts=few, sums=few * histories[0].sums))
    largest = 1.0 if family == "bernoulli" else 5.0
    histories += [histories[1]._replace(sums=end * histories[1].counts) for end in (0.0, largest)]
    return histories


@functools.partial(jax.jit, static_argnames=("family", "tolerance"))
def solve(family, histories, radii, starts, tolerance):
    return jax.vmap(functools.partial(fit_on_ball, families.get(family), tolerance=tolerance))(histories, radii, starts)


@pytest.mark.parametrize(
    ("family", "dtype"), [("bernoulli", "float64"), ("bernoulli", "float32"), ("poisson", "float64")]
)
def test_an_estimate_on_a_ball_is_optimal(family, dtype):
    cases = [(history, radius) for history in problems(family, dtype) for radius in RADII]
    histories = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(history for history, _ in cases))
    radii = jnp.asarray([radius for _, radius in cases], dtype)
    tolerance = default_tolerance(jnp.dtype(dtype))
    found = solve(family, histories, radii, jnp.zeros((len(cases), FEATURES), dtype), tolerance)
    # In the largest ball scores may lie so far out that float32 is not sure of them.
    assert np.all(found.converged | ((dtype == "float32") & (radii == max(RADII))))
    again = solve(family, histories, radii, found.theta, tolerance)
    assert np.mean(again.steps <= 1) > 0.8  # a start at the solution stays there, if not for rounding
    precise = dtype == "float64"
    states = {"inside": 0, "sphere": 0}
    for number, (history, radius) in enumerate(cases):
        theta = np.asarray(found.theta[number], float)
        features, counts, sums = (np.asarray(part, float) for part in history)
        residuals = counts * MEANS[family](features @ theta) - sums
        slope = residuals @ features + LEAST_RIDGE * theta
        size = np.abs(residuals) @ np.abs(features) + np.abs(sums) @ np.abs(features) + 1e-3
        inside = np.linalg.norm(theta) < radius * (1 - 1e-5)
        states["inside" if inside else "sphere"] += 1
        assert np.linalg.norm(theta) <= radius * (1 + (1e-12 if precise else 1e-6))
        multiplier = 0 if inside else max(-slope @ theta / radius**2, 0)
        assert np.all(np.abs(slope + multiplier * theta) <= (1e-7 if precise else 2e-3) * size)
        if precise:
            np.testing.assert_allclose(found.multiplier[number], multiplier, rtol=1e-5, atol=1e-5 * size.max())
    assert min(states.values()) >= 5


@pytest.mark.parametrize("radius", [0.4, 30.0])
def test_an_estimate_on_a_ball_is_the_one_that_scipy_finds(radius):
    histories = problems("bernoulli", "float64")[1:3]
    for history in histories:
        features, counts, sums = (np.asarray(part) for part in history)

        def loss(theta, features=features, counts=counts, sums=sums):
            return counts @ np.logaddexp(0, features @ theta) - sums @ (features @ theta)

        def slope(theta, features=features, counts=counts, sums=sums):
            return (counts * special.expit(features @ theta) - sums) @ features

        ball = optimize.NonlinearConstraint(
            lambda theta: theta @ theta, -np.inf, radius**2, jac=lambda theta: 2 * theta
        )
        start = np.full(FEATURES, 0.1)
        options = {"gtol": 1e-9, "xtol": 1e-12, "maxiter": 3000}
        oracle = optimize.minimize(
            loss, start, jac=slope, method="trust-constr", constraints=ball, hess=optimize.BFGS(), options=options
        )
        found = fit_on_ball(families.bernoulli, history, radius, jnp.zeros(FEATURES), 1e-8)
        np.testing.assert_allclose(found.theta, oracle.x, atol=2e-5)
        assert (np.linalg.norm(found.theta) < 0.9 * radius) == (radius == 30.0)


# The policy

RNG = np.random.default_rng(31)
ARMS = RNG.uniform(-1, 1, (10, FEATURES))
PULLS = RNG.integers(0, 10, 60)
REWARDS = (RNG.random(60) < special.expit(ARMS[PULLS] @ np.array([1.0, -1.0, 0.5, 0.0]))).astype(float)
KEY = jax.random.key(0)


def estimate(count, bound):
    """The constrained estimate on the first rewards: that of SciPy, and then Newton's method on its KKT conditions."""
    rows, rewards = ARMS[PULLS[:count]], REWARDS[:count]

    def slope(theta):
        return (special.expit(rows @ theta) - rewards) @ rows

    def curvature(theta):
        means = special.expit(rows @ theta)
        return (rows.T * means * (1 - means)) @ rows

    def loss(theta):
        return np.sum(np.logaddexp(0, rows @ theta) - rewards * (rows @ theta))

    ball = {"type": "ineq", "fun": lambda theta: bound**2 - theta @ theta, "jac": lambda theta: -2 * theta}
    start = np.zeros(FEATURES)
    theta = optimize.minimize(loss, start, jac=slope, constraints=[ball], method="SLSQP", tol=1e-12).x
    outside = np.linalg.norm(theta) > bound * (1 - 1e-4)
    multiplier = -slope(theta) @ theta / bound**2 if outside else 0.0
    for _ in range(5):
        bordered = curvature(theta) + multiplier * np.eye(FEATURES)
        if not outside:
            theta = theta - np.linalg.solve(bordered, slope(theta))
            continue
        system = np.block([[bordered, theta[:, None]], [theta[None], np.zeros((1, 1))]])
        wrong = np.append(slope(theta) + multiplier * theta, (theta @ theta - bound**2) / 2)
        step = np.linalg.solve(system, wrong)
        theta, multiplier = theta - step[:-1], multiplier - step[-1]
    assert multiplier >= 0
    return theta, curvature(theta), outside


@pytest.mark.parametrize("arms", [ARMS, FEATURES], ids=["fixed", "changing"])
def test_scores(arms):
    settings = {"capacity": 64} if arms is FEATURES else {}
    for bound, scale, failure, given in ((0.5, 1.0, 0.05, {}), (3.0, 0.3, 0.01, {"delta": 0.01})):
        policy = explorax.make("ofuglb_e", norm_bound=bound, scale=scale, **given, **settings)
        state, on_sphere = policy.init(arms), []
        for count, (arm, reward) in enumerate(zip(PULLS, REWARDS, strict=True), 1):
            state = policy.update(state, arm, ARMS[arm], reward)
            if count not in (12, 13, 20, 40, 60):  # few rewards, too few for an estimate without the ball, and many
                continue
            theta, curvature, outside = estimate(count, bound)
            on_sphere.append(outside)
            np.testing.assert_allclose(state.theta_hat, theta, atol=2e-5)  # that is what the tiny ridge does
            hessian = curvature + (1 + bound) / (2 * bound**2) * np.eye(FEATURES)
            norms = np.sqrt(np.sum(ARMS @ np.linalg.inv(hessian) * ARMS, axis=1))
            steepest = (1 + bound / 2) * count
            beta = np.log(1 / failure) + FEATURES * np.log(max(np.e, 2 * np.e * bound * steepest / FEATURES))
            expected = ARMS @ theta + scale * np.sqrt(2 * (1 + bound) * (1 + beta)) * norms
            action = policy.act(KEY, state, ARMS, count)
            np.testing.assert_allclose(action.scores, expected, rtol=1e-4)
            assert action.arm == np.argmax(action.scores)
            assert action.converged
        assert on_sphere == ([True] * 5 if bound == 0.5 else [True, True, False, False, False])


def test_the_horizon_sets_the_confidence():
    policies = [explorax.make("ofuglb_e", **given) for given in ({"horizon": 100}, {"delta": 0.01})]
    scores = [np.asarray(policy.act(KEY, policy.init(ARMS), ARMS, 9).scores) for policy in policies]
    np.testing.assert_array_equal(*scores)
    # Before the first reward there is nothing but the bonus, with H = λI and λ = 1 for S = 1.
    width = np.sqrt(4 * (1 + np.log(100) + FEATURES))
    np.testing.assert_allclose(scores[0], width * np.linalg.norm(ARMS, axis=1), rtol=1e-12)


def test_new_arms_start_from_what_is_known():
    policy = explorax.make("ofuglb_e")
    known, everything = policy.init(ARMS[:8]), policy.init(ARMS)
    for arm, reward in ((0, 1.0), (3, 0.0), (5, 1.0)):
        known = policy.update(known, arm, ARMS[arm], reward)
        everything = policy.update(everything, arm, ARMS[arm], reward)
    extended = policy.extend(known, jnp.asarray(ARMS))
    scores = [policy.act(KEY, state, ARMS, 9).scores for state in (extended, everything)]
    np.testing.assert_allclose(*scores, rtol=1e-9)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"scale": -1.0}, InvalidArgument, "scale must be a finite number above 0, got -1.0"),
        ({"norm_bound": 0.0}, InvalidArgument, "norm_bound must be a finite number above 0, got 0.0"),
        ({"delta": 0.0}, InvalidArgument, "delta must be a probability between 0 and 1, got 0.0"),
        ({"horizon": -3}, InvalidArgument, "horizon must be a number of rounds of at least 1, got -3"),
        ({"family": "poisson"}, UnknownName, "family"),
        ({"warmup": "all"}, UnknownName, "warmup"),
        (
            {"warmup": "theory", "horizon": 9},
            InvalidArgument,
            "warmup must be 'none', 'basis' or 'first' for this policy, .*, got 'theory'",
        ),
        ({"tolerance": 0.0}, InvalidArgument, "tolerance must be a finite number above 0, got 0.0"),
    ],
)
def test_bad_settings_are_explained(settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make("ofuglb_e", **settings)


def test_a_full_memory_is_refused():
    policy = explorax.make("ofuglb_e", capacity=1)
    state = policy.update(policy.init(FEATURES), 0, ARMS[0], 1.0)
    with pytest.raises(HistoryFull, match="All 1 rows are taken"):
        policy.update(state, 0, ARMS[0], 1.0)
