"""Rows of a table as vectors of numbers, which is how an agent sees arms and contexts.

    a constant                  ->  1, named "bias"
    numbers                     ->  one feature, standardized: mean 0 and variance 1 in the sample
    text, bools                 ->  one-hot: a feature of zeros and ones for each value in the sample, in sorted order
    pairs of columns            ->  products of each feature of one with each of the other, named "a:b"

Features come in this order.  Text that the sample did not have is encoded as zeros: nothing is known about it, and what
a model says of such a row comes from the other columns.  A number that is constant in the sample becomes 0, and another
one its difference from it.  The products of two one-hot columns are the joint one-hot, with a weight for each pair.

Rows are a DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.

scikit-learn fits the scaler and the one-hot encoder, and skops stores them without pickle.  They are applied by NumPy:
a decision encodes a few rows, for which scikit-learn's `transform` takes many times as long as the numbers need.
"""

import io
import itertools
import json
import numbers
import reprlib
import sys
import zipfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, check_names
from explorax.extras import optional
from explorax.tables import MOST_VALUES

KINDS = {"text": "text", "bool": "True or False", "number": "a number"}  # of columns, and what they hold
PLAIN: dict[str, Callable[[Any], Any]] = {"text": str.__str__, "bool": bool}  # without NumPy's types and enums
FORMAT = 1  # of saved encoders
SETTINGS, FITTED = "encoder.json", "fitted.skops"  # the files in a saved encoder


