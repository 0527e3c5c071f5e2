"""Reward models: the past only, against scikit-learn and closed forms, cut to the range, bad input."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from explorax import LoggedData
from explorax.errors import InvalidArgument, InvalidReward, InvalidShape, UnknownName
from explorax.evaluation.reward_models import CONSTANT, FIRST, FOLDS, MOST, cross, past, predictions, suitable_family
from explorax.log.features import FixedFeatures

ROWS, ARMS = 500, 3


def logged(kind="given", binary=True, seed=0):
    rng = np.random.default_rng(seed)
    tables, matrix = rng.normal(size=(ROWS, ARMS, 2)), rng.normal(size=(ARMS, 2))
    arms = rng.integers(0, ARMS, ROWS)
    x = (tables if kind == "given" else np.broadcast_to(matrix, (ROWS, ARMS, 2)))[np.arange(ROWS), arms]
    score = x @ [1.0, -2.0] + 0.5
    rewards = (rng.random(ROWS) < 1 / (1 + np.exp(-score))) if binary else score + rng.normal(size=ROWS)
    features = {"given": tables, "fixed": matrix, "none": None}[kind]
    return LoggedData.of(arms, rewards.astype(float), names=range(ARMS), features=features)


@pytest.mark.parametrize("count", [1, 10, FIRST, FIRST + 1, 1000, 300_000])
def test_fits_to_the_past_are_few_and_use_earlier_rows_only(count):
    parts = list(past(count))
    covered = np.concatenate([np.arange(count)[part] for _, part in parts])
    np.testing.assert_array_equal(covered, np.arange(count))
    assert all(len(rows) == 0 or rows.max() < part.start for rows, part in parts)
    assert len(parts) <= 1 + max(0, np.ceil(np.log2(count / FIRST)))
    assert sum(len(rows) for rows, _ in parts) <= 2 * count
    assert max(len(rows) for rows, _ in parts) <= MOST


def test_folds_never_see_the_rows_that_they_predict():
    for rows, part in cross(103):
        assert not set(rows) & set(np.arange(103)[part])
    assert sorted(np.concatenate([np.arange(103)[part] for _, part in cross(103)])) == list(range(103))


@pytest.mark.parametrize("kind", ["given", "fixed", "none"])
@pytest.mark.parametrize("model", ["glm", DecisionTreeRegressor(max_depth=3)], ids=["glm", "tree"])
def test_a_later_reward_changes_nothing_before(kind, model):
    log = logged(kind)
    before = predictions(log, model, "past").at(np.arange(ROWS))
    for changed in (FIRST - 1, FIRST, 200, ROWS - 1):
        rewards = log.rewards.copy()
        rewards[changed:] = 1 - rewards[changed:]
        other = LoggedData(log.arms, rewards, log.features, log.names)
        after = predictions(other, model, "past").at(np.arange(ROWS))
        np.testing.assert_array_equal(after[: changed + 1], before[: changed + 1])
    so_far = np.cumsum(log.rewards)[: FIRST - 1] / np.arange(2, FIRST + 1)
    np.testing.assert_allclose(before[1:FIRST], np.tile(so_far[:, None], 3))  # means, before the first fit


def test_a_fold_is_predicted_without_its_rewards():
    log = logged()
    before = predictions(log, "glm", "cross").at(np.arange(ROWS))
    rewards = log.rewards.copy()
    rewards[::FOLDS] = 1 - rewards[::FOLDS]
    after = predictions(LoggedData(log.arms, rewards, log.features, log.names), "glm", "cross").at(np.arange(ROWS))
    np.testing.assert_array_equal(after[::FOLDS], before[::FOLDS])
    assert not np.allclose(after[1::FOLDS], before[1::FOLDS])


@pytest.mark.parametrize("kind", ["given", "fixed"])
def test_the_logistic_model_is_that_of_scikit_learn(kind):
    log = logged(kind)
    tables = log.features.table(np.arange(ROWS))
    design = np.concatenate([np.full((ROWS, ARMS, 1), CONSTANT), tables], axis=2)
    rows = np.arange(ROWS)
    out = rows % FOLDS == 1
    oracle = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    oracle.fit(design[rows, log.arms][~out], log.rewards[~out])
    wanted = oracle.predict_proba(design[out].reshape(-1, 3))[:, 1].reshape(-1, ARMS)
    found = predictions(log, "glm", "cross", (0, 1)).at(rows[out])
    np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_the_linear_model_is_ridge_regression():
    log, rows = logged(binary=False), np.arange(ROWS)
    assert suitable_family(log.rewards) == "gaussian"
    design = np.concatenate([np.full((ROWS, ARMS, 1), CONSTANT), log.features.table(rows)], axis=2)
    x, y = design[:256][np.arange(256), log.arms[:256]], log.rewards[:256]
    theta = np.linalg.solve(x.T @ x + np.eye(3), x.T @ y)
    wanted = np.clip(design[256:] @ theta, y.min(), y.max())
    np.testing.assert_allclose(predictions(log).at(rows[256:]), wanted, atol=1e-8)


def test_a_classifier_predicts_the_mean_of_its_classes():
    log = logged("none")
    rewards = np.where(log.rewards > 0, 2.0, -1.0)
    valued = LoggedData(log.arms, rewards, None, log.names)
    found = predictions(valued, DecisionTreeClassifier(), "cross", (-1, 2)).at(np.arange(0, ROWS, FOLDS))
    kept = np.arange(ROWS) % FOLDS != 0
    means = [rewards[kept & (log.arms == arm)].mean() for arm in range(ARMS)]
    np.testing.assert_allclose(found, np.broadcast_to(means, found.shape))


def test_a_model_that_is_given_is_not_fitted():
    model = HistGradientBoostingRegressor(max_iter=2)
    predictions(logged(), model).at(np.arange(ROWS))
    assert not hasattr(model, "n_iter_")


def test_predictions_stay_in_the_range_that_is_known():
    log = logged(binary=False)
    assert predictions(log, "gaussian", reward_range=(-20, 10)).at(np.arange(1)).tolist() == [[-5.0] * 3]
    low, high = log.rewards.min() - 1, log.rewards.max() + 1
    far = LoggedData.of(log.arms, log.rewards, names=range(ARMS), features=100 * log.features.tables)
    for fitted in ("past", "cross"):
        found = predictions(far, "glm", fitted, (low, high)).at(np.arange(ROWS))
        assert low <= found.min() <= found.max() <= high


def test_predictions_that_are_given_are_used_as_they_are():
    table = np.random.default_rng(0).normal(size=(ROWS, ARMS))
    np.testing.assert_array_equal(predictions(logged(), table).at(np.array([3, 1])), table[[3, 1]])
    assert predictions(logged(), None) is None


BAD = [
    ({"model": "glmm"}, UnknownName, "Did you mean 'glm'"),
    ({"fitted": "pats"}, UnknownName, "fitted must be one of cross, past, got 'pats'"),
    ({"model": np.zeros((ROWS, ARMS + 1))}, InvalidShape, r"must have shape \(500, 3\)"),
    ({"model": np.full((ROWS, ARMS), np.nan)}, InvalidArgument, "got NaN or infinity"),
    ({"model": object()}, InvalidArgument, "reward_model must be 'glm', a reward family"),
]


@pytest.mark.parametrize(("given", "kind", "said"), BAD)
def test_bad_input(given, kind, said):
    with pytest.raises(kind, match=said):
        predictions(logged(), **given)


def test_a_family_that_cannot_pay_the_rewards():
    with pytest.raises(InvalidReward, match="rewards must be between 0 and 1 for reward_model='bernoulli', got"):
        predictions(logged(binary=False), "bernoulli")


def test_rare_rewards_are_predicted_to_be_rare():
    """A model of few rows, of which hardly any paid, is not drawn to one half by its ridge."""
    rng = np.random.default_rng(0)
    rewards = (rng.random(600) < 0.01).astype(float)
    log = LoggedData(rng.integers(0, 3, 600), rewards, FixedFeatures(np.eye(3)), list("abc"))
    found = predictions(log, "glm", "past", (0.0, 1.0)).at(np.arange(600))
    assert np.all(found[FIRST : 2 * FIRST] < 0.05)
    assert abs(found[2 * FIRST :].mean() - 0.01) < 0.01
