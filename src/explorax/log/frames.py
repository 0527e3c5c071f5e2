"""Tables of any kind as the columns of a log: DataFrames, tables of pyarrow, lists of dicts, CSV and Parquet files."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from explorax import tables
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName, shown


def as_table(given: Any) -> Mapping[str, Any]:
    """Return a table of any kind as its columns by name; raise for anything else."""
    if isinstance(given, str | os.PathLike):
        given = tables.read(Path(given))
    if hasattr(given, "column_names") and hasattr(given, "column"):  # pyarrow
        names = given.column_names
        tables.check_own_columns("table", names)
        return {name: tables.plain(given.column(name)) for name in names}
    if tables.is_frame(given):
        tables.check_own_columns("table", tuple(given.columns))
        return {name: given[name] for name in given.columns}
    return tables.read_columns("table", given)


def column(table: Mapping[str, Any], argument: str, name: Any) -> Any:
    """Return a column of a table; raise if there is no column of this name."""
    if not isinstance(name, str) or name not in table:
        raise UnknownName(argument, name, table)
    return table[name]


def values(given: Any) -> list[Any]:
    """Return a column as a list of Python's values."""
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(given, method):
            return list(getattr(given, method)())
    return list(given)


def several(argument: str, names: Any) -> list[Any]:
    """Return names of columns as a list; raise for anything else."""
    if isinstance(names, str) or not isinstance(names, Sequence) or not names:
        raise InvalidArgument(
            f"{argument} must be a list of names of columns, got {shown(names)}. Give [{shown(names)}], for example."
        )
    return list(names)


def as_numbers(name: str, given: Any) -> np.ndarray:
    """Return (n, k) a column as numbers: itself, or for text and bools a column for each value, in sorted order."""
    plain = values(given)
    missing = [row for row, value in enumerate(plain) if value is None or value != value]
    if missing:
        raise InvalidFeatures(
            f"column {name!r} must have no missing values, got {len(missing)}, the first in row {missing[0]}. Fill "
            "them."
        )
    kinds = {
        bool if isinstance(value, bool | np.bool_) else str if isinstance(value, str) else float for value in plain
    }
    if len(kinds) > 1:
        raise InvalidFeatures(
            f"column {name!r} must hold numbers, text or bools, got several of these. Turn it into one of them."
        )
    if kinds <= {float}:
        try:
            return np.array(plain, float)[:, None]
        except (TypeError, ValueError):
            raise InvalidFeatures(
                f"column {name!r} must hold numbers, text or bools, got {shown(plain[0])}. Turn it into one of these."
            ) from None
    different = sorted(set(plain))
    if len(different) > tables.MOST_VALUES:
        raise InvalidFeatures(
            f"column {name!r} must have at most {tables.MOST_VALUES} different values, got {len(different)}. Leave it "
            "out if it is an identifier, or turn it into numbers."
        )
    place = {value: i for i, value in enumerate(different)}
    return np.eye(len(different))[[place[value] for value in plain]]


def lists(argument: str, given: Any) -> list[Any]:
    """Return a column of lists, or of lists written as JSON, as lists."""
    try:
        found = [json.loads(value) if isinstance(value, str) else list(value) for value in values(given)]
        if all(isinstance(each, list) for each in found):
            return found
    except (TypeError, ValueError):
        pass
    raise InvalidArgument(
        f"{argument} must name a column of lists, or of lists as JSON, got {shown(values(given)[0])}. Give a list in "
        "each row."
    )


def columns(
    given: Any,
    arm: str,
    reward: str,
    propensity: str | None,
    context: Sequence[str] | None,
    offered: str | None,
    every: Sequence[str] | None,
    time: str | None,
    id: str | None,
) -> dict[str, Any]:
    """Return what `LoggedData.of` is given, from the columns of a table."""
    table = as_table(given)
    found = {"arms": values(column(table, "arm", arm)), "rewards": column(table, "reward", reward)}
    for field, argument, name in (
        ("propensities", "propensity", propensity),
        ("times", "time", time),
        ("ids", "id", id),
    ):
        if name is not None:
            found[field] = column(table, argument, name)
    if offered is not None:
        found["listed"] = lists("offered", column(table, "offered", offered))
    if context is not None:
        parts = [as_numbers(name, column(table, "context", name)) for name in several("context", context)]
        found["contexts"] = np.concatenate(parts, axis=1)
    if every is not None:
        names = several("all_propensities", every)
        parts = [as_numbers(name, column(table, "all_propensities", name)) for name in names]
        if {part.shape[1] for part in parts} != {1}:
            raise InvalidShape("all_propensities must name columns of numbers, got text. Name one column for each arm.")
        found["all_propensities"] = np.concatenate(parts, axis=1)
    return found
