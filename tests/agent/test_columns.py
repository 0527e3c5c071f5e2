"""The kinds of columns, and the values that each kind allows."""

import datetime
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from explorax.agent import columns
from explorax.errors import InvalidArgument, InvalidFeatures, UnknownName


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("a", "text"),
        (np.str_("a"), "text"),
        (True, "bool"),
        (np.True_, "bool"),
        (3, "number"),
        (np.float32(3), "number"),
        (Fraction(1, 2), "number"),
        (Decimal("0.5"), "number"),
        (1j, None),
        (None, None),
        (datetime.date(2024, 1, 1), None),
    ],
)
def test_the_kind_of_a_value_is_that_of_its_type(value, kind):
    assert columns.kind_of(type(value)) == kind


def test_the_first_value_of_a_sample_tells_the_kind_of_its_column():
    assert columns.fitted_kind("x", [1, 2.5, np.int8(3)]) == "number"
    with pytest.raises(InvalidFeatures, match=r"Column 'x' must be a number in row 1 of sample, got 'a'\. Change the"):
        columns.fitted_kind("x", [1, "a"])
    with pytest.raises(InvalidFeatures, match=r"Column 'x' must be a value in row 0 of sample, got None\. Fill it in"):
        columns.fitted_kind("x", [None, "a"])


def test_values_are_plain_and_of_their_kind():
    assert type(columns.checked_value("x", np.int64(3), "number")) is float
    assert type(columns.checked_value("x", np.True_, "bool")) is bool
    assert columns.checked_value("x", None, None) is None  # a transformer may take missing values
    with pytest.raises(InvalidFeatures, match=r"x must be True or False, got 1\. Give the arm another value"):
        columns.checked_value("x", 1, "bool")


def test_numbers_are_finite_and_fit_into_float64():
    np.testing.assert_array_equal(columns.as_numbers("rows", {"a": [1, 2], "b": [0.5, 3]}), [[1, 0.5], [2, 3]])
    for values, words in [
        ([1.0, np.nan], "Column 'a' must be a finite number in row 1 of rows, got nan. Change the value, or leave"),
        ([-np.inf, 1.0], "Column 'a' must be a finite number in row 0 of rows, got -inf."),
        ([10**400], "Columns a of rows must fit into float64, got an error: "),
    ]:
        with pytest.raises(InvalidFeatures, match=re.escape(words)):
            columns.as_numbers("rows", {"a": values})


def test_categories_that_are_numbers_are_refused():
    frame = pd.DataFrame({"x": pd.Categorical([1, 2])})
    columns.check_no_categories([{"x": 1}], ["x"])
    with pytest.raises(InvalidFeatures, match="must not have categories that are numbers"):
        columns.check_no_categories(frame, ["x"])


def test_pairs_of_columns():
    assert columns.read_pairs(False, "abc") == []
    assert columns.read_pairs(True, "abc") == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert columns.read_pairs([("a", "c")], "abc") == [["a", "c"]]
    with pytest.raises(UnknownName, match=r"column of interactions must be one of .*, got 'd'"):
        columns.read_pairs([("a", "d")], "abc")
    with pytest.raises(
        InvalidArgument, match=r"pairs of different columns, each pair once, got \('b', 'a'\)\. Leave it"
    ):
        columns.read_pairs([("a", "b"), ("b", "a")], "abc")
