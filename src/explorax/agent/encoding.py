"""Rows of a table as vectors of numbers, which is how an agent sees arms and contexts.

    a constant                  ->  1, named "bias"
    numbers                     ->  one feature, standardized: mean 0 and variance 1 in the sample
    text, bools                 ->  one-hot: a feature of zeros and ones for each value in the sample, in sorted order
    pairs of columns            ->  products of each feature of one with each of the other, named "a:b"

Features come in this order.  Text that the sample did not have is encoded as zeros: nothing is known about it, and what
a model says of such a row comes from the other columns.  A number that is constant in the sample becomes 0, and another
one its difference from it.  The products of two one-hot columns are the joint one-hot, with a weight for each pair.

Rows are a DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.

`tables.py` makes the features of single columns, as it does for data sets.  skops stores what scikit-learn fitted,
without pickle.
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
from explorax.tables import Features, check_own_columns, fit_features, is_frame, read_columns

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
        others = [name for name in kinds if name not in self.numbers]
        self.features = Features(fitted["numbers"], fitted["values"], self.numbers, others)
        names, spans = self.features.names, self.features.spans
        products = [both for a, b in pairs for both in itertools.product(spans[a], spans[b])]
        self.left, self.right = np.array(products, int).reshape(-1, 2).T
        self.first = 0 if bias else 1
        self.names = (*names[self.first :], *(f"{names[i]}:{names[j]}" for i, j in products))

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """Return columns of equal length as a matrix, which may be infinite where numbers are huge."""
        for name, kind in self.kinds.items():
            check_kind("rows", name, columns[name], kind)
        numbers = as_numbers("rows", {name: columns[name] for name in self.numbers}) if self.numbers else None
        with np.errstate(over="ignore", invalid="ignore"):
            encoded = self.features.encode(numbers, columns, len(columns[self.columns[0]]))
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
        """Return what the transformer makes of the columns; missing values are its own affair."""
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
        """Return the columns as the transformer was fitted with them: with names, or as an array."""
        if self.named:
            return optional("pandas", "a transformer that was fitted with column names", "dev").DataFrame(columns)
        array = np.array(list(columns.values()), dtype=object).T
        types = {type(value) for values in columns.values() for value in values}
        return array.astype(np.float64) if all(kind_of(each) == "number" for each in types) else array


class Encoder:
    """Rows as vectors of numbers: made by `fit`, `from_transformer` or `loads`, and never changed.

    Attributes:
        columns: What a row must have, no more and no less.
        names: The names of the features.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]

    def __init__(self, encoding: ByColumn | ByTransformer) -> None:
        self._encoding = encoding
        self.columns, self.names = encoding.columns, encoding.names

    @property
    def n_features(self) -> int:
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
        """Make an encoder for rows like those of a sample.

        Args:
            sample: A DataFrame or a list of dicts with all values of text that are to have a feature.
            interactions: True for the products of all pairs of columns, or a list of pairs.
            scale: Whether to standardize numbers: mean 0 and variance 1 in the sample.
            bias: Whether to have a constant feature.

        Returns:
            The encoder.

        Raises:
            InvalidArgument: If the sample or the pairs cannot be read.
            InvalidFeatures: If a value is missing or infinite, a column mixes text and numbers, or text has more than
                1000 values.
            InvalidShape: If the sample has no rows or no columns.
            ImportError: If scikit-learn is not installed.
        """
        table = read_columns("sample", sample)
        kinds = {name: fitted_kind(name, values) for name, values in table.items()}
        pairs = read_pairs(interactions, tuple(table))
        measured = {name: values for name, values in table.items() if kinds[name] == "number"}
        others = {name: list(map(PLAIN[kinds[name]], values)) for name, values in table.items() if name not in measured}
        matrix = as_numbers("sample", measured) if measured else None
        check_no_categories(sample, measured)
        scaler, one_hot = fit_features("sample", matrix if scale else None, others)
        return cls(ByColumn({"numbers": scaler, "values": one_hot}, kinds, pairs, bool(bias)))

    @classmethod
    def from_transformer(cls, transformer: Any, columns: Iterable[str]) -> "Encoder":
        """Make an encoder that gives columns to a fitted transformer: a Pipeline, a ColumnTransformer or any other.

        Args:
            transformer: A fitted transformer of scikit-learn's kind that can name its features.  It gets a DataFrame of
                pandas if it was fitted with column names, else an array, of floats if all are numbers.
            columns: The names of the columns that it was fitted with, in their order.

        Returns:
            The encoder.

        Raises:
            InvalidArgument: If the transformer cannot be used, or was fitted with other columns.
            ImportError: If scikit-learn is not installed.
        """
        return cls(ByTransformer(transformer, columns))

    def transform(self, rows: Any) -> np.ndarray:
        """Encode rows; a value of text that the sample of `fit` did not have becomes zeros.

        Args:
            rows: A DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.

        Returns:
            (n, d) The features of n rows.

        Raises:
            InvalidArgument: If the rows cannot be read, or have other columns than `columns`.
            InvalidFeatures: If a value is missing, infinite, or of another kind than in the sample.
        """
        encoded = self._encoding.encode(read_columns("rows", rows, self.columns))
        check_finite("rows", "feature", self.names, encoded)
        return encoded

    def checked(self, source: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return some columns of a row as plain text, numbers and bools.

        Args:
            source: What messages call the row.
            values: Values by the names of their columns.

        Returns:
            The same values, without NumPy's types.

        Raises:
            InvalidFeatures: If no row can have a value.
        """
        kinds: Mapping[str, str] = getattr(self._encoding, "kinds", {})
        return {name: checked_value(f"{name!r} of {source}", value, kinds.get(name)) for name, value in values.items()}

    def dumps(self) -> bytes:
        """Return the encoder as bytes, without pickle; `loads` makes an equal one of them.

        Raises:
            InvalidArgument: If it has a transformer that could not be loaded again.
            ImportError: If skops is not installed.
        """
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
        """Return the encoder that `dumps` made these bytes of; no code in them is run.

        Args:
            data: What `dumps` returned.

        Raises:
            InvalidArgument: If these are no saved encoder, of another version, or with types that are not trusted.
            ImportError: If skops is not installed.
        """
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


def kind_of(value_type: type) -> str | None:
    """Return the kind of column that values of this type make, if any."""
    if issubclass(value_type, str):
        return "text"
    if issubclass(value_type, bool | np.bool_):
        return "bool"
    return "number" if issubclass(value_type, numbers.Real | Decimal) else None


def fitted_kind(name: str, values: list[Any]) -> str:
    """Return the kind of a column of the sample, which is that of its first value."""
    kind = kind_of(type(values[0])) or "text"
    check_kind("sample", name, values, kind)
    return kind


def checked_value(what: str, value: Any, kind: str | None) -> Any:
    """Return a value without NumPy's types; a transformer may take values of all kinds, and missing ones."""
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
    """Return columns of numbers as a matrix."""
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
    """Return the pairs of columns whose products are wanted."""
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
