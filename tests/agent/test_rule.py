"""Rules are found by what they consist of, and count their draws."""

import jax
import numpy as np
import pytest

from explorax import make
from explorax.agent.rule import Rule, key_at, one_rule

ARMS = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype(np.float32)
KEYS = jax.random.key_data(jax.random.split(jax.random.key(1), 3))


def test_equal_rules_are_one():
    """Programs are found by these objects."""
    policy = make("lin_ts")
    rules = [one_rule(policy.act, None, None, draws) for draws in (3, 3, 4)]
    assert rules[0] is rules[1] is not rules[2]
    assert Rule(policy.act, None, None, 3) is not rules[0]
    assert rules[0].changed(vector=True) is rules[1].changed(vector=True) is not rules[0]


@pytest.mark.parametrize("floor", [0.0, 0.9])
def test_counts_are_those_of_the_decision_and_its_repetitions(floor):
    """With a floor, the count is of the policy's own draws, of which the arm may not be one."""
    policy = make("lin_ts", warmup="none")
    rule = Rule(policy.act, None, None, 20, floor, vector=True)
    replaced = 0
    for t in range(12):
        (arm, forced, converged, count, own), every = rule.decide(KEYS, policy.init(ARMS), ARMS, t, None)
        drawn = rule.drawn(jax.random.split(key_at(KEYS[1], t), 20), policy.init(ARMS), ARMS, t, None)
        expected = np.bincount([*drawn, own], minlength=5)
        np.testing.assert_array_equal(every, expected)
        assert (int(count), bool(forced), bool(converged)) == (expected[arm], False, True)
        np.testing.assert_array_equal(rule.repeated(KEYS, policy.init(ARMS), ARMS, t, None), expected - np.eye(5)[own])
        replaced += int(arm != own)
    assert (replaced > 0) == (floor > 0)
