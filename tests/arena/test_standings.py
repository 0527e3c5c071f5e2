"""Regrets, differences and ranks are those of the instances that are reported."""

import csv
import io

import numpy as np
from scipy import stats

from explorax.arena import standings
from explorax.arena.problems import LOGISTIC, problem_of
from explorax.arena.standings import Interval, difference, interval, ranks, verdict
from tests.arena.played import FOUND, ROWS, TUNING, A, B, contender


def test_tuned_on_some_instances_and_reported_on_others():
    (default, tuned, other) = ROWS
    assert [(row.contestant.policy, row.variant, row.value) for row in ROWS] == [
        ("glm_tsl", "default", None),
        ("glm_tsl", "tuned", 0.5),  # not 2, which would have been better on the instances that count
        ("b", "default", None),  # nothing to tune
    ]
    assert default.final.tolist() == [1, 2, 3, 4, 5, 6]
    assert tuned.final.tolist() == [5, 5, 5, 5, 5, 6]
    assert tuned.seconds is None
    assert other.seconds == 2e-6


def test_an_unfinished_contestant_is_left_out():
    rows = standings.standings(problem_of("logistic-5"), [A, B], FOUND[1:], {}, TUNING)
    assert [row.contestant.policy for row in rows] == ["b"]


def test_intervals_and_differences():
    final = ROWS[0].final
    low, high = stats.norm.interval(0.95, np.mean(final), stats.sem(final))
    found = interval(final)
    np.testing.assert_allclose([found.mean - found.half, found.mean + found.half], [low, high], rtol=1e-4)
    gap = difference(ROWS[2], ROWS)  # default with default, instance by instance: 1 everywhere
    assert gap == Interval(1.0, 0.0)
    assert verdict(gap) == "worse"
    assert verdict(Interval(-2.0, 1.0)) == "better"
    assert verdict(Interval(-2.0, 3.0)) == "no difference seen"
    assert verdict(difference(ROWS[0], ROWS)) == "–"
    assert difference(ROWS[2], ROWS[2:]) is None


def test_ranks():
    found = {(rank.policy, rank.variant): rank for rank in ranks(ROWS)}
    assert found["glm_tsl", "default"][4:] == (1.0, 1.0, 1.0, 2)  # better in every draw: nothing is uncertain
    assert found["b", "default"].mean == 2.0
    # Tuned GLM-TSL has mean 31/6 against 27/6; drawn anew it is often the better one.
    assert found["b", "tuned"].mean == 1.0
    assert (found["b", "tuned"].low, found["b", "tuned"].high) == (1.0, 2.0)
    np.testing.assert_array_equal(
        standings._places(np.array([[3.0, 1.0, 2.0], [1.0, 1.0, 5.0]])), stats.rankdata([[3, 1, 2], [1, 1, 5]], axis=1)
    )


def test_only_those_who_play_a_whole_group_are_ranked():
    elsewhere = standings.standings(problem_of("sparse"), [A], FOUND, {}, TUNING)
    assert {rank.policy for rank in ranks([*ROWS, *elsewhere])} == {"glm_tsl"}
    other_group = standings.standings(problem_of("poisson"), [A], FOUND, {}, TUNING)
    assert [rank.group for rank in ranks([*ROWS, *other_group])] == [LOGISTIC] * 4 + ["counts"] * 2


def test_tables_say_the_same_as_the_rows():
    lines = list(csv.DictReader(io.StringIO(standings.to_csv(ROWS))))
    assert [line["regret"] for line in lines] == ["3.5000", "5.1667", "4.5000"]
    assert [line["verdict"] for line in lines] == ["–", "–", "worse"]
    assert [line["microseconds"] for line in lines] == ["", "", "2.00"]
    text = standings.to_markdown(ROWS)
    assert "| GLM_TSL | 3.5 ± 1.5 |" in text
    assert "| B | +1.0 ± 0.0 ▲ |" in text
    assert "| B | 2 |" in text
    linear = contender("b", misspecified=True)
    marked = standings.standings(problem_of("logistic-5"), [linear], FOUND, {}, TUNING)
    assert "| B (linear model) |" in standings.to_markdown(marked)
