"""What an agent answers, as records and as JSON."""

import json

import numpy as np
import pytest

import explorax
from explorax import Agent, Decision, make
from explorax.agent import Decisions

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
