"""Logs as arrays, made of what people have."""

from datetime import UTC, datetime

import numpy as np
import pandas
import polars
import pyarrow
import pytest

from explorax import LoggedData, errors
from explorax.log.features import ContextFeatures, FixedFeatures, GivenFeatures

ARMS, REWARDS = ["b", "a", "b"], [1.0, 0.0, 2.5]


def test_arms_by_name_and_by_place():
    assert LoggedData.of(ARMS, REWARDS).names == ("a", "b")
    assert LoggedData.of(ARMS, REWARDS).arms.tolist() == [1, 0, 1]
    assert LoggedData.of(ARMS, REWARDS, names=["b", "c", "a"]).arms.tolist() == [0, 2, 0]
    assert LoggedData.of([2, 0], [1, 2], names=["x", "y", "z"]).arms.tolist() == [2, 0]  # places
    assert LoggedData.of([20, 10], [1, 2], names=[10, 20]).arms.tolist() == [1, 0]  # names
    assert LoggedData.of(np.array([2, 0]), [1, 2]).names == (0, 1, 2)
    assert LoggedData.of([1, 0], [1, 2], features=np.eye(4)).names == (0, 1, 2, 3)
    assert LoggedData.of([3, "x"], [1, 2]).names == (3, "x")
    for given in (np.array(ARMS), pandas.Series(ARMS), polars.Series(ARMS), pandas.Series(ARMS, dtype="category")):
        assert LoggedData.of(given, REWARDS).arms.tolist() == [1, 0, 1]


def test_features_of_each_kind():
    rows = np.arange(3)
    fixed = LoggedData.of(ARMS, REWARDS, features=[[1, 2], [3, 4]])
    assert isinstance(fixed.features, FixedFeatures)
    np.testing.assert_array_equal(fixed.features.table(rows), [[[1, 2], [3, 4]]] * 3)
    given = np.random.default_rng(0).normal(size=(3, 2, 4))
    assert isinstance(LoggedData.of(ARMS, REWARDS, features=given).features, GivenFeatures)
    contexts = np.random.default_rng(1).normal(size=(3, 2))
    described = [[1.0], [2.0]]
    made = LoggedData.of(ARMS, REWARDS, contexts=contexts, arm_features=described)
    assert isinstance(made.features, ContextFeatures)
    expected = [[np.outer([1, *arm], [1, *row]).ravel() for arm in described] for row in contexts]
    np.testing.assert_array_equal(made.features.table(rows), expected)
    units = LoggedData.of(ARMS, REWARDS, contexts=contexts).features
    np.testing.assert_array_equal(units.table(rows)[1, 0], np.outer([1, 1, 0], [1, *contexts[1]]).ravel())
    both = LoggedData.of(ARMS, REWARDS, contexts=contexts, features=given)
    assert isinstance(both.features, GivenFeatures)
    np.testing.assert_array_equal(both.contexts, contexts)
    assert LoggedData.of(ARMS, REWARDS).features is None
    assert LoggedData.of(ARMS, REWARDS, features=fixed.features).features is fixed.features


