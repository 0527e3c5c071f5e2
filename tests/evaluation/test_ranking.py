"""Rankings: the order, who may be best, the level of each interval, candidates of a grid."""

import json

import numpy as np
import pytest

import explorax
from explorax import LoggedData
from explorax.errors import InvalidArgument, UnknownName
from explorax.evaluation.intervals import interval_of_difference
from explorax.evaluation.preparing import prepared
from tests.evaluation.logs import OTHER, TARGET, independent_log
from tests.evaluation.test_evaluate import as_logged

ALWAYS = {f"arm {arm}": np.eye(3)[arm] for arm in range(3)}


@pytest.fixture(scope="module")
def made():
    return independent_log(np.random.default_rng(0), 4000, floor=0.5)


def policies_of(made):
    return {name: np.tile(each, (len(made.arms), 1)) for name, each in ALWAYS.items()} | {
        "target": TARGET[made.contexts],
        "other": OTHER[made.contexts],
    }


def test_a_ranking_is_in_order_and_all_its_intervals_share_the_risk(made):
    log, policies = as_logged(made), policies_of(made)
    found = explorax.rank_policies(log, policies, level=0.9)
    values = [place.value for place in found.places]
    assert values == sorted(values, reverse=True)
    assert {row.level for row in found.evaluation.rows} == {1 - 0.1 / (1 + 5 + 5 + 10)}
    scores = prepared(log, policies, estimators=("dr",)).targets
    best = found.places[0]
    assert (best.behind_low, best.behind_high, best.may_be_best) == (0, 0, True)
    for place in found.places[1:]:
        pair = scores[best.target], scores[place.target]
        wanted = interval_of_difference("anytime", "dr", *pair, level=1 - 0.1 / 21)
        assert (place.behind_low, place.behind_high) == wanted[:2]
        assert place.may_be_best == (wanted.low <= 0)
        assert place.verdict == found.evaluation[place.target].verdict


def test_clear_cases_are_clear():
    rng = np.random.default_rng(1)
    arms = rng.integers(0, 3, 6000)
    rewards = (rng.random(6000) < np.array([0.1, 0.45, 0.9])[arms]).astype(float)
    log = LoggedData.of(arms, rewards, names=[0, 1, 2], propensities=np.full(6000, 1 / 3))
    policies = {name: np.tile(each, (6000, 1)) for name, each in ALWAYS.items()}
    found = explorax.rank_policies(log, policies)
    assert [place.target for place in found.places] == ["arm 2", "arm 1", "arm 0"]
    assert found.may_be_best == ["arm 2"]
    assert found.answer.startswith("arm 2 is the best of the 3 candidates (95")
    assert found.answer.endswith("arm 2 is shown better than the logging policy.")
    twins = {"one": policies["arm 2"], "two": policies["arm 2"]}
    assert explorax.rank_policies(log, twins).answer.startswith("Each of the 2 candidates may be best")
    both = explorax.rank_policies(log, twins | {"low": policies["arm 0"]})
    assert both.may_be_best == ["one", "two"]
    assert "one and two may be best; low is shown worse" in both.answer
    single = explorax.rank_policies(log, {"one": policies["arm 2"]})
    assert single.answer == single.evaluation.answer


@pytest.mark.parametrize("learning", ["trained", "replay"])
def test_policies_that_learn_are_ranked(learning):
    rng = np.random.default_rng(2)
    arms = rng.integers(0, 3, 3000)
    rewards = (rng.random(3000) < np.array([0.1, 0.3, 0.9])[arms]).astype(float)
    log = LoggedData.of(arms, rewards, names=[0, 1, 2], features=np.eye(3), propensities=np.full(3000, 1 / 3))
    policies = {"lin_ucb": explorax.lin_ucb(), "uniform": explorax.uniform()}
    found = explorax.rank_policies(log, policies, learning=learning)
    assert [place.target for place in found.places] == ["lin_ucb", "uniform"]
    assert found.may_be_best == ["lin_ucb"]


def test_a_ranking_as_text_data_and_files(made, tmp_path):
    found = explorax.rank_policies(as_logged(made), policies_of(made))
    lines = str(found).splitlines()
    assert lines[0] == found.answer
    assert lines[2].split()[:2] == ["place", "policy"]
    assert [line.split()[0] for line in lines[3:8]] == ["1", "2", "3", "4", "5"]
    kept = json.loads(found.to_json(), parse_constant=pytest.fail)
    assert [place["target"] for place in kept["places"]] == [place.target for place in found.places]
    assert kept["evaluation"] == json.loads(found.evaluation.to_json())
    paths = found.write(tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in paths}
    assert json.loads((tmp_path / "out/ranking.json").read_text()) == kept


def test_a_log_that_cannot_tell_ranks_nobody():
    log = LoggedData.of(np.zeros(100, int), np.ones(100), names=[0, 1], propensities=np.ones(100))
    found = explorax.rank_policies(log, {"other": np.tile([0.0, 1.0], (100, 1)), "same": np.tile([1.0, 0.0], (100, 1))})
    assert found.answer == found.evaluation.answer
    assert "never random" in found.answer


def test_candidates_are_the_grid_of_a_policy():
    entry = explorax.list_policies()["glm_ucb"]
    found = explorax.candidates("glm_ucb", family="gaussian")
    assert list(found) == ["glm_ucb", *(f"glm_ucb:width={value:g}" for value in entry.grid)]
    for (name, policy), value in zip(list(found.items())[1:], entry.grid, strict=True):
        assert policy.recipe == ("glm_ucb", {"family": "gaussian", "width": value}), name
    assert list(explorax.candidates("glm_ucb", width=2.0)) == ["glm_ucb"]
    assert list(explorax.candidates("uniform")) == ["uniform"]


def test_bad_input(made):
    log = as_logged(made)
    with pytest.raises(UnknownName, match="Did you mean 'glm_tsl'"):
        explorax.candidates("glm_tls")
    with pytest.raises(UnknownName, match="Did you mean 'scale'"):
        explorax.candidates("glm_tsl", sclae=1.0)
    with pytest.raises(InvalidArgument, match="estimator must be the name of one estimator"):
        explorax.rank_policies(log, policies_of(made), estimator=("dr", "ips"))
    with pytest.raises(InvalidArgument, match="level must be a number between 0 and 1"):
        explorax.rank_policies(log, policies_of(made), level=2)
