"""Arms in tables: read from every form, named, padded to few sizes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorax import Encoder, errors
from explorax.agent import arm_tables
from explorax.agent.arm_tables import Table, padded_size, read_table

ROWS = np.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (ROWS, range(3)),
        (ROWS.astype(int).tolist(), range(3)),
        (dict(zip("abc", ROWS, strict=True)), ["a", "b", "c"]),
        (pd.DataFrame(ROWS), range(3)),
        (pd.DataFrame(ROWS, index=list("abc")), ["a", "b", "c"]),
        (pd.DataFrame(ROWS, index=[7, 8, 9]), [7, 8, 9]),
        (pl.DataFrame(ROWS, schema=["x", "y"]), range(3)),
    ],
    ids=["array", "lists", "mapping", "pandas", "pandas names", "pandas numbers", "polars"],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tables_of_every_form(given, names, dtype):
    table = read_table(given, 2, dtype, None)
    assert list(table.names) == list(names)
    assert table.rows.dtype == dtype
    np.testing.assert_array_equal(table.rows, ROWS)


def test_a_table_is_encoded():
    encoder = Encoder.fit([{"color": color, "size": size} for color in "rb" for size in (1.0, 2.0)], scale=False)
    table = read_table(
        {"small": {"color": "r", "size": 1}, "large": {"size": 9, "color": "b"}}, None, "float64", encoder
    )
    assert table.names == ["small", "large"]
    np.testing.assert_array_equal(table.rows, [[1, 1, 0, 1], [1, 9, 1, 0]])


def test_several_tables_in_one_array():
    found = arm_tables.read_tables(np.ones((4, 3, 2), int), 2, "float32")
    assert (found.shape, found.dtype) == ((4, 3, 2), np.float32)
    with pytest.raises(errors.InvalidShape, match="arms must have 3 features, as the agent was made for, got 2"):
        arm_tables.read_tables(np.ones((4, 3, 2)), 3, "float32")


def test_what_is_given_for_several_decisions():
    rows = [{"a": 1}, {"a": 2}]
    for frame in (pd.DataFrame(rows), pl.DataFrame(rows)):
        assert arm_tables.several("contexts", frame) == rows
    assert arm_tables.several("contexts", tuple(rows)) == tuple(rows)
    assert arm_tables.as_dict(pd.Series({"a": 1})) == {"a": 1}
    for bad in ("ab", {"a": 1}, [], 3):
        with pytest.raises(errors.InvalidArgument, match="must be a list of contexts, one for each decision"):
            arm_tables.several("contexts", bad)


def test_names_for_all_decisions_or_for_each():
    assert arm_tables.read_among(None, 2) == (None, None)
    assert arm_tables.read_among((name for name in "ab"), 2) == (["a", "b"], None)
    assert arm_tables.read_among([["a"], ("b", "c")], 2) == (None, [["a"], ("b", "c")])
    with pytest.raises(errors.InvalidShape, match="one list of names for each of 3 decisions, got 2 lists"):
        arm_tables.read_among([["a"], ["b"]], 3)


# Sizes


@given(st.integers(1, 10**6))
@settings(max_examples=200, deadline=None)
def test_padding_is_little_and_to_few_sizes(count):
    size = padded_size(count)
    assert max(count, 8) <= size < max(2 * count, 9)
    assert size & (size - 1) == 0
    assert padded_size(size) == size  # what is padded is not padded again


def test_there_are_few_sizes():
    assert len({padded_size(count) for count in range(1, 100_001)}) == 15


@pytest.mark.parametrize("shape", [(3, 2), (8, 2), (5, 9, 2)])
def test_padded_rows_are_the_same_with_zeros_after_them(shape):
    rows = np.random.default_rng(0).normal(size=shape)
    arms, mask = arm_tables.padded(rows)
    count = shape[-2]
    assert arms.shape == (*shape[:-2], padded_size(count), 2)
    assert mask.shape == arms.shape[:-1]
    np.testing.assert_array_equal(arms[..., :count, :], rows)
    np.testing.assert_array_equal(arms[..., count:, :], 0.0)
    assert mask[..., :count].all()
    assert not mask[..., count:].any()


def test_tables_of_several_decisions_are_joined():
    tables = [Table(list("abc"), ROWS), Table(range(9), np.ones((9, 2)))]
    offers = arm_tables.joined(tables)
    assert (offers.number, offers.choices.tolist()) == (2, [3, 9])
    names, features = offers.pick(np.array([2, 8]))
    assert names == ["c", 8]
    np.testing.assert_array_equal(features, [ROWS[2], [1.0, 1.0]])
