"""The deep policies: training against NumPy by hand, their identities, and what must not break them."""

import functools
import sys
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy import special, stats

import explorax
from explorax import errors
from explorax.networks import Network
from explorax.policies.deep_model import DeepModel
from explorax.policies.representation import LEAST_SPREAD, represent
from tests.problems import assert_learns
from tests.statistics import FALSE_ALARM, assert_standard_normal

FEATURES, UNITS, BATCH, ARMS = 6, 5, 4, 7
SMALL = {"hidden": (UNITS,), "batch": BATCH}
DEEP = ("deep_fpl", "deep_fl", "rep_glm_fpl", "neural_linear")


@functools.cache
def build(name, **settings):
    return explorax.make(name, **SMALL, **settings)


def examples(count, seed=0, features=FEATURES):
    """Rows, and rewards that depend on them; the first of many are the same as the first of few."""
    rows = np.random.default_rng([seed, 0]).normal(size=(count, features))
    return rows, (np.random.default_rng([seed, 1]).random(count) < special.expit(2 * rows[:, 0])).astype(float)


def learn(policy, count, *, seed=0, key=0):
    """The state after so many examples."""
    state = policy.init(FEATURES, jax.random.key(key))
    for x, reward in zip(*examples(count, seed), strict=True):
        state = policy.update(state, 0, x, reward)
    return state


def training_noise(state, steps=1):
    """The standard normals of the training that the latest reward brought: the only thing taken from JAX."""
    key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.history.seen)
    keys = [key] if steps == 1 else list(jax.random.split(key, steps))
    return [np.asarray(jax.random.normal(jax.random.split(one)[0], (BATCH,), float)) for one in keys]


class NumpyNetwork:
    """One hidden layer, trained by Adam on mini-batches of perturbed rewards."""

    def __init__(self, params, activation, scale):
        (first, last), self.scale = params, scale
        self.weights = [np.array(a) for a in (first.weights, first.biases, last.weights[0], last.biases[0])]
        self.means, self.squares = ([np.zeros_like(a) for a in self.weights] for _ in range(2))
        self.bend, self.slope = {
            "relu": (lambda u: np.maximum(u, 0), lambda u: (u > 0) * 1.0),
            "tanh": (np.tanh, lambda u: 1 - np.tanh(u) ** 2),
        }[activation]
        self.count = 0

    def scores(self, rows):
        w, b, v, c = self.weights
        return self.bend(rows @ w.T + b) @ v + c

    def step(self, rows, rewards, noise):
        w, b, v, _ = self.weights
        before = rows @ w.T + b
        error = (special.expit(self.scores(rows)) - rewards - self.scale * noise) / len(rows)
        back = error[:, None] * v * self.slope(before)
        gradients = [back.T @ rows, back.sum(axis=0), error @ self.bend(before), error.sum()]
        self.count += 1
        for i, gradient in enumerate(gradients):
            self.means[i] = 0.9 * self.means[i] + 0.1 * gradient
            self.squares[i] = 0.999 * self.squares[i] + 0.001 * gradient**2
            mean, square = self.means[i] / (1 - 0.9**self.count), self.squares[i] / (1 - 0.999**self.count)
            self.weights[i] = self.weights[i] - 0.001 * mean / (np.sqrt(square) + 1e-7)


