"""Estimated propensities: against the truth and against counts, rules that were never random, bad input."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from explorax import LoggedData
from explorax.errors import InvalidArgument
from explorax.evaluation.propensity_models import estimated, logged, situations

ROWS, ARMS = 3000, 3


def softmax_log(scale=1.0, seed=0, **others):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(ROWS, 2))
    scores = scale * contexts @ rng.normal(size=(2, ARMS))
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    arms = (rng.random((ROWS, 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
    rewards = rng.random(ROWS)
    return LoggedData.of(arms, rewards, names=range(ARMS), contexts=contexts, **others), chances


def test_estimates_are_near_the_truth_and_are_probabilities():
    log, truth = softmax_log()
    found = estimated(log)
    np.testing.assert_allclose(found.every.sum(axis=1), 1)
    np.testing.assert_array_equal(found.chosen, found.every[np.arange(ROWS), log.arms])
    assert np.abs(found.every - truth).mean() < 0.02
    assert found.random
    assert "LogisticRegression" in found.assumption
    assert "no unmeasured confounding" in found.assumption


def test_without_contexts_they_are_frequencies_of_the_other_parts():
    arms = np.array([0, 1, 1, 2, 1] * 40)
    found = estimated(LoggedData.of(arms, np.zeros(200), names=range(3)), DecisionTreeClassifier())
    for fold in range(5):
        kept = np.arange(200) % 5 != fold
        counts = np.bincount(arms[kept], minlength=3) / kept.sum()
        wanted = np.maximum(counts, 1 / 200)
        np.testing.assert_allclose(found.every[fold], wanted / wanted.sum())


def test_what_is_not_on_offer_has_no_chance():
    log, _ = softmax_log()
    offered = np.ones((ROWS, ARMS), bool)
    offered[np.arange(ROWS), (log.arms + 1) % ARMS] = False
    found = estimated(LoggedData(log.arms, log.rewards, None, log.names, offered=offered, contexts=log.contexts))
    assert not found.every[~offered].any()
    np.testing.assert_allclose(found.every.sum(axis=1), 1)
    assert found.chosen.min() >= 1 / ROWS / 2


@pytest.mark.parametrize("rule", ["always", "context"])
def test_a_rule_that_was_never_random_is_told_apart(rule):
    log, _ = softmax_log()
    arms = np.zeros(ROWS, int) if rule == "always" else (log.contexts[:, 0] > 0).astype(int)
    certain = LoggedData(arms, log.rewards, log.features, log.names, contexts=log.contexts)
    assert not estimated(certain).random
    assert not estimated(certain, DecisionTreeClassifier()).random
    one = LoggedData(arms, log.rewards, None, log.names, propensities=np.ones(ROWS))
    assert not logged(one).random


def test_propensities_of_the_log_are_taken_as_they_are():
    log, truth = softmax_log()
    chosen = truth[np.arange(ROWS), log.arms]
    found = logged(LoggedData(log.arms, log.rewards, None, log.names, chosen, all_propensities=truth))
    assert found.chosen is chosen
    assert found.every is truth
    assert found.random
    assert found.assumption == ""


def test_situations_are_what_was_known():
    log, _ = softmax_log()
    np.testing.assert_array_equal(situations(log), log.contexts)
    bare = LoggedData(log.arms, log.rewards, log.features, log.names)
    np.testing.assert_array_equal(situations(bare), log.contexts)
    fixed = LoggedData.of(log.arms, log.rewards, names=range(ARMS), features=np.eye(ARMS))
    np.testing.assert_array_equal(situations(fixed), np.zeros((ROWS, 1)))
    tables = np.random.default_rng(0).normal(size=(ROWS, ARMS, 2))
    given = LoggedData.of(log.arms, log.rewards, names=range(ARMS), features=tables)
    np.testing.assert_array_equal(situations(given), tables.reshape(ROWS, 6))


def test_bad_input():
    log, _ = softmax_log()
    with pytest.raises(InvalidArgument, match="propensities must be None, 'estimate' or a classifier"):
        estimated(log, LinearRegression())
    with pytest.raises(InvalidArgument, match="log must have at least 2 rows"):
        estimated(log.some(slice(1)))
