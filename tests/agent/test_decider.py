"""A decision is a function of seed, number and state, and the state changes all at once or not at all."""

import numpy as np
import pytest

from explorax import errors, make
from explorax.agent.decider import Decider, Now, checked_policy
from explorax.agent.kinds import read_source
from explorax.agent.live import Live
from explorax.agent.packing import Packed
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
    live.put("added", "g", [1.0, 2.0, 3.0])
    assert before.arms.names == own.names
    assert live.now.arms.by_name() == dict.fromkeys("bcdefg", True) | {"a": False}


@pytest.mark.parametrize("warmup", ["basis", "first", "none"])
@pytest.mark.parametrize("draws", [0, 10])
def test_decisions_after_the_forced_rounds_are_those_of_the_program_that_looks_for_them(warmup, draws):
    source, own = read_source(None, 3, None, "float64")
    policy = make("lin_ts", warmup=warmup)
    live = Live(Decider(policy, source, 3, draws, 0.0), source.begin(policy, own, None), own, 100)
    assert live.now.forced == (0 if warmup == "none" else 3)
    tables = np.random.default_rng(1).uniform(-1, 1, (8, 5, 3))
    for t, table in enumerate(tables):
        looking = live.decider.decide(source.offer(own, table, None), live.now._replace(forced=np.inf), t)
        found = live.choose(table, None)
        assert (found.row, found.forced, found.propensity) == (looking[0].row, looking[0].forced, looking[1])
        assert found.forced == (t < live.now.forced)
        live.learn(found.id, float(t % 2))
        assert live.now.forced == (0 if warmup == "none" else 3)


def test_programs_without_forced_rounds_are_made_only_where_they_pay():
    """Fixed arms look up the forced arm in a list, and would only be compiled a second time."""
    source, own = read_source(MATRIX, None, None, "float64")
    decider = Decider(make("lin_ts", warmup="none"), source, 0, 0, 0.0)
    assert Live(decider, decider.nothing_seen(decider.policy, own), own, 10).now.forced == np.inf