@pytest.mark.parametrize(("activation", "steps"), [("relu", 1), ("tanh", 2)])
def test_rounds_of_deep_fpl_equal_numpy_by_hand(activation, steps):
    policy = build("deep_fpl", activation=activation, steps=steps, scale=0.7)
    state = policy.init(FEATURES, jax.random.key(3))
    by_hand = NumpyNetwork(state.params, activation, 0.7)
    rows, rewards = examples(15)
    for t in range(len(rows)):
        arms = examples(ARMS, seed=100 + t)[0]
        action = policy.act(jax.random.key(t), state, arms, t)
        np.testing.assert_allclose(action.scores, by_hand.scores(arms), rtol=1e-11, atol=1e-13)
        assert action.arm == np.argmax(by_hand.scores(arms))
        state = policy.update(state, action.arm, rows[t], rewards[t])
        recent = slice(max(0, t + 1 - BATCH), t + 1)
        for noise in training_noise(state, steps):
            # The noise belongs to places of a ring: example l sits at place l mod B.
            places = np.arange(t + 1)[recent] % BATCH
            by_hand.step(rows[recent], rewards[recent], noise[places])
    first, last = state.params
    found = (first.weights, first.biases, last.weights[0], last.biases[0])
    for got, want in zip(found, by_hand.weights, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("replay", ["recent", "uniform"])
def test_without_noise_deep_fpl_is_deep_fl(replay):
    silent, leader, noisy = (
        learn(build(name, replay=replay, capacity=64, **settings), 12)
        for name, settings in (("deep_fpl", {"scale": 0.0}), ("deep_fl", {}), ("deep_fpl", {"scale": 1.0}))
    )
    jax.tree.map(np.testing.assert_array_equal, silent, leader)
    assert np.any(noisy.params[0].weights != leader.params[0].weights)


def one_weight():
    """η(x) = w x."""
    return Network(lambda key, features: {"w": jnp.zeros(features)}, lambda params, rows: rows @ params["w"])


def test_the_noise_of_training_is_normal_and_fresh():
    """A batch of one and plain descent show each Z: w′ = w − s (μ(w) − y − Z).  KS and a correlation, alarm 1e-6."""
    rate, scale, count = 0.1, 0.7, 3000
    model = DeepModel(network=one_weight(), optimizer=optax.sgd(rate), batch=1)
    trainer = model.trainer()

    def noise(key):
        state = trainer.init(1, key, model.kept, scale)
        after = trainer.learn(state, jnp.ones(1), jnp.ones(()))
        later = trainer.learn(after, jnp.ones(1), jnp.ones(()))
        weights = [jnp.zeros(()), after.params["w"][0], later.params["w"][0]]
        return jnp.stack([(new - old) / rate + jax.nn.sigmoid(old) - 1 for old, new in pairwise(weights)])

    drawn = np.asarray(jax.jit(jax.vmap(noise))(jax.random.split(jax.random.key(0), count)))
    assert stats.kstest(drawn.ravel() / scale, stats.norm.cdf).pvalue > FALSE_ALARM / 2
    correlation = np.corrcoef(drawn.T)[0, 1]
    assert 2 * stats.norm.sf(abs(np.arctanh(correlation)) * np.sqrt(count - 3)) > FALSE_ALARM / 2


@pytest.mark.parametrize("noise_per", ["step", "round"])
def test_noise_that_is_kept_for_a_round_makes_training_a_refit(noise_per):
    """The law of the weights w of scores wᵀx that descent by rate r settles on, where ΣXXᵀ/B = I (alarm 1e-6).

    With Z drawn once it is that of a refit to Y + Z, N(ŵ, (a²/B) I); with Z fresh in every step w − ŵ shrinks by 1 − r
    and gets r times such a draw in each, which leaves r/(2 − r) of the variance.
    """
    rate, scale, batch = 0.5, 0.7, 8
    angles = 2 * np.pi * np.arange(batch) / batch
    rows, rewards = np.sqrt(2) * np.c_[np.cos(angles), np.sin(angles)], np.arange(batch) % 3.0
    settings = {"network": one_weight(), "optimizer": optax.sgd(rate), "batch": batch, "family": "gaussian"}
    policy = explorax.make("deep_fpl", scale=scale, noise_per=noise_per, steps=40, **settings)

    def trained(key):
        def learn(state, example):
            return policy.update(state, 0, *example), None

        return jax.lax.scan(learn, policy.init(2, key), (jnp.asarray(rows), jnp.asarray(rewards)))[0].params["w"]

    weights = np.asarray(jax.jit(jax.vmap(trained))(jax.random.split(jax.random.key(0), 3000)))
    share = {"step": rate / (2 - rate), "round": 1.0}[noise_per]
    assert_standard_normal((weights - rows.T @ rewards / batch) / (scale * np.sqrt(share / batch)))


def test_mini_batches():
    recent, uniform = (DeepModel(**SMALL, replay=replay, capacity=9).trainer() for replay in ("recent", "uniform"))
    rows, rewards = examples(20)
    state = uniform.init(FEATURES, jax.random.key(0), 9, 0.0)
    history = state.history
    for x, reward in zip(rows, rewards, strict=True):
        history = history.record(0, jnp.asarray(x), reward)
    last = recent.mini_batch(history, jax.random.key(0))
    np.testing.assert_array_equal(history.features[last], rows[:-5:-1])
    np.testing.assert_array_equal(history.counts[last], np.ones(BATCH))
    drawn = jax.vmap(lambda key: uniform.mini_batch(history, key))(jax.random.split(jax.random.key(1), 2000))
    which = np.argmax(np.all(np.asarray(history.features)[drawn][:, :, None] == rows[-9:], axis=-1), axis=-1)
    np.testing.assert_array_equal(history.sums[drawn], rewards[-9:][which])
    assert stats.chisquare(np.bincount(which.ravel(), minlength=9)).pvalue > FALSE_ALARM


def test_first_weights_follow_the_key_of_init():
    policy = build("deep_fpl")
    first, same, other = (policy.init(FEATURES, jax.random.key(seed)) for seed in (1, 1, 2))
    jax.tree.map(np.testing.assert_array_equal, first, same)
    assert np.all(first.params[0].weights != other.params[0].weights)
    jax.tree.map(np.testing.assert_array_equal, policy.init(FEATURES), policy.init(FEATURES, jax.random.key(0)))
    with pytest.raises(errors.InvalidArgument, match="key must be a single key, got 3"):
        policy.init(FEATURES, 3)


def test_a_loss_of_ones_own_and_the_families():
    def squared(scores, rewards):
        return (scores - rewards) ** 2 / 2

    gaussian = learn(build("deep_fl", family="gaussian"), 6)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12),
        learn(build("deep_fl", family="gaussian", loss=squared), 6).params,
        gaussian.params,
    )
    assert np.any(learn(build("deep_fl", family="poisson"), 6).params[0].weights != gaussian.params[0].weights)


