"""Ensemble sampling: members against SciPy and against networks that learn alone, their laws, and who acts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import explorax
from explorax import errors
from explorax.glm import families
from explorax.glm.memory.base import Estimator
from explorax.policies.deep_ensemble import deep_ensemble
from explorax.policies.deep_model import DeepModel
from explorax.policies.glm_ensemble import glm_ensemble, member_scores, perturb
from tests.problems import assert_learns, draw_rewards
from tests.statistics import FALSE_ALARM, assert_standard_normal

FEATURES, COUNT, MEMBERS, ROUNDS = 3, 6, 5, 20
ARMS = np.random.default_rng(0).uniform(-1, 1, (COUNT, FEATURES))
PULLS = np.random.default_rng(1).integers(0, COUNT, ROUNDS)
CUMULANTS = {"bernoulli": lambda s: np.logaddexp(0, s), "poisson": np.exp}
MEANS = {"bernoulli": special.expit, "poisson": np.exp}
KEY = jax.random.key(7)


def rewards_of(family):
    return draw_rewards(np.random.default_rng(2), family, ARMS[PULLS] @ np.array([1.0, -0.5, 0.2]))


@functools.cache
def build(family="bernoulli", **settings):
    return glm_ensemble(**{"members": MEMBERS, "family": family, "capacity": ROUNDS} | settings)


def learned(policy, arms, rewards, key=KEY):
    """The state after these rewards of the arms in `PULLS`."""
    state = policy.init(arms, key)
    for arm, reward in zip(PULLS, rewards, strict=False):
        state = policy.update(state, arm, ARMS[arm], reward)
    return state


def normals(key, members=MEMBERS):
    """Standard normals of the priors' means (M, d) and of the rewards (rounds, M): the only thing taken from JAX."""
    first, later = jax.random.split(key)
    prior = jax.random.normal(first, (members, FEATURES), float)
    rewards = [jax.random.normal(jax.random.fold_in(later, number), (members,), float) for number in range(ROUNDS)]
    return np.asarray(prior), np.stack(rewards)


@functools.cache
def scorer(family="bernoulli"):
    estimator = Estimator(families.get(family), None, 0.3)
    return jax.jit(lambda state, arms: member_scores(estimator, state, arms))


@pytest.mark.parametrize(
    ("family", "arms"),
    [("bernoulli", ARMS), ("bernoulli", FEATURES), ("poisson", FEATURES)],
    ids=["fixed", "changing", "poisson"],
)
def test_a_member_minimizes_the_loss_on_its_perturbed_rewards(family, arms):
    ridge, scale = 2.0, 0.7
    rewards, rows = rewards_of(family), ARMS[PULLS]
    state = learned(build(family, ridge=ridge, scale=scale), arms, rewards)
    prior, noise = normals(KEY)
    # N(0, I/λ) where the noise is as large as the model says that of a reward is.
    means = scale / {"bernoulli": 0.5, "poisson": 1.0}[family] * prior / np.sqrt(ridge)
    found = scorer(family)(state, jnp.asarray(ARMS))
    for member in range(MEMBERS):
        noisy = rewards + scale * noise[:, member]

        def loss(theta, noisy=noisy, mean=means[member]):
            scores = rows @ theta
            value = np.sum(CUMULANTS[family](scores) - noisy * scores) + ridge / 2 * np.sum((theta - mean) ** 2)
            return value, rows.T @ (MEANS[family](scores) - noisy) + ridge * (theta - mean)

        best = optimize.minimize(loss, np.zeros(FEATURES), jac=True, method="BFGS", options={"gtol": 1e-9})
        np.testing.assert_allclose(found[member], ARMS @ best.x, rtol=0, atol=1e-7)


def test_the_noise_of_a_reward_is_frozen():
    policy, rewards = build(), rewards_of("bernoulli")
    state, after = (learned(policy, ARMS, rewards[:count]) for count in (9, 10))
    _, noise = normals(KEY)
    np.testing.assert_array_equal(after.prior, state.prior)
    added = 0.5 * noise[9][:, None] * ARMS[PULLS[9]]
    np.testing.assert_allclose(after.noise - state.noise, added, rtol=0, atol=1e-14)
    # It depends on the key of `init` and on the number of the reward, and not on what the reward is.
    other = learned(policy, ARMS, 1 - rewards[:10])
    np.testing.assert_array_equal(other.noise, after.noise)
    assert np.all(learned(policy, ARMS, rewards[:10], jax.random.key(8)).noise != after.noise)


@functools.cache
def many_members():
    """Two thousand members of a Gaussian model with σ = 0.7, λ = 2; and θ_m of each."""
    policy = build("gaussian", members=2000, noise_std=0.7, ridge=2.0)
    state = learned(policy, FEATURES, rewards_of("gaussian"))
    return state, np.asarray(scorer("gaussian")(state, jnp.eye(FEATURES)))


