"""What people have of a log as columns; most of it is in test_data.py, by `LoggedData.of`."""

import numpy as np
import pytest

from explorax import errors
from explorax.log import arguments


def test_numbers_keep_their_precision():
    assert arguments.numbers("x", np.ones(2, np.float32)).dtype == np.float32
    assert arguments.numbers("x", np.ones(2, np.float16)).dtype == np.float64
    assert arguments.numbers("x", [1, 2]).dtype == np.float64
    assert np.isnan(arguments.numbers("x", [1.0, None])[1])


def test_names_are_those_in_the_log_or_counted():
    assert arguments.name_arms([3, 1], None) == (0, 1, 2, 3)
    assert arguments.name_arms(["b", 2, "a"], None) == (2, "a", "b")
    assert arguments.name_arms([1], 3) == (0, 1, 2)


def test_places_of_names_that_are_numbers():
    assert arguments.places([7, 5], (5, 7)).tolist() == [1, 0]
    assert arguments.places([1, 0], ("x", "y")).tolist() == [1, 0]
    with pytest.raises(errors.UnknownName, match="got 0"):
        arguments.places([0], (5, "x"))


def test_arms_on_offer_by_name():
    assert arguments.arms_on_offer([["x", "y"], ["y", "x"]], ("x", "y")) is None
    assert arguments.arms_on_offer([["y"], ["x", "y"]], ("x", "y")).tolist() == [[False, True], [True, True]]


def test_dates_are_seconds_since_1970():
    dates = np.array(["1970-01-01T00:00:00.25", "2000-01-01"], "M8[us]")
    assert arguments.seconds("times", dates).tolist() == [0.25, 946684800.0]
