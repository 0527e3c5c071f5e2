"""Offers of all kinds of arms decide through one interface, alone and in batches."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Encoder, arm_sets, errors, make
from explorax.agent.arm_tables import Pick
from explorax.agent.compiled import GROUP
from explorax.agent.decider import Decider
from explorax.agent.kinds import read_source
from explorax.agent.packing import Packed
from explorax.agent.rule import key_at

MATRIX = np.random.default_rng(0).uniform(-1, 1, (5, 3))
ENCODER = Encoder.fit([{"user": user, "age": age} for user in "ab" for age in (1.0, 2.0, 4.0)])
AGES = {"young": {"age": 1.0}, "old": {"age": 4.0}}
DRAWS, BATCH = 10, 11
SOURCES = {  # what an agent is made with, and what it is given for one decision and for several
    "fixed": ({"given": dict(zip("abcde", MATRIX, strict=True))}, None, BATCH),
    "changing": ({"n_features": 3}, MATRIX, [MATRIX] * BATCH),
    "array": ({"n_features": 3}, MATRIX, np.stack([MATRIX] * BATCH)),
    "context": ({"given": AGES, "encoder": ENCODER}, {"user": "a"}, [{"user": "a"}] * BATCH),
    "set": ({"given": arm_sets.box(-np.ones(3), np.ones(3))}, None, BATCH),
    "uncountable": ({"given": arm_sets.ball(np.zeros(3), 1.0)}, None, BATCH),
}


def source_of(given=None, n_features=None, encoder=None):
    return read_source(given, n_features, encoder, "float64")


def learned(settings, **of_policy):
    """A decider and a packed state that has seen some rewards."""
    source, own = source_of(**settings)
    policy = make("lin_ts", **of_policy)
    decider = Decider(policy, source, 3, DRAWS, 0.0)
    state = decider.nothing_seen(policy, own)
    for i in range(6):
        x = np.random.default_rng(i).uniform(-1, 1, source.n_features)
        state = policy.update(state, i % 2, jnp.asarray(x), float(i % 3))
    return decider, own, Packed.of(state)


@pytest.mark.parametrize("name", SOURCES)
def test_decisions_one_by_one_are_those_of_a_batch(name):
    settings, one, many = SOURCES[name]
    decider, own, packed = learned(settings)
    batch = decider.source.offers(own, many, None)
    assert batch.number == BATCH
    picks = batch.decide(decider.rule, decider.keys, packed, 20)
    offer = decider.source.offer(own, one, None)
    assert np.all(batch.choices == offer.choices)
    for i in range(BATCH):
        pick = offer.decide(decider.rule, decider.keys, packed, 20 + i)
        # A batch counts other draws; tests of propensities look at these.
        shown = [
            field for field in Pick._fields[:-2] if field not in ("count", "exact") or (i == 0 and name != "fixed")
        ]
        for column, value in ((getattr(picks, field), getattr(pick, field)) for field in shown):
            if column is None or isinstance(value, str):
                assert (column if column is None else column[i]) == value
            else:  # in a ball the last bit may depend on the batch
                np.testing.assert_allclose(column[i], value, rtol=1e-14 if name == "uncountable" else 0)
    assert len(np.unique(picks.features, axis=0)) > 1  # there is something to compare


@pytest.mark.parametrize("name", ["fixed", "changing", "context"])
def test_frequencies_are_of_the_arms_on_offer_and_count_all_draws(name):
    settings, one, _ = SOURCES[name]
    decider, own, packed = learned(settings)
    offer = decider.source.offer(own, one, None)
    told = offer.decide(decider.rule.changed(vector=True), decider.keys, packed, 20)
    names, rows = offer.on_offer(0)
    counts = told.every.found[0, rows]
    assert len(names) == len(counts) == offer.choices
    assert counts.sum() == told.every.found.sum() == DRAWS + 1
    pick = offer.decide(decider.rule, decider.keys, packed, 20)
    assert counts[list(names).index(pick.arm)] == pick.count == told.count
    assert told.row == pick.row


def test_decisions_of_one_law_are_counted_together():
    """Those of a batch and the repetitions of the last of them; what is forced is certain and counts for nothing."""
    decider, own, packed = learned(SOURCES["fixed"][0], warmup="basis")  # three forced rounds
    rule, keys, batch = decider.rule, decider.keys, decider.source.offers(own, BATCH, None)
    picks = batch.decide(rule.changed(vector=True), keys, packed, 1)
    alone = [decider.source.offer(own, None, None).decide(rule, keys, packed, 1 + i) for i in range(BATCH)]
    assert picks.row.tolist() == [pick.row for pick in alone]
    assert picks.forced.tolist() == [pick.forced for pick in alone] == [True, True] + [False] * (BATCH - 2)
    repeated = rule.repeated(keys, packed.state(), MATRIX, BATCH, None)
    counts = np.asarray(repeated) + np.bincount(picks.row[2:], minlength=5)
    assert picks.pooled == BATCH - 2
    assert picks.count.tolist() == [DRAWS + BATCH - 2] * 2 + counts[picks.row[2:]].tolist()
    assert picks.every.which.tolist() == [1, 2] + [0] * (BATCH - 2)
    np.testing.assert_array_equal(picks.every.found, [counts, *(DRAWS + BATCH - 2) * np.eye(5)[picks.row[:2]]])
    np.testing.assert_array_equal(picks.count, picks.every.found[picks.every.which, picks.row])


def test_groups_of_decisions_share_the_keys_of_their_first():
    decider, own, packed = learned(SOURCES["array"][0])
    rule, tables = decider.rule, np.random.default_rng(1).uniform(-1, 1, (BATCH, 6, 3))
    picks = decider.source.offers(own, tables, None).decide(rule, decider.keys, packed, 20)
    for i, table in enumerate(tables):
        lots = jax.random.split(key_at(decider.keys[1], 20 + i - i % GROUP), DRAWS)
        drawn = rule.drawn(lots, packed.state(), jnp.asarray(table), 20 + i, None)
        assert picks.count[i] == 1 + np.sum(np.asarray(drawn) == picks.row[i])


def test_points_of_a_set_are_those_of_its_own_maximizer():
    for name in ("set", "uncountable"):
        decider, own, packed = learned(SOURCES[name][0])
        pick = decider.source.offers(own, 40, None).decide(decider.rule, decider.keys, packed, 20)
        assert all(SOURCES[name][0]["given"].contains(point) for point in pick.features)
        assert not pick.row.any()
        if name == "set":
            assert set(np.abs(pick.features).ravel()) == {1.0}
            assert (pick.count >= 1).all()
            assert (pick.count <= DRAWS + 1).all()
        else:
            assert pick.count is None
            np.testing.assert_allclose(np.linalg.norm(pick.features, axis=1), 1.0)
        with pytest.raises(errors.InvalidArgument, match="propensities of an infinite set of arms cannot be listed"):
            decider.source.offer(own, None, None).decide(decider.rule.changed(vector=True), decider.keys, packed, 20)
