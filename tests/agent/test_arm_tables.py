"""Arms in tables: read from every form, named, changed without losing rows, padded to few sizes."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorax import Encoder, errors
from explorax.agent import arm_tables
from explorax.agent.arm_tables import Arms, Table, padded_size, read_table

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


# The agent's own


def own():
    return Arms.of(Table(["a", "b", "c"], ROWS))


def test_arms_are_a_copy_that_is_replaced_and_never_changed():
    rows = ROWS.copy()
    first = Arms.of(Table(["a", "b", "c"], rows))
    rows[:] = np.nan
    second = first.added("d", np.array([9.0, 9.0]), None)
    third = second.switched("a", False)
    assert (first.names, second.names) == (("a", "b", "c"), ("a", "b", "c", "d"))
    np.testing.assert_array_equal(first.rows, ROWS)
    np.testing.assert_array_equal(second.rows[:4], [*ROWS, [9, 9]])
    np.testing.assert_array_equal(second.rows, second.matrix)
    assert first.offered(None) is None
    assert second.mask(None).sum() == 4 < len(second.rows)  # room for more
    assert np.flatnonzero(third.offered(None)).tolist() == [1, 2, 3]


def test_an_updated_arm_gets_a_new_row_and_keeps_its_old_one():
    changed = own().updated("b", np.array([7.0, 7.0]), None)
    assert changed.names == ("a", None, "c", "b")
    assert changed.place("b") == 3
    np.testing.assert_array_equal(changed.rows[1], ROWS[1])
    assert np.flatnonzero(changed.offered(None)).tolist() == [0, 2, 3]
    retired = own().switched("b", False).updated("b", np.array([7.0, 7.0]), None)
    assert np.flatnonzero(retired.offered(None)).tolist() == [0, 2]
    again = retired.added("b", np.array([8.0, 8.0]), None)
    np.testing.assert_array_equal(again.rows[again.place("b")], [8.0, 8.0])


def test_room_is_doubled():
    arms, sizes = own(), []
    for number in range(40):
        arms = arms.added(number, np.zeros(2), None)
        sizes.append(len(arms.rows))
    assert sorted(set(sizes)) == [11, 22, 44]


def test_attributes_are_replaced_in_place():
    arms = Arms.in_context({"x": {"age": 1}, "y": {"age": 2}})
    changed = arms.updated("x", np.zeros(0), {"age": 5}).added("z", np.zeros(0), {"age": 6})
    assert changed.names == ("x", "y", "z")
    assert changed.attributes == ({"age": 5}, {"age": 2}, {"age": 6})


def test_who_is_among():
    arms = own().switched("c", False)
    assert np.flatnonzero(arms.mask(["b"])).tolist() == [1]
    for among, error, words in [
        ("ab", errors.InvalidArgument, r"among must be a list of names of arms, got 'ab'\. Give \['ab'\]"),
        (["c"], errors.InvalidArgument, r"got 'c', which is retired\. Leave it out, or call restore_arm\('c'\)"),
        (["e"], errors.UnknownName, "arm must be one of .*, got 'e'"),
        ([], errors.InvalidArgument, "No arm is on offer. Add one, restore one, or name one in among"),
    ]:
        with pytest.raises(error, match=words):
            arms.mask(among)


def test_an_agent_without_arms_of_its_own_has_none_to_change():
    assert own().changeable().names == ("a", "b", "c")
    with pytest.raises(errors.InvalidArgument, match=r"This agent has no arms of its own to change. Make it with"):
        Arms.none().changeable()


# Sizes


@given(st.integers(1, 10**6))
@settings(max_examples=200, deadline=None)
def test_padding_is_little_and_to_few_sizes(count):
    size = padded_size(count)
    assert max(count, 8) <= size < max(2 * count, 9)
    assert padded_size(size) == size  # what is padded is not padded again


def test_there_are_few_sizes():
    assert len({padded_size(count) for count in range(1, 100_001)}) < 30


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
