"""Sources of arms: what each kind needs, offers and refuses."""

import numpy as np
import pytest

from explorax import Encoder, arm_sets, errors, make
from explorax.agent.decider import Decider
from explorax.agent.kinds import KINDS, read_source
from explorax.agent.packing import Packed
from explorax.agent.sources import ArmSource
from explorax.policies.base import Policy

MATRIX = np.random.default_rng(0).uniform(-1, 1, (5, 3))
ENCODER = Encoder.fit([{"user": user, "age": age} for user in "ab" for age in (1.0, 2.0, 4.0)])
AGES = {"young": {"age": 1.0}, "old": {"age": 4.0}}
SOURCES = {  # what an agent is made with
    "fixed": {"given": dict(zip("abcde", MATRIX, strict=True))},
    "changing": {"n_features": 3},
    "context": {"given": AGES, "encoder": ENCODER},
    "set": {"given": arm_sets.box(-np.ones(3), np.ones(3))},
    "uncountable": {"given": arm_sets.ball(np.zeros(3), 1.0)},
}


def source_of(given=None, n_features=None, encoder=None):
    return read_source(given, n_features, encoder, "float64")


def test_sources_say_what_they_are():
    made = {name: source_of(**settings)[0] for name, settings in SOURCES.items()}
    assert {name: (each.kind, each.describe(), each.named, each.n_features) for name, each in made.items()} == {
        "fixed": ("fixed", "fixed", True, 3),
        "changing": ("changing", "changing", False, 3),
        "context": ("context", "context", True, 4),
        "set": ("set", "box", False, 3),
        "uncountable": ("set", "ball", False, 3),
    }
    assert {each.kind: type(each) for each in made.values()} == KINDS


def test_only_fixed_arms_are_what_a_policy_starts_from_and_is_extended_by():
    policy = make("glm_tsl", warmup="none")
    source, own = source_of(**SOURCES["fixed"])
    state = source.begin(policy, own, None)
    assert state.memory.past.counts.shape == (5,)
    more = own.added("f", np.zeros(3), None)
    packed = Packed.of(state)
    assert len(source.extend(policy, packed, more).state().memory.past.counts) == len(more.rows) > 5
    changing, none = source_of(n_features=3)
    assert changing.extend(policy, packed, none) is packed
    assert changing.begin(policy, none, None).memory.past.features.shape[1] == 3


def test_features_and_attributes_of_an_arm_are_read():
    source, own = source_of(**SOURCES["fixed"])
    row, attributes = source.read(own, "f", [1, 2, 3])
    assert (row.tolist(), attributes) == ([1.0, 2.0, 3.0], None)
    source, own = source_of(**SOURCES["context"])
    row, attributes = source.read(own, "new", {"age": np.int32(3)})
    np.testing.assert_array_equal(row, ENCODER.part([{"age": 3.0}])[0])
    assert attributes == {"age": 3.0}


def test_policies_that_an_infinite_set_cannot_have():
    source, _ = source_of(**SOURCES["set"])
    for policy, words in (
        (make("ucb_glm"), "policy must maximize a linear function .* got ucb_glm"),
        (Policy(*make("lin_ts")[:3]), "policy must maximize a linear function .* got a policy of another kind"),
    ):
        with pytest.raises(errors.InvalidArgument, match=words):
            Decider(policy, source, 0, 0, 0.0)
    with pytest.raises(errors.InvalidArgument, match=r"explore_floor must be 0 for an infinite set of arms, got 0\.1"):
        Decider(make("lin_ts"), source, 0, 0, 0.1)


def test_a_source_makes_offers_and_may_have_no_arms_to_read():
    with pytest.raises(TypeError, match="abstract"):
        ArmSource(3, "float64")
    for name, kind in (("changing", "changing"), ("set", "box")):
        source, own = source_of(**SOURCES[name])
        with pytest.raises(errors.InvalidArgument, match=f"arms of the kind '{kind}' has no arms of its own. Make it"):
            source.read(own, "new", [1.0, 2.0, 3.0])
