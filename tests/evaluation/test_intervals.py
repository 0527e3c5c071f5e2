"""Intervals by name: all pairs that fit, units, limits, differences, and what is refused."""

import numpy as np
import pytest

from explorax.errors import InvalidArgument, NotFinite, UnknownName
from explorax.evaluation.estimators import ESTIMATORS
from explorax.evaluation.intervals import INTERVALS, interval, interval_of_difference, path
from tests.evaluation.logs import OTHER, TARGET, independent_log, value_of

LOG = independent_log(np.random.default_rng(0), 2000)
PAIRS = [(kind, name) for name, each in ESTIMATORS.items() for kind in each.intervals]
OTHERS = [(kind, name) for name in ESTIMATORS for kind in INTERVALS if (kind, name) not in PAIRS]


@pytest.mark.parametrize(("kind", "name"), PAIRS)
def test_intervals_follow_the_unit_of_rewards(kind, name):
    plain, other = (interval(kind, name, LOG.scores(**unit)) for unit in ({}, {"scale": 5.0, "shift": -2.0}))
    assert 0 <= plain.low < plain.high <= 1
    assert plain.kind == kind
    if name != "ips" or kind != "asymptotic":  # the variance of plain weights depends on where 0 is
        np.testing.assert_allclose(other[:2], 5 * np.array(plain[:2]) - 2, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("kind", "name"), [pair for pair in PAIRS if pair[1] in ("ips", "dr", "snips", "adaptive_dr")])
def test_differences_have_narrower_intervals_than_two_values(kind, name):
    one, two = LOG.scores(), LOG.scores(OTHER)
    found = interval_of_difference(kind, name, one, two)
    assert found.low <= value_of(TARGET) - value_of(OTHER) <= found.high  # seeds are fixed
    mirrored = interval_of_difference(kind, name, two, one)
    np.testing.assert_allclose([found.low, found.high], [-mirrored.high, -mirrored.low], atol=1e-9)
    widths = [each.high - each.low for each in (interval(kind, name, one), interval(kind, name, two))]
    assert found.high - found.low < sum(widths)


@pytest.mark.parametrize(("kind", "name"), [("asymptotic", "dr"), ("betting", "dr"), ("anytime", "dr")])
def test_a_target_does_not_differ_from_itself(kind, name):
    found = interval_of_difference(kind, name, LOG.scores(), LOG.scores())
    assert found.low <= 0 <= found.high
    if kind == "asymptotic":
        assert found.low == found.high == 0


def test_a_wider_level_gives_a_wider_interval():
    for kind in INTERVALS:
        narrow, wide = (interval(kind, "dr", LOG.scores(), level) for level in (0.8, 0.99))
        assert wide.low < narrow.low < narrow.high < wide.high


def test_the_anytime_interval_is_the_end_of_the_running_path():
    scores = LOG.scores(scale=2.0)
    running = path("dr", scores, 0.9).running()
    assert interval("anytime", "dr", scores, 0.9)[:2] == (running.low[-1], running.high[-1])


def test_limits_apply_where_the_range_is_known():
    scores = LOG.scores().some([0, 1])
    assert interval("asymptotic", "ips", scores).high <= 1
    assert interval("asymptotic", "ips", scores._replace(reward_range=None)).high > 1


def test_bounds_that_cross_are_given_in_order():
    drifting = LOG.scores()._replace(
        rewards=np.repeat([1.0, 0.0], 1000), weights=np.ones(2000), lower=np.repeat([1.0, 0.0], 1000),
        upper=np.repeat([0.0, 1.0], 1000), caps=np.zeros(2000),
    )  # fmt: skip
    found = interval("anytime", "dr", drifting)
    assert found.low < found.high


@pytest.mark.parametrize(("kind", "name"), OTHERS)
def test_a_kind_that_does_not_fit_is_refused(kind, name):
    with pytest.raises(
        InvalidArgument, match=f"interval must be one of asymptotic for the estimator {name}, got '{kind}'"
    ):
        interval(kind, name, LOG.scores())


def test_bad_input_is_refused():
    scores = LOG.scores()
    with pytest.raises(UnknownName, match="interval must be one of anytime, asymptotic, bernstein, betting, got 'any'"):
        interval("any", "dr", scores)
    with pytest.raises(UnknownName, match=r"estimator must be one of .*, got 'drr'"):
        interval("anytime", "drr", scores)
    for level in (0, 1, 1.5, "95", float("nan")):
        with pytest.raises(InvalidArgument, match="level must be a number between 0 and 1"):
            interval("anytime", "dr", scores, level)
    with pytest.raises(InvalidArgument, match="reward_range must be known"):
        interval("betting", "ips", scores._replace(reward_range=None))
    for kind in INTERVALS:
        with pytest.raises(InvalidArgument, match="scores must have at least one row, got 0"):
            interval(kind, "dr", scores.some(slice(0)))
    with pytest.raises(InvalidArgument, match="scores must have at least 2 rows for an asymptotic interval, got 1"):
        interval("asymptotic", "dr", scores.some(slice(1)))
    with pytest.raises(InvalidArgument, match="others must be scores of the same rows, got 3 rows"):
        interval_of_difference("asymptotic", "dr", scores, scores.some(slice(3)))
    huge = scores._replace(rewards=np.full(2000, 1e308), reward_range=None)
    with (
        np.errstate(over="ignore", invalid="ignore"),
        pytest.raises(NotFinite, match="asymptotic interval is not finite"),
    ):
        interval("asymptotic", "ips", huge)


@pytest.mark.parametrize("kind", sorted(INTERVALS))
def test_two_rows_are_enough(kind):
    scores = LOG.scores().some(slice(2))
    found = interval(kind, "dr", scores)
    assert 0 <= found.low <= found.high <= 1
