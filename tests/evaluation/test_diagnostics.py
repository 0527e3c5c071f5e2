"""Diagnoses: numbers from definitions, verdicts of good and bad logs, false alarms, bad input."""

import numpy as np
import pytest

from explorax.errors import InvalidArgument
from explorax.evaluation import diagnostics
from explorax.evaluation.diagnostics import diagnose
from explorax.evaluation.scores import scored
from explorax.log.data import LoggedData
from tests.evaluation.logs import TARGET, adaptive_log, independent_log


def data_of(log, vector=True, propensities=None, offered=None):
    """Return a log as the record that is diagnosed."""
    chosen = log.every[np.arange(len(log.arms)), log.arms] if propensities is None else propensities
    return LoggedData(
        log.arms,
        log.rewards,
        None,
        ("a", "b", "c"),
        chosen,
        offered,
        log.every if vector and propensities is None else None,
    )


def diagnosed(log, target=TARGET, vector=True, propensities=None):
    """Return the diagnosis of a log, perhaps with wrong propensities."""
    data = data_of(log, vector, propensities)
    scores = scored(
        data.rewards, data.arms, data.propensities, target[log.contexts], all_propensities=data.all_propensities
    )
    return diagnose(data, scores)


@pytest.mark.parametrize("block", [7, 10_000])
def test_numbers_are_their_definitions(block, monkeypatch):
    monkeypatch.setattr(diagnostics, "BLOCK", block)
    log = independent_log(np.random.default_rng(0), 1000)
    target = np.array([[0.0, 0.5, 0.5], [0.3, 0.3, 0.4]])
    found = diagnosed(log, target)
    weights = (target[log.contexts] / log.every)[np.arange(1000), log.arms]
    np.testing.assert_allclose(found.effective, weights.sum() ** 2 / (weights**2).sum(), rtol=1e-12)
    np.testing.assert_allclose(found.top, np.sort(weights)[-10:].sum() / weights.sum(), rtol=1e-12)
    assert found.largest == weights.max()
    assert found.unused == np.mean(weights == 0)
    assert found.rows == 1000
    assert found.unsupported == found.rare == 0
    np.testing.assert_allclose(
        found.mean_weights, [weights.mean(), weights[:500].mean(), weights[500:].mean()], rtol=1e-12
    )
    off = weights[:500] - 1
    np.testing.assert_allclose(found.deviations[1], off.sum() / np.sqrt((off**2).sum()), rtol=1e-12)
    for each in found.calibration:
        low, high = map(float, each.label.split(" to "))
        inside = (log.every > low) & (log.every <= high)
        assert each.observed == sum(inside[t, arm] for t, arm in enumerate(log.arms))
        np.testing.assert_allclose(each.expected, log.every[inside].sum(), atol=1e-9)
        sums = [row[kept].sum() for row, kept in zip(log.every, inside, strict=True)]
        spread = np.sqrt(sum(p * (1 - p) for p in sums))  # of a sum of independent bits
        if spread > 0:
            np.testing.assert_allclose(each.deviation, (each.observed - each.expected) / spread, rtol=1e-9)
    assert sum(each.observed for each in found.calibration) == 1000


def test_calibration_of_arms_without_all_propensities():
    log = independent_log(np.random.default_rng(1), 500)
    found = diagnosed(log, vector=False)
    chosen = log.every[np.arange(500), log.arms]
    assert found.by_arm
    assert found.unsupported is found.rare is None
    assert [each.label for each in found.calibration] == ["a", "b", "c"]
    for arm, each in enumerate(found.calibration):
        np.testing.assert_allclose(each.observed, np.sum(1 / chosen[log.arms == arm]), rtol=1e-12)
        assert each.expected == 500


def test_arms_count_where_they_were_on_offer():
    log = independent_log(np.random.default_rng(2), 400)
    offered = np.ones((400, 3), bool)
    offered[:100, 2] = log.arms[:100] == 2
    data = data_of(log, vector=False, offered=offered)
    scores = scored(data.rewards, data.arms, data.propensities, TARGET[log.contexts])
    assert diagnose(data, scores).calibration[2].expected == offered[:, 2].sum()


@pytest.mark.parametrize("vector", [True, False])
@pytest.mark.parametrize("make", [independent_log, adaptive_log])
def test_a_good_log_is_believed(make, vector):
    """Alarms of 4 standard errors in 12 numbers of 40 logs: by chance in fewer than 1 of 30 tests; seeds are fixed."""
    rng = np.random.default_rng(3)
    for _ in range(40):
        found = diagnosed(make(rng, 2500), vector=vector)
        assert found.verdict == "yes", found
        assert found.sentences()[0] == "The log can answer the question."


@pytest.mark.parametrize("vector", [True, False])
def test_wrong_propensities_are_found(vector):
    log = independent_log(np.random.default_rng(4), 3000)
    wrong = log._replace(every=np.full((3000, 3), 1 / 3))
    found = diagnosed(wrong, vector=vector)
    assert found.verdict == "no"
    assert "standard errors" in found.sentences()[1]


def test_certain_propensities_of_a_policy_that_is_not_certain_are_found():
    log = independent_log(np.random.default_rng(5), 3000)
    found = diagnosed(log, propensities=np.ones(3000))
    assert found.verdict == "no"


def test_a_target_that_the_log_does_not_show():
    every = np.tile([0.5, 0.5, 0.0], (1000, 1))
    log = independent_log(np.random.default_rng(6), 1000)
    log = log._replace(every=every, arms=np.arange(1000) % 2)
    found = diagnosed(log)
    np.testing.assert_allclose(found.unsupported, np.mean(TARGET[log.contexts, 2]))
    assert max(map(abs, found.deviations)) < 4  # the mean weight is what the supported part of the target makes it
    assert found.mean_weights[0] < 0.8
    assert found.verdict == "no"
    assert "had no chance in the log" in found.sentences()[1]
    nowhere = diagnosed(log, np.tile([0.0, 0.0, 1.0], (2, 1)))
    assert nowhere.effective == 0
    assert nowhere.verdict == "no"


def test_few_effective_rows_are_a_warning():
    log = independent_log(np.random.default_rng(7), 300)
    found = diagnosed(log)
    assert found.effective < 300
    assert found.verdict == "barely"
    assert found.sentences()[1].startswith("The 300 rows are worth")
    assert diagnosed(independent_log(np.random.default_rng(8), 40)).verdict == "no"


def test_a_policy_that_is_never_random_is_calibrated():
    rows = 800
    every = np.tile([1.0, 0.0, 0.0], (rows, 1))
    log = independent_log(np.random.default_rng(9), rows)._replace(every=every, arms=np.zeros(rows, int))
    found = diagnosed(log, np.tile([1.0, 0.0, 0.0], (2, 1)))
    assert all(each.deviation == 0 for each in found.calibration)
    assert found.verdict == "yes"


def test_bad_input_is_refused():
    log = independent_log(np.random.default_rng(0), 10)
    data = data_of(log)
    with pytest.raises(InvalidArgument, match="propensities must be in the log, got None"):
        diagnose(LoggedData(log.arms, log.rewards, None, ("a", "b", "c")), log.scores())
    with pytest.raises(InvalidArgument, match="scores must be those of the log's rows, at least 2, got 3 for 10 rows"):
        diagnose(data, log.scores().some(slice(3)))
    with pytest.raises(InvalidArgument, match="got 1 for 1 rows"):
        diagnose(data.some(slice(1)), log.scores().some(slice(1)))
