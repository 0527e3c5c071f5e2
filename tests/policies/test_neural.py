"""NeuralUCB, NeuralTS and neural perturbed reward: rounds by hand, their laws, and what must not break them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special

import explorax
from explorax import errors
from explorax.networks import Network
from explorax.policies.neural_pr import neural_pr
from explorax.policies.neural_ts import neural_ts
from explorax.policies.neural_ucb import neural_ucb
from tests.problems import assert_learns
from tests.statistics import assert_standard_normal

FEATURES, UNITS, COUNT = 3, 4, 5
SMALL = {"hidden": (UNITS,), "activation": "tanh", "batch": 4, "learning_rate": 0.05}
BUILDERS = {"neural_ucb": neural_ucb, "neural_ts": neural_ts, "neural_pr": neural_pr}
ROWS = np.random.default_rng(0).normal(size=(12, FEATURES))
REWARDS = (np.random.default_rng(1).random(12) < special.expit(2 * ROWS[:, 0])).astype(float)
ARMS = np.random.default_rng(2).normal(size=(COUNT, FEATURES))
KEY = jax.random.key(3)


@functools.cache
def build(name, **settings):
    return BUILDERS[name](**SMALL | settings)


def learned(policy, count=12, key=KEY):
    state = policy.init(FEATURES, key)
    for x, reward in zip(ROWS[:count], REWARDS, strict=False):
        state = policy.update(state, 0, x, reward)
    return state


# Widths


def value(weights, x):
    """f(x) of a network with one hidden layer, by its weights as one vector."""
    w, b, v, c = np.split(weights, np.cumsum([UNITS * FEATURES, UNITS, UNITS]))
    return v @ np.tanh(w.reshape(UNITS, FEATURES) @ x + b) + c[0]


def gradient(weights, x, step=1e-5):
    """∇f(x) by finite differences."""
    moves = step * np.eye(len(weights))
    return np.array([value(weights + move, x) - value(weights - move, x) for move in moves]) / (2 * step)


def flat(params):
    return np.concatenate([np.ravel(leaf) for layer in params for leaf in (layer.weights, layer.biases)])


@functools.cache
def rounds(name, **settings):
    """A round after each reward: f and ‖g/√m‖ in the norm of diag(U)⁻¹ by hand, and the action."""
    policy = build(name, **settings)
    state = policy.init(FEATURES, KEY)
    precision = np.full(UNITS * (FEATURES + 2) + 1, settings["ridge"])  # diag(U)
    played = []
    for t in range(len(ROWS)):
        weights = flat(state.network.params)
        values = np.array([value(weights, x) for x in ARMS])
        features = np.stack([gradient(weights, x) for x in ARMS]) / np.sqrt(UNITS)
        norms = np.sqrt(np.sum(features**2 / precision, axis=1))
        played.append((values, norms, policy.act(jax.random.key(t), state, ARMS, t)))
        precision = precision + gradient(weights, ROWS[t]) ** 2 / UNITS
        state = policy.update(state, 0, ROWS[t], REWARDS[t])
        assert np.max(np.abs(flat(state.network.params) - weights)) > 0.01  # which weights are meant makes a difference
    np.testing.assert_allclose(
        np.concatenate(list(map(np.ravel, jax.tree.leaves(state.precision)))), UNITS * precision, rtol=1e-7
    )
    return played


def test_neural_ucb_adds_its_width():
    for values, norms, action in rounds("neural_ucb", width=0.7, ridge=0.3):
        np.testing.assert_allclose(action.scores, values + 0.7 * norms, rtol=1e-7)
        assert action.arm == np.argmax(values + 0.7 * norms)


def test_neural_ts_draws_around_the_network():
    for t, (values, norms, action) in enumerate(rounds("neural_ts", scale=0.7, ridge=0.3)):
        noise = np.asarray(jax.random.normal(jax.random.key(t), (COUNT,), float))
        expected = values + 0.7 * np.sqrt(0.3) * norms * noise
        np.testing.assert_allclose(action.scores, expected, rtol=1e-7, atol=1e-9)
        assert action.arm == np.argmax(expected)


def test_neural_ts_draws_are_independent_normals():
    """(r̃ − f)/(ν σ) of all arms, with σ² = λ gᵀU⁻¹g/m (alarm 1e-6)."""
    policy = build("neural_ts", scale=0.7, ridge=0.3)
    values, norms, _ = rounds("neural_ts", scale=0.7, ridge=0.3)[-1]
    state = learned(policy, 11)
    keys = jax.random.split(jax.random.key(0), 2000)
    scores = np.asarray(jax.vmap(policy.act, (0, None, None, None))(keys, state, ARMS, 11).scores)
    assert_standard_normal((scores - values) / (0.7 * np.sqrt(0.3) * norms))


def test_the_two_train_as_deep_fl_does():
    leader = learned(explorax.make("deep_fl", **SMALL)).params
    for name in ("neural_ucb", "neural_ts"):
        found = learned(build(name)).network.params
        jax.tree.map(lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12), found, leader)


def test_gradients_that_vanish():
    """No unit fires: only the last bias has a gradient, and all arms look alike."""
    policy = build("neural_ucb", activation="relu", width=0.7, ridge=0.3)
    state = policy.init(FEATURES, KEY)
    first, last = state.network.params
    dead = [first._replace(biases=first.biases - 1e6), last]
    state = state._replace(network=state.network._replace(params=dead))
    for pulls in range(3):
        action = policy.act(KEY, state, ARMS, pulls)
        np.testing.assert_allclose(action.scores - last.biases[0], 0.7 / np.sqrt(UNITS * 0.3 + pulls), rtol=1e-12)
        state = state._replace(precision=jax.tree.map(lambda u: u + 1, state.precision))


# Perturbed reward


def plane():
    """η(x) = wᵀx, from random weights."""
    return Network(lambda key, features: jax.random.normal(key, (features,)), lambda w, rows: rows @ w)


def test_rounds_of_neural_pr_equal_numpy_by_hand():
    steps, batch, capacity, rate, scale, ridge = 3, 2, 5, 0.2, 0.7, 0.4
    settings = {"network": plane(), "optimizer": optax.sgd(rate), "steps": steps, "batch": batch, "capacity": capacity}
    policy = neural_pr(scale=scale, ridge=ridge, **settings)
    state = policy.init(FEATURES, KEY)
    weights = start = np.array(state.params)
    for t in range(1, 10):
        state = policy.update(state, 0, ROWS[t - 1], REWARDS[t - 1])
        kept = min(t, capacity)
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), t)
        # Noise of the round, of each place of a ring: example l sits at place l mod capacity.
        of_noise = jax.random.fold_in(key, steps + 1)
        noise = np.array([jax.random.normal(jax.random.fold_in(of_noise, place)) for place in range(capacity)])
        for of_step in jax.random.split(key, steps):
            places = np.asarray(jax.random.randint(jax.random.split(of_step)[1], (batch,), 0, kept))
            latest = [max(number for number in range(t) if number % capacity == place) for place in places]
            rows, noisy = ROWS[latest], REWARDS[latest] + scale * noise[places]
            slope = rows.T @ (special.expit(rows @ weights) - noisy) / batch + ridge / kept * (weights - start)
            weights = weights - rate * slope
        np.testing.assert_allclose(state.params, weights, rtol=1e-10)
        action = policy.act(KEY, state, ARMS, t)
        np.testing.assert_allclose(action.scores, ARMS @ weights, rtol=1e-10)
    np.testing.assert_array_equal(state.history.sums, REWARDS[[5, 6, 7, 8, 4]])  # what is kept has no noise


def test_the_noise_of_a_round_is_normal_and_fresh():
    """A batch of one and plain descent show each Z: w′ = w − s (μ(w) − y − νZ + λ(w − w₀)) (alarm 1e-6)."""
    rate, scale, ridge = 0.1, 0.7, 0.4
    settings = {"network": plane(), "optimizer": optax.sgd(rate), "batch": 1, "capacity": 1, "steps": 1}
    policy = neural_pr(scale=scale, ridge=ridge, **settings)

    def noise(key):
        state = policy.init(1, key)
        start, drawn = state.params[0], []
        for _ in range(3):
            before = state.params[0]
            state = policy.update(state, 0, jnp.ones(1), 1.0)
            slope = (before - state.params[0]) / rate
            drawn.append((jax.nn.sigmoid(before) - 1 + ridge * (before - start) - slope) / scale)
        return jnp.stack(drawn)

    assert_standard_normal(np.asarray(jax.jit(jax.vmap(noise))(jax.random.split(jax.random.key(0), 2000))))


def test_without_noise_and_penalty_it_is_deep_fl_with_uniform_replay():
    plain = learned(explorax.make("deep_fl", **SMALL, replay="uniform", capacity=8))
    found = learned(build("neural_pr", scale=0.0, ridge=1e-300, steps=1, capacity=8))
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12),
        (found.params, found.optimizer.inner),
        (plain.params, plain.optimizer),
    )


def test_without_penalty_it_is_deep_fpl_with_noise_that_is_kept_for_a_round():
    settings = {"replay": "uniform", "capacity": 8, "steps": 3, "scale": 0.7}
    plain = learned(explorax.make("deep_fpl", **SMALL, **settings, noise_per="round"))
    found = learned(build("neural_pr", ridge=1e-300, **settings))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-12), found.params, plain.params)


def test_a_large_penalty_keeps_the_first_weights():
    free, tied = (learned(build("neural_pr", ridge=ridge, capacity=8)) for ridge in (1e-3, 1e3))
    moved = [np.linalg.norm(flat(state.params) - flat(state.optimizer.start)) for state in (free, tied)]
    assert moved[1] < moved[0] / 3


def test_the_last_round_can_be_drawn_again():
    policy = build("neural_pr", redraws=True, capacity=8)
    state = learned(policy)
    again = policy.redraw(jax.random.wrap_key_data(state.key), state)
    jax.tree.map(
        lambda got, want: np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12), again.params, state.params
    )
    other = policy.redraw(jax.random.key(9), state)
    assert np.all(other.params[0].weights != state.params[0].weights)
    jax.tree.map(np.testing.assert_array_equal, other.before, state.before)
    fresh = policy.init(FEATURES)
    jax.tree.map(np.testing.assert_array_equal, policy.redraw(jax.random.key(9), fresh).params, fresh.params)


# All of them


@pytest.mark.parametrize(("name", "family"), [("neural_ucb", "gaussian"), ("neural_pr", "poisson")])
def test_huge_rewards_leave_finite_states(name, family):
    """In float32: two rounds without, then one with a reward of a million."""
    policy = BUILDERS[name](hidden=(UNITS,), batch=4, capacity=8, family=family)
    rows = jnp.asarray(np.random.default_rng(5).normal(size=(40, FEATURES)), jnp.float32)
    rewards = jnp.where(jnp.arange(40) % 3 == 0, 1e6, 0.0).astype(jnp.float32)

    def round_(state, now):
        t, x, reward = now
        action = policy.act(jax.random.key(t), state, rows[:COUNT], t)
        return policy.update(state, action.arm, x, reward), action

    state, actions = jax.lax.scan(round_, policy.init(rows[:COUNT]), (jnp.arange(40), rows, rewards))
    for leaf in jax.tree.leaves((state, actions)):
        assert np.all(np.isfinite(leaf))
    assert np.all(actions.converged)


@pytest.mark.parametrize("name", ["neural_ucb", "neural_pr"])  # NeuralTS learns as NeuralUCB does
def test_they_learn(name):
    assert_learns(BUILDERS[name](hidden=(5,), batch=4, learning_rate=0.01, capacity=200))


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        (
            "neural_ucb",
            {"width": 0.0},
            errors.InvalidArgument,
            "width must be a finite number above 0, got 0.0. Use '.*' for a policy that does not explore",
        ),
        ("neural_ucb", {"ridge": 0.0}, errors.InvalidArgument, "ridge must be a finite number above 0, got 0.0"),
        ("neural_ucb", {"scale": 1.0}, errors.UnknownName, "setting of neural_ucb must be one of .*, got 'scale'"),
        (
            "neural_ucb",
            {"network": plane()},
            errors.InvalidArgument,
            "network must have a function embed.*, got a network without `embed`",
        ),
        (
            "neural_ts",
            {"scale": float("nan")},
            errors.InvalidArgument,
            "scale must be a finite number above 0, got nan",
        ),
        ("neural_ts", {"ridge": -1.0}, errors.InvalidArgument, "ridge must be a finite number above 0, got -1.0"),
        ("neural_ts", {"batch": 0}, errors.InvalidArgument, "batch must be a whole number of at least .*, got 0"),
        ("neural_pr", {"scale": -1.0}, errors.InvalidArgument, "scale must be a finite number of at least 0, got -1.0"),
        ("neural_pr", {"ridge": 0.0}, errors.InvalidArgument, "ridge must be a finite number above 0, got 0.0"),
        ("neural_pr", {"redraws": 1}, errors.InvalidArgument, "redraws must be True or False, got 1"),
        ("neural_pr", {"capacity": 5}, errors.InvalidArgument, "capacity must be at least the batch of 32, got 5"),
    ],
)
def test_bad_settings(name, settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make(name, **settings)


@pytest.mark.parametrize("name", BUILDERS)
def test_impossible_rewards_are_refused(name):
    policy = build(name)
    with pytest.raises(errors.InvalidReward, match="reward must be between 0 and 1 in the bernoulli family"):
        policy.update(policy.init(FEATURES), 0, np.ones(FEATURES), 2.0)
