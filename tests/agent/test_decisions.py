"""What an agent answers, also as JSON; and that a decision is a function of seed, number and state."""

import json

import numpy as np
import pytest

import explorax
from explorax import Agent, Decision, errors, make
from explorax.agent import Decisions
from explorax.agent.compiled import Packed
from explorax.agent.decisions import Decider, Now, checked_policy
from explorax.agent.offers import read_source
from explorax.policies.base import Policy

MATRIX = np.random.default_rng(0).uniform(-1, 1, (6, 3))
NAMED = {f"arm {i}": row for i, row in enumerate(MATRIX)}
ONE = Decision(3, "a", 0.5, 0.1, 0, np.array([1.0, 2.0]), False, True)


def test_answers_are_plain_json():
    agent = Agent(make("lin_ts"), arms=NAMED, draws=3)
    decision = agent.choose()
    plain = json.loads(decision.to_json())
    assert plain == decision.to_dict()
    assert explorax.Decision(**plain | {"features": np.array(plain["features"])}) == decision
    many = agent.choose_many(2)
    assert json.loads(many.to_json()) == many.to_dicts() == [each.to_dict() for each in many]
    stated = agent.propensities()
    assert json.loads(stated.to_json()) == stated.to_dict()
    assert stated.to_dict()["arms"] == list(NAMED)
    point = Agent(make("lin_ts"), arms=explorax.arm_sets.ball([0.0, 0.0], 1.0)).choose()
    assert json.loads(point.to_json())["arm"] == point.arm.tolist()
    assert json.loads(point.to_json())["propensity"] is None


def test_decisions_are_equal_if_all_of_them_is():
    assert ONE._replace(features=[1.0, 2.0]) == ONE
    assert hash(ONE) == hash(ONE._replace(arm="b"))
    for other in (ONE._replace(arm="b"), ONE._replace(features=np.ones(2)), tuple(ONE), 3):
        assert other != ONE


def test_columns_are_a_sequence_of_decisions():
    both = Decisions(
        range(3, 5),
        ["a", "b"],
        np.array([0.5, 0.2]),
        None,
        np.array([0, 1]),
        np.array([[1.0, 2.0], [3.0, 4.0]]),
        np.array([False, True]),
        np.array([True, True]),
    )
    first = ONE._replace(propensity_stderr=None)
    second = Decision(4, "b", 0.2, None, 1, np.array([3.0, 4.0]), True, True)
    assert list(both) == both[:] == [first, second]
    assert (both[-1], len(both)) == (second, 2)
    assert all(type(value) is not np.bool_ for value in both[1])
    with pytest.raises(IndexError):
        both[2]


def test_a_decider_has_no_memory():
    """The same number and state again give the same decision; another seed gives others."""
    found = []
    for seed in (1, 1, 2):
        source, own = read_source(MATRIX, None, None, "float64")
        decider = Decider(make("lin_ts"), source, seed, 20, 0.0)
        now = Now(Packed.of(decider.nothing_seen(decider.policy, own)), own, np.inf)
        times = [*range(20), *range(20)]
        picks = [decider.decide(source.offer(own, None, None), now, t) for t in times]
        rows = [pick.row for pick, *_ in picks]
        assert rows[:20] == rows[20:]
        many, chances, stderrs = decider.decide_many(source.offers(own, 20, None), now, 0)
        assert many.row.tolist() == rows[:20]
        np.testing.assert_allclose([chance for _, chance, _ in picks[:20]], chances, rtol=1e-12)
        np.testing.assert_allclose([stderr for *_, stderr in picks[:20]], stderrs, rtol=1e-12)
        stated = decider.propensities(now, 4, None, None)
        assert stated.probabilities[rows[4]] == picks[4][1]
        found.append(rows)
    assert found[0] == found[1] != found[2]


def test_policies_that_an_agent_cannot_have():
    policy = make("lin_ts")
    assert checked_policy(policy) is policy
    with pytest.raises(errors.InvalidArgument, match=r"policy must be a Policy, got 'lin_ts'. Build one with explorax"):
        checked_policy("lin_ts")
    old = Policy(policy.init, lambda key, state, arms, t: None, policy.update)
    with pytest.raises(errors.InvalidArgument, match=r"policy.act takes no `mask`: give it that fifth argument"):
        checked_policy(old)
