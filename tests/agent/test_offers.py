"""Wherever arms come from, they are offered and decided through one interface, alone and in batches."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import Encoder, arm_sets, errors, make
from explorax.agent import offers
from explorax.agent.compiled import Packed
from explorax.agent.decisions import Decider
from explorax.agent.offers import KINDS, read_source
from explorax.policies.base import Policy

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


def source_of(given=None, n_features=None, encoder=None, dtype="float64"):
    return read_source(given, n_features, encoder, dtype)


def learned(settings):
    """A decider and a packed state that has seen some rewards."""
    source, own = source_of(**settings)
    policy = make("lin_ts")
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
        for column, value in zip(picks, pick, strict=True):
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
    names, counts = offer.frequencies(decider.rule, decider.keys, packed, 20)
    assert len(names) == len(counts) == offer.choices
    assert counts.sum() == DRAWS + 1
    pick = offer.decide(decider.rule, decider.keys, packed, 20)
    assert counts[list(names).index(pick.arm)] == pick.count


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
        with pytest.raises(errors.InvalidArgument, match="an infinite set has no list of propensities"):
            decider.source.offer(own, None, None).frequencies(decider.rule, decider.keys, packed, 20)


def test_sources_say_what_they_are():
    made = {name: source_of(**settings)[0] for name, (settings, *_) in SOURCES.items()}
    assert {name: (each.kind, each.describe(), each.named, each.n_features) for name, each in made.items()} == {
        "fixed": ("fixed", "fixed", True, 3),
        "changing": ("changing", "changing", False, 3),
        "array": ("changing", "changing", False, 3),
        "context": ("context", "context", True, 4),
        "set": ("set", "box", False, 3),
        "uncountable": ("set", "ball", False, 3),
    }
    assert {each.kind: type(each) for each in made.values()} == KINDS


def test_only_fixed_arms_are_what_a_policy_starts_from_and_is_extended_by():
    policy = make("glm_tsl", warmup="none")
    source, own = source_of(**SOURCES["fixed"][0])
    state = source.begin(policy, own, None)
    assert state.memory.past.counts.shape == (5,)
    more = own.added("f", np.zeros(3), None)
    assert len(source.extend(policy, state, more).memory.past.counts) == len(more.rows) > 5
    changing, none = source_of(n_features=3)
    assert changing.extend(policy, state, none) is state
    assert changing.begin(policy, none, None).memory.past.features.shape[1] == 3


def test_features_and_attributes_of_an_arm_are_read():
    source, own = source_of(**SOURCES["fixed"][0])
    row, attributes = source.read(own, "f", [1, 2, 3])
    assert (row.tolist(), attributes) == ([1.0, 2.0, 3.0], None)
    source, own = source_of(**SOURCES["context"][0])
    row, attributes = source.read(own, "new", {"age": np.int32(3)})
    assert (row.shape, attributes) == ((0,), {"age": 3.0})


def test_policies_that_an_infinite_set_cannot_have():
    source, _ = source_of(**SOURCES["set"][0])
    for policy, words in (
        (make("ucb_glm"), "ucb_glm does not maximize a linear function"),
        (Policy(*make("lin_ts")[:3]), "this policy does not maximize"),
    ):
        with pytest.raises(errors.InvalidArgument, match=words):
            Decider(policy, source, 0, 0, 0.0)
    with pytest.raises(errors.InvalidArgument, match=r"explore_floor must be 0 for an infinite set of arms, got 0\.1"):
        Decider(make("lin_ts"), source, 0, 0, 0.1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "give arms, or n_features=d"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"encoder": "one-hot"}, "encoder must be an Encoder, got 'one-hot'. Make one with Encoder.fit"),
        ({"encoder": ENCODER, "n_features": 9}, "n_features=9 where the encoder makes 4: leave it out"),
        ({"given": arm_sets.ball([0.0], 1.0), "n_features": 2}, "n_features=2 where the set of arms has 1: leave"),
        ({"given": arm_sets.ball([0.0], 1.0), "encoder": ENCODER}, "encoder must be None for an infinite set"),
        ({"given": {"x": {"agee": 1}}, "encoder": ENCODER}, "column must be one of .*, got 'agee'. Did you mean 'age'"),
        ({"given": {"x": {"age": 1}, "y": {"user": "a"}}, "encoder": ENCODER}, "arms have different attributes"),
    ],
)
def test_arguments_that_say_nothing_or_too_much(settings, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        source_of(**settings)


def test_context_and_attributes_that_are_all_there_are_fixed_arms():
    source, own = source_of(given={"x": {"user": "a", "age": 1.0}}, encoder=ENCODER)
    assert isinstance(source, offers.Fixed)
    np.testing.assert_array_equal(own.rows, ENCODER.transform({"user": "a", "age": 1.0}))
