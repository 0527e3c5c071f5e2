"""Values and differences: the numbers of estimators and intervals, which intervals fit, bad input."""

import numpy as np
import pytest

from explorax import LoggedData
from explorax.errors import InvalidArgument, UnknownName
from explorax.evaluation.averages import average_interval
from explorax.evaluation.bounded import BOUNDED
from explorax.evaluation.comparing import (
    all_values,
    apart,
    checked_estimators,
    checked_level,
    difference,
    effective_rows,
)
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import Interval, interval, interval_of_difference
from explorax.evaluation.preparing import Prepared
from explorax.evaluation.propensity_models import Propensities
from explorax.evaluation.scoring import scores_of_logging
from tests.evaluation.logs import OTHER, independent_log

NAMES = [name for name in ESTIMATORS if name != "on_policy"]


@pytest.fixture(scope="module")
def found():
    """What a log says of two targets that are weighed, and of one that kept every third row."""
    made = independent_log(np.random.default_rng(0), 900)
    scores = {"one": made.scores(), "two": made.scores(OTHER)}
    log = LoggedData.of(made.arms, made.rewards, names=[0, 1, 2], all_propensities=made.every)
    kept = {"kept": scores_of_logging(made.rewards[::3], (0.0, 1.0))}
    weights = Propensities(log.propensities, log.all_propensities, True)
    return Prepared(log, scores_of_logging(made.rewards, (0.0, 1.0)), scores, kept, weights, (), {})


def test_rows_hold_what_estimators_and_intervals_say(found):
    logging, *rows = all_values(found, NAMES, None, 0.9)
    assert (logging.target, logging.value) == ("logging policy", found.logging.rewards.mean())
    assert logging.gain_low is None
    assert [(row.target, row.estimator) for row in rows[:-1]] == [(one, two) for one in ("one", "two") for two in NAMES]
    for row in rows[:-1]:
        scores = found.targets[row.target]
        kind = "anytime" if row.estimator in ("ips", "dr") else "asymptotic"
        estimate = ESTIMATORS[row.estimator].estimate(scores)
        assert (row.value, row.stderr) == (estimate.value, estimate.stderr)
        assert Interval(row.low, row.high, row.interval) == interval(kind, row.estimator, scores, 0.9)
        if kind == "asymptotic":
            gain = interval_of_difference(kind, row.estimator, scores, found.logging, 0.9)[:2]
        else:
            gain = average_interval(BOUNDED[row.estimator](scores).minus(BOUNDED["dr"](found.logging)), 0.9)
        assert (row.gain_low, row.gain_high) == gain
        assert row.gain == row.value - logging.value
        assert (row.effective is None) == (row.estimator == "dm")
    kept = rows[-1]
    assert (kept.estimator, kept.value, kept.rows) == ("replay", found.replayed["kept"].rewards.mean(), 300)
    own, other = (average_interval(BOUNDED["dr"](scores), 0.95) for scores in (found.replayed["kept"], found.logging))
    assert (kept.low, kept.high) == average_interval(BOUNDED["dr"](found.replayed["kept"]), 0.9)
    assert (kept.gain_low, kept.gain_high) == (own[0] - other[1], own[1] - other[0])


def test_an_interval_that_is_asked_for_is_used(found):
    rows = all_values(found, ("ips", "dr"), "betting", 0.95)
    assert {row.interval for row in rows if row.estimator in ("ips", "dr")} == {"betting"}
    averages = [row for row in rows if row.estimator not in ("ips", "dr")]  # whose bounds hold for all numbers of rows
    assert averages
    assert {row.interval for row in averages} == {"anytime"}


def test_an_unknown_range_leaves_the_asymptotic_interval(found):
    bare = {"reward_range": None, "lower": None, "caps": None, "upper": None}
    targets = {name: scores._replace(**bare) for name, scores in found.targets.items()}
    unknown = found._replace(targets=targets, logging=found.logging._replace(**bare), replayed={})
    assert {row.interval for row in all_values(unknown, ("dr",), None, 0.95)} == {"asymptotic"}
    with pytest.raises(InvalidArgument, match="reward_range must be known"):
        all_values(unknown, ("dr",), "anytime", 0.95)


def test_estimators_that_are_not_defined_are_left_out(found):
    never = found.targets["one"]._replace(weights=np.zeros(900))
    rows = all_values(found._replace(targets={"never": never}, replayed={}), ("dr", "snips", "sndr"), None, 0.95)
    assert [row.estimator for row in rows] == ["on_policy", "dr"]
    assert rows[1].effective == 0
    with pytest.raises(InvalidArgument, match="weights must not all be 0"):
        all_values(found._replace(targets={"never": never}), ("snips",), None, 0.95)


def test_differences_of_targets(found):
    paired = difference(found, "one", "two", "dr", "anytime", 0.95)
    assert paired == interval_of_difference("anytime", "dr", found.targets["one"], found.targets["two"], 0.95)
    own = interval("anytime", "dr", found.targets["one"], 0.975)
    kept = Interval(*average_interval(BOUNDED["dr"](found.replayed["kept"]), 0.975), "anytime")
    assert difference(found, "one", "kept", "dr", "anytime", 0.95) == apart(own, kept)
    assert apart(Interval(0.25, 0.5, "x"), Interval(0.75, 1.0, "x")) == Interval(-0.75, -0.25, "x")


def test_effective_rows():
    assert effective_rows(np.ones(7)) == 7
    assert effective_rows(np.array([3.0, 0.0, 0.0])) == 1
    assert effective_rows(np.zeros(3)) == 0


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        (("drr", None, "glm"), UnknownName, "Did you mean 'dr'"),
        ((3, None, "glm"), InvalidArgument, "estimator must be a name or several, got 3"),
        (("on_policy", None, "glm"), UnknownName, "got 'on_policy'"),
        (((), None, "glm"), InvalidArgument, "estimator must name different estimators"),
        ((("dr", "dr"), None, "glm"), InvalidArgument, "estimator must name different estimators"),
        (("dr", "anytme", "glm"), UnknownName, "Did you mean 'anytime'"),
        ((("dr", "snips"), "betting", "glm"), InvalidArgument, "must fit the estimators, got 'betting' for snips"),
        ((("ips", "dr"), None, None), InvalidArgument, "reward_model must be given for the estimator dr, got None"),
    ],
)
def test_bad_settings(given, kind, said):
    with pytest.raises(kind, match=said):
        checked_estimators(*given)


def test_levels():
    assert checked_level(np.float32(0.5)) == 0.5
    for level in (0, 1, "0.9", np.nan, True):
        with pytest.raises(InvalidArgument, match="level must be a number between 0 and 1"):
            checked_level(level)