def test_members_are_draws_from_the_gaussian_posterior():
    """N(θ̂, σ² (G + λI)⁻¹), independent: of mean, covariance and law (alarm 1e-6)."""
    rows = ARMS[PULLS]
    precision = rows.T @ rows + 2.0 * np.eye(FEATURES)
    center = np.linalg.solve(precision, rows.T @ rewards_of("gaussian"))
    assert_standard_normal((many_members()[1] - center) @ np.linalg.cholesky(precision) / 0.7)


def test_the_noise_of_rewards_is_independent():
    """Of the priors, of other rewards and of other members (alarm 1e-6)."""
    state, _ = many_members()
    prior, noise = normals(KEY, 2000)
    np.testing.assert_allclose(state.prior, 0.7 * np.sqrt(2.0) * prior, rtol=1e-12)
    np.testing.assert_allclose(state.noise, 0.7 * noise.T @ ARMS[PULLS], rtol=0, atol=1e-12)
    assert_standard_normal(np.column_stack([prior, noise[:4].T]))


def test_each_member_acts_as_often_and_chances_are_their_shares():
    policy = build(memory="constant")
    state = learned(policy, FEATURES, rewards_of("bernoulli"))
    # A summary knows its members to first order.
    root = np.asarray(state.glm.memory.root)
    thetas = state.theta_hat + (state.prior + state.noise) @ (root @ root.T)
    scores = np.asarray(thetas @ ARMS.T)
    keys = jax.random.split(jax.random.key(3), 4000)
    actions = jax.vmap(policy.act, (0, None, None, None))(keys, state, ARMS, ROUNDS)
    near = np.abs(np.asarray(actions.scores)[:, None] - scores).max(axis=2) < 1e-9
    assert np.all(near.sum(axis=1) == 1)  # the scores are those of one member
    member = np.argmax(near, axis=1)
    assert stats.chisquare(np.bincount(member, minlength=MEMBERS)).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(actions.arm, np.argmax(scores, axis=1)[member])

    chances = policy.probabilities(state, jnp.asarray(ARMS), ROUNDS, None)
    np.testing.assert_allclose(chances, np.bincount(np.argmax(scores, axis=1), minlength=COUNT) / MEMBERS)
    assert np.count_nonzero(chances) > 1
    mask = np.arange(COUNT) % 2 == 0
    among = policy.probabilities(state, jnp.asarray(ARMS), ROUNDS, jnp.asarray(mask))
    favourites = np.argmax(np.where(mask, scores, -np.inf), axis=1)
    np.testing.assert_allclose(among, np.bincount(favourites, minlength=COUNT) / MEMBERS)
    forced = policy.act(KEY, state, ARMS, 1).arm
    np.testing.assert_array_equal(policy.probabilities(state, jnp.asarray(ARMS), 1, None), np.arange(COUNT) == forced)


@pytest.mark.parametrize(
    ("arms", "settings", "kept", "discount"),
    [
        (ARMS, {"window": 6}, 6, 1.0),
        (FEATURES, {"discount": 0.8, "capacity": 6, "when_full": "forget"}, 6, 0.8),
        (FEATURES, {"discount": 0.8, "memory": "constant"}, ROUNDS, 0.8),
    ],
)
def test_what_is_forgotten_takes_its_noise_along(arms, settings, kept, discount):
    state = learned(build(**settings), arms, rewards_of("bernoulli"))
    _, noise = normals(KEY)
    weights = discount ** np.arange(ROUNDS)[::-1] * (np.arange(ROUNDS) >= ROUNDS - kept)
    expected = 0.5 * noise.T @ (np.sqrt(weights)[:, None] * ARMS[PULLS])
    np.testing.assert_allclose(state.noise, expected, rtol=0, atol=1e-13)


def test_a_reward_that_finds_no_room_brings_no_noise():
    state = learned(build(), FEATURES, rewards_of("bernoulli"))
    np.testing.assert_array_equal(perturb(state, jnp.ones(FEATURES)), state.noise)
    room = learned(build(), FEATURES, rewards_of("bernoulli")[:-1])
    assert np.all(perturb(room, jnp.ones(FEATURES)) != room.noise)


def test_new_arms_change_no_member():
    policy = build()
    state = learned(policy, ARMS, rewards_of("bernoulli"))
    grown = policy.extend(state, jnp.asarray(np.concatenate([ARMS, -ARMS])))
    assert grown.glm.memory.past.features.shape == (2 * COUNT, FEATURES)
    for name in ("prior", "noise", "key", "seen", "theta_hat"):
        np.testing.assert_array_equal(getattr(grown, name), getattr(state, name))


# Networks

DEEP = {"hidden": (5,), "batch": 4, "members": 3}


@functools.cache
def build_deep(**settings):
    return deep_ensemble(**DEEP | settings)


