"""Settings ranked in each panel, against numbers by hand."""

import numpy as np
import pytest

from explorax.experiments.ranking import columns, standings, table_of_all, table_of_fresh
from explorax.experiments.settings import from_settings
from explorax.record import Records, Result

SWEEP = from_settings(
    {"environment": "logistic", "dims": [2, 3], "rounds": 10, "instances": 101, "halving": {}}
    | {"curves": [{"policy": "uniform"}, {"policy": "lin_ts", "label": "L", "settings": {"scale": [1, 2, 3]}}]}
)
ONE, TWO, THREE = (f"L, scale = {scale}" for scale in (1, 2, 3))


def result(curve, panel, regret, first=0):
    """A curve that ends with these regrets."""
    regret = np.asarray(regret, float)
    count = len(regret)
    records = Records(
        instances=np.arange(first, first + count),
        rounds=np.array([5, 10]),
        regret=np.stack([regret / 2, regret], axis=1),
        reward=np.stack([50 - regret / 2, 100 - regret], axis=1),
        digest=np.zeros(count, np.uint32),
        unconverged=np.zeros(count, np.int64),
    )
    policy = "uniform" if curve == "Uniform" else "lin_ts"
    return Result(curve, policy, "", "logistic", panel, records)


NOISE = 5 * np.random.default_rng(0).normal(size=101)  # of the problems, which is the same for all settings
ALTERNATE = np.where(np.arange(101) % 2, 1.0, -1.0)


def ranked(results, measure="regret", chosen_on=0):
    return standings(SWEEP.swept, results, measure, lambda label: chosen_on if label != "Uniform" else 0)


def test_ranks_and_marks_of_a_grid():
    results = [
        result("Uniform", "d = 2", 90 + NOISE),
        result(ONE, "d = 2", 20 + NOISE),
        result(TWO, "d = 2", 20.2 + NOISE),  # a little worse, and in every problem
        result(THREE, "d = 2", 20.1 + NOISE + ALTERNATE),  # no more than noise
        result(ONE, "d = 3", 30 + NOISE),
        result(TWO, "d = 3", 20 + NOISE),
        result(THREE, "d = 3", 19 + NOISE),
    ]
    found = {(one.result.curve, one.result.panel): (one.rank, one.mark) for one in ranked(results)}
    assert found == {
        ("Uniform", "d = 2"): (1, ""),
        (ONE, "d = 2"): (1, "best"),
        (THREE, "d = 2"): (2, "not worse"),
        (TWO, "d = 2"): (3, ""),
        (THREE, "d = 3"): (1, "best"),
        (TWO, "d = 3"): (2, ""),
        (ONE, "d = 3"): (3, ""),
    }
    table = table_of_all(ranked(results), "regret", False)
    assert [row[:2] for row in table.rows] == [["Uniform", ""], ["L", "3"], ["L", "1"], ["L", "2"]]
    shift = NOISE.mean()
    error = NOISE.std(ddof=1) / 101**0.5
    assert table.rows[2][2:] == [f"{20 + shift:.1f} ± {error:.1f} *", f"{30 + shift:.1f} ± {error:.1f}  "]
    assert table.rows[0][3] == "-  "
    assert table.caption == "Regret after 10 rounds, mean ± standard error over 101 instances"
    rewards = [one for one in ranked(results, "reward") if one.result.panel == "d = 3"]
    assert [(one.result.curve, one.rank) for one in rewards] == [(THREE, 1), (TWO, 2), (ONE, 3)]
    assert table_of_fresh(ranked(results), "regret") is None


def test_who_played_more_is_better_and_only_fresh_instances_are_counted_for_the_best():
    regret = 20 + NOISE
    results = [result(ONE, "d = 2", regret[:50] - 9), result(TWO, "d = 2", regret), result("Uniform", "d = 2", regret)]
    found = ranked(results, chosen_on=50)
    assert [(one.result.curve, one.rank, one.mark, len(one.fresh)) for one in found] == [
        (TWO, 1, "best", 51),
        (ONE, 2, "not worse", 0),  # it was better, on the instances that both have played
        ("Uniform", 1, "", 0),
    ]
    assert np.array_equal(found[0].fresh, regret[50:])
    mean, error = regret[50:].mean(), regret[50:].std(ddof=1) / 51**0.5
    assert table_of_fresh(found, "regret").rows == [[TWO, f"{mean:.1f} ± {error:.1f} (51)"]]
    cells = columns(found, True)
    assert cells[TWO, "d = 2"] == {
        "scale": "2",
        "mark": "best",
        "fresh_instances": 51,
        "fresh_mean": pytest.approx(mean),
        "fresh_stderr": pytest.approx(error),
    }
    assert cells["Uniform", "d = 2"] == {
        "scale": None, "mark": "", "fresh_instances": 0, "fresh_mean": None, "fresh_stderr": None,
    }  # fmt: skip
    assert [row[2].endswith("(101)  ") for row in table_of_all(found, "regret", True).rows if row[0] == "Uniform"] == [
        True
    ]


def test_one_instance_is_no_comparison():
    found = ranked([result(ONE, "d = 2", [3.0]), result(TWO, "d = 2", [2.0])])
    assert [(one.result.curve, one.mark) for one in found] == [(TWO, "best"), (ONE, "")]
    assert table_of_all(found, "regret", False).rows[0][2] == "2.0 *"