def test_other_columns():
    every = [[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]]
    data = LoggedData.of(
        ARMS,
        [True, False, True],
        all_propensities=every,
        offered=[[1, 1], [1, 1], [0, 1]],
        times=np.array(["1970-01-01T00:00:01.500", "1970-01-02", "1970-01-03"], "M8[ms]"),
        ids=[5, 7, 6],
    )
    assert data.rewards.tolist() == [1, 0, 1]
    assert data.propensities.tolist() == [0.75, 0.5, 1.0]  # those of the arms
    assert data.offered.tolist() == [[True, True], [True, True], [False, True]]
    assert data.times.tolist() == [1.5, 86400, 2 * 86400]
    assert data.ids.tolist() == [5, 7, 6]
    aware = [datetime(1970, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(3)]
    assert LoggedData.of(ARMS, REWARDS, times=aware).times.tolist() == [0, 1, 2]
    assert LoggedData.of(ARMS, REWARDS, times=pandas.Series(aware)).times.tolist() == [0, 1, 2]


def test_some_rows_keep_what_belongs_to_them():
    features = np.random.default_rng(0).normal(size=(3, 2, 4))
    data = LoggedData.of(ARMS, REWARDS, features=features, ids=[1, 2, 3]).some([2, 0])
    assert data.rewards.tolist() == [2.5, 1.0]
    assert data.ids.tolist() == [3, 1]
    np.testing.assert_array_equal(data.features.table(np.arange(2)), features[[2, 0]])


WRONG = [
    (([], []), {}, errors.InvalidShape, "arms must have at least one row"),
    (("ab", [1, 2]), {}, errors.InvalidArgument, "arms must be a list, got 'ab'"),
    ((3, [1]), {}, errors.InvalidArgument, "arms must be a list, got 3"),
    (([True], [1]), {}, errors.InvalidArgument, "arms must be text, .* got True at place 0"),
    (([1.0], [1]), {}, errors.InvalidArgument, "whole numbers, got 1.0 at place 0"),
    (([""], [1]), {}, errors.InvalidArgument, "not empty"),
    (([None], [1]), {}, errors.InvalidArgument, "got None at place 0"),
    (([0, -1], [1, 2]), {}, errors.InvalidArgument, "from 0 to 999999 if they have no names, got -1"),
    (([10**9], [1]), {}, errors.InvalidArgument, "Give names"),
    (([0, 5], [1, 2]), {"features": np.eye(2)}, errors.InvalidArgument, "from 0 to 1 .* got 5"),
    ((["a"], [1]), {"features": np.eye(2)}, errors.InvalidShape, "names must be given for 2 arms"),
    ((["a", "b"], [1, 2]), {"features": [[1.0]]}, errors.InvalidShape, "among 1 arms, got 2 different"),
    ((["c"], [1]), {"names": ["a"]}, errors.UnknownName, "arm must be one of a, got 'c'"),
    (([1], [1]), {"names": ["a"]}, errors.InvalidArgument, "from 0 to 0"),
    ((["a"], [1]), {"names": ["a", "a"]}, errors.InvalidArgument, "names must differ, got 'a' twice"),
    ((["a"], [1]), {"names": []}, errors.InvalidShape, "at least one name"),
    ((ARMS, [1, 2]), {}, errors.InvalidShape, r"rewards must have shape \(3,\), got \(2,\)"),
    ((ARMS, [[1], [2], [3]]), {}, errors.InvalidShape, "rewards must have shape"),
    ((ARMS, [1, None, 2]), {}, errors.InvalidReward, "rewards must be finite, got NaN or infinity in row 1"),
    ((ARMS, ["1", "2", "3"]), {}, errors.InvalidReward, "rewards must be numbers"),
    ((ARMS, REWARDS), {"propensities": [0.5, 0, 1]}, errors.InvalidArgument, "got 0.0 in row 1"),
    ((ARMS, REWARDS), {"propensities": [0.5, 1.5, 1]}, errors.InvalidArgument, "at most 1, got 1.5"),
    ((ARMS, REWARDS), {"propensities": [0.5, np.nan, 1]}, errors.InvalidArgument, "finite"),
    ((ARMS, REWARDS), {"propensities": [0.5]}, errors.InvalidShape, "propensities must have shape"),
    ((ARMS, REWARDS), {"offered": [[1, 1], [0, 1], [1, 1]]}, errors.InvalidArgument, "'a' in row 1, which was not"),
    ((ARMS, REWARDS), {"offered": [[1, 2]] * 3}, errors.InvalidArgument, "offered must be bools"),
    ((ARMS, REWARDS), {"offered": [[1, 1, 1]] * 3}, errors.InvalidShape, "3 arms, of which"),
    ((ARMS, REWARDS), {"all_propensities": [[0.5, 0.6]] * 3}, errors.InvalidArgument, "add up to 1"),
    (
        (ARMS, REWARDS),
        {"all_propensities": [[0.5, 0.5]] * 3, "offered": [[1, 1], [1, 1], [0, 1]]},
        errors.InvalidArgument,
        "must be 0 for arms that are not on offer, got another number in row 2",
    ),
    ((ARMS, REWARDS), {"contexts": [1, 2, 3]}, errors.InvalidShape, r"contexts must have shape \(3, d\)"),
    ((ARMS, REWARDS), {"contexts": [[1], [2]]}, errors.InvalidShape, "contexts must have shape"),
    ((ARMS, REWARDS), {"contexts": [[1], [np.inf], [2]]}, errors.InvalidFeatures, "contexts must be finite"),
    ((ARMS, REWARDS), {"contexts": [["x"], ["y"], ["x"]]}, errors.InvalidFeatures, "contexts must be numbers"),
    ((ARMS, REWARDS), {"features": [[1], [1, 2]]}, errors.InvalidFeatures, "different lengths"),
    ((ARMS, REWARDS), {"features": np.zeros((2, 0))}, errors.InvalidShape, "features must have shape"),
    ((ARMS, REWARDS), {"features": np.zeros((4, 2, 3))}, errors.InvalidShape, "features must have shape"),
    ((ARMS, REWARDS), {"features": [[1], [np.nan]]}, errors.InvalidFeatures, "features must be finite"),
    ((ARMS, REWARDS), {"arm_features": np.eye(2)}, errors.InvalidArgument, "got no contexts"),
    (
        (ARMS, REWARDS),
        {"arm_features": np.eye(2), "contexts": np.eye(3), "features": np.eye(2)},
        errors.InvalidArgument,
        "got features, too",
    ),
    ((ARMS, REWARDS), {"ids": [1, 1, 2]}, errors.InvalidArgument, "ids must differ, got 1 twice"),
    ((ARMS, REWARDS), {"ids": ["x", "y", "z"]}, errors.InvalidArgument, "ids must be whole numbers"),
    ((ARMS, REWARDS), {"times": np.array(["1970", "NaT", "1971"], "M8[s]")}, errors.InvalidArgument, "times"),
    ((ARMS, REWARDS), {"times": ["now", "then", "never"]}, errors.InvalidArgument, "times must be numbers"),
]


@pytest.mark.parametrize(("given", "options", "error", "said"), WRONG, ids=[each[3] for each in WRONG])
def test_bad_input_is_explained(given, options, error, said):
    with pytest.raises(error, match=said):
        LoggedData.of(*given, **options)


TABLE = {
    "banner": ["red", "blue", "red", "green"],
    "clicks": [1, 0, 0, 2],
    "p": [0.5, 0.25, 0.5, 0.125],
    "age": [30.0, 41.5, 22.0, 30.0],
    "device": ["phone", "desk", "phone", "phone"],
    "shown": ['["red", "blue"]', '["blue", "green"]', '["red", "blue"]', '["green", "red"]'],
    "row": [3, 2, 1, 0],
    "when": [0.5, 1.5, 2.5, 3.5],
}


def tables(folder):
    frame = pandas.DataFrame(TABLE)
    frame.to_csv(folder / "log.csv", index=False)
    frame.to_parquet(folder / "log.parquet")
    rows = frame.to_dict("records")
    return frame, polars.DataFrame(TABLE), pyarrow.table(TABLE), rows, folder / "log.csv", str(folder / "log.parquet")


def test_a_table_of_any_kind(tmp_path):
    for table in tables(tmp_path):
        data = LoggedData.from_table(
            table,
            arm="banner",
            reward="clicks",
            propensity="p",
            context=["age", "device"],
            offered="shown",
            time="when",
            id="row",
            names=["red", "green", "blue"],
        )
        assert data.arms.tolist() == [0, 2, 0, 1]
        assert data.rewards.tolist() == [1, 0, 0, 2]
        assert data.propensities.tolist() == TABLE["p"]
        assert data.contexts.tolist() == [[30, 0, 1], [41.5, 1, 0], [22, 0, 1], [30, 0, 1]]
        assert data.offered.astype(int).tolist() == [[1, 0, 1], [0, 1, 1], [1, 0, 1], [1, 1, 0]]
        assert data.times.tolist() == TABLE["when"]
        assert data.ids.tolist() == [3, 2, 1, 0]


def test_lists_and_probabilities_of_all_arms_in_a_table():
    table = polars.DataFrame(
        {"arm": ["x", "y"], "r": [1.0, 2.0], "on": [["x", "y"], ["y"]], "px": [0.5, 0.0], "py": [0.5, 1.0]}
    )
    data = LoggedData.from_table(table, arm="arm", reward="r", offered="on", all_propensities=["px", "py"])
    assert data.propensities.tolist() == [0.5, 1.0]
    assert data.offered.tolist() == [[True, True], [False, True]]


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"arm": "baner"}, errors.UnknownName, "arm must be one of .* got 'baner'. Did you mean 'banner'"),
        ({"reward": "device"}, errors.InvalidReward, "rewards must be numbers"),
        ({"propensity": 3}, errors.UnknownName, "propensity must be one of"),
        ({"context": "age"}, errors.InvalidArgument, "context must be a list of names of columns, got 'age'"),
        ({"context": ["agee"]}, errors.UnknownName, "Did you mean 'age'"),
        ({"offered": "device"}, errors.InvalidArgument, "offered must name a column of lists"),
        ({"all_propensities": ["device"]}, errors.InvalidShape, "columns of numbers"),
        ({"id": "age"}, errors.InvalidArgument, "ids must be whole numbers"),
        ({"names": ["red"]}, errors.UnknownName, "arm must be one of red"),
    ],
)
def test_wrong_columns_are_explained(options, error, said):
    with pytest.raises(error, match=said):
        LoggedData.from_table(pandas.DataFrame(TABLE), **({"arm": "banner", "reward": "clicks"} | options))


def test_missing_values_are_refused():
    frame = pandas.DataFrame(TABLE)
    frame.loc[1, "clicks"], frame.loc[2, "device"], frame.loc[3, "age"] = None, None, None
    with pytest.raises(errors.InvalidReward, match="row 1"):
        LoggedData.from_table(frame, arm="banner", reward="clicks")
    for name, row in (("device", 2), ("age", 3)):
        with pytest.raises(errors.InvalidFeatures, match=f"'{name}' must have no missing values, got 1, .* row {row}"):
            LoggedData.from_table(frame, arm="banner", reward="p", context=[name])
    with pytest.raises(errors.InvalidArgument, match="table must be a DataFrame"):
        LoggedData.from_table(5, arm="a", reward="r")
    with pytest.raises(errors.InvalidArgument, match="does not exist"):
        LoggedData.from_table("nowhere.csv", arm="a", reward="r")
