"""Columns become features in one way, for agents and for data sets."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.preprocessing import StandardScaler

from explorax import Encoder, errors, tables
from explorax.tables import Features, fit_features

RNG = np.random.default_rng(0)
COLUMNS = {
    "size": RNG.normal(5.0, 3.0, 40).tolist(),
    "color": RNG.choice(["red", "blue", "green"], 40).tolist(),
    "count": RNG.integers(0, 90, 40).tolist(),
    "good": RNG.choice([True, False], 40).tolist(),
}


def test_a_data_set_has_the_features_that_an_agent_sees():
    """The same names and numbers; those of a data set come in the order of the columns."""
    found = tables.encode(pa.table(COLUMNS | {"y": [0, 1] * 20}), None, "a table")
    rows = [dict(zip(COLUMNS, values, strict=True)) for values in zip(*COLUMNS.values(), strict=True)]
    encoder = Encoder.fit(rows, bias=False)
    assert sorted(found.columns) == sorted(encoder.names)
    order = [encoder.names.index(name) for name in found.columns]
    assert found.columns[:4] == ("size", "color_blue", "color_green", "color_red")
    np.testing.assert_array_equal(found.features, encoder.transform(rows)[:, order].astype(np.float32))


def test_numbers_are_standardized_as_by_scikit_learn():
    numbers = np.column_stack([RNG.normal(size=30), RNG.normal(3e5, 1e-3, 30), RNG.integers(0, 5, 30)])
    scaler, one_hot = fit_features("a table", numbers, {})
    features = Features(scaler, one_hot, ["a", "b", "c"], [])
    assert one_hot is None
    assert features.names == ["bias", "a", "b", "c"]
    np.testing.assert_array_equal(features.encode(numbers, {}, 30)[:, 1:], StandardScaler().fit_transform(numbers))


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1.0, 1e160, 1e307])
def test_numbers_of_any_size_are_standardized(size):
    numbers = size * np.array([[1.0, 7.0], [2.0, 7.0], [6.0, 7.0]])
    features = Features(*fit_features("a table", numbers, {}), ["x", "same"], [])
    encoded = features.encode(numbers, {}, 3)
    np.testing.assert_allclose(encoded[:, 1], np.array([-2.0, -1.0, 3.0]) / np.sqrt(14 / 3), rtol=1e-12)
    np.testing.assert_array_equal(encoded[:, 2], 0.0)


def test_another_value_of_a_constant_is_its_difference():
    features = Features(*fit_features("a table", np.full((3, 1), 7.0), {}), ["x"], [])
    np.testing.assert_array_equal(features.encode(np.array([[7.5]]), {}, 1), [[1.0, 0.5]])


def test_values_are_sorted_with_missing_ones_last_and_unknown_ones_zeros():
    sample = {"x": [20, 3, None, 3], "y": ["b", None, "a", "a"]}
    features = Features(*fit_features("a table", None, sample), [], ["x", "y"])
    assert features.names == ["bias", "x_3", "x_20", "x_(missing)", "y_a", "y_b", "y_(missing)"]
    assert features.spans == {"x": range(1, 4), "y": range(4, 7)}
    encoded = features.encode(None, {"x": [3, None, 4], "y": ["c", "b", None]}, 3)
    np.testing.assert_array_equal(encoded, [[1, 1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 1, 0], [1, 0, 0, 0, 0, 0, 1]])


def test_a_column_with_too_many_values_is_refused():
    many = {"id": [str(i) for i in range(tables.MOST_VALUES + 1)]}
    with pytest.raises(
        errors.InvalidFeatures, match="Column 'id' of a table must have at most 1000 different values, got 1001"
    ):
        fit_features("a table", None, many)
    fitted = fit_features("a table", None, {"id": many["id"][1:]})
    assert len(Features(*fitted, [], ["id"]).names) == 1 + tables.MOST_VALUES


@pytest.mark.parametrize("frame", [[{"a": 1, "b": 2}, {"b": 4, "a": 3}], {"a": 1, "b": 2}])
def test_rows_become_columns(frame):
    found = tables.read_columns("rows", frame, ("b", "a"))
    assert list(found) == ["b", "a"]
    assert found["a"] == ([1, 3] if isinstance(frame, list) else [1])
    with pytest.raises(errors.InvalidFeatures, match="must have the columns a, b, c, got no column 'c'"):
        tables.read_columns("rows", frame, ("a", "b", "c"))
