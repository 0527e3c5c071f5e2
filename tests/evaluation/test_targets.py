"""Targets: each kind against the policy itself, training on the first rows only, bad input."""

import jax
import numpy as np
import pytest

import explorax
from explorax import LoggedData
from explorax.agent import arm_sets
from explorax.errors import HistoryFull, InvalidArgument, InvalidReward, InvalidShape
from explorax.evaluation.targets import Given, Learning, checked_probabilities, read_target, trained

ROWS, NAMES = 60, ("a", "b", "c")
MATRIX = np.array([[1.0, 0.2], [0.3, 1.0], [-0.5, 0.4]])


def logged(fixed=True, seed=0, **others):
    rng = np.random.default_rng(seed)
    arms, rewards = rng.integers(0, 3, ROWS), rng.integers(0, 2, ROWS).astype(float)
    features = MATRIX if fixed else rng.normal(size=(ROWS, 3, 2))
    given = {"features": features, "propensities": np.full(ROWS, 1 / 3)} | others
    return LoggedData.of([NAMES[arm] for arm in arms], rewards, names=list(NAMES), **given)


def probabilities(value, log, rows=slice(None), offered=None):
    target = read_target(value, log, 0)
    places = np.arange(ROWS)[rows]
    offered = np.ones((ROWS, 3), bool) if offered is None else offered
    features = None if log.features is None else log.features.table(places)
    return target.probabilities(places, features, offered[rows])


def test_an_array_and_a_function():
    table = np.random.default_rng(0).dirichlet(np.ones(3), ROWS)
    log = logged()
    np.testing.assert_array_equal(probabilities(table, log, slice(5, 9)), table[5:9])
    np.testing.assert_array_equal(probabilities(table.tolist(), log, slice(5, 9)), table[5:9])
    np.testing.assert_array_equal(probabilities(jax.numpy.asarray(table), log), table)
    seen = []

    def uniform(features, offered):
        seen.append(features.shape)
        return offered / offered.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(probabilities(uniform, log, slice(4)), 1 / 3)
    assert seen == [(4, 3, 2)]
    target = Given(table)
    assert read_target(target, log, 0) is target


@pytest.mark.parametrize("fixed", [True, False])
def test_a_trained_policy_has_learned_from_the_first_rows_only(fixed):
    log, policy = logged(fixed), explorax.lin_ucb()
    target = trained(Learning(policy), log, 20, 0)
    state = policy.init(MATRIX if fixed else 2)
    tables = log.features.table(np.arange(ROWS))
    for row in range(20):
        arm = int(log.arms[row])
        state = policy.update(state, arm, tables[row, arm], log.rewards[row])
    found = target.probabilities(np.arange(20, ROWS), tables[20:], np.ones((40, 3), bool))
    for row in range(20, ROWS):
        arm = int(policy.act(jax.random.key(0), state, tables[row], 20).arm)
        np.testing.assert_array_equal(found[row - 20], np.eye(3)[arm])
    assert "first 20 rows" in target.notes[0]


def test_a_policy_alone_has_to_learn_first():
    assert isinstance(read_target(explorax.glm_tsl(), logged(), 0), Learning)


def agent_of(policy, **others):
    agent = explorax.Agent(policy, arms=dict(zip(NAMES, MATRIX, strict=True)), **others)
    rng = np.random.default_rng(1)
    for _ in range(30):
        agent.learn(agent.choose().id, float(rng.integers(2)))
    return agent


def test_an_agent_decides_as_it_does_now():
    agent, log = agent_of(explorax.epsilon_greedy(epsilon=0.3), explore_floor=0.1), logged()
    offered = np.ones((ROWS, 3), bool)
    offered[::2, 1] = False
    found = probabilities(agent, log, offered=offered)
    for row in (0, 1):
        among = [name for name, on in zip(NAMES, offered[row], strict=True) if on]
        told = agent.propensities(among=among)
        wanted = dict(zip(told.arms, told.probabilities, strict=True))
        np.testing.assert_allclose(found[row], [wanted.get(name, 0) for name in NAMES])
    assert agent.decisions == 30


def test_an_agent_is_read_by_the_names_of_its_arms():
    agent, log = agent_of(explorax.lin_ucb()), logged()
    order = [2, 0, 1]
    turned = LoggedData(np.argsort(order)[log.arms], log.rewards, None, [NAMES[place] for place in order])
    np.testing.assert_array_equal(probabilities(agent, turned), probabilities(agent, log)[:, order])
    best = np.flatnonzero(probabilities(agent, log)[0])
    agent.retire_arm(NAMES[best[0]])
    assert probabilities(agent, log)[0, best[0]] == 0


