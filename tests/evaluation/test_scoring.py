"""Scores in blocks: the same as at once, and those of the policy that made the log."""

import numpy as np
import pytest

from explorax import LoggedData
from explorax.evaluation import scoring
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import interval_of_difference
from explorax.evaluation.propensity_models import logged
from explorax.evaluation.reward_models import predictions
from explorax.evaluation.scores import scored
from explorax.evaluation.scoring import Basis, scores_of, scores_of_logging
from explorax.evaluation.targets import Computed, Given
from tests.helpers import assert_same

ROWS = 700


def basis(first=0, model=True):
    rng = np.random.default_rng(0)
    every = rng.dirichlet(np.ones(3) * 5, ROWS)
    arms = (rng.random((ROWS, 1)) > np.cumsum(every, axis=1)).sum(axis=1)
    rewards, tables = rng.integers(0, 2, ROWS).astype(float), rng.normal(size=(ROWS, 3, 2))
    log = LoggedData.of(arms, rewards, names=[0, 1, 2], features=tables, all_propensities=every)
    return Basis(log, first, logged(log), predictions(log) if model else None, (0.0, 1.0), None)


def first_arm(features, offered):
    return np.eye(3)[np.argmax(features[..., 0], axis=1)]


@pytest.mark.parametrize("first", [0, 123])
@pytest.mark.parametrize("model", [True, False])
def test_blocks_change_nothing(first, model, monkeypatch):
    made = basis(first, model)
    table = np.random.default_rng(1).dirichlet(np.ones(3), ROWS)
    targets = {"given": Given(table), "first": Computed(first_arm)}
    whole = scores_of(targets, made)
    rows, log = np.arange(first, ROWS), made.log
    wanted = scored(
        log.rewards[rows],
        log.arms[rows],
        log.propensities[rows],
        table[rows],
        made.predictions.at(rows) if model else None,
        log.all_propensities[rows],
        (0.0, 1.0),
    )
    assert_same(whole["given"], wanted, rtol=1e-12, atol=1e-12)
    for name, value in (("NUMBERS", 100), ("LEAST_ROWS", 7), ("MOST_ROWS", 50)):
        monkeypatch.setattr(scoring, name, value)
    assert len(list(made.blocks())) > 10
    assert_same(scores_of(targets, made), whole, rtol=1e-12, atol=1e-12)


def test_what_nobody_reads_is_not_made(monkeypatch):
    made = basis(model=False)
    monkeypatch.setattr(type(made.log.features), "table", lambda self, rows: pytest.fail("a table was made"))
    scores_of({"given": Given(np.full((ROWS, 3), 1 / 3))}, made)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_estimate_of_the_policy_of_the_log_is_its_mean_reward(estimator):
    rewards = np.random.default_rng(0).uniform(-1, 3, 200)
    found = ESTIMATORS[estimator].estimate(scores_of_logging(rewards, (-1, 3)))
    assert found.value == pytest.approx(rewards.mean(), abs=1e-12)


def test_the_policy_of_the_log_as_a_target_does_not_differ_from_it():
    made = basis()
    target = scores_of({"same": Given(made.log.all_propensities)}, made)["same"]
    others = scores_of_logging(made.log.rewards, (0.0, 1.0))
    for kind, estimator in (("anytime", "dr"), ("betting", "ips"), ("asymptotic", "dr"), ("asymptotic", "adaptive_dr")):
        found = interval_of_difference(kind, estimator, target, others)
        assert found.low <= 0 <= found.high
