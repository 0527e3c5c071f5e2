"""Policies whose cost does not grow: each of their steps against its definition, written out in NumPy and SciPy.

Where a step is confined to a ball, it ends inside for some of the rewards and on the sphere for others.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special

import explorax
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm.ball import minimize_quadratic, of_root

RNG = np.random.default_rng(21)
FEATURES, ROUNDS, RIDGE = 4, 40, 0.7
ARMS = RNG.uniform(-1, 1, (10, FEATURES))
PULLS = RNG.integers(0, 10, ROUNDS)
REWARDS = {
    "bernoulli": np.repeat([1.0, 0.0, 1.0, 0.0], 10),  # an estimate that goes out, and back
    "gaussian": 2 * RNG.normal(size=ROUNDS),
    "poisson": RNG.poisson(1.5, ROUNDS).astype(float),
}
MEANS = {"bernoulli": special.expit, "gaussian": lambda score: score, "poisson": np.exp}
CUMULANTS = {
    "bernoulli": lambda score: np.logaddexp(0, score),
    "gaussian": lambda score: score**2 / 2,
    "poisson": np.exp,
}
SLOPES = {
    "bernoulli": lambda score: special.expit(score) * special.expit(-score),
    "gaussian": lambda score: 1.0,
    "poisson": np.exp,
}
KEY = jax.random.key(8)
FADE = jax.jit(lambda memory: memory.faded(jnp.asarray(RIDGE)))


def states_of(policy, rewards, arms=FEATURES):
    """The states before the first reward and after each; arms that change, so that nothing is known beforehand."""
    states = [policy.init(arms)]
    for arm, reward in zip(PULLS, rewards, strict=True):
        states.append(policy.update(states[-1], arm, ARMS[arm], reward))
    return states


def normal():
    return np.asarray(jax.random.normal(KEY, (FEATURES,), float))


# Projection


def nearest_by_scipy(metric, point, radius):
    """argmin of (θ − point)ᵀ M (θ − point) on a ball, in the eigenbasis of M."""
    if np.linalg.norm(point) <= radius:
        return point
    values, vectors = np.linalg.eigh(metric)
    target = values * (vectors.T @ point)

    def excess(multiplier):
        return np.linalg.norm(target / (values + multiplier)) - radius

    multiplier = optimize.brentq(excess, 0, np.linalg.norm(target) / radius, xtol=1e-15, rtol=1e-14)
    return vectors @ (target / (values + multiplier))


@pytest.mark.parametrize(("dtype", "error"), [("float64", 1e-8), ("float32", 2e-3)])
def test_a_step_is_projected_only_if_it_leaves_the_ball_and_then_to_the_nearest_in_the_norm(dtype, error):
    rng, count, radius = np.random.default_rng(3), 40, 1.5
    spread = 10.0 ** rng.uniform(-2, 4, (count, FEATURES))
    turns = np.linalg.qr(rng.normal(size=(count, FEATURES, FEATURES)))[0]
    metrics = np.einsum("nij,nj,nkj->nik", turns, spread, turns)
    starts = rng.normal(size=(count, FEATURES))
    starts *= radius * rng.choice([0.1, 0.7, 1.0], (count, 1)) / np.linalg.norm(starts, axis=1, keepdims=True)
    slopes = rng.normal(size=(count, FEATURES)) * 10.0 ** rng.uniform(-2, 6, (count, 1))
    points = starts - np.linalg.solve(metrics, slopes[..., None])[..., 0]
    given = turns * spread[:, None] ** -0.5, slopes, starts

    def step(root, slope, theta):
        return minimize_quadratic(functools.partial(of_root, root), slope, theta, radius).theta

    found = np.asarray(jax.jit(jax.vmap(step))(*(part.astype(dtype) for part in given)), float)
    outside = np.linalg.norm(points, axis=1) > radius
    assert 5 < outside.sum() < count - 5
    expected = np.stack([nearest_by_scipy(*case, radius) for case in zip(metrics, points, strict=True)])
    np.testing.assert_allclose(found, expected, atol=error)
    np.testing.assert_allclose(np.linalg.norm(found[outside], axis=1), radius, rtol=float(np.finfo(dtype).eps) ** 0.6)


# ECOLog


@pytest.mark.parametrize(
    ("family", "settings"),
    [
        ("bernoulli", {}),
        ("bernoulli", {"radius": 1.0}),
        ("bernoulli", {"radius": 0.8, "discount": 0.9}),
        ("gaussian", {"radius": 0.6}),
        ("poisson", {"radius": 0.3}),
    ],
)
def test_each_ecolog_estimate_minimizes_its_objective(family, settings):
    policy = explorax.make("ecolog_ts", family=family, ridge=RIDGE, **settings)
    states = states_of(policy, REWARDS[family])
    radius = settings.get("radius", np.inf)
    mean, slope, cumulant = MEANS[family], SLOPES[family], CUMULANTS[family]
    metric, on_sphere = RIDGE * np.eye(FEATURES), 0
    for before, after, x, y in zip(states[:-1], states[1:], ARMS[PULLS], REWARDS[family], strict=True):
        center, theta = before.theta_hat, np.asarray(after.theta_hat)
        if "discount" in settings:
            faded = FADE(before.memory)
            center = faded.theta_hat
            metric = np.linalg.inv(faded.root @ faded.root.T)
        center = np.asarray(center)

        def objective(
            theta, center=center, metric=metric, x=x, y=y
        ):  # the defaults bind what changes from round to round
            return (theta - center) @ metric @ (theta - center) / 2 + cumulant(x @ theta) - y * (x @ theta)

        def gradient(theta, center=center, metric=metric, x=x, y=y):
            return metric @ (theta - center) + (mean(x @ theta) - y) * x

        multiplier = -gradient(theta) @ theta / max(theta @ theta, 1e-9)
        inside = np.linalg.norm(theta) < radius * (1 - 1e-9)
        on_sphere += not inside
        assert np.linalg.norm(theta) <= radius * (1 + 1e-12)
        assert inside or multiplier >= 0
        np.testing.assert_allclose(gradient(theta), 0 if inside else -multiplier * theta, atol=1e-8)
        ball = {"type": "ineq", "fun": lambda theta: radius**2 - theta @ theta}
        oracle = optimize.minimize(
            objective, center / 2, jac=gradient, constraints=[ball] if "radius" in settings else [], method="SLSQP"
        )
        allowed = oracle.x * min(1, radius / np.linalg.norm(oracle.x))  # it may be outside by its tolerance
        np.testing.assert_allclose(theta, allowed, atol=2e-3)
        assert objective(theta) <= objective(allowed) + 1e-10
        metric = metric + slope(x @ theta) * np.outer(x, x)
        root = np.asarray(after.memory.root)
        np.testing.assert_allclose(root @ root.T @ metric, np.eye(FEATURES), atol=1e-8)
    if "radius" in settings:
        assert 5 <= on_sphere <= ROUNDS - 5


@pytest.mark.parametrize("settings", [{}, {"radius": 1.0}], ids=["everywhere", "ball"])
def test_ecolog_ts_samples_around_its_estimate(settings):
    policy = explorax.make("ecolog_ts", scale=1.7, **settings)
    last = states_of(policy, REWARDS["bernoulli"])[-1]
    center, root = np.asarray(last.theta_hat), np.asarray(last.memory.root)
    action = policy.act(KEY, last, ARMS, ROUNDS)
    np.testing.assert_allclose(action.scores, ARMS @ (center + 1.7 * root @ normal()), rtol=1e-12)
    assert action.arm == np.argmax(action.scores)


@pytest.mark.parametrize("settings", [{}, {"radius": 1.0}], ids=["everywhere", "ball"])
def test_ecolog_ofu_adds_its_bonus_to_the_score(settings):
    policy = explorax.make("ecolog_ofu", width=0.6, **settings)
    last = states_of(policy, REWARDS["bernoulli"])[-1]
    root = np.asarray(last.memory.root)
    norms = np.sqrt(np.sum(ARMS @ root @ root.T * ARMS, axis=1))
    action = policy.act(KEY, last, ARMS, ROUNDS)
    np.testing.assert_allclose(action.scores, ARMS @ np.asarray(last.theta_hat) + 0.6 * norms, rtol=1e-9)
    assert action.arm == np.argmax(action.scores)


def test_ecolog_without_a_ball_is_glm_tsl_that_remembers_a_summary():
    first = states_of(explorax.make("ecolog_ts"), REWARDS["bernoulli"], ARMS)[-1]
    second = states_of(explorax.make("glm_tsl", memory="constant"), REWARDS["bernoulli"], ARMS)[-1]
    jax.tree.map(np.testing.assert_array_equal, first.memory, second.memory)
    wide = states_of(explorax.make("ecolog_ts", radius=100.0), REWARDS["bernoulli"], ARMS)[-1]
    np.testing.assert_allclose(wide.theta_hat, first.theta_hat, rtol=1e-12)
    np.testing.assert_allclose(wide.memory.root, first.memory.root, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings", "most"),
    [
        ("ecolog_ts", {}, 3),
        ("ecolog_ofu", {"radius": 1.0}, 3),
        ("gloc", {}, 1),
        ("sgd_ts", {"batch": 7}, 0),
    ],
)
def test_a_state_is_small_whatever_it_has_seen(name, settings, most):
    policy = explorax.make(name, **settings)
    for size, arms in ((4, 4), (12, 12), (12, np.eye(12).repeat(20, axis=0))):
        state = policy.init(arms)
        numbers = sum(leaf.size for leaf in jax.tree.leaves(state))
        assert numbers <= most * size**2 + 13 * size + 20
        after = jax.eval_shape(policy.update, state, 0, np.eye(12)[0, :size], 1.0)
        assert jax.tree.map(jnp.shape, state) == jax.tree.map(jnp.shape, after)


# GLOC


def played_by_hand(ridge, bound, noise, failure, max_norm=1.0, mean=special.expit, rewards=REWARDS["bernoulli"]):
    """The iterates, θ̂, √β and A after each reward, as in the paper; and how often the iterate had to be projected."""
    kappa = SLOPES["bernoulli"](bound * max_norm) if mean is special.expit else 1.0
    theta, gram, x_z, z_z = np.zeros(FEATURES), ridge * np.eye(FEATURES), np.zeros(FEATURES), 0.0
    losses, projected, told = 0.0, 0, []
    for x, y in zip(ARMS[PULLS], rewards, strict=True):
        z = x @ theta
        residual = mean(z) - y
        x_z, z_z, gram = x_z + z * x, z_z + z**2, gram + np.outer(x, x)
        losses += residual**2 * (x @ np.linalg.solve(gram, x))
        moved = theta - residual / kappa * np.linalg.solve(gram, x)
        theta = nearest_by_scipy(gram, moved, bound)
        projected += theta is not moved
        center = np.linalg.solve(gram, x_z)
        regret = losses / (2 * kappa) + 2 * kappa * bound**2 * ridge
        root = np.sqrt(1 + 2 * regret / kappa + 4 * noise**4 / (kappa**4 * failure**2))
        alpha = 1 + 4 * regret / kappa + 8 * noise**2 / kappa**2 * np.log(2 / failure * root)
        told.append((theta, center, np.sqrt(alpha + ridge * bound**2 - (z_z - center @ x_z)), gram))
    return told, projected


@pytest.mark.parametrize(
    ("settings", "constants", "most"),
    [
        ({}, {"failure": 0.05}, ROUNDS - 5),
        ({"ridge": 50.0, "horizon": 200}, {"ridge": 50.0, "failure": 1 / 200}, 0),
        ({"norm_bound": 0.2, "delta": 0.01, "scale": 0.3}, {"bound": 0.2, "failure": 0.01}, ROUNDS),
        ({"max_norm": 2.0, "noise_std": 0.4}, {"max_norm": 2.0, "noise": 0.4, "failure": 0.05}, ROUNDS),
        (
            {"family": "gaussian", "norm_bound": 0.3},
            {"mean": lambda z: z, "bound": 0.3, "noise": 1.0, "failure": 0.05},
            ROUNDS - 5,
        ),
    ],
)
def test_gloc(settings, constants, most):
    constants = {"ridge": 1.0, "bound": 1.0, "noise": 0.5} | constants
    told, projected = played_by_hand(**constants)
    assert projected <= most
    assert projected >= 5 or most == 0
    policy = explorax.make("gloc", **settings)
    states = states_of(policy, REWARDS["bernoulli"])[1:]
    for state, (theta, center, width, gram) in zip(states, told, strict=True):
        np.testing.assert_allclose(state.theta, theta, atol=1e-7)
        norms = np.sqrt(np.sum(ARMS @ np.linalg.inv(gram) * ARMS, axis=1))
        action = policy.act(KEY, state, ARMS, 1)
        expected = ARMS @ center + settings.get("scale", 1.0) * width * norms
        np.testing.assert_allclose(action.scores, expected, rtol=1e-7)
        assert action.arm == np.argmax(action.scores)


# SGD-TS


def sgd_by_hand(batch, rate, ridge, rewards, family="bernoulli"):
    """θ̄ after each reward, and how often a gradient step left the ball."""
    mean, cumulant, rows = MEANS[family], CUMULANTS[family], ARMS[PULLS]

    def loss(theta):
        scores = rows[:batch] @ theta
        return np.sum(cumulant(scores) - rewards[:batch] * scores) + ridge / 2 * theta @ theta

    def slope(theta):
        return (mean(rows[:batch] @ theta) - rewards[:batch]) @ rows[:batch] + ridge * theta

    estimate = optimize.minimize(loss, np.zeros(FEATURES), jac=slope, method="BFGS", options={"gtol": 1e-11}).x
    theta, iterates, told, left = estimate, [], [np.zeros(FEATURES)] * (batch - 1), 0
    for count in range(batch, ROUNDS + 1):
        j = count // batch
        if count % batch == 0 and j > 1:
            last = slice(count - batch, count)
            theta = theta - rate / j * (mean(rows[last] @ theta) - rewards[last]) @ rows[last]
            distance = np.linalg.norm(theta - estimate)
            if distance > 2:
                theta, left = estimate + 2 / distance * (theta - estimate), left + 1
        if count % batch == 0:
            iterates.append(theta)
        told.append(np.mean(iterates, axis=0))
    return told, left


@pytest.mark.parametrize(
    ("family", "rate", "leaves"),
    [("bernoulli", 0.5, False), ("bernoulli", 10.0, True), ("gaussian", 0.1, False), ("poisson", 3.0, True)],
)
def test_sgd_ts(family, rate, leaves):
    batch = 5
    settings = {"batch": batch, "learning_rate": rate, "ridge": 0.5, "g1": 0.3, "g2": 0.4, "scale": 1.5}
    policy = explorax.make("sgd_ts", family=family, **settings)
    told, left = sgd_by_hand(batch, rate, 0.5, REWARDS[family], family)
    assert (1 <= left < ROUNDS // batch - 1) if leaves else left == 0
    states = states_of(policy, REWARDS[family])
    for count, (state, mean) in enumerate(zip(states[1:], told, strict=True), 1):
        np.testing.assert_allclose(state.path.mean, mean, atol=1e-7)
        deviation = 1.5 * np.sqrt((2 * 0.3**2 + 2 * 0.4**2) / max(count // batch, 1))
        # The count of decisions matters for the forced ones only: all rewards here are late.
        action = policy.act(KEY, state, ARMS, 0)
        np.testing.assert_allclose(action.scores, ARMS @ (mean + deviation * normal()), atol=1e-7)


@pytest.mark.parametrize("arms", [ARMS, FEATURES], ids=["fixed", "changing"])
def test_sgd_ts_goes_round_a_basis_for_a_batch_of_decisions(arms):
    policy = explorax.make("sgd_ts")
    state = policy.init(arms)
    assert state.history.capacity == 5 * FEATURES
    actions = [policy.act(KEY, state, ARMS, t) for t in range(5 * FEATURES + 2)]
    assert [bool(action.forced) for action in actions] == [True] * 5 * FEATURES + [False] * 2
    pulled = [int(action.arm) for action in actions]
    assert pulled[: 4 * FEATURES] == pulled[FEATURES : 5 * FEATURES]
    assert np.linalg.matrix_rank(ARMS[pulled[:FEATURES]]) == FEATURES
    free = explorax.make("sgd_ts", warmup="none")
    assert not free.act(KEY, free.init(arms), ARMS, 0).forced


# Settings


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        ("ecolog_ts", {"scale": 0.0}, InvalidArgument, "scale must be a finite number above 0, got 0.0"),
        ("ecolog_ts", {"radius": -1.0}, InvalidArgument, "radius must be a finite number above 0, got -1.0"),
        ("ecolog_ts", {"memory": "exact"}, UnknownName, "memory"),
        (
            "ecolog_ts",
            {"warmup": "theory"},
            InvalidArgument,
            "warmup must be 'none', 'basis' or 'first' for this policy, .*, got 'theory'",
        ),
        ("ecolog_ofu", {"width": np.nan}, InvalidArgument, "width must be a finite number above 0, got nan"),
        ("ecolog_ofu", {"ridge": 0.0}, InvalidArgument, "ridge"),
        ("gloc", {"norm_bound": 0.0}, InvalidArgument, "norm_bound must be a finite number above 0, got 0.0"),
        (
            "gloc",
            {"norm_bound": 30.0},
            InvalidArgument,
            "norm_bound times max_norm must be small enough .*, got 30.0 times 1.0",
        ),
        ("gloc", {"family": "poisson"}, InvalidArgument, "noise_std=B/2"),
        ("gloc", {"delta": 1.5}, InvalidArgument, "delta must be a probability between 0 and 1, got 1.5"),
        ("gloc", {"horizon": 0}, InvalidArgument, "horizon must be a number of rounds of at least 1, got 0"),
        (
            "gloc",
            {"warmup": "theory"},
            InvalidArgument,
            "warmup must be 'none', 'basis' or 'first' for this policy, .*, got 'theory'",
        ),
        ("sgd_ts", {"batch": 0}, InvalidArgument, "batch must be a whole number of at least .*, got 0"),
        ("sgd_ts", {"learning_rate": 0.0}, InvalidArgument, "learning_rate must be a finite number above 0, got 0.0"),
        ("sgd_ts", {"g1": -1.0}, InvalidArgument, "g1 must be a finite number above 0, got -1.0"),
        ("sgd_ts", {"ridge": 0.0}, InvalidArgument, "ridge must be a finite number above 0, got 0.0"),
        (
            "sgd_ts",
            {"warmup": "theory"},
            InvalidArgument,
            "warmup must be 'none', 'basis' or 'first' for this policy, .*, got 'theory'",
        ),
        ("sgd_ts", {"warmup": "bases"}, UnknownName, "warmup"),
    ],
)
def test_bad_settings_are_explained(name, settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make(name, **settings)


def test_sgd_ts_explores_what_arms_span():
    for warmup, rank in (("basis", 1), ("none", 1)):
        state = explorax.make("sgd_ts", warmup=warmup).init(np.ones((5, 2)))
        assert state.exploration.cycle == rank
