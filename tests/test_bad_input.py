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
        ("glm_tls", {}, errors.UnknownName, "Did you mean 'glm_tsl'"),
        ("GLM-FLP", {}, errors.UnknownName, "Did you mean 'glm_fpl'"),
        (7, {}, errors.InvalidArgument, "name must be the name of a policy, got 7"),
        (
            "glm_tsl",
            {"scal": 1.0},
            errors.UnknownName,
            "setting of glm_tsl must be one of .*, got 'scal'. Did you mean 'scale'",
        ),
        (
            "uniform",
            {"scale": 1.0},
            errors.UnknownName,
            "setting of uniform must be left out, because there are no names .*, got 'scale'",
        ),
        (
            "glm_tsl",
            {"scale": 0.0},
            errors.InvalidArgument,
            "scale must be a finite number above 0, got 0.0. Use 'greedy'",
        ),
        ("glm_fpl", {"scale": -1.0}, errors.InvalidArgument, "scale must be a finite number above 0, got -1.0"),
        ("glm_fpl", {"scale": float("nan")}, errors.InvalidArgument, "scale must be a finite number above 0, got nan"),
        ("glm_fpl", {"scale": "big"}, errors.InvalidArgument, "scale must be a finite number above 0, got 'big'"),
        ("ucb_glm", {"width": 0.0}, errors.InvalidArgument, "width must be a finite number above 0, got 0.0"),
        ("glm_tsl", {"design": "formal"}, errors.UnknownName, "Did you mean 'informal'"),
        ("lin_ts", {"design": "formal"}, errors.UnknownName, "Did you mean 'informal'"),
        (
            "glm_tsl",
            {"design": "theory"},
            errors.InvalidArgument,
            "horizon must be the number of rounds for the theory, got None. Give horizon=",
        ),
        (
            "lin_ucb",
            {"design": "theory"},
            errors.InvalidArgument,
            "delta or horizon must be given .*, got None. Give delta=0.05, or horizon=n",
        ),
        (
            "glm_tsl",
            {"design": "theory", "scale": 1.0, "horizon": 9},
            errors.InvalidArgument,
            "scale must be left out with design='theory', .*, got 1.0. Leave out the scale or the design",
        ),
        (
            "lin_ts",
            {"design": "theory", "scale": 1.0, "horizon": 9},
            errors.InvalidArgument,
            "scale must be left out with design='theory', .*, got 1.0. Leave out the scale or the design",
        ),
        (
            "glm_tsl",
            {"design": "theory", "horizon": 0},
            errors.InvalidArgument,
            "rounds must be a whole number of at least .*, got 0",
        ),
        ("glm_tsl", {"family": "bernouli"}, errors.UnknownName, "Did you mean 'bernoulli'"),
        (
            "glm_tsl",
            {"family": "poisson", "design": "theory", "horizon": 99},
            errors.TheoryNotApplicable,
            "sub-Gaussian",
        ),
        (
            "glm_tsl",
            {"ridge": 0},
            errors.InvalidArgument,
            "ridge must be above 0 with family 'bernoulli' .*, got 0. Give ridge=1e-6",
        ),
        (
            "glm_tsl",
            {"ridge": 0, "family": "gaussian", "warmup": "none"},
            errors.InvalidArgument,
            "ridge must be above 0 with family 'gaussian' and warmup 'none', .*, got 0",
        ),
        ("glm_tsl", {"ridge": -1.0}, errors.InvalidArgument, "ridge must be a finite number of at least 0, got -1.0"),
        ("lin_ts", {"ridge": 0.0}, errors.InvalidArgument, "ridge must be a finite number above 0, got 0.0"),
        ("glm_tsl", {"warmup": "bases"}, errors.UnknownName, "Did you mean 'basis'"),
        (
            "glm_tsl",
            {"warmup": "theory"},
            errors.InvalidArgument,
            "horizon must be the number of rounds for the theory, got None. Give horizon=",
        ),
        (
            "greedy",
            {"warmup": "theory", "horizon": 99},
            errors.InvalidArgument,
            "warmup must be .* for a policy without a theorem, got 'theory'",
        ),
        (
            "lin_ts",
            {"warmup": "theory"},
            errors.InvalidArgument,
            "warmup must be 'none', 'basis' or 'first' for this policy, .*, got 'theory'",
        ),
        ("glm_tsl", {"capacity": 0}, errors.InvalidArgument, "capacity must be a whole number of at least .*, got 0"),
        (
            "glm_tsl",
            {"capacity": 2.5},
            errors.InvalidArgument,
            "capacity must be a whole number of at least .*, got 2.5",
        ),
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
        ("glm_tsl", {"window": 0}, errors.InvalidArgument, "window must be a whole number of at least 1, got 0"),
        ("ucb_glm", {"window": 2.5}, errors.InvalidArgument, "window must be a whole number of at least 1, got 2.5"),
        ("lin_ts", {"window": -3}, errors.InvalidArgument, "window must be a whole number of at least 1, got -3"),
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
            "ridge must be above 0 with a discount or a window, .*, got 0",
        ),
        ("glm_tsl", {"tolerance": -1.0}, errors.InvalidArgument, "tolerance must be a finite number above 0, got -1.0"),
        ("glm_tsl", {"noise_std": 0.0}, errors.InvalidArgument, "noise_std must be a finite number above 0, got 0.0"),
        ("glm_ucb", {"radius": -1.0}, errors.InvalidArgument, "radius must be a finite number above 0, got -1.0"),
        ("glm_ucb", {"max_norm": 0.0}, errors.InvalidArgument, "max_norm must be a finite number above 0, got 0.0"),
        ("lin_ucb", {"norm_bound": 0.0}, errors.InvalidArgument, "norm_bound must be a finite number above 0, got 0.0"),
        ("lin_ts", {"delta": 1.5}, errors.InvalidArgument, "delta must be a probability between 0 and 1, got 1.5"),
        ("lin_ts", {"horizon": 0}, errors.InvalidArgument, "horizon must be a number of rounds of at least 1, got 0"),
        (
            "lin_ts",
            {"horizon": "long"},
            errors.InvalidArgument,
            "horizon must be a number of rounds of at least 1, got 'long'",
        ),
        ("lin_ts", {"delta": "low"}, errors.InvalidArgument, "delta must be a probability between 0 and 1, got 'low'"),
        (
            "glm_tsl",
            {"design": "theory", "horizon": "long"},
            errors.InvalidArgument,
            "rounds must be a whole number of at least .*, got 'long'",
        ),
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
        ({}, "arms", errors.InvalidFeatures, "arms must be an array of numbers, got 'arms'"),
        ({}, 0, errors.InvalidArgument, "arms must be a matrix or a number of features of at least 1, got 0"),
        ({}, -3, errors.InvalidArgument, "arms must be a matrix or a number of features of at least 1, got -3"),
        (NO_RIDGE, ARMS[:2], errors.InvalidShape, r"got 2 arms for 3 features\. Use warmup='basis' with a ridge"),
        (
            NO_RIDGE | {"warmup": "first"},
            ARMS[:2],
            errors.InvalidShape,
            "arms must have at least the 3 rows .* pulls, got 2. Give a ridge above 0",
        ),
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
        (ARMS, ARMS[:, :2], 0, errors.InvalidShape, "arms must have the 3 features that the state was made for, got 2"),
        (ARMS, ARMS[:4], 0, errors.InvalidShape, r"arms must be the 6 fixed arms .*, got 4 arms. .* init\(3\)"),
        (3, ARMS[:, :2], 0, errors.InvalidShape, "arms must have the 3 features that the state was made for, got 2"),
        (3, np.full((6, 3), np.nan), 0, errors.InvalidFeatures, "NaN or infinity"),
        (
            ARMS,
            ARMS,
            -1,
            errors.InvalidArgument,
            "t must be a whole number of at least 0, the count of decisions before this one, got -1",
        ),
        (
            ARMS,
            ARMS,
            0.5,
            errors.InvalidArgument,
            "t must be a whole number of at least 0, the count of decisions .*, got 0.5",
        ),
        (ARMS, ARMS, "now", errors.InvalidArgument, "t must be a whole number of at least 0, .*, got 'now'"),
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
        (ARMS, 0, ARMS[0], [1.0, 0.0], errors.InvalidShape, r"reward must be one number, got shape \(2,\)"),
        (ARMS, 0, ARMS[0], "good", errors.InvalidReward, "reward must be a number"),
        (
            ARMS,
            6,
            ARMS[0],
            1.0,
            errors.InvalidArgument,
            "arm must be a whole number from 0 to 5, the index of the arm that was pulled, got 6",
        ),
        (ARMS, -1, ARMS[0], 1.0, errors.InvalidArgument, "arm must be a whole number from 0 to 5, .*, got -1"),
        (ARMS, 0.0, ARMS[0], 1.0, errors.InvalidArgument, "arm must be a whole number from 0 to 5, .*, got 0.0"),
        (ARMS, True, ARMS[1], 1.0, errors.InvalidArgument, "arm must be a whole number from 0 to 5, .*, got True"),
        (
            ARMS,
            0,
            ARMS[1],
            1.0,
            errors.InvalidArgument,
            "x must be the row of arm 0 that the state was made with, got other",
        ),
        (ARMS, 0, ARMS[0, :2], 1.0, errors.InvalidShape, r"x must have shape \(3,\), got \(2,\)"),
        (ARMS, 0, ARMS, 1.0, errors.InvalidShape, r"x must have shape \(3,\), got \(6, 3\)"),
        (ARMS, 0, np.full(3, np.nan), 1.0, errors.InvalidFeatures, "x must be finite, got NaN or infinity"),
        (3, 0, np.full(3, np.inf), 1.0, errors.InvalidFeatures, "x must be finite, got NaN or infinity"),
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
