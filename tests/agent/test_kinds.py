"""The kinds of arms: which of them an agent is made with, and what says nothing or too much."""

import numpy as np
import pytest

from explorax import Encoder, arm_sets, errors
from explorax.agent.kinds import KINDS, is_in_context, read_source
from explorax.agent.sources import Fixed

ENCODER = Encoder.fit([{"user": user, "age": age} for user in "ab" for age in (1.0, 2.0, 4.0)])


def source_of(given=None, n_features=None, encoder=None):
    return read_source(given, n_features, encoder, "float64")


def test_each_kind_has_a_name_of_its_own():
    assert list(KINDS) == ["fixed", "context", "changing", "set"]
    assert all(each.kind == name for name, each in KINDS.items())


def test_attributes_that_are_only_some_of_the_columns_want_a_context():
    assert is_in_context({"x": {"age": 1.0}}, ENCODER)
    assert not is_in_context({"x": {"age": 1.0, "user": "a"}}, ENCODER)
    assert not is_in_context({"x": [1.0]}, ENCODER)
    assert not is_in_context([[1.0]], ENCODER)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "arms must be a table or a set of arms, got None. Give arms, or n_features=d"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"encoder": "one-hot"}, "encoder must be an Encoder, got 'one-hot'. Make one with Encoder.fit"),
        ({"encoder": ENCODER, "n_features": 9}, "n_features must be 4, as the encoder makes, got 9. Leave it out"),
        (
            {"given": arm_sets.ball([0.0], 1.0), "n_features": 2},
            "n_features must be 1, as the set of arms has, got 2. Leave it",
        ),
        (
            {"given": arm_sets.ball([0.0], 1.0), "encoder": ENCODER},
            "encoder must be None for an infinite set of arms, got an Encoder",
        ),
        ({"given": {"x": {"agee": 1}}, "encoder": ENCODER}, "column must be one of .*, got 'agee'. Did you mean 'age'"),
        (
            {"given": {"x": {"age": 1}, "y": {"user": "a"}}, "encoder": ENCODER},
            r"arms must all have the same attributes, got \['age', 'user'\] for some of them only",
        ),
    ],
)
def test_arguments_that_say_nothing_or_too_much(settings, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        source_of(**settings)


def test_context_and_attributes_that_are_all_there_are_fixed_arms():
    source, own = source_of(given={"x": {"user": "a", "age": 1.0}}, encoder=ENCODER)
    assert isinstance(source, Fixed)
    np.testing.assert_array_equal(own.rows, ENCODER.transform({"user": "a", "age": 1.0}))
