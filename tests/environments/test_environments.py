"""Instances and rewards have the laws the paper asks for, and are the same however they are drawn.

Statistical tests have fixed seeds; each one's false-alarm rate is at most FALSE_ALARM = 1e-6.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats

import explorax.environments as environments
from explorax.environments import Environment, gaussian, logistic, make, poisson
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName
from explorax.glm import families
from explorax.log.data import LoggedData
from tests.statistics import FALSE_ALARM

NAMES = ("logistic", "gaussian", "poisson")
MEANS = {"logistic": special.expit, "gaussian": lambda score: score, "poisson": np.exp}
KEY = jax.random.key(7)
ARMS = np.random.default_rng(0).uniform(-1, 1, (6, 3))
THETA = np.array([0.5, -1.0, 0.25])


@functools.cache
def small(name, arms_change=False):
    """8 arms of 3 features, compiled once for all tests."""
    return make(name, n_features=3, n_arms=8, arms_change=arms_change)


def many(environment, count, seed=1):
    return jax.vmap(environment.draw)(jax.random.split(jax.random.key(seed), count))


both_kinds = pytest.mark.parametrize("arms_change", [False, True], ids=["fixed", "changing"])


def offered(environment, count=500):
    """The arms of many instances, or of many rounds of one where arms change."""
    if not environment.arms_change:
        return np.asarray(many(environment, count).arms)
    instance = environment.draw(KEY)
    return np.asarray(jax.vmap(environment.offer, (None, None, 0))(KEY, instance, jnp.arange(count)).arms)


def assert_same_bits(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


# Laws of the instances


@pytest.mark.parametrize(
    ("name", "given", "variance"),
    [
        ("logistic", None, 3 / 4),
        ("logistic", "printed", 3 / 16),
        ("poisson", 0.2, 0.2),
    ],
)
def test_arms_are_uniform_and_theta_is_normal(name, given, variance):
    drawn = many(make(name, n_features=4, n_arms=10, parameter_variance=given), 1000)
    for sample, law in ((drawn.arms, stats.uniform(-1, 2)), (drawn.theta, stats.norm(scale=variance**0.5))):
        assert stats.kstest(np.ravel(sample), law.cdf).pvalue > FALSE_ALARM / 3
    # No feature goes with another one, nor with θ: correlations of 1000 independent instances.
    columns = np.column_stack([drawn.arms[:, 0], drawn.arms[:, 1], drawn.theta])
    correlations = np.corrcoef(columns.T)[np.triu_indices(12, 1)]
    worst = np.max(np.abs(np.arctanh(correlations))) * np.sqrt(1000 - 3)
    assert 2 * stats.norm.sf(worst) > FALSE_ALARM / 3 / len(correlations)


@pytest.mark.parametrize(("given", "expected"), [(None, 1.0), ("printed", 1 / 5)])
def test_variance_of_a_score(given, expected):
    """It is 1 with 3/d as the paper says, and 1/d with the 3/d² that it prints."""
    d, count = 5, 20_000
    scores = np.asarray(many(logistic(n_features=d, n_arms=1, parameter_variance=given), count).scores, float)
    # Given x a score is normal, so E s⁴ = 3 v² E‖x‖⁴; E x_j⁴ = 1/5 and E x_j² = 1/3.
    fourth = 3 * (3 * expected / d) ** 2 * (d / 5 + d * (d - 1) / 9)
    error = (np.mean(scores**2) - expected) / np.sqrt((fourth - expected**2) / count)
    assert 2 * stats.norm.sf(abs(error)) > FALSE_ALARM


@both_kinds
def test_arms_with_one_nonzero_feature(arms_change):
    """Arm i has feature i mod d, with the value that it has where no feature is 0; so d arms span."""
    sparse = offered(logistic(n_features=3, n_arms=8, nonzero=1, arms_change=arms_change))
    dense = offered(small("logistic", arms_change))
    kept = np.arange(8)[:, None] % 3 == np.arange(3)
    np.testing.assert_array_equal(sparse, np.where(kept, dense, 0))
    assert np.linalg.matrix_rank(sparse[0, :3]) == 3


@both_kinds
def test_arms_with_some_nonzero_features(arms_change):
    """Two of four features: all six pairs are equally likely, and values are uniform."""
    arms = offered(logistic(n_features=4, n_arms=10, nonzero=2, arms_change=arms_change))
    assert np.all(np.sum(arms != 0, axis=2) == 2)
    pairs = np.bincount(np.ravel((arms != 0) @ [1, 2, 4, 8]), minlength=16)[[3, 5, 6, 9, 10, 12]]
    assert stats.chisquare(pairs).pvalue > FALSE_ALARM / 2
    assert stats.kstest(arms[arms != 0], stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM / 2


@both_kinds
def test_all_features_may_be_asked_for(arms_change):
    whole = logistic(n_features=3, n_arms=8, nonzero=3, arms_change=arms_change)
    np.testing.assert_array_equal(offered(whole, 4), offered(small("logistic", arms_change), 4))


@pytest.mark.parametrize("name", NAMES)
def test_the_best_arm_has_the_score_asked_for(name):
    """Only the length of θ changes, or its sign too where no arm would have a positive score."""
    free, scaled = (many(make(name, n_features=3, n_arms=2, **more), 100) for more in ({}, {"best_score": 5.0}))
    np.testing.assert_array_equal(scaled.arms, free.arms)
    np.testing.assert_allclose(np.max(scaled.scores, axis=1), 5, rtol=1e-5)
    np.testing.assert_allclose(np.max(scaled.means, axis=1), MEANS[name](5.0), rtol=1e-4)
    lengths = np.linalg.norm(scaled.theta, axis=1) / np.linalg.norm(free.theta, axis=1)
    signs = np.where(np.max(free.scores, axis=1) > 0, 1, -1)
    np.testing.assert_allclose(scaled.theta, free.theta * (signs * lengths)[:, None], rtol=1e-5)
    assert set(signs) == {-1, 1}  # two arms: in a quarter of the instances both are worse than nothing


def test_scores_that_vanish_are_not_scaled():
    for arms in (np.zeros((4, 3)), np.full((4, 3), 1e-200)):
        instance = logistic(fixed_arms=arms, best_score=5.0).draw(KEY)
        np.testing.assert_array_equal(instance.theta, logistic(fixed_arms=arms).draw(KEY).theta)
        np.testing.assert_array_equal(instance.means, 0.5)
    tiny = logistic(fixed_arms=np.full((4, 3), 1e-100), best_score=5.0).draw(KEY)
    np.testing.assert_allclose(tiny.scores, 5.0)


# Laws of the rewards


def rewards(environment, count=5000, arm=2):
    instance = environment.draw(KEY)
    offer = environment.offer(KEY, instance, 0)
    keys = jax.random.split(jax.random.key(9), count)
    drawn = jax.vmap(environment.reward, (0, None, None))(keys, offer, arm)
    return np.asarray(drawn, float), float(np.asarray(offer.arms, float)[arm] @ np.asarray(instance.theta, float))


@both_kinds
def test_logistic_rewards(arms_change):
    drawn, score = rewards(small("logistic", arms_change))
    assert set(drawn) == {0.0, 1.0}
    assert stats.binomtest(int(drawn.sum()), len(drawn), special.expit(score)).pvalue > FALSE_ALARM


@pytest.mark.parametrize(
    ("environment", "noise_std"),
    [(small("gaussian"), 1.0), (gaussian(n_features=3, n_arms=8, arms_change=True, noise_std=0.3), 0.3)],
    ids=["fixed", "changing"],
)
def test_gaussian_rewards(environment, noise_std):
    drawn, score = rewards(environment)
    assert stats.kstest(drawn, stats.norm(score, noise_std).cdf).pvalue > FALSE_ALARM


@both_kinds
def test_poisson_rewards(arms_change):
    drawn, score = rewards(small("poisson", arms_change))
    law, counts = stats.poisson(np.exp(score)), np.arange(8)
    expected = np.append(law.pmf(counts), law.sf(7)) * len(drawn)
    seen = np.append(np.bincount(drawn.astype(int), minlength=8)[:8], np.sum(drawn > 7))
    enough = expected > 20
    pooled = [np.append(cells[enough], cells[~enough].sum()) for cells in (seen, expected)]
    assert stats.chisquare(*pooled).pvalue > FALSE_ALARM


# Identities


@pytest.mark.parametrize("name", NAMES)
@both_kinds
def test_means_are_those_of_the_family(name, arms_change):
    environment = small(name, arms_change)
    assert environment[:3] == (name, 3, arms_change)
    instance = environment.draw(KEY)
    offer = environment.offer(KEY, instance, 5)
    assert offer.arms.shape == (8, 3)
    scores = np.asarray(offer.arms, float) @ np.asarray(instance.theta, float)
    np.testing.assert_allclose(offer.scores, scores, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(offer.means, MEANS[name](scores), rtol=1e-5, atol=1e-6)


def test_defaults_are_the_papers():
    instance = logistic(n_features=5).draw(KEY)
    assert instance.arms.shape == (100, 5)
    assert_same_bits(
        instance, logistic(n_features=5, parameter_variance=3 / 5, n_arms=100, arms_change=False).draw(KEY)
    )


def test_fixed_arms_stay_and_changing_ones_change():
    fixed, changing = small("logistic"), small("logistic", True)
    instance = fixed.draw(KEY)
    for t in range(3):
        assert fixed.offer(jax.random.key(t), instance, t).arms is instance.arms
    other = changing.draw(KEY)
    assert_same_bits(other.theta, instance.theta)
    # One key serves all rounds, and another key gives other arms.
    rounds = jax.vmap(changing.offer, (None, None, 0))(KEY, other, jnp.arange(500)).arms
    assert_same_bits(rounds[3], changing.offer(KEY, other, 3).arms)
    assert len(np.unique(np.asarray(rounds)[:, 0, 0])) > 490
    assert not np.any(rounds[3] == changing.offer(jax.random.key(8), other, 3).arms)
    assert stats.kstest(np.ravel(rounds), stats.uniform(-1, 2).cdf).pvalue > FALSE_ALARM


def test_what_is_given_replaces_only_itself():
    drawn = small("logistic").draw(KEY)
    with_arms, with_theta = logistic(fixed_arms=ARMS), logistic(theta=THETA, n_arms=8)
    assert with_arms.n_features == with_theta.n_features == 3
    np.testing.assert_array_equal(with_arms.draw(KEY).arms, ARMS)
    np.testing.assert_array_equal(with_arms.draw(KEY).theta, drawn.theta)
    np.testing.assert_array_equal(with_theta.draw(KEY).theta, THETA)
    np.testing.assert_array_equal(with_theta.draw(KEY).arms, drawn.arms)
    both = logistic(fixed_arms=ARMS.tolist(), theta=THETA.tolist(), n_features=3, n_arms=6)
    for seed in range(2):
        instance = both.draw(jax.random.key(seed))
        np.testing.assert_allclose(instance.means, special.expit(ARMS @ THETA), rtol=1e-12)
    changing = poisson(theta=THETA, n_arms=6, arms_change=True)
    offer = changing.offer(KEY, changing.draw(KEY), 0)
    np.testing.assert_allclose(offer.means, np.exp(np.asarray(offer.arms) @ THETA), rtol=1e-12)


@pytest.mark.parametrize(("name", "arms_change"), [("logistic", False), ("gaussian", True)])
def test_dtype_is_float32_unless_arrays_say_otherwise(name, arms_change):
    for given, dtype in (
        ({"n_features": 3}, np.float32),
        ({"theta": np.float32(THETA)}, np.float32),
        ({"theta": THETA}, np.float64),
    ):
        environment = make(name, arms_change=arms_change, **given)
        instance = environment.draw(KEY)
        offer = environment.offer(KEY, instance, 0)
        found = (*jax.tree.leaves(instance), *offer, environment.reward(KEY, offer, 0))
        assert {leaf.dtype for leaf in found} == {np.dtype(dtype)}
    assert logistic(fixed_arms=np.float32(ARMS), theta=THETA).draw(KEY).means.dtype == np.float64


# Batches and compiled loops


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("logistic", {"n_features": 20}),
        ("poisson", {"n_features": 5}),
        ("gaussian", {"n_features": 5, "nonzero": 2, "best_score": 3.0}),
    ],
)
def test_batches_of_any_size_draw_the_same(name, settings):
    environment = make(name, **settings)
    keys = jax.random.split(jax.random.key(3), 60)
    large = jax.jit(jax.vmap(environment.draw))(keys)
    seven = jax.vmap(environment.draw)(keys[:7])
    assert_same_bits(seven, jax.tree.map(lambda leaf: leaf[:7], large))
    for i in range(7):
        assert_same_bits(environment.draw(keys[i]), jax.tree.map(lambda leaf, i=i: leaf[i], large))


@pytest.mark.parametrize(("name", "arms_change"), [("logistic", False), ("gaussian", True), ("poisson", True)])
def test_a_compiled_loop_over_a_batch_sees_what_plain_calls_see(name, arms_change):
    environment = small(name, arms_change)

    def play(key, t, instance):
        offer = environment.offer(key, instance, t)
        return environment.reward(jax.random.fold_in(key, t), offer, t % 8), offer.means

    def rounds(key):
        instance = environment.draw(key)
        return jax.lax.scan(lambda _, t: (None, play(key, t, instance)), None, jnp.arange(10))[1]

    keys = jax.random.split(KEY, 7)
    rewards, means = jax.jit(jax.vmap(rounds))(keys)
    for i in (0, 6):
        instance = environment.draw(keys[i])
        for t in (0, 9):
            reward, expected = play(keys[i], t, instance)
            np.testing.assert_allclose(rewards[i, t], reward, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(means[i, t], expected, rtol=1e-5)


def largest_result(jaxpr):
    """The size of the largest array that a traced function computes."""
    sizes = [0]
    for equation in jaxpr.eqns:
        inner = [value for value in equation.params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
        sizes += [largest_result(getattr(value, "jaxpr", value)) for value in inner]
        sizes += [variable.aval.size for variable in equation.outvars if hasattr(variable.aval, "size")]
    return max(sizes)


@pytest.mark.parametrize("name", NAMES)
@both_kinds
def test_a_reward_costs_the_same_however_many_arms(name, arms_change):
    environment = make(name, n_features=3, n_arms=997, arms_change=arms_change)
    instance = jax.eval_shape(environment.draw, KEY)
    offer = jax.eval_shape(environment.offer, KEY, instance, 0)
    assert largest_result(jax.make_jaxpr(environment.reward)(KEY, offer, 5).jaxpr) < 100
    if not arms_change:
        assert largest_result(jax.make_jaxpr(environment.offer)(KEY, instance, 0).jaxpr) == 0


def test_environments_can_be_built_in_compiled_code():
    def best(theta):
        environment = logistic(theta=theta, fixed_arms=ARMS)
        return jnp.max(environment.draw(KEY).means)

    thetas = np.stack([THETA, 2 * THETA])
    np.testing.assert_allclose(jax.vmap(best)(thetas), np.max(special.expit(thetas @ ARMS.T), axis=1), rtol=1e-12)
    assert jax.jit(lambda key: poisson(n_features=2, n_arms=4).draw(key).means)(KEY).shape == (4,)


# Names and errors


def test_make():
    for name in NAMES:
        assert isinstance(make(name, n_features=2), Environment)
        assert getattr(environments, name) is environments.BUILDERS[name]
    assert make("Logistic", n_features=2).name == "logistic"
    with pytest.raises(UnknownName, match="Did you mean 'logistic'"):
        make("logistics", n_features=2)
    with pytest.raises(UnknownName, match="Did you mean 'n_features'"):
        make("logistic", feature=2)
    with pytest.raises(UnknownName, match=r"setting of logistic must be one of .*, got 'noise_std'"):
        make("logistic", noise_std=2.0, n_features=2)
    with pytest.raises(InvalidArgument, match="name must be the name of an environment, such as 'logistic', got 3"):
        make(3)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({}, InvalidArgument, "n_features must be the number of features, got None. Give it"),
        ({"n_features": 0}, InvalidArgument, "n_features must be a whole number of at least 1, got 0"),
        ({"n_features": 2.5}, InvalidArgument, "n_features must be a whole number of at least .*, got 2.5"),
        ({"n_features": True}, InvalidArgument, "n_features must be a whole number of at least .*, got True"),
        ({"n_features": 3, "n_arms": 0}, InvalidArgument, "n_arms must be a whole number of at least .*, got 0"),
        (
            {"n_features": 3, "n_arms": 10**11},
            InvalidArgument,
            "arms times features must be at most .*, got 10{11} times 3",
        ),
        ({"n_features": 3, "padded_to": 10**11}, InvalidArgument, "got 100 times 10{11}"),
        ({"n_features": 3, "n_arms": -4}, InvalidArgument, "n_arms must be a whole number of at least .*, got -4"),
        (
            {"n_features": 3, "parameter_variance": 0.0},
            InvalidArgument,
            "parameter_variance must be a finite number above 0, got 0.0",
        ),
        (
            {"n_features": 3, "parameter_variance": -1.0},
            InvalidArgument,
            "parameter_variance must be a finite number above 0, got -1.0",
        ),
        (
            {"n_features": 3, "parameter_variance": float("nan")},
            InvalidArgument,
            "parameter_variance must be a finite number above 0, got nan",
        ),
        (
            {"n_features": 3, "parameter_variance": "print"},
            InvalidArgument,
            "got 'print'. Leave it out for 3/d, or give 'printed' for the paper's",
        ),
        (
            {"theta": THETA, "parameter_variance": 1.0},
            InvalidArgument,
            "parameter_variance must be left out if theta is given, got 1.0",
        ),
        ({"n_features": 3, "arms_change": 1}, InvalidArgument, "arms_change must be True or False, got 1"),
        (
            {"fixed_arms": ARMS, "arms_change": True},
            InvalidArgument,
            "fixed_arms must be left out if arms_change=True, got both",
        ),
        (
            {"n_features": 3, "nonzero": 0},
            InvalidArgument,
            "nonzero must be a whole number from 1 to n_features=3, got 0",
        ),
        (
            {"n_features": 3, "nonzero": 4},
            InvalidArgument,
            "nonzero must be a whole number from 1 to n_features=3, got 4",
        ),
        (
            {"n_features": 3, "nonzero": True},
            InvalidArgument,
            "nonzero must be a whole number from 1 to n_features=3, got True",
        ),
        (
            {"n_features": 3, "nonzero": 1.0},
            InvalidArgument,
            "nonzero must be a whole number from 1 to n_features=3, got 1.0",
        ),
        (
            {"n_features": 9, "n_arms": 8, "nonzero": 1},
            InvalidArgument,
            "n_arms must be at least n_features=9 if nonzero=1, .*, got 8",
        ),
        (
            {"fixed_arms": ARMS, "nonzero": 1},
            InvalidArgument,
            "nonzero must be left out if fixed_arms are given, got 1",
        ),
        ({"n_features": 3, "best_score": 0.0}, InvalidArgument, "best_score must be a finite number above 0, got 0.0"),
        ({"n_features": 3, "best_score": -1}, InvalidArgument, "best_score must be a finite number above 0, got -1"),
        (
            {"n_features": 3, "best_score": float("nan")},
            InvalidArgument,
            "best_score must be a finite number above 0, got nan",
        ),
        (
            {"n_features": 3, "best_score": 5, "arms_change": True},
            InvalidArgument,
            "best_score must be left out if arms_change=True, got 5",
        ),
        (
            {"theta": THETA, "best_score": 5.0},
            InvalidArgument,
            "best_score must be left out if theta is given, got 5.0",
        ),
        (
            {"n_features": 3, "best_score": 5.0, "parameter_variance": 1.0},
            InvalidArgument,
            "parameter_variance must be left out if best_score is given, got 1.0",
        ),
        ({"fixed_arms": ARMS, "n_arms": 7}, InvalidShape, "n_arms must be 6, the number of rows of fixed_arms, got 7"),
        (
            {"fixed_arms": ARMS, "n_features": 4},
            InvalidShape,
            "must be the same, got n_features = 4, the columns of fixed_arms = 3",
        ),
        ({"fixed_arms": ARMS, "theta": THETA[:2]}, InvalidShape, "the length of theta = 2"),
        ({"fixed_arms": ARMS[0]}, InvalidShape, "fixed_arms must have one row of features for each arm, got shape"),
        (
            {"fixed_arms": np.zeros((0, 3))},
            InvalidShape,
            "fixed_arms must have one row of features for each arm, got shape",
        ),
        ({"theta": ARMS}, InvalidShape, "theta must be a vector with one number for each feature, got shape"),
        ({"theta": []}, InvalidShape, "theta must be a vector with one number for each feature, got shape"),
        ({"theta": [1.0, np.nan]}, InvalidFeatures, "theta must be finite, got NaN or infinity"),
        ({"fixed_arms": [[1.0, np.inf]]}, InvalidFeatures, "fixed_arms must be finite, got NaN or infinity"),
        ({"fixed_arms": "arms"}, InvalidFeatures, "fixed_arms must be an array of numbers, got 'arms'"),
    ],
)
@pytest.mark.parametrize("name", NAMES)
def test_bad_settings(name, settings, error, message):
    with pytest.raises(error, match=message):
        make(name, **settings)


@pytest.mark.parametrize("noise_std", [0.0, -1.0, float("inf"), "1"])
def test_bad_noise(noise_std):
    with pytest.raises(InvalidArgument, match=r"noise_std must be a finite number above 0, got "):
        gaussian(n_features=3, noise_std=noise_std)


@pytest.mark.parametrize(
    "settings",
    [
        {"theta": [30.0], "fixed_arms": [[1.0], [-1.0]]},
        {"theta": [15.0, -15.0]},
        {"n_features": 4, "parameter_variance": 100.0},
        {"fixed_arms": [[100.0, 0.0]]},
        {"n_features": 2, "best_score": 30.0},
    ],
)
def test_poisson_means_must_be_countable(settings):
    with pytest.raises(InvalidFeatures, match="poisson mean too large"):
        poisson(**settings)
    logistic(**settings)


def test_means_that_overflow_are_refused_and_tiny_ones_are_not():
    with pytest.raises(InvalidFeatures, match="gaussian mean too large"):
        gaussian(theta=[-1e30], fixed_arms=[[1.0], [1e20]])
    assert poisson(theta=[-60.0], fixed_arms=[[1.0]]).draw(KEY).means[0] < 1e-20
    assert poisson(theta=[15.0, -15.0], nonzero=1, n_arms=2).n_features == 2  # a score cannot add these up


def test_bad_arguments_of_the_functions():
    environment = small("logistic")
    instance = environment.draw(KEY)
    offer = environment.offer(KEY, instance, 0)
    with pytest.raises(
        InvalidArgument, match="arm must be a whole number from 0 to 7, the index of the arm that was pulled, got 8"
    ):
        environment.reward(KEY, offer, 8)
    with pytest.raises(
        InvalidArgument, match="t must be a whole number of at least 0, the count of rounds before this one, got -1"
    ):
        environment.offer(KEY, instance, -1)
    batch, offers = (jax.tree.map(lambda leaf: leaf[None], one) for one in (instance, offer))
    with pytest.raises(InvalidShape, match=r"Use jax\.vmap for a batch"):
        environment.reward(KEY, offers, 0)
    with pytest.raises(InvalidShape, match=r"Use jax\.vmap for a batch"):
        environment.offer(KEY, batch, 0)


def test_every_environment_names_the_family_of_its_rewards():
    log = LoggedData(np.array([0, 1]), np.array([1, 0]), None, ["red", "blue"])
    own = {"classification": {"data": (np.eye(4), [0, 0, 1, 1])}, "from_log": {"data": log}}
    for name in environments.BUILDERS:
        settings = own.get(name, {"n_features": 2})
        assert make(name, **settings).family == environments.family_of(name, settings)
        assert environments.family_of(name, settings) in families.FAMILIES
    assert environments.family_of("Poisson") == "poisson"
    with pytest.raises(UnknownName, match=r"environment must be one of .*, got 'poison'. Did you mean 'poisson'"):
        environments.family_of("poison")