# repGLM-FPL

EXPLORING = 12
REP = {"percent": 20, "horizon": 5 * EXPLORING}


def test_rep_glm_fpl_explores_at_random_and_trains_as_deep_fl_does():
    policy = build("rep_glm_fpl", **REP)
    state = learn(policy, EXPLORING)
    leader = learn(build("deep_fl"), EXPLORING)
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12),
        state.network.params,
        leader.params,
    )
    later = learn(policy, EXPLORING + 9)
    jax.tree.map(np.testing.assert_array_equal, later.network, state.network)
    jax.tree.map(np.testing.assert_array_equal, later.standard, state.standard)
    arms = examples(ARMS)[0]
    keys = jax.random.split(jax.random.key(4), 3000)
    actions = jax.vmap(policy.act, (0, None, None, None))(keys, later, arms, EXPLORING - 1)
    assert np.all(actions.forced)
    assert stats.chisquare(np.bincount(actions.arm, minlength=ARMS)).pvalue > FALSE_ALARM
    assert not policy.act(keys[0], later, arms, EXPLORING).forced


@pytest.mark.parametrize("reuse", [True, False])
def test_the_exact_head_is_glm_fpl_on_the_embeddings(reuse):
    more = 10
    policy = build("rep_glm_fpl", head="exact", reuse=reuse, **REP)
    state = learn(policy, EXPLORING + more)
    rows, rewards = examples(EXPLORING + more)
    first = state.network.params[0]
    layer = np.maximum(rows @ np.asarray(first.weights).T + np.asarray(first.biases), 0)
    explored = layer[:EXPLORING]
    spread = np.maximum(explored.std(axis=0), LEAST_SPREAD * explored.std(axis=0).max())
    embedded = np.column_stack([(layer - explored.mean(axis=0)) / spread, np.ones(len(rows))])

    glm = explorax.make("glm_fpl", warmup="none", capacity=5 * EXPLORING)
    expected = glm.init(UNITS + 1)
    for x, reward in list(zip(embedded, rewards, strict=True))[0 if reuse else EXPLORING :]:
        expected = glm.update(expected, 0, x, reward)
    np.testing.assert_allclose(state.head.theta_hat, expected.theta_hat, rtol=1e-6, atol=1e-8)
    arms = examples(ARMS, seed=9)[0]
    features = represent(build_network(policy), state.network.params, state.standard, jnp.asarray(arms))
    for seed in range(3):
        key = jax.random.key(seed)
        action = policy.act(key, state, arms, EXPLORING + more)
        by_glm = glm.act(jax.random.split(key)[1], expected, features, 0)
        np.testing.assert_allclose(action.scores, by_glm.scores, rtol=1e-6, atol=1e-7)
        assert action.arm == by_glm.arm


