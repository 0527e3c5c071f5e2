"""Tables and growth statistics against NumPy by hand and known exponents."""

import csv

import numpy as np
import pytest

from explorax import summarize
from explorax.errors import InvalidArgument
from explorax.record import Records, Result
from explorax.summarize import compare, growth
from tests import fabricate

COLUMNS = (
    "policy,design,dim,rounds,instances,regret_mean,regret_stderr,compile_seconds,run_seconds,curve,"
    "regret_q10,regret_q50,regret_q90,regret_max,unconverged"
)


def played(regret, instances=None, rounds=None):
    regret = np.asarray(regret, float)
    count, checkpoints = regret.shape
    return Records(
        instances=np.arange(count) if instances is None else np.asarray(instances),
        rounds=np.arange(1, checkpoints + 1) * 10 if rounds is None else np.asarray(rounds),
        regret=regret,
        reward=np.zeros_like(regret),
        digest=np.zeros(count, np.uint32),
        unconverged=np.arange(count),
    )


def result(records, curve="a", panel="d = 5", policy="glm_tsl", design="theory"):
    return Result(curve, policy, design, "logistic", panel, records, 2.5)


def curve(shape, rounds=100_000, checkpoints=400, instances=3):
    """Noise-free regret A + B f(t), with its own B for each instance."""
    at = rounds * np.arange(1, checkpoints + 1) // checkpoints
    return played(np.arange(1, instances + 1)[:, None] * shape(at)[None, :], rounds=at)


def test_summary_against_numbers_by_hand():
    final = [1.0, 2.0, 4.0, 9.0]
    (row,) = summarize.summarize([result(played([[0.5, value] for value in final]))], "regret")
    assert (row.curve, row.policy, row.design) == ("a", "glm_tsl", "theory")
    assert (row.panel, row.rounds, row.instances) == ("d = 5", 20, 4)
    assert row.mean == 4.0
    assert row.stderr == pytest.approx(np.sqrt((9 + 4 + 0 + 25) / 3 / 4))
    assert (row.q10, row.q50, row.q90) == pytest.approx((1.3, 3.0, 7.5))
    assert (row.max, row.unconverged) == (9.0, 0 + 1 + 2 + 3)
    assert (row.compile_seconds, row.run_seconds) == (None, None)  # not known apart
    (row,) = summarize.summarize([result(played([[1.0]]))._replace(compile_seconds=1.0)], "regret")
    assert (row.compile_seconds, row.run_seconds) == (1.0, 1.5)


def test_rewards_are_averages_per_round():
    rewards = np.array([[5.0, 12.0], [7.0, 16.0]])
    paid = result(played(np.zeros((2, 2)))._replace(reward=rewards))
    (row,) = summarize.summarize([paid], "reward")
    assert (row.mean, row.max) == pytest.approx((0.7, 0.8))  # 12 and 16 in 20 rounds
    assert row.stderr == pytest.approx(0.1)
    (found,) = summarize.series([paid], "reward")
    np.testing.assert_allclose(found.mean, [0.6, 0.7])
    np.testing.assert_allclose(found.stderr, [0.1, 0.1])


def test_series_against_numpy():
    regret = np.random.default_rng(0).gamma(2.0, size=(7, 5)).cumsum(axis=1)
    (found,) = summarize.series([result(played(regret))], "regret")
    np.testing.assert_allclose(found.mean, regret.mean(axis=0))
    np.testing.assert_allclose(found.stderr, regret.std(axis=0, ddof=1) / np.sqrt(7))
    np.testing.assert_array_equal(found.rounds, [10, 20, 30, 40, 50])


def test_a_single_instance_has_no_standard_error(tmp_path):
    alone = result(played([[1.0, 2.0]]))
    (row,) = summarize.summarize([alone], "regret")
    assert (row.mean, row.stderr) == (2.0, None)
    assert summarize.series([alone], "regret")[0].stderr is None
    summarize.write_summary(tmp_path / "summary.csv", [row], "regret", {"d = 5": {"dim": 5}})
    (read,) = csv.DictReader((tmp_path / "summary.csv").read_text().splitlines())
    assert read["regret_stderr"] == ""


def test_summary_csv(tmp_path):
    rows = summarize.summarize(fabricate.results(), "regret")
    summarize.write_summary(tmp_path / "summary.csv", rows, "regret", fabricate.tags())
    assert (tmp_path / "summary.csv").read_text().splitlines()[0] == COLUMNS
    read = list(csv.DictReader((tmp_path / "summary.csv").read_text().splitlines()))
    assert len(read) == len(rows) == 24
    for got, row in zip(read, rows, strict=True):
        assert got["curve"] == row.curve
        assert f"d = {got['dim']}" == row.panel
        assert float(got["regret_mean"]) == pytest.approx(row.mean, abs=1e-6)


def test_summary_csv_of_rewards_has_the_tags_of_its_panels_and_no_empty_column_of_designs(tmp_path):
    rows = summarize.summarize([result(played([[1.0]]), panel="MNIST, ReLU", policy="deep_fpl", design="")], "reward")
    tags = {"MNIST, ReLU": {"dataset": "mnist", "activation": "relu"}}
    summarize.write_summary(tmp_path / "summary.csv", rows, "reward", tags)
    header, row = (tmp_path / "summary.csv").read_text().splitlines()
    assert header == (
        "policy,dataset,activation,rounds,instances,reward_mean,reward_stderr,compile_seconds,run_seconds,curve,"
        "reward_q10,reward_q50,reward_q90,reward_max,unconverged"
    )
    assert row == "deep_fpl,mnist,relu,10,1,0.0,,,,a,0.0,0.0,0.0,0.0,0"


