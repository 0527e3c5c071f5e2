"""Tables as columns; most of it is in test_data.py, by `LoggedData.from_table`."""

import numpy as np
import pyarrow
import pytest

from explorax import errors
from explorax.log import frames


def test_numbers_stay_and_other_values_get_a_column_each():
    np.testing.assert_array_equal(frames.as_numbers("x", [1, 2.5]), [[1], [2.5]])
    np.testing.assert_array_equal(frames.as_numbers("x", ["b", "a", "b"]), [[0, 1], [1, 0], [0, 1]])
    np.testing.assert_array_equal(frames.as_numbers("x", [True, False]), [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([1, "a"], "got several of these"),
        ([1, None], "no missing values, got 1, the first in row 1"),
        ([float("nan")], "no missing values"),
        ([object()], "must hold numbers, text or bools"),
        ([str(i) for i in range(1001)], "at most 1000 different values, got 1001"),
    ],
)
def test_other_columns_are_refused(values, said):
    with pytest.raises(errors.InvalidFeatures, match=said):
        frames.as_numbers("x", values)


def test_columns_of_pyarrow_with_dictionaries_and_doubled_names():
    table = pyarrow.table({"x": pyarrow.array(["a", "b"]).dictionary_encode()})
    assert frames.values(frames.as_table(table)["x"]) == ["a", "b"]
    with pytest.raises(errors.InvalidArgument, match="names are text and differ"):
        frames.as_table(pyarrow.table([[1], [2]], names=["x", "x"]))
