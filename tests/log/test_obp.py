"""The dictionary of the Open Bandit Pipeline.  `benchmarks/exchange.py` gives it to the real one."""

import numpy as np
import pytest

from explorax import LoggedData, errors, from_obp, read_log, to_obp
from tests.log.played import EVALUATED

RNG = np.random.default_rng(0)
N, K = 6, 3
ARMS, REWARDS, CONTEXTS = RNG.integers(0, K, N), RNG.normal(size=N), RNG.normal(size=(N, 2))
EVERY = RNG.dirichlet(np.ones(K), N)
KEYS = {"n_rounds", "n_actions", "context", "action_context", "action", "position", "reward", "expected_reward", "pi_b"}


def test_keys_and_shapes_are_those_of_obp():
    feedback = to_obp(LoggedData.of(ARMS, REWARDS, names=range(K), all_propensities=EVERY, contexts=CONTEXTS))
    assert set(feedback) == {*KEYS, "pscore"}
    assert (feedback["n_rounds"], feedback["n_actions"]) == (N, K)
    assert feedback["context"].shape == (N, 2)
    assert feedback["action_context"].shape == (K, K)
    assert feedback["pi_b"].shape == (N, K, 1)
    np.testing.assert_array_equal(feedback["pscore"], EVERY[np.arange(N), ARMS])
    assert feedback["position"] is feedback["expected_reward"] is None


@pytest.mark.parametrize("described", [None, [[1.5], [0.25], [-2.0]]])
def test_round_trips_are_exact(described):
    offered = EVERY > 0
    offered[0, (ARMS[0] + 1) % K] = False
    data = LoggedData.of(
        ARMS,
        REWARDS,
        names=range(K),
        propensities=EVERY.max(axis=1),
        offered=offered,
        contexts=CONTEXTS,
        arm_features=described,
    )
    again = from_obp(to_obp(data))
    assert again.names == data.names
    assert again.columns().keys() == data.columns().keys()
    for name, column in data.columns().items():
        np.testing.assert_array_equal(getattr(again, name), column)
    np.testing.assert_array_equal(again.features.table(np.arange(N)), data.features.table(np.arange(N)))


def test_features_without_contexts():
    fixed = to_obp(LoggedData.of(ARMS, REWARDS, features=np.eye(K)))
    np.testing.assert_array_equal(fixed["action_context"], np.eye(K))
    np.testing.assert_array_equal(fixed["context"], np.ones((N, 1)))
    tables = RNG.normal(size=(N, K, 2))
    np.testing.assert_array_equal(
        to_obp(LoggedData.of(ARMS, REWARDS, features=tables))["context"], tables.reshape(N, -1)
    )


@pytest.mark.parametrize("kind", EVALUATED)
def test_logs_of_agents(logs, kind):
    data = read_log(logs[kind].path)
    again = from_obp(to_obp(data))
    for name in ("arms", "rewards", "propensities"):
        np.testing.assert_array_equal(getattr(again, name), getattr(data, name))


def test_one_position_is_taken():
    """As in the Open Bandit Dataset, where three banners are shown at once."""
    pi_b = RNG.dirichlet(np.ones(K), (N, 3)).transpose(0, 2, 1)
    positions = np.array([0, 1, 2, 0, 1, 2])
    feedback = {"n_rounds": N, "n_actions": K, "action": ARMS, "reward": REWARDS, "position": positions, "pi_b": pi_b}
    data = from_obp(feedback, position=1)
    assert data.arms.tolist() == ARMS[[1, 4]].tolist()
    np.testing.assert_array_equal(data.all_propensities, pi_b[[1, 4], :, 1])
    np.testing.assert_array_equal(data.propensities, pi_b[[1, 4], ARMS[[1, 4]], 1])
    for position in (None, 3):
        with pytest.raises(errors.InvalidArgument, match="position must be one of 0, 1, 2"):
            from_obp(feedback, position=position)
    assert len(from_obp({**feedback, "position": np.zeros(N, int)})) == N


def test_wrong_dictionaries_are_explained():
    feedback = to_obp(LoggedData.of(ARMS, REWARDS, names=range(K)))
    with pytest.raises(errors.InvalidArgument, match="got no 'action'"):
        from_obp({"n_actions": 3, "reward": REWARDS})
    with pytest.raises(errors.InvalidShape, match="context of feedback must have 6 rows"):
        from_obp({**feedback, "context": CONTEXTS[:3]})
    with pytest.raises(errors.UnknownName, match=r"got (1|2)"):
        from_obp({**feedback, "n_actions": 1, "action_context": None, "context": None})