def test_an_agent_that_has_had_other_arms():
    """Its table has room for more arms than the log knows, and rows of arms that are gone."""
    agent = agent_of(explorax.epsilon_greedy(epsilon=0.3))
    agent.add_arm("gone", [0.9, 0.9])
    agent.retire_arm("gone")
    agent.update_arm("b", [2.0, 2.0])
    found, told = probabilities(agent, logged())[0], agent.propensities()
    np.testing.assert_allclose(found, [dict(zip(told.arms, told.probabilities, strict=True))[name] for name in NAMES])


def test_an_agent_whose_arms_change_takes_the_features_of_the_log():
    agent, log = explorax.Agent(explorax.lin_ucb(), n_features=2), logged(False)
    tables = log.features.table(np.arange(ROWS))
    for table in tables[:8]:
        agent.learn(agent.choose(table).id, float(table[0, 0] > 0))
    found = probabilities(agent, log)
    for row in range(10, 20):
        np.testing.assert_array_equal(found[row], agent.propensities(tables[row]).probabilities)


def test_a_frozen_policy_of_fixed_arms_needs_them_to_be_those_of_the_log():
    policy = explorax.greedy()
    target = explorax.frozen(policy, policy.init(np.eye(2)))
    with pytest.raises(InvalidShape, match="2 fixed arms that the state was made for, got 3"):
        probabilities(target, logged())


BAD = [
    (3, InvalidArgument, "policies must be an array of probabilities, an Agent"),
    (["greedy"], InvalidArgument, "policies must be one target, or a mapping"),
    (np.ones((ROWS, 2)) / 2, InvalidShape, r"policies must have shape \(60, 3\) if given as an array, got \(60, 2\)"),
    (np.ones(ROWS), InvalidShape, "if given as an array"),
]


@pytest.mark.parametrize(("value", "kind", "said"), BAD)
def test_what_is_no_target(value, kind, said):
    with pytest.raises(kind, match=said):
        read_target(value, logged(), 0)


def test_tables_with_names_of_columns_could_be_in_another_order():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(InvalidArgument, match=r"in the order of log\.names"):
        read_target(pandas.DataFrame(np.ones((ROWS, 3)) / 3), logged(), 0)


def test_agents_that_do_not_fit_the_log():
    more = explorax.Agent(explorax.uniform(), arms={"a": [1.0, 0.0], "z": [0.0, 1.0]})
    with pytest.raises(InvalidArgument, match="an agent with the arm 'z' on offer, which the log does not know"):
        read_target(more, logged(), 0)
    ball = explorax.Agent(explorax.lin_ts(), arms=arm_sets.ball(np.zeros(2), 1.0))
    with pytest.raises(InvalidArgument, match="infinite set of arms"):
        read_target(ball, logged(), 0)
    wide = explorax.Agent(explorax.uniform(), n_features=5)
    with pytest.raises(
        InvalidShape, match="must take the 2 features that the arms have in the log, got an agent for 5"
    ):
        read_target(wide, logged(), 0)
    few = explorax.Agent(explorax.uniform(), arms={"a": [1.0, 0.0]})
    offered = np.ones((ROWS, 3), bool)
    offered[7, 0] = False
    with pytest.raises(InvalidArgument, match="got an agent without one in row 7"):
        probabilities(few, logged(), offered=offered)


def test_what_a_policy_cannot_learn():
    log = logged()
    twice = LoggedData(log.arms, 2 * log.rewards, log.features, log.names, log.propensities)
    with pytest.raises(InvalidReward):
        trained(Learning(explorax.glm_tsl()), twice, 20, 0)
    with pytest.raises(InvalidArgument, match="log must have features"):
        trained(Learning(explorax.glm_tsl()), logged(features=None), 20, 0)
    with pytest.raises(HistoryFull, match=r"got 5 places for 20\. Build the policy with capacity=20"):
        trained(Learning(explorax.glm_tsl(memory="exact", capacity=5)), logged(False), 20, 0)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([[0.5, 0.6, 0.0]], "got 1.1 as the sum and 0 as the least of 'mine' in row 9"),
        ([[1.5, -0.5, 0.0]], "got 1 as the sum and -0.5 as the least"),
        ([[np.nan, 0.5, 0.5]], "in row 9"),
        ([[0.5, 0.0, 0.5]], "got a probability of 0.5 for others from 'mine' in row 9"),
        ([[0.5, 0.5]], r"of shape \(1, 3\) for 1 rows, got \(1, 2\) from 'mine'"),
    ],
)
def test_probabilities_are_probabilities_of_what_is_on_offer(found, said):
    with pytest.raises(InvalidArgument, match=said):
        checked_probabilities("mine", found, np.array([9]), np.array([[True, True, False]]))