def build_network(policy):
    return DeepModel(**SMALL).trainer().network


def test_the_constant_head_is_exact_where_it_refits_and_near_elsewhere():
    exact, constant = (build("rep_glm_fpl", head=head, **REP) for head in ("exact", "constant"))
    # Refits at 12, 18, 27, … rewards: the number grows by a half each time.
    for count, tolerance in ((EXPLORING, 1e-7), (18, 1e-6), (26, 0.15)):
        want, got = (learn(policy, count).head.theta_hat for policy in (exact, constant))
        assert np.linalg.norm(got - want) <= tolerance * np.linalg.norm(want)


def test_late_rewards_do_not_stall_rep_glm_fpl():
    policy = build("rep_glm_fpl", **REP)
    state = learn(policy, 3)
    arms = examples(ARMS)[0]
    action = policy.act(jax.random.key(0), state, arms, EXPLORING)
    assert not action.forced
    np.testing.assert_allclose(action.scores, build_network(policy).apply(state.network.params, jnp.asarray(arms)))


# NeuralLinear


def test_neural_linear_is_thompson_sampling_on_the_latest_representation():
    policy = build("neural_linear", refresh=5, capacity=32, scale=0.4, ridge=2.0)
    state = learn(policy, 13)  # refreshed after 10 rewards, three more since
    jax.tree.map(np.testing.assert_array_equal, state.params, learn(policy, 10).network.params)
    rows, rewards = examples(13)
    network = build_network(policy)
    embedded = np.asarray(represent(network, state.params, state.standard, jnp.asarray(rows)))
    np.testing.assert_allclose(embedded[:10, :UNITS].mean(axis=0), 0, atol=1e-12)
    moments = embedded.T @ embedded + 2.0 * np.eye(UNITS + 1)
    center, spread = np.linalg.solve(moments, embedded.T @ rewards), np.linalg.inv(moments)
    arms = examples(ARMS, seed=5)[0]
    features = np.asarray(represent(network, state.params, state.standard, jnp.asarray(arms)))
    keys = jax.random.split(jax.random.key(0), 2000)
    scores = np.asarray(jax.vmap(policy.act, (0, None, None, None))(keys, state, arms, 13).scores)
    deviations = 0.4 * np.sqrt(np.sum(features @ spread * features, axis=1))
    for arm in range(ARMS):
        law = stats.norm(features[arm] @ center, deviations[arm])
        assert stats.kstest(scores[:, arm], law.cdf).pvalue > FALSE_ALARM / ARMS


# What must not break them


def settings_of(name):
    return {
        "rep_glm_fpl": {"percent": 10, "horizon": 100},  # explores for ten rounds
        "neural_linear": {"refresh": 7, "capacity": 64},
    }.get(name, {})