def test_comparison_is_paired_over_common_instances():
    first = result(played([[1.0], [5.0], [9.0], [100.0]], instances=[1, 2, 3, 8]))
    second = result(played([[77.0], [2.0], [7.0], [10.0]], instances=[0, 1, 2, 3]), curve="b")
    found = compare(first, second, "regret")
    assert (found.instances, found.difference) == (3, pytest.approx(-4 / 3))  # −1, −2, −1
    assert found.stderr == pytest.approx(1 / 3)
    assert found.z == pytest.approx(-4.0)
    assert found.beats
    assert not compare(second, first, "regret").beats
    close = result(played([[1.0], [9.0], [9.0]], instances=[1, 2, 3]), curve="c")
    assert not compare(close, second, "regret").beats  # −1, 2, −1: pairs, not just means


def test_more_reward_beats_less():
    paid = [
        result(played([[0.0]] * 3)._replace(reward=np.array(reward)))
        for reward in ([[5.0], [6], [7]], [[4.0], [5], [5]])
    ]
    found = compare(*paid, "reward")
    assert found.difference == pytest.approx(4 / 3 / 10)  # in 10 rounds
    assert found.z == pytest.approx(4.0)
    assert found.beats
    assert not compare(*paid[::-1], "reward").beats
    assert not compare(paid[0], paid[0], "reward").beats


def test_comparisons_that_cannot_be_made():
    ours = result(played([[1.0], [2.0]]))
    for other in (played([[1.0], [2.0]], instances=[1, 5]), played([[1.0]], instances=[9])):
        with pytest.raises(InvalidArgument, match="must have at least two instances in common, got "):
            compare(ours, result(other, curve="b"), "regret")
    with pytest.raises(InvalidArgument, match="runs of the same length"):
        compare(ours, result(played([[1.0, 2.0], [1.0, 2.0]]), curve="b"), "regret")
    same = compare(ours, ours, "regret")
    assert (same.difference, same.stderr, same.z, same.beats) == (0.0, 0.0, None, False)


@pytest.mark.parametrize(
    ("shape", "exponent", "late_share"),
    [
        (lambda t: 3.0 * t, 1.0, 0.5),
        (lambda t: 2.0 * np.sqrt(t), 0.5, 1 - 0.5**0.5),
        (lambda t: 5.0 * np.log(t), 0.0, np.log(2) / np.log(100_000)),
        (lambda t: t**0.8, 0.8, 1 - 0.5**0.8),
    ],
    ids=["t", "sqrt", "log", "t^0.8"],
)
def test_growth_of_known_curves(shape, exponent, late_share):
    found = growth(curve(shape))
    assert found.exponent == pytest.approx(exponent, abs=1e-9)
    assert found.late_share == pytest.approx(late_share)
    assert found.stderr == pytest.approx(0.0, abs=1e-9)  # all instances have one shape
    assert found.linear == (exponent > 0.75)
    if exponent:
        assert found.slope == pytest.approx(exponent)


def test_growth_sees_through_what_was_paid_at_first():
    """A few instances stuck for ever: the log-log slope is far from 1, the exponent is not."""
    found = growth(curve(lambda t: 200.0 + 1e-3 * t))
    assert found.exponent == pytest.approx(1.0)
    assert found.slope < 0.4
    assert found.stuck == 3
    assert growth(curve(lambda t: 200.0 + np.log(t))).exponent == pytest.approx(0.0)


def test_growth_does_not_depend_on_the_spacing_of_checkpoints():
    at = np.unique(np.geomspace(1, 100_000, 200).astype(int))
    for power in (0.25, 0.5, 1.0):
        records = played(np.stack([at**power, 2.0 * at**power]), rounds=at)
        assert growth(records).exponent == pytest.approx(power, abs=0.02)


def test_growth_stderr_is_the_jackknife():
    records = fabricate.records("stuck", 100.0, instances=12)
    whole = growth(records)
    without = [
        growth(
            Records(*(np.delete(a, i, 0) if name != "rounds" else a for name, a in records._asdict().items()))
        ).exponent
        for i in range(12)
    ]
    assert whole.stderr == pytest.approx(np.sqrt(11 / 12 * np.sum((without - np.mean(without)) ** 2)))
    assert whole == growth(records)


def test_stuck_instances_are_those_that_always_pay_the_same():
    at = np.arange(1, 101) * 100
    regret = np.stack([0.1 * at, 50 + 0.2 * at, np.sqrt(at), np.full(100, 7.0)])
    assert growth(played(regret, rounds=at)).stuck == 2
    assert growth(fabricate.records("stuck", 50.0, instances=40)).stuck == 5


def test_growth_without_regret_is_slowest_and_never_nan():
    still = growth(played(np.full((2, 40), 5.0)))
    assert (still.exponent, still.late_share, still.stuck, still.linear) == (-1.0, 0.0, 0, False)
    none = growth(played(np.zeros((2, 40))))
    assert (none.exponent, none.late_share, none.slope) == (-1.0, 0.0, None)
    woken = np.where(np.arange(40) < 30, 0.0, np.arange(40.0))
    assert growth(played(np.stack([woken, woken]))).exponent == 2.0


@pytest.mark.parametrize("shape", [(1, 40), (5, 3), (5, 1)])
def test_growth_needs_instances_and_checkpoints(shape):
    with pytest.raises(InvalidArgument, match=r"Growth over .* needs two instances"):
        growth(played(np.ones(shape).cumsum(axis=1)))