def learned_deep(policy, rewards, key=KEY):
    state = policy.init(FEATURES, key)
    for arm, reward in zip(PULLS, rewards, strict=False):
        state = policy.update(state, arm, ARMS[arm], reward)
    return state


def test_a_network_learns_as_it_would_alone_from_its_perturbed_rewards():
    rewards = rewards_of("bernoulli")[:12]
    state = learned_deep(build_deep(replay="uniform", capacity=8, scale=0.7), rewards)
    keys = jax.random.split(KEY, DEEP["members"] + 1)
    noise = [jax.random.normal(jax.random.fold_in(keys[0], number), (DEEP["members"],), float) for number in range(12)]
    noisy = rewards[:, None] + 0.7 * np.asarray(noise)
    model = DeepModel(hidden=(5,), batch=4, replay="uniform", capacity=8)
    trainer = model.trainer()
    learn = jax.jit(trainer.learn)
    for member in range(DEEP["members"]):
        alone = trainer.init(FEATURES, keys[1 + member], model.kept, 0.0)
        for number in range(12):
            alone = learn(alone, jnp.asarray(ARMS[PULLS[number]]), jnp.asarray(noisy[number, member]))
        own = jax.tree.map(lambda leaf, member=member: leaf[member], (state.members.params, state.members.history.sums))
        for got, want in zip(jax.tree.leaves(own), jax.tree.leaves((alone.params, alone.history.sums)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)
    assert len({float(first) for first in state.members.params[0].weights[:, 0, 0]}) == DEEP["members"]


def test_each_network_acts_as_often_and_chances_are_their_shares():
    policy = build_deep(learning_rate=0.3)
    state = learned_deep(policy, rewards_of("bernoulli"))
    first, last = state.members.params
    layer = np.maximum(np.einsum("mhd,kd->mkh", first.weights, ARMS) + first.biases[:, None], 0)
    scores = np.einsum("mkh,mh->mk", layer, last.weights[:, 0]) + last.biases
    keys = jax.random.split(jax.random.key(3), 3000)
    actions = jax.vmap(policy.act, (0, None, None, None))(keys, state, ARMS, ROUNDS)
    near = np.abs(np.asarray(actions.scores)[:, None] - scores).max(axis=2) < 1e-9
    assert np.all(near.sum(axis=1) == 1)
    assert stats.chisquare(np.bincount(np.argmax(near, axis=1), minlength=3)).pvalue > FALSE_ALARM
    chances = policy.probabilities(state, jnp.asarray(ARMS), ROUNDS, None)
    np.testing.assert_allclose(chances, np.bincount(np.argmax(scores, axis=1), minlength=COUNT) / 3)
    assert np.count_nonzero(chances) > 1
    mask = np.arange(COUNT) % 2 == 1
    among = policy.probabilities(state, jnp.asarray(ARMS), ROUNDS, jnp.asarray(mask))
    favourites = np.argmax(np.where(mask, scores, -np.inf), axis=1)
    np.testing.assert_allclose(among, np.bincount(favourites, minlength=COUNT) / 3)


def test_the_noise_is_as_large_as_that_of_a_reward():
    for family, deviation in (("bernoulli", 0.5), ("gaussian", 1.0), ("poisson", 1.0)):
        assert build_deep(family=family).init(FEATURES).scale == deviation
        assert build(family).init(FEATURES).glm.numbers.scale == deviation


def test_networks_learn():
    assert_learns(build_deep(learning_rate=0.01))


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        ("glm_ensemble", {"members": 0}, errors.InvalidArgument, "members must be a whole number of at least 1, got 0"),
        (
            "glm_ensemble",
            {"scale": 0.0},
            errors.InvalidArgument,
            "scale must be a finite number above 0, got 0.0. Use '.*' for a policy that does not explore",
        ),
        (
            "glm_ensemble",
            {"ridge": 0.0},
            errors.InvalidArgument,
            "ridge must be above 0 with family 'bernoulli' .*, got 0",
        ),
        (
            "glm_ensemble",
            {"design": "theory"},
            errors.UnknownName,
            "setting of glm_ensemble must be one of .*, got 'design'",
        ),
        ("deep_ensemble", {"members": 2.5}, errors.InvalidArgument, "members must be a whole number .*, got 2.5"),
        ("deep_ensemble", {"scale": -1.0}, errors.InvalidArgument, "scale must be a finite number above 0, got -1.0"),
        ("deep_ensemble", {"batch": 0}, errors.InvalidArgument, "batch must be a whole number of at least .*, got 0"),
    ],
)
def test_bad_settings(name, settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make(name, **settings)


@pytest.mark.parametrize("policy", [glm_ensemble(), deep_ensemble()], ids=["glm", "deep"])
def test_impossible_rewards_are_refused(policy):
    with pytest.raises(errors.InvalidReward, match="reward must be between 0 and 1 in the bernoulli family"):
        policy.update(policy.init(FEATURES), 0, np.ones(FEATURES), 2.0)