@functools.cache
def player(name, family="bernoulli"):
    """A policy, and a compiled run of it on given rows and rewards."""
    policy = build(name, family=family, **settings_of(name))

    def round_(state, now):
        t, offered, x, reward = now
        action = policy.act(jax.random.key(t), state, offered, t)
        return policy.update(state, action.arm, x, reward), action

    def play(state, rows, rewards):
        offers = jnp.stack([jnp.roll(rows, t, axis=0)[:ARMS] for t in range(len(rows))])
        return jax.lax.scan(round_, state, (jnp.arange(len(rows)), offers, rows, rewards))

    return policy, jax.jit(play)


def assert_sound(state, actions, sure=True):
    for leaf in jax.tree.leaves((state, actions)):
        assert np.all(np.isfinite(leaf))
    assert np.all(actions.converged) or not sure


@pytest.mark.parametrize("name", DEEP)
def test_dead_units_constant_features_and_a_single_class(name):
    policy, play = player(name)
    rows, rewards = examples(40)
    start = policy.init(FEATURES)
    for offered, paid in ((np.ones_like(rows), rewards), (np.zeros_like(rows), rewards), (rows, np.ones(40))):
        assert_sound(*play(start, offered, paid))

    def kill(layers):  # no unit of the first layer ever fires
        return [layers[0]._replace(biases=layers[0].biases - 1e6), *layers[1:]]

    if name in ("deep_fpl", "deep_fl"):
        dead = start._replace(params=kill(start.params))
    else:
        dead = start._replace(network=start.network._replace(params=kill(start.network.params)))
    state, actions = play(dead, rows, rewards)
    assert_sound(state, actions)
    if name == "rep_glm_fpl":
        # All rows look the same, so only the constant feature can learn, and all arms score alike.
        np.testing.assert_array_equal(state.head.theta_hat[:-1], np.zeros(UNITS))
        assert np.ptp(actions.scores[-1]) == 0


@pytest.mark.parametrize(
    ("name", "family"),
    [("deep_fpl", "gaussian"), ("deep_fpl", "poisson"), ("rep_glm_fpl", "poisson"), ("neural_linear", "gaussian")],
)
def test_huge_rewards_leave_finite_states(name, family):
    """In float32: two rounds without, then one with a reward of a million."""
    policy, play = player(name, family)
    rows = jnp.asarray(examples(40)[0], jnp.float32)
    rewards = jnp.where(jnp.arange(40) % 3 == 0, 1e6, 0.0).astype(jnp.float32)
    # Counts that large next to small ones leave scores less certain than a fit promises.
    assert_sound(*play(policy.init(rows[:ARMS]), rows, rewards), sure=family != "poisson")


def test_a_network_that_has_blown_up_is_reported():
    policy = build("deep_fpl")
    state = learn(policy, 2)
    broken = state._replace(params=jax.tree.map(lambda leaf: leaf * jnp.nan, state.params))
    assert not policy.act(jax.random.key(0), broken, examples(ARMS)[0], 2).converged


