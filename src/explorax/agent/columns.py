"""Columns of text, bools or numbers: the kind of a column, and checks that its values are of that kind and finite."""

import itertools
import numbers
import reprlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from explorax.errors import InvalidArgument, InvalidFeatures, check_names
from explorax.tables import is_frame

KINDS = {"text": "text", "bool": "True or False", "number": "a number"}  # kinds of columns, and what they hold
USUAL = {str: "text", bool: "bool", int: "number", float: "number"}  # found without asking abstract classes
PLAIN: dict[str, Callable[[Any], Any]] = {"text": str.__str__, "bool": bool}  # without NumPy's types and enums


def kind_of(value_type: type) -> str | None:
    """Return the kind of column that has values of this type, or None if no column has."""
    if value_type in USUAL:
        return USUAL[value_type]
    if issubclass(value_type, str):
        return "text"
    if issubclass(value_type, bool | np.bool_):
        return "bool"
    return "number" if issubclass(value_type, numbers.Real | Decimal) else None


def fitted_kind(name: str, values: list[Any]) -> str:
    """Return the kind of a column of the sample, which is the kind of its first value."""
    kind = kind_of(type(values[0])) or "text"
    check_kind("sample", name, values, kind)
    return kind


def checked_value(what: str, value: Any, kind: str | None) -> Any:
    """Return a value without NumPy's types; raise unless it is of the kind, where None allows all kinds."""
    found = kind_of(type(value))
    if found == "number" and kind in (found, None):
        plain = value if isinstance(value, int) else float(value)
        if kind is None or abs(plain) <= sys.float_info.max:
            return plain
    elif found is not None and kind in (found, None):
        return PLAIN[found](value)
    elif kind is None and value is None:
        return None
    wanted = KINDS.get(kind or "", "text, a number, True or False")
    raise InvalidFeatures(f"{what} must be {wanted}, got {reprlib.repr(value)}. Give the arm another value.")


def check_kind(source: str, name: str, values: list[Any], kind: str) -> None:
    """Raise unless all values of a column are of one kind."""
    if all(kind_of(each) == kind for each in set(map(type, values))):
        return
    row, value = next((row, value) for row, value in enumerate(values) if kind_of(type(value)) != kind)
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        wanted, remedy = "a value", "Fill it in, or leave the row out"
    else:
        wanted, remedy = KINDS[kind], "Change the value, or leave the column out of the sample"
    raise InvalidFeatures(
        f"Column {name!r} must be {wanted} in row {row} of {source}, got {reprlib.repr(value)}. {remedy}."
    )


def as_numbers(source: str, columns: Mapping[str, list[Any]]) -> np.ndarray:
    """Return columns of numbers as a matrix; raise if a number is missing or infinite."""
    try:
        matrix = np.array(list(columns.values()), np.float64).T
    except (OverflowError, ValueError) as error:
        raise InvalidFeatures(
            f"Columns {', '.join(columns)} of {source} must fit into float64, got an error: {error}. Scale them down."
        ) from error
    check_finite(source, "Column", list(columns), matrix)
    return matrix


def check_finite(source: str, what: str, names: Sequence[str], matrix: np.ndarray) -> None:
    """Raise for the first number of a matrix that is missing or infinite."""
    if np.isfinite(matrix).all():
        return
    row, column = np.argwhere(~np.isfinite(matrix))[0]
    raise InvalidFeatures(
        f"{what} {names[column]!r} must be a finite number in row {row} of {source}, got {matrix[row, column]}. Change "
        "the value, or leave the row out."
    )


def check_no_categories(sample: Any, numbers_only: Iterable[str]) -> None:
    """Raise for categories of pandas that are numbers, since rows in dicts could not tell them from other numbers."""
    for name in numbers_only if is_frame(sample) else ():
        if str(sample[name].dtype) == "category":
            raise InvalidFeatures(
                f"Column {name!r} of sample must not have categories that are numbers, got dtype category. Turn them "
                "into text, here and in all rows."
            )


def read_pairs(interactions: Any, columns: Sequence[str]) -> list[list[str]]:
    """Return the pairs of columns whose products are features."""
    if isinstance(interactions, bool):
        return [list(pair) for pair in itertools.combinations(columns, 2)] if interactions else []
    pairs: list[list[str]] = []
    for pair in interactions if isinstance(interactions, list | tuple) else [interactions]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidArgument(
                "interactions must be True, False or a list of pairs of columns, got "
                f"{reprlib.repr(interactions)}. Give [(column, column)] for a single pair."
            )
        check_names("column of interactions", pair, columns)
        a, b = pair
        if a == b or [a, b] in pairs or [b, a] in pairs:
            raise InvalidArgument(
                f"interactions must be pairs of different columns, each pair once, got ({a!r}, {b!r}). Leave it out."
            )
        pairs.append([a, b])
    return pairs
