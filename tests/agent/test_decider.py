"""A decision is a function of seed, number and state, and the state changes all at once or not at all."""

import numpy as np
import pytest

from explorax import errors, make
from explorax.agent.decider import Decider, Live, Now, checked_policy
from explorax.agent.packing import Packed
from explorax.agent.sources import read_source
from explorax.policies.base import Policy

MATRIX = np.random.default_rng(0).uniform(-1, 1, (6, 3))


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
        np.testing.assert_allclose(chances, many.count / (20 + many.pooled), rtol=1e-12)
        one, *stated = decider.decide_many(source.offers(own, 1, None), now, 4)  # a batch of one is a single decision
        np.testing.assert_allclose(np.ravel(stated), picks[4][1:], rtol=1e-12)
        assert one.row.tolist() == rows[4:5]
        assert (stderrs[~many.forced] > 0).all()
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
    with pytest.raises(
        errors.InvalidArgument, match=r"act must take the arguments key, .* mask, got 4 of them\. Add `mask`"
    ):
        checked_policy(old)


def test_what_changes_is_replaced_as_a_whole():
    """Whoever has read the state before sees none of the change, and a refused reward leaves all as it was."""
    source, own = read_source(dict(zip("abcdef", MATRIX, strict=True)), None, None, "float64")
    decider = Decider(make("lin_ts"), source, 0, 0, 0.0)
    live = Live(decider, decider.nothing_seen(decider.policy, own), own, 10)
    first = live.choose(None, None)
    before = live.now
    live.learn(first.id, 1.0)
    assert (before.learned, live.now.learned, first.id in live.waiting()) == ((), [first.id], False)
    with pytest.raises(errors.InvalidReward):
        live.learn(live.choose(None, None).id, np.nan)
    assert live.now.learned == [first.id]
    live.switch("a", False)
    live.put(type(own).added, "g", [1.0, 2.0, 3.0])
    assert before.arms.names == own.names
    assert live.now.arms.by_name() == dict.fromkeys("bcdefg", True) | {"a": False}