@pytest.mark.parametrize("name", DEEP)
def test_they_learn(name):
    assert_learns(explorax.make(name, **SMALL, learning_rate=0.01, **settings_of(name)))


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        ("deep_fpl", {"scale": -1.0}, errors.InvalidArgument, "scale must be a finite number of at least 0, got -1.0"),
        (
            "deep_fpl",
            {"scale": float("nan")},
            errors.InvalidArgument,
            "scale must be a finite number of at least 0, got nan",
        ),
        ("deep_fl", {"scale": 1.0}, errors.UnknownName, "setting of deep_fl must be one of .*, got 'scale'"),
        ("deep_fpl", {"batch": 0}, errors.InvalidArgument, "batch must be a whole number of at least 1, got 0"),
        ("deep_fpl", {"steps": 1.5}, errors.InvalidArgument, "steps must be a whole number of at least .*, got 1.5"),
        ("deep_fpl", {"replay": "recently"}, errors.UnknownName, "Did you mean 'recent'"),
        (
            "deep_fpl",
            {"replay": "uniform", "capacity": 5},
            errors.InvalidArgument,
            "capacity must be at least the batch of 32, got 5",
        ),
        ("deep_fpl", {"activation": "rleu"}, errors.UnknownName, "Did you mean 'relu'"),
        ("deep_fpl", {"hidden": 50}, errors.InvalidArgument, "hidden must be a list of layer sizes, got 50"),
        ("deep_fpl", {"family": "normal"}, errors.UnknownName, "family must be one of .*, got 'normal'"),
        (
            "deep_fpl",
            {"learning_rate": 0.0},
            errors.InvalidArgument,
            "learning_rate must be a finite number above 0, got 0.0",
        ),
        (
            "deep_fpl",
            {"optimizer": "adam"},
            errors.InvalidArgument,
            "optimizer must be an optimizer of optax, got 'adam'",
        ),
        (
            "deep_fpl",
            {"optimizer": optax.sgd(0.1), "learning_rate": 0.1},
            errors.InvalidArgument,
            "learning_rate must be left out with an optimizer, .*, got 0.1",
        ),
        (
            "deep_fpl",
            {"loss": "squared"},
            errors.InvalidArgument,
            r"loss must be a function \(scores, rewards\) -> losses, got 'squared'",
        ),
        ("deep_fpl", {"network": "mlp"}, errors.InvalidArgument, "network must be a Network, got 'mlp'"),
        (
            "rep_glm_fpl",
            {"percent": 0},
            errors.InvalidArgument,
            "percent must be a percentage .* between 0 and 100, got 0",
        ),
        (
            "rep_glm_fpl",
            {"percent": 100},
            errors.InvalidArgument,
            "percent must be a percentage .* between 0 and 100, got 100",
        ),
        ("rep_glm_fpl", {"horizon": 0}, errors.InvalidArgument, "horizon must be a whole number of at least .*, got 0"),
        ("rep_glm_fpl", {"head": "const"}, errors.UnknownName, "Did you mean 'constant'"),
        (
            "rep_glm_fpl",
            {"head_capacity": 10},
            errors.InvalidArgument,
            "head_capacity must be a whole number of at least .*, got 10",
        ),
        ("rep_glm_fpl", {"reuse": 1}, errors.InvalidArgument, "reuse must be True or False, got 1"),
        (
            "rep_glm_fpl",
            {"ridge": 0.0},
            errors.InvalidArgument,
            "ridge must be above 0 with family 'bernoulli' .*, got 0",
        ),
        ("rep_glm_fpl", {"scale": 0.0}, errors.InvalidArgument, "scale must be a finite number above 0, got 0.0"),
        (
            "rep_glm_fpl",
            {"network": one_weight()},
            errors.InvalidArgument,
            "network must have a function embed.*, got a network without `embed`",
        ),
        ("deep_fpl", {"noise_per": "epoch"}, errors.UnknownName, "noise_per must be one of .*, got 'epoch'"),
        (
            "neural_linear",
            {"refresh": 0},
            errors.InvalidArgument,
            "refresh must be a whole number of at least .*, got 0",
        ),
        ("neural_linear", {"ridge": -1}, errors.InvalidArgument, "ridge must be a finite number above 0, got -1"),
    ],
)
def test_bad_settings(name, settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make(name, **settings)


@pytest.mark.parametrize("name", DEEP)
def test_impossible_rewards_are_refused(name):
    policy = build(name, **settings_of(name))
    with pytest.raises(errors.InvalidReward, match="reward must be between 0 and 1 in the bernoulli family"):
        policy.update(policy.init(FEATURES), 0, np.ones(FEATURES), 2.0)


def test_without_optax_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)
    with pytest.raises(
        ImportError, match=r"^A deep policy needs optax\. Install it with pip install 'explorax\[deep\]'\."
    ):
        explorax.make("deep_fpl", learning_rate=0.123)
    explorax.make("deep_fpl", optimizer=optax.sgd(0.1))  # one's own is enough
