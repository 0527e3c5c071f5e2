"""Arms in a context, whose features the compiled program makes of factors: decisions are those of a table."""

import numpy as np
import pytest

from explorax import Agent, Encoder, make
from explorax.agent.factored import Factored
from explorax.errors import InvalidFeatures

ARMS = {f"arm {i}": {"topic": "abc"[i % 3], "price": float(i)} for i in range(11)}
CONTEXTS = [{"age": 20.0 + i, "device": ("phone", "desk", "watch")[i % 3]} for i in range(30)]
SAMPLE = [{**ARMS[f"arm {i % 11}"], **CONTEXTS[i]} for i in range(30)]
ENCODER = Encoder.fit(SAMPLE, interactions=[("price", "age"), ("topic", "device")])


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("policy", ["lin_ts", "glm_tsl", "uniform"])
def test_decisions_in_contexts_are_those_on_tables(policy, floor):
    settings = {"encoder": ENCODER, "seed": 3, "draws": 20, "explore_floor": floor}
    named, tables = Agent(make(policy), arms=ARMS, **settings), Agent(make(policy), **settings)
    named.retire_arm("arm 4")
    offered = {name: each for name, each in ARMS.items() if name != "arm 4"}
    for t, context in enumerate(CONTEXTS):
        ours = named.choose(context, all_propensities=True)
        theirs = tables.choose({name: {**each, **context} for name, each in offered.items()}, all_propensities=True)
        assert (ours.arm, ours.propensity, ours.forced) == (theirs.arm, theirs.propensity, theirs.forced)
        np.testing.assert_array_equal(ours.features, theirs.features)
        assert ours.all_propensities.arms == theirs.all_propensities.arms
        np.testing.assert_array_equal(ours.all_propensities.probabilities, theirs.all_propensities.probabilities)
        named.learn(ours.id, float(t % 2))
        tables.learn(theirs.id, float(t % 2))


def test_features_that_might_be_too_large_are_looked_at():
    agent = Agent(make("lin_ts"), arms=ARMS, encoder=Encoder.fit(SAMPLE, interactions=[("price", "age")], scale=False))
    source, arms = agent._live.decider.source, agent._live.now.arms
    for age, small in [(1e3, True), (1e70, False)]:  # the bound does not know which columns are multiplied
        offer = source.offer(arms, {"age": age, "device": "phone"}, None)
        assert isinstance(offer, Factored)
        assert offer.are_small() is small
    assert agent.choose({"age": 1e70, "device": "phone"}).arm in ARMS
    with pytest.raises(InvalidFeatures, match="features of arms in their context must be at most"):
        agent.choose({"age": 1e150, "device": "phone"})


def test_a_decision_in_a_float32_context_has_features_of_that_precision():
    agent = Agent(make("lin_ts"), arms=ARMS, encoder=ENCODER, dtype="float32")
    decision = agent.choose(CONTEXTS[0])
    assert decision.features.dtype == np.float32
    row = ENCODER.transform({**ARMS[decision.arm], **CONTEXTS[0]})[0]
    np.testing.assert_array_equal(decision.features, row.astype(np.float32))
