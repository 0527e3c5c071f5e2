"""The encoding column by column: what arms and a context say apart is what they say together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorax.agent.by_column import multiplied
from explorax.agent.encoding import Encoder
from explorax.errors import InvalidFeatures, UnknownName

SAMPLE = [
    {"topic": topic, "age": age, "member": member, "price": price, "hour": 7.0}
    for topic, age, member, price in zip("abcabc", (20, 31, 40, 25, 60, 33), [True, False] * 3, range(6), strict=True)
]
COLUMNS = tuple(SAMPLE[0])
VALUES = st.fixed_dictionaries(
    {
        "topic": st.sampled_from(["a", "b", "c", "new", ""]),
        "age": st.integers(-(10**6), 10**6),
        "member": st.booleans(),
        "price": st.floats(-1e100, 1e100),
        "hour": st.floats(-24, 24),
    }
)
OPTIONS = st.fixed_dictionaries(
    {
        "interactions": st.sampled_from([False, True, [("topic", "age")], [("member", "topic"), ("price", "hour")]]),
        "scale": st.booleans(),
        "bias": st.booleans(),
    }
)


def split(row, own):
    """The columns of an arm, and those of the context."""
    return {name: row[name] for name in own}, {name: row[name] for name in COLUMNS if name not in own}


@given(
    st.lists(VALUES, min_size=1, max_size=5),
    st.lists(VALUES, min_size=1, max_size=3),
    st.sets(st.sampled_from(COLUMNS), max_size=4),
    OPTIONS,
)
@settings(max_examples=100, deadline=None)
def test_arms_completed_by_contexts_are_encoded_as_whole_rows(rows, contexts, own, options):
    encoder = Encoder.fit(SAMPLE, **options)
    arms = [split(row, sorted(own))[0] for row in rows]
    contexts = [split(row, own)[1] for row in contexts]
    found = encoder.completed(encoder.part(arms), arms, contexts)
    assert found.shape == (len(contexts), len(arms), encoder.n_features)
    for context, encoded in zip(contexts, found, strict=True):
        np.testing.assert_array_equal(encoded, encoder.transform([{**context, **arm} for arm in arms]))


def test_columns_that_are_missing_are_zeros_of_a_part():
    encoder = Encoder.fit(SAMPLE)
    first, second = encoder.part([{"topic": "b"}])[0].reshape(2, -1)
    assert dict(zip(encoder.names, first, strict=True)) == {
        name: float(name in ("bias", "topic_b")) for name in encoder.names
    }
    assert second.tolist() == [1.0] * encoder.n_features  # no feature is a product


@given(VALUES, st.sets(st.sampled_from(COLUMNS), min_size=1), OPTIONS)
@settings(max_examples=100, deadline=None)
def test_one_context_adds_the_factors_that_arms_lack(row, own, options):
    encoder = Encoder.fit(SAMPLE, **options)
    arm, context = split(row, sorted(own))
    factors = encoder.context(arm, context)
    assert factors is not None
    np.testing.assert_array_equal(multiplied(encoder.part([arm])[0] + factors), encoder.transform(row)[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"age": "old"}, "Column 'age' must be a number in row 0 of rows, got 'old'"),
        ({"age": float("nan")}, "Column 'age' must be a finite number in row 0 of rows, got nan"),
        ({"age": 10**400}, "Columns age, price, hour of rows must fit into float64"),
        ({"member": 1}, "Column 'member' must be True or False in row 0 of rows, got 1"),
    ],
)
def test_a_context_that_cannot_be_encoded_is_refused(change, words):
    encoder, (arm, context) = Encoder.fit(SAMPLE), split(SAMPLE[0], ["topic"])
    with pytest.raises(InvalidFeatures, match=words):
        encoder.context(arm, {**context, **change})


def test_a_context_must_have_the_columns_that_arms_lack():
    encoder, (arm, context) = Encoder.fit(SAMPLE), split(SAMPLE[0], ["topic"])
    with pytest.raises(UnknownName, match="hue"):
        encoder.context(arm, {"hue": 1.0, **{name: value for name, value in context.items() if name != "hour"}})
    with pytest.raises(InvalidFeatures, match="got no column 'hour'"):
        encoder.context(arm, {name: value for name, value in context.items() if name != "hour"})


def test_values_of_another_kind_are_named():
    encoder = Encoder.fit(SAMPLE)
    with pytest.raises(InvalidFeatures, match="Column 'age' must be a number in row 0 of rows, got 'old'"):
        encoder.part([{"age": "old"}])
    arms, context = [{"topic": "a"}], {name: SAMPLE[0][name] for name in COLUMNS if name != "topic"}
    with pytest.raises(InvalidFeatures, match="Column 'age' must be a number in row 1 of rows, got 'old'"):
        encoder.completed(encoder.part(arms), arms, [context, {**context, "age": "old"}])
