"""From arguments to scores: ranges, names, propensities, training on the first half, bad input."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

import explorax
from explorax import LoggedData
from explorax.errors import InvalidArgument, InvalidReward, UnknownName
from explorax.evaluation.preparing import known_range, named, prepared, weights_of
from tests.helpers import assert_same

ROWS, HALF = 200, np.full((200, 2), 0.5)
MATRIX = np.array([[1.0, 0.0], [0.5, 1.0]])


def logged(propensities=True, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    arms, rewards = rng.integers(0, 2, ROWS), scale * rng.integers(0, 2, ROWS)
    every = HALF if propensities else None
    return LoggedData.of(arms, rewards.astype(float), names=[0, 1], features=MATRIX, all_propensities=every)


def test_the_range_of_rewards():
    assert known_range(logged(), None) == (0.0, 1.0)
    assert known_range(logged(scale=2.0), None) is None
    assert known_range(logged(scale=2.0), (-1, np.float32(5))) == (-1.0, 5.0)
    for given in (3, (1, 0), (0, np.inf), (0, 1, 2), ("0", "1"), (0, 0)):
        with pytest.raises(InvalidArgument, match="reward_range must be two finite numbers, the smaller one first"):
            known_range(logged(), given)
    with pytest.raises(InvalidReward, match="from 0 to 1, got 2 in row"):
        known_range(logged(scale=2.0), (0, 1))


def test_targets_have_names():
    assert list(named(HALF)) == ["policy"]
    assert list(named(explorax.glm_tsl())) == ["glm_tsl"]
    assert list(named(explorax.Agent(explorax.lin_ucb(), n_features=2))) == ["lin_ucb"]
    for given in ({3: HALF}, {"": HALF}, {"logging policy": HALF}):
        with pytest.raises(InvalidArgument, match="policies must have names that are text"):
            named(given)
    with pytest.raises(InvalidArgument, match="policies must not be empty"):
        named({})


def test_propensities_are_those_of_the_log_or_estimated():
    np.testing.assert_array_equal(weights_of(logged(), None, True).chosen, 0.5)
    assert "LogisticRegression" in weights_of(logged(False), "estimate", True).assumption
    assert "DecisionTreeClassifier" in weights_of(logged(False), DecisionTreeClassifier(), True).assumption
    assert weights_of(logged(False), None, False).chosen is None
    with pytest.raises(InvalidArgument, match="propensities must be left out for a log that has them"):
        weights_of(logged(), "estimate", True)
    with pytest.raises(UnknownName, match="Did you mean 'estimate'"):
        weights_of(logged(False), "estimat", True)
    with pytest.raises(InvalidArgument, match="propensities='estimate', or rely on a model alone by estimator='dm'"):
        weights_of(logged(False), None, True)


def test_training_takes_the_first_half_away_from_everybody():
    log = logged()
    found = prepared(log, {"learns": explorax.lin_ucb(), "half": HALF}, estimators=("dr",), learning="trained")
    assert list(found.targets) == ["learns", "half"]
    assert found.replayed == {}
    assert len(found.log) == found.logging.size == found.targets["learns"].size == found.targets["half"].size == 100
    np.testing.assert_array_equal(found.logging.rewards, log.rewards[100:])
    np.testing.assert_array_equal(found.log.all_propensities, HALF[100:])
    # The reward model has seen the first half, too: its predictions are not constant from the start.
    assert found.targets["half"].modelled[0] != 0.5


def test_replayed_policies_have_rows_of_their_own():
    found = prepared(logged(), {"learns": explorax.lin_ucb(), "half": HALF}, estimators=("dr",))
    assert list(found.targets) == ["half"]
    assert found.targets["half"].size == found.logging.size == ROWS
    assert 60 < found.replayed["learns"].size < 140
    assert any(
        f"{found.replayed['learns'].size} of 200 rows were kept, with c = 0.5" in each for each in found.assumptions
    )


def test_decisions_that_were_left_out_are_counted():
    told = [prepared(each, HALF, estimators=("dr",)).assumptions for each in (logged(), replace(logged(), left_out=7))]
    assert not any("left out" in each for each in told[0])
    assert any(each.startswith("Decisions without known rewards are left out (7 of them)") for each in told[1])


@pytest.mark.parametrize("learning", ["replay", "trained"])
def test_without_features_policies_that_learn_know_arms_by_name(learning):
    log = logged()
    bare = LoggedData(log.arms, log.rewards, None, log.names, log.propensities)
    unit = LoggedData.of(log.arms, log.rewards, names=[0, 1], features=np.eye(2), propensities=log.propensities)
    given = {"policies": {"one": explorax.lin_ucb()}, "estimators": ("ips",), "reward_model": None}
    found, wanted = (prepared(each, learning=learning, **given) for each in (bare, unit))
    assert_same([found.targets, found.replayed], [wanted.targets, wanted.replayed])
    assert found.assumptions[0].startswith("The log has no features of the arms: one learned")
    frozen = explorax.frozen(explorax.lin_ucb(), explorax.lin_ucb().init(np.eye(2)))
    with pytest.raises(InvalidArgument, match="log must have features of the arms to evaluate a policy"):
        prepared(bare, frozen, estimators=("ips",), reward_model=None)


def test_seeds_are_arguments():
    given = {"estimators": ("dr",), "learning": "trained"}
    policies = {"tsl": explorax.lin_ts(scale=3.0)}
    one, same, other = (prepared(logged(), policies, seed=seed, **given).targets["tsl"] for seed in (0, 0, 1))
    assert_same(one, same)
    assert not np.array_equal(one.weights, other.weights)


def test_logs_that_cannot_be_used():
    with pytest.raises(InvalidArgument, match="log must be a LoggedData or the path of a log file, got 3"):
        prepared(3, HALF, estimators=("dr",))
    with pytest.raises(InvalidArgument, match="log must have at least 10 rows, got 9"):
        prepared(logged().some(slice(9)), HALF[:9], estimators=("dr",))
    with pytest.raises(UnknownName, match="learning must be one of replay, trained, got 'reply'"):
        prepared(logged(), HALF, estimators=("dr",), learning="reply")
    with pytest.raises(InvalidArgument, match="seed must be a whole number"):
        prepared(logged(), HALF, estimators=("dr",), seed=-1)
    with pytest.raises(InvalidArgument, match=r"least_propensity must be above 0 and at most 0\.5"):
        prepared(logged(), HALF, estimators=("dr",), least_propensity=0.6)
    with pytest.raises(InvalidArgument, match=r"log must be long enough to replay glm_tsl, got [0-9] rows"):
        prepared(logged().some(slice(12)), explorax.glm_tsl(), estimators=("dr",))


def test_the_path_of_a_log_is_read(tmp_path):
    path = tmp_path / "decisions.db"
    agent = explorax.Agent(explorax.uniform(), arms={"a": [1.0], "b": [0.0]}, log=path)
    agent.learn(agent.choose_many(20).ids, np.arange(20.0) % 2)
    agent.close()
    found = prepared(path, np.full((20, 2), 0.5), estimators=("ips",), reward_model=None)
    np.testing.assert_array_equal(found.logging.rewards, np.arange(20.0) % 2)