class ByColumn:
    """Each column by its kind, and products of columns."""

    def __init__(self, fitted: Mapping[str, Any], kinds: dict[str, str], pairs: list[list[str]], bias: bool) -> None:
        self.fitted = fitted  # "numbers": a StandardScaler, "values": a OneHotEncoder; None where there is none
        self.settings: dict[str, Any] = {"kinds": kinds, "pairs": pairs, "bias": bias}
        self.columns, self.kinds = tuple(kinds), kinds
        self.numbers = [name for name, kind in kinds.items() if kind == "number"]
        others = [name for name, kind in kinds.items() if kind != "number"]
        scaler, one_hot = fitted["numbers"], fitted["values"]
        self.mean = scaler.mean_ if scaler else 0.0
        self.scale = scaler.scale_ if scaler else 1.0

        names = ["bias", *self.numbers, *(one_hot.get_feature_names_out(others) if one_hot else ())]
        spans = {name: range(i, i + 1) for i, name in enumerate(self.numbers, start=1)}  # the features of each column
        self.places: dict[str, dict[Any, int]] = {}  # of each value of a column among the features
        self.width = 1 + len(self.numbers)
        for name, values in zip(others, one_hot.categories_ if one_hot else (), strict=True):
            spans[name] = range(self.width, self.width + len(values))
            self.places[name] = dict(zip(values, spans[name], strict=True))
            self.width += len(values)
        products = [both for a, b in pairs for both in itertools.product(spans[a], spans[b])]
        self.left, self.right = np.array(products, int).reshape(-1, 2).T
        self.first = 0 if bias else 1
        self.names = (*names[self.first :], *(f"{names[i]}:{names[j]}" for i, j in products))

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """Columns of equal length as a matrix, which may be infinite where numbers are huge."""
        for name, kind in self.kinds.items():
            check_kind("rows", name, columns[name], kind)
        rows = len(columns[self.columns[0]])
        encoded = np.zeros((rows, self.width))
        encoded[:, 0] = 1.0
        every = np.arange(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            if self.numbers:
                values = as_numbers("rows", {name: columns[name] for name in self.numbers})
                encoded[:, 1 : 1 + len(self.numbers)] = (values - self.mean) / self.scale
            for name, places in self.places.items():  # an unknown value points to the bias, which is 1 anyway
                encoded[every, [places.get(value, 0) for value in columns[name]]] = 1.0
            products = encoded[:, self.left] * encoded[:, self.right]
        return np.concatenate([encoded[:, self.first :], products], axis=1)


class ByTransformer:
    """A fitted transformer of scikit-learn's kind."""

    def __init__(self, fitted: Any, columns: Iterable[str]) -> None:
        self.fitted, self.columns = fitted, tuple(columns)
        self.settings: dict[str, Any] = {"columns": list(self.columns)}
        check_own_columns("transformer", self.columns)
        estimator = optional("sklearn.base", "a transformer", "agent").BaseEstimator
        if not (isinstance(fitted, estimator) and hasattr(fitted, "transform")):
            raise InvalidArgument(f"transformer={fitted!r} is none: give a fitted one of scikit-learn's kind")
        try:
            optional("sklearn.utils.validation", "a transformer", "agent").check_is_fitted(fitted)
        except ValueError as error:  # what NotFittedError is
            raise InvalidArgument(f"transformer={fitted!r} is not fitted: call its fit first") from error
        self.named = hasattr(fitted, "feature_names_in_")
        if self.named and self.columns != tuple(fitted.feature_names_in_):
            needed = tuple(fitted.feature_names_in_)
            raise InvalidArgument(f"columns={self.columns} are not what the transformer was fitted with: give {needed}")
        count = getattr(fitted, "n_features_in_", len(self.columns))
        if count != len(self.columns):
            raise InvalidShape(f"columns={self.columns}: the transformer was fitted with {count} columns, give as many")
        try:
            names = fitted.get_feature_names_out(None if self.named else self.columns)
        except (AttributeError, ValueError) as error:
            raise InvalidArgument(
                f"transformer={fitted!r} cannot name its features: give one with get_feature_names_out ({error})"
            ) from error
        self.names = tuple(str(name) for name in names)

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """What the transformer makes of the columns; missing values are its own affair."""
        try:
            encoded = self.fitted.transform(self.table(columns))
            if hasattr(encoded, "toarray"):  # a sparse matrix
                encoded = encoded.toarray()
            encoded = np.asarray(encoded, np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidFeatures(f"rows are refused by the transformer: {error}") from error
        expected = (len(columns[self.columns[0]]), len(self.names))
        if encoded.shape != expected:
            raise InvalidShape(f"the transformer made an array of shape {encoded.shape} where {expected} is needed")
        return encoded

    def table(self, columns: Mapping[str, list[Any]]) -> Any:
        """The columns as the transformer was fitted with them: with names, or as an array."""
        if self.named:
            return optional("pandas", "a transformer that was fitted with column names", "dev").DataFrame(columns)
        array = np.array(list(columns.values()), dtype=object).T
        types = {type(value) for values in columns.values() for value in values}
        return array.astype(np.float64) if all(kind_of(each) == "number" for each in types) else array


class Encoder:
    """Rows as vectors of numbers: made by `fit`, `of` or `loads`, and never changed."""

    columns: tuple[str, ...]  # what a row must have, no more and no less
    names: tuple[str, ...]  # of the features

    def __init__(self, encoding: ByColumn | ByTransformer) -> None:
        self._encoding = encoding
        self.columns, self.names = encoding.columns, encoding.names

    @property
    def features(self) -> int:
        """The length d of an encoded row."""
        return len(self.names)

    @classmethod
    def fit(
        cls,
        sample: Any,
        *,
        interactions: bool | Sequence[tuple[str, str]] = False,
        scale: bool = True,
        bias: bool = True,
    ) -> "Encoder":
        """An encoder for rows like those of the sample.

        sample:         a DataFrame or a list of dicts with all values of text that are to have a feature
        interactions:   True for the products of all pairs of columns, or a list of pairs
        scale:          False leaves numbers as they are
        bias:           False leaves the constant feature out
        """
        preprocessing = optional("sklearn.preprocessing", "encoding a table", "agent")
        table = read_columns("sample", sample)
        kinds = {name: fitted_kind(name, values) for name, values in table.items()}
        pairs = read_pairs(interactions, tuple(table))
        measured = {name: values for name, values in table.items() if kinds[name] == "number"}
        others = [list(map(PLAIN[kinds[name]], values)) for name, values in table.items() if name not in measured]
        scaler = one_hot = None
        if measured:
            matrix = as_numbers("sample", measured)
            check_no_categories(sample, measured)
            if scale:
                scaler = preprocessing.StandardScaler()
                with np.errstate(over="ignore", invalid="ignore"):
                    scaler.fit(matrix)
                if not np.isfinite(scaler.mean_ + scaler.scale_).all():
                    raise InvalidFeatures(f"{', '.join(measured)}: too large to be standardized, divide by some 1e100")
        if others:
            one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore").fit(np.array(others, dtype=object).T)
        return cls(ByColumn({"numbers": scaler, "values": one_hot}, kinds, pairs, bool(bias)))

    @classmethod
    def of(cls, transformer: Any, columns: Iterable[str]) -> "Encoder":
        """An encoder that gives these columns to a fitted transformer: a Pipeline, a ColumnTransformer or any other.

        It gets a DataFrame of pandas if it was fitted with column names, else an array, of floats if all are numbers.
        """
        return cls(ByTransformer(transformer, columns))

    def transform(self, rows: Any) -> np.ndarray:
        """The (n, d) matrix of n rows: a DataFrame, a list of dicts, or one dict.

        A value of text that the sample of `fit` did not have is encoded as zeros.
        """
        encoded = self._encoding.encode(read_columns("rows", rows, self.columns))
        check_finite("rows", "feature", self.names, encoded)
        return encoded

    def checked(self, source: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Some columns of a row, as plain text, numbers and bools; raise for values that no row can have."""
        kinds: Mapping[str, str] = getattr(self._encoding, "kinds", {})
        return {name: checked_value(f"{name!r} of {source}", value, kinds.get(name)) for name, value in values.items()}

    def dumps(self) -> bytes:
        """The encoder as bytes, without pickle; `loads` makes an equal one of them."""
        skops = optional("skops.io", "saving an encoder", "agent")
        try:
            fitted = skops.dumps(self._encoding.fitted)
        except Exception as error:  # a transformer of the user's own may hold anything
            raise InvalidArgument(f"the transformer {self._encoding.fitted!r} cannot be saved: {error}") from error
        check_trusted(skops, fitted, "the transformer could not be loaded again if it were saved")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(SETTINGS, json.dumps({"format": FORMAT, **self._encoding.settings}))
            archive.writestr(FITTED, fitted)
        return file.getvalue()

    @classmethod
    def loads(cls, data: bytes) -> "Encoder":
        """The encoder that `dumps` made these bytes of; no code in them is run, and unknown types are refused."""
        skops = optional("skops.io", "loading an encoder", "agent")
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                settings, fitted = json.loads(archive.read(SETTINGS)), archive.read(FITTED)
            if settings.pop("format") != FORMAT:
                raise InvalidArgument("data were saved by another version of explorax: load them with that one")
            check_trusted(skops, fitted, "data are not loaded")
            encoding = ByColumn if "kinds" in settings else ByTransformer
            return cls(encoding(skops.loads(fitted), **settings))
        except InvalidArgument:
            raise
        except Exception as error:  # bytes that are something else fail in any way
            raise InvalidArgument(
                f"data={reprlib.repr(data)} are no saved encoder: give what Encoder.dumps returned ({error!r})"
            ) from error


def is_frame(rows: object) -> bool:
    """Whether it is a DataFrame of pandas or polars, neither of which has to be installed."""
    return hasattr(type(rows), "columns") and hasattr(type(rows), "to_dict")


def read_columns(source: str, rows: Any, columns: tuple[str, ...] | None = None) -> dict[str, list[Any]]:
    """The values of each column, which are those of the first row unless given; `source` is what messages call rows."""
    if is_frame(rows):
        columns = check_columns(source, tuple(rows.columns), columns)
        table = {name: rows[name].to_list() for name in columns}
    else:
        rows = [rows] if isinstance(rows, Mapping) else rows
        if not isinstance(rows, list | tuple) or not all(isinstance(row, dict | Mapping) for row in rows):
            raise InvalidArgument(
                f"{source} of type {type(rows).__name__} cannot be read: "
                "give a DataFrame of pandas or polars, a list of dicts, or a dict for one row"
            )
        for i, row in enumerate(rows):
            columns = check_columns(f"row {i} of {source}", tuple(row), columns)
        table = {name: [row[name] for row in rows] for name in columns or ()}
    if not (columns and table[columns[0]]):
        raise InvalidShape(f"{source} has no rows: give at least one")
    return table


def check_columns(source: str, found: tuple[str, ...], columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """The columns, which are those found unless given; raise if these differ by more than their order."""
    if columns is None:
        check_own_columns(source, found)
        return found
    if found != columns and (len(found) != len(columns) or set(found) != set(columns)):
        check_names(f"column of {source}", found, columns)
        missing = [name for name in columns if name not in found]
        if missing:
            raise InvalidFeatures(f"{source} has no column {missing[0]!r}: a row needs {', '.join(columns)}")
        check_own_columns(source, found)
    return columns


def check_own_columns(source: str, columns: Sequence[str]) -> None:
    """Raise unless there are columns, each with a name of its own."""
    if not columns:
        raise InvalidShape(f"{source} has no columns: give at least one")
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise InvalidArgument(f"{source} has the columns {list(columns)}: give each a name of its own, which is text")


def kind_of(value_type: type) -> str | None:
    """The kind of column that values of this type make, if any."""
    if issubclass(value_type, str):
        return "text"
    if issubclass(value_type, bool | np.bool_):
        return "bool"
    return "number" if issubclass(value_type, numbers.Real | Decimal) else None


def fitted_kind(name: str, values: list[Any]) -> str:
    """The kind of a column of the sample, which is that of its first value."""
    kind = kind_of(type(values[0])) or "text"
    check_kind("sample", name, values, kind)
    different = len(set(values)) if kind == "text" else 0
    if different > MOST_VALUES:
        raise InvalidFeatures(
            f"column {name!r} of sample has {different} different values, more than {MOST_VALUES}: leave it out if it "
            "is an identifier, or make it numbers"
        )
    return kind


def checked_value(what: str, value: Any, kind: str | None) -> Any:
    """A value without NumPy's types; a transformer may take values of all kinds, and missing ones."""
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
    """Raise unless all values of a column are of that kind."""
    if all(kind_of(each) == kind for each in set(map(type, values))):
        return
    row, value = next((row, value) for row, value in enumerate(values) if kind_of(type(value)) != kind)
    if value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value):
        problem, remedy = f"is missing ({value!r})", "fill it in, or leave the row out"
    else:
        problem, remedy = f"is {value!r}", f"give {KINDS[kind]}, or leave the column out of the sample"
    raise InvalidFeatures(f"row {row} of {source}: column {name!r} {problem}: {remedy}")


def as_numbers(source: str, columns: Mapping[str, list[Any]]) -> np.ndarray:
    """Columns of numbers as a matrix."""
    try:
        matrix = np.array(list(columns.values()), np.float64).T
    except (OverflowError, ValueError) as error:
        raise InvalidFeatures(f"columns {', '.join(columns)} of {source} do not fit into float64: {error}") from error
    check_finite(source, "column", list(columns), matrix)
    return matrix


def check_finite(source: str, what: str, names: Sequence[str], matrix: np.ndarray) -> None:
    """Raise for the first number that is missing or infinite."""
    if np.isfinite(matrix).all():
        return
    row, column = np.argwhere(~np.isfinite(matrix))[0]
    problem = "is missing (nan)" if np.isnan(matrix[row, column]) else f"is {matrix[row, column]}"
    raise InvalidFeatures(
        f"row {row} of {source}: {what} {names[column]!r} {problem}: give a finite number, or leave the row out"
    )


def check_no_categories(sample: Any, numbers_only: Iterable[str]) -> None:
    """Raise for categories of pandas that are numbers: in a dict they could not be told from other numbers."""
    for name in numbers_only if is_frame(sample) else ():
        if str(sample[name].dtype) == "category":
            raise InvalidFeatures(
                f"column {name!r} of sample has categories that are numbers: make them text everywhere"
            )


def read_pairs(interactions: Any, columns: Sequence[str]) -> list[list[str]]:
    """The pairs of columns whose products are wanted."""
    if isinstance(interactions, bool):
        return [list(pair) for pair in itertools.combinations(columns, 2)] if interactions else []
    pairs: list[list[str]] = []
    for pair in interactions if isinstance(interactions, list | tuple) else [interactions]:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise InvalidArgument(f"interactions={interactions!r}: give True, False or a list of pairs of columns")
        check_names("column of interactions", pair, columns)
        a, b = pair
        if a == b or [a, b] in pairs or [b, a] in pairs:
            raise InvalidArgument(f"interactions has ({a!r}, {b!r}): give two different columns, and each pair once")
        pairs.append([a, b])
    return pairs


def check_trusted(skops: Any, fitted: bytes, trouble: str) -> None:
    """Raise if a dump of skops has types that it does not know to be harmless."""
    untrusted = skops.get_untrusted_types(data=fitted)
    if untrusted:
        raise InvalidArgument(
            f"{trouble}: skops does not trust {', '.join(untrusted)}; use scikit-learn's own types instead"
        )
