"""Nonsense gets an error that names the argument, shows the value and says what to do, and changes nothing."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorax
from explorax import errors

ARMS = np.random.default_rng(0).uniform(-1, 1, (6, 3))
KEY = jax.random.key(0)
NO_RIDGE = {"ridge": 0, "family": "gaussian"}
THEORY = {"warmup": "theory", "horizon": 1000, "min_slope": 0.1}


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        ("glm_tls", {}, errors.UnknownName, "did you mean 'glm_tsl'"),
        ("GLM-FLP", {}, errors.UnknownName, "did you mean 'glm_fpl'"),
        (7, {}, errors.InvalidArgument, "name=7"),
        ("glm_tsl", {"scal": 1.0}, errors.UnknownName, "unknown setting of glm_tsl 'scal': did you mean 'scale'"),
        ("uniform", {"scale": 1.0}, errors.UnknownName, "unknown setting of uniform 'scale'"),
        ("glm_tsl", {"scale": 0.0}, errors.InvalidArgument, "scale=0.0 must be .* above 0; .* 'greedy'"),
        ("glm_fpl", {"scale": -1.0}, errors.InvalidArgument, "scale=-1.0"),
        ("glm_fpl", {"scale": float("nan")}, errors.InvalidArgument, "scale=nan"),
        ("glm_fpl", {"scale": "big"}, errors.InvalidArgument, "scale='big'"),
        ("ucb_glm", {"width": 0.0}, errors.InvalidArgument, "width=0.0"),
        ("glm_tsl", {"design": "formal"}, errors.UnknownName, "did you mean 'informal'"),
        ("lin_ts", {"design": "formal"}, errors.UnknownName, "did you mean 'informal'"),
        ("glm_tsl", {"design": "theory"}, errors.InvalidArgument, "give horizon=n"),
        ("lin_ucb", {"design": "theory"}, errors.InvalidArgument, "give delta, or horizon=n"),
        ("glm_tsl", {"design": "theory", "scale": 1.0, "horizon": 9}, errors.InvalidArgument, "leave scale=1.0 out"),
        ("lin_ts", {"design": "theory", "scale": 1.0, "horizon": 9}, errors.InvalidArgument, "leave scale=1.0 out"),
        ("glm_tsl", {"design": "theory", "horizon": 0}, errors.InvalidArgument, "rounds=0"),
        ("glm_tsl", {"family": "bernouli"}, errors.UnknownName, "did you mean 'bernoulli'"),
        (
            "glm_tsl",
            {"family": "poisson", "design": "theory", "horizon": 99},
            errors.TheoryNotApplicable,
            "sub-Gaussian",
        ),
        ("glm_tsl", {"ridge": 0}, errors.InvalidArgument, "ridge=0 with family='bernoulli'"),
        ("glm_tsl", {"ridge": 0, "family": "gaussian", "warmup": "none"}, errors.InvalidArgument, "ridge=0"),
        (
            "glm_tsl",
            {"ridge": -1.0},
            errors.InvalidArgument,
            r"ridge must be a finite number of at least 0, got -1\.0\.",
        ),
        ("lin_ts", {"ridge": 0.0}, errors.InvalidArgument, "ridge=0.0"),
        ("glm_tsl", {"warmup": "bases"}, errors.UnknownName, "did you mean 'basis'"),
        ("glm_tsl", {"warmup": "theory"}, errors.InvalidArgument, "give horizon=n"),
        ("greedy", {"warmup": "theory", "horizon": 99}, errors.InvalidArgument, "'theory' needs a theorem"),
        ("lin_ts", {"warmup": "theory"}, errors.InvalidArgument, "belongs to the GLM policies"),
        ("glm_tsl", {"capacity": 0}, errors.InvalidArgument, "capacity=0"),
        ("glm_tsl", {"capacity": 2.5}, errors.InvalidArgument, "capacity=2.5"),
        ("glm_tsl", {"when_full": "drop"}, errors.UnknownName, "when_full"),
        (
            "glm_tsl",
            {"discount": 0.0},
            errors.InvalidArgument,
            r"discount must be a number above 0 and at most 1, got 0\.0\.",
        ),
        ("glm_tsl", {"discount": 1.01}, errors.InvalidArgument, r"discount must be .* at most 1, got 1\.01"),
        ("glm_fpl", {"discount": float("nan")}, errors.InvalidArgument, "discount must be .* at most 1, got nan"),
        ("lin_ts", {"discount": "slow"}, errors.InvalidArgument, "discount must be .* at most 1, got 'slow'"),
        ("lin_ucb", {"discount": True}, errors.InvalidArgument, "discount must be .* at most 1, got True"),
        ("glm_tsl", {"window": 0}, errors.InvalidArgument, "window=0 must be a whole number of at least 1"),
        ("ucb_glm", {"window": 2.5}, errors.InvalidArgument, "window=2.5"),
        ("lin_ts", {"window": -3}, errors.InvalidArgument, "window=-3"),
        (
            "glm_tsl",
            {"window": 9, "discount": 0.9},
            errors.InvalidArgument,
            r"discount must be 1 .* got 0\.9 with window=9\. Give only one",
        ),
        (
            "lin_ts",
            {"window": 9, "discount": 0.9},
            errors.InvalidArgument,
            r"discount must be 1 .* got 0\.9 with window=9\. Give only one",
        ),
        (
            "glm_fpl",
            {"window": 9, "memory": "constant"},
            errors.InvalidArgument,
            "window must be None with memory='constant', .* got 9. Give a discount .* or memory='refitted'",
        ),
        (
            "glm_tsl",
            {"discount": 0.9, "ridge": 0, "family": "gaussian"},
            errors.InvalidArgument,
            "ridge=0 with a discount or a window: .* give ridge > 0",
        ),
        (
            "glm_tsl",
            {"tolerance": -1.0},
            errors.InvalidArgument,
            r"tolerance must be a finite number above 0, got -1\.0\.",
        ),
        ("glm_tsl", {"noise_std": 0.0}, errors.InvalidArgument, "noise_std=0.0"),
        ("glm_ucb", {"radius": -1.0}, errors.InvalidArgument, "radius=-1.0"),
        ("glm_ucb", {"max_norm": 0.0}, errors.InvalidArgument, "max_norm=0.0"),
        ("lin_ucb", {"norm_bound": 0.0}, errors.InvalidArgument, "norm_bound=0.0"),
        ("lin_ts", {"delta": 1.5}, errors.InvalidArgument, "delta=1.5"),
        ("lin_ts", {"horizon": 0}, errors.InvalidArgument, "horizon=0"),
        ("lin_ts", {"horizon": "long"}, errors.InvalidArgument, "horizon='long'"),
        ("lin_ts", {"delta": "low"}, errors.InvalidArgument, "delta='low'"),
        ("glm_tsl", {"design": "theory", "horizon": "long"}, errors.InvalidArgument, "rounds='long'"),
    ],
)
def test_settings(name, settings, error, words):
    with pytest.raises(error, match=words):
        explorax.make(name, **settings)


@pytest.mark.parametrize(
    ("settings", "arms", "error", "words"),
    [
        ({}, ARMS[0], errors.InvalidShape, r"shape \(3,\)"),
        ({}, np.zeros((0, 3)), errors.InvalidShape, "shape"),
        ({}, np.full((6, 3), np.nan), errors.InvalidFeatures, "NaN or infinity"),
        ({}, np.full((6, 3), np.inf), errors.InvalidFeatures, "NaN or infinity"),
        ({}, "arms", errors.InvalidFeatures, "cannot be read as an array"),
        ({}, 0, errors.InvalidArgument, "n_features=0"),
        ({}, -3, errors.InvalidArgument, "n_features=-3"),
        (NO_RIDGE, ARMS[:2], errors.InvalidShape, r"got 2 arms for 3 features\. Use warmup='basis' with a ridge"),
        (NO_RIDGE | {"warmup": "first"}, ARMS[:2], errors.InvalidShape, "pulls the first 3: give a ridge above 0"),
        (NO_RIDGE, ARMS @ np.diag([1.0, 1.0, 0.0]), errors.InvalidFeatures, "span only 2 of 3 dimensions"),
        (THEORY, ARMS[:2], errors.InvalidShape, "arms must span the feature space, got 2 arms for 3 features"),
        (THEORY, ARMS @ np.diag([1.0, 1.0, 0.0]), errors.InvalidFeatures, "span only 2 of 3 dimensions"),
        ({"n_features": 3}, ARMS @ np.diag([1.0, 1.0, 0.0]), errors.InvalidFeatures, "span only 2 of 3 dimensions"),
    ],
)
def test_arms(settings, arms, error, words):
    with pytest.raises(error, match=words):
        explorax.make("glm_tsl", **settings).init(arms)


@pytest.mark.parametrize("warmup", ["none", "basis", "first"])
def test_few_or_collinear_arms_are_explored_in_the_dimensions_they_span(warmup):
    policy = explorax.make("glm_fpl", warmup=warmup)
    for arms, spanned in ((ARMS[:2], 2), (ARMS @ np.diag([1.0, 1.0, 0.0]), 2), (ARMS, 3), (np.zeros((4, 3)), 0)):
        state = policy.init(arms)
        actions = [policy.act(KEY, state, arms, t) for t in range(4)]
        assert np.all(np.isfinite([action.scores for action in actions]))
        pulled = [int(action.arm) for action in actions if action.forced]
        if warmup == "basis":
            assert len(pulled) == (np.linalg.matrix_rank(arms[pulled]) if pulled else 0) == spanned
        else:
            assert pulled == ([] if warmup == "none" else list(range(min(3, len(arms)))))


@pytest.mark.parametrize(
    ("start", "arms", "t", "error", "words"),
    [
        (ARMS, ARMS[:, :2], 0, errors.InvalidShape, "2 features where the state was made for 3"),
        (ARMS, ARMS[:4], 0, errors.InvalidShape, r"4 arms where the state was made for 6 fixed ones: .* init\(3\)"),
        (3, ARMS[:, :2], 0, errors.InvalidShape, "2 features where the state was made for 3"),
        (3, np.full((6, 3), np.nan), 0, errors.InvalidFeatures, "NaN or infinity"),
        (ARMS, ARMS, -1, errors.InvalidArgument, "t=-1"),
        (ARMS, ARMS, 0.5, errors.InvalidArgument, "t=0.5 must be a whole number"),
        (ARMS, ARMS, "now", errors.InvalidArgument, "t='now'"),
    ],
)
def test_act(start, arms, t, error, words):
    policy = explorax.make("glm_tsl")
    with pytest.raises(error, match=words):
        policy.act(KEY, policy.init(start), arms, t)


@pytest.mark.parametrize(
    ("start", "arm", "x", "reward", "error", "words"),
    [
        (ARMS, 0, ARMS[0], 2.0, errors.InvalidReward, "reward must be between 0 and 1 in the bernoulli family, got 2"),
        (ARMS, 0, ARMS[0], -0.5, errors.InvalidReward, "between 0 and 1"),
        (ARMS, 0, ARMS[0], np.nan, errors.InvalidReward, "reward must be finite, got nan"),
        (ARMS, 0, ARMS[0], [1.0, 0.0], errors.InvalidShape, r"reward has shape \(2,\)"),
        (ARMS, 0, ARMS[0], "good", errors.InvalidReward, "reward must be a number"),
        (ARMS, 6, ARMS[0], 1.0, errors.InvalidArgument, "arm=6 must be at least 0 and below 6"),
        (ARMS, -1, ARMS[0], 1.0, errors.InvalidArgument, "arm=-1"),
        (ARMS, 0.0, ARMS[0], 1.0, errors.InvalidArgument, "arm=0.0 must be a whole number"),
        (ARMS, True, ARMS[1], 1.0, errors.InvalidArgument, "arm=True must be a whole number"),
        (
            ARMS,
            0,
            ARMS[1],
            1.0,
            errors.InvalidArgument,
            "x must be the row of arm 0 that the state was made with, got other",
        ),
        (ARMS, 0, ARMS[0, :2], 1.0, errors.InvalidShape, r"x has shape \(2,\) where \(3,\) is needed"),
        (ARMS, 0, ARMS, 1.0, errors.InvalidShape, "x has shape"),
        (ARMS, 0, np.full(3, np.nan), 1.0, errors.InvalidFeatures, "x contain"),
        (3, 0, np.full(3, np.inf), 1.0, errors.InvalidFeatures, "x contain"),
    ],
)
def test_update_raises_and_changes_nothing(start, arm, x, reward, error, words):
    policy = explorax.make("glm_fpl")
    state = policy.init(start)
    before = jax.tree.map(np.array, state)
    with pytest.raises(error, match=words):
        policy.update(state, arm, x, reward)
    jax.tree.map(np.testing.assert_array_equal, state, before)


@pytest.mark.parametrize("name", ["lin_ts", "uniform"])
def test_linear_policies_refuse_rewards_that_are_not_finite(name):
    policy = explorax.make(name)
    with pytest.raises(errors.InvalidReward, match="reward must be finite, got inf"):
        policy.update(policy.init(ARMS), 0, ARMS[0], np.inf)


def test_a_reward_that_overflows_the_states_dtype_is_refused():
    for name, settings in (("glm_tsl", {"family": "gaussian"}), ("lin_ts", {}), ("uniform", {})):
        policy = explorax.make(name, **settings)
        arms = ARMS.astype(np.float32)
        with pytest.raises(errors.InvalidReward, match=r"reward must be at most 2.6e\+15 in float32, .* got 1e\+39"):
            policy.update(policy.init(arms), 0, arms[0], 1e39)


def test_a_full_history_says_so_and_keeps_what_it_has():
    policy = explorax.make("glm_tsl", capacity=4)
    state = policy.init(3)
    for i in range(4):
        state = policy.update(state, i, ARMS[i], 1.0)
    with pytest.raises(errors.HistoryFull, match=r"All 4 rows are taken\. Give a larger capacity"):
        policy.update(state, 4, ARMS[4], 1.0)
    assert state.memory.past.dropped == 0
    # A compiled loop cannot raise; it keeps the first rows and counts the rest.
    late = jax.jit(policy.update)(state, 4, jnp.asarray(ARMS[4]), 1.0)
    assert late.memory.past.dropped == 1
    np.testing.assert_array_equal(late.memory.past.features, state.memory.past.features)
    np.testing.assert_allclose(late.theta_hat, state.theta_hat, rtol=1e-6)


def test_one_tree_of_errors():
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, Exception):
            assert issubclass(kind, errors.ExploraxError), name
            assert re.search(rf"\b{name}\b", errors.__doc__), name
    assert issubclass(errors.InvalidArgument, ValueError)


def test_names_as_in_the_paper():
    for entry in explorax.list_policies().values():
        assert isinstance(explorax.make(entry.title), explorax.Policy)
        assert isinstance(explorax.make(entry.name.upper()), explorax.Policy)
        assert entry.reference
