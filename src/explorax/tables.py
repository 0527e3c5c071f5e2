"""Tables as numbers: the features of columns, for agents and data sets, and labeled tables in files.

    a constant                  ->  1, named "bias"
    numbers                     ->  one feature, standardized: mean 0 and variance 1 in the sample
    text, bools, dictionaries   ->  one-hot: a feature of zeros and ones for each value in the sample, in sorted order,
                                    named "column_value"
    the label column of a file  ->  whole numbers from 0 on that index the sorted names of the classes

scikit-learn fits the scaler and the one-hot encoder.  They are applied by NumPy: a decision encodes only a few rows,
for which scikit-learn's `transform` takes many times as long as the arithmetic.

A cell of a file is missing if it is empty, and in CSV also if it is NA, NaN or null.  Missing text is a value like any
other, `MISSING`, and comes last; a missing number or label is an error, since no value put in its place would be right
for everyone.  Files are read by pyarrow, which is imported when it is needed.
"""

import gzip
import io
import reprlib
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName, check_names
from explorax.extras import optional

PURPOSE = "reading a table"
ENDINGS = (".csv", ".csv.gz", ".parquet")
LABEL_NAMES = ("label", "target", "class", "y")  # one of these is the column of labels by default
MISSING = "(missing)"
MOST_VALUES = 1000  # of a column of text; with more values it is probably an identifier
LARGEST_WHOLE = 2.0**53  # up to here a float is an exact whole number


# The features of columns


class Features:
    """The features of columns: a constant, numbers standardized, and a feature for each value of the others."""

    def __init__(self, scaler: Any, one_hot: Any, numbers: Sequence[str], others: Sequence[str]) -> None:
        self.mean = scaler.mean_ if scaler else np.zeros(len(numbers))
        self.scale = scaler.scale_ if scaler else np.ones(len(numbers))
        self.names = ["bias", *numbers]
        self.spans = {name: range(i, i + 1) for i, name in enumerate(numbers, start=1)}  # the features of each column
        self.places: dict[str, dict[Any, int]] = {}  # of each value of a column among the features
        for name, values in zip(others, one_hot.categories_ if one_hot else (), strict=True):
            self.spans[name] = range(len(self.names), len(self.names) + len(values))
            self.places[name] = dict(zip(values, self.spans[name], strict=True))
            self.names += [f"{name}_{MISSING if value is None else value}" for value in values]
        self.measured = slice(1, 1 + len(numbers))

    def encode(self, numbers: np.ndarray | None, others: Mapping[str, Sequence[Any]], rows: int) -> np.ndarray:
        """Return the features of rows, in the order of `names`; values not fitted, or not given, become zeros."""
        encoded = np.zeros((rows, len(self.names)))
        encoded[:, 0] = 1.0
        if numbers is not None:
            encoded[:, self.measured] = (numbers - self.mean) / self.scale
        every = np.arange(rows)
        for name, places in self.places.items():
            if name in others:  # an unknown value points to the bias, which is 1 anyway
                encoded[every, [places.get(value, 0) for value in others[name]]] = 1.0
        return encoded


def fit_features(source: object, numbers: np.ndarray | None, others: Mapping[str, Sequence[Any]]) -> tuple[Any, Any]:
    """Return a StandardScaler of the numbers (n, p) and a OneHotEncoder of the other columns, or None for either."""
    preprocessing = optional("sklearn.preprocessing", "encoding a table", "agent")
    scaler = one_hot = None
    if numbers is not None:
        # By powers of two, which round nothing: squares of very large or small numbers would not be finite or be 0.
        sizes = np.frexp(np.max(np.abs(numbers), axis=0))[1]
        scaler = preprocessing.StandardScaler().fit(np.ldexp(numbers, -sizes))
        varying = scaler.scale_ < 1  # that of a constant is 1
        scaler.mean_ = np.ldexp(scaler.mean_, sizes)
        scaler.scale_ = np.where(varying, np.ldexp(scaler.scale_, sizes), 1.0)
    for name, values in others.items():
        different = len(set(values))
        if different > MOST_VALUES:
            raise InvalidFeatures(
                f"Column {name!r} of {source} must have at most {MOST_VALUES} different values, got {different}. Leave "
                "it out if it is an identifier, or turn it into numbers."
            )
    if others:
        table = np.array(list(others.values()), dtype=object).T
        one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore").fit(table)
    return scaler, one_hot


# Rows of any kind as columns


def is_frame(rows: object) -> bool:
    """Tell whether rows are a DataFrame of pandas or polars, neither of which has to be installed."""
    return hasattr(type(rows), "columns") and hasattr(type(rows), "to_dict")


def read_columns(source: str, rows: Any, columns: tuple[str, ...] | None = None) -> dict[str, list[Any]]:
    """Return the values of each column of some rows.

    Args:
        source: The name of the rows, for messages.
        rows: A DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.
        columns: The columns that the rows must have.  Default: those of the first row.

    Returns:
        A list of values for each column.

    Raises:
        InvalidArgument: If the rows cannot be read, or their columns cannot be used.
        InvalidShape: If there are no rows or no columns.
    """
    if is_frame(rows):
        columns = check_columns(source, tuple(rows.columns), columns)
        table = {name: rows[name].to_list() for name in columns}
    else:
        rows = [rows] if isinstance(rows, Mapping) else rows
        if not isinstance(rows, list | tuple) or not all(isinstance(row, dict | Mapping) for row in rows):
            raise InvalidArgument(
                f"{source} must be a DataFrame of pandas or polars, a list of dicts, or a dict for one row, got a "
                f"value of type {type(rows).__name__}. Convert it to one of these."
            )
        for i, row in enumerate(rows):
            columns = check_columns(f"row {i} of {source}", tuple(row), columns)
        table = {name: [row[name] for row in rows] for name in columns or ()}
    if not (columns and table[columns[0]]):
        raise InvalidShape(f"{source} must have at least one row, got an empty table. Add a row.")
    return table


def check_columns(source: str, found: tuple[str, ...], columns: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the columns, or those found if `columns` is None; raise if the two differ by more than their order."""
    if columns is None:
        check_own_columns(source, found)
        return found
    if found != columns and (len(found) != len(columns) or set(found) != set(columns)):
        check_names(f"column of {source}", found, columns)
        missing = [name for name in columns if name not in found]
        if missing:
            raise InvalidFeatures(
                f"{source} must have the columns {', '.join(columns)}, got no column {missing[0]!r}. Add it."
            )
        check_own_columns(source, found)
    return columns


def check_own_columns(source: str, columns: Sequence[str]) -> None:
    """Raise unless there are columns, whose names are text and differ."""
    if not columns:
        raise InvalidShape(f"{source} must have at least one column, got no columns. Add a column.")
    if not all(isinstance(name, str) for name in columns) or len(set(columns)) < len(columns):
        raise InvalidArgument(
            f"{source} must have columns whose names are text and differ, got {reprlib.repr(list(columns))}. Rename "
            "the columns."
        )


# Files with labels


class Encoded(NamedTuple):
    """A table of n labeled examples as numbers."""

    features: np.ndarray  # (n, d) float32
    columns: tuple[str, ...]  # names of the features
    labels: np.ndarray  # (n,) int32
    classes: tuple[str, ...]  # names of the labels, sorted


def read(path: Path) -> Any:
    """Return the table in a CSV file with a header, or in a Parquet file, as a table of pyarrow."""
    if not path.name.lower().endswith(ENDINGS):
        raise InvalidArgument(f"{path} is not a table. Give a file that ends in {', '.join(ENDINGS)}.")
    if not path.is_file():
        raise InvalidArgument(f"{path} does not exist. Give the path of a file that does.")
    arrow = optional("pyarrow", PURPOSE)
    try:
        if path.suffix.lower() == ".parquet":
            return optional("pyarrow.parquet", PURPOSE).read_table(io.BytesIO(path.read_bytes()))
        content = path.read_bytes()
        return read_csv(gzip.decompress(content) if path.suffix.lower() == ".gz" else content)
    except (OSError, EOFError, zlib.error, arrow.ArrowException) as error:
        raise InvalidArgument(f"{path} cannot be read: {error}. Write it anew, or give another file.") from error


def read_csv(content: bytes, columns: Sequence[str] | None = None) -> Any:
    """Return the table in a CSV file; `columns` are the names of its columns if it has no header."""
    csv = optional("pyarrow.csv", PURPOSE)
    return csv.read_csv(
        io.BytesIO(content),
        read_options=csv.ReadOptions(column_names=columns),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


def encode(table: Any, label: str | None, source: object) -> Encoded:
    """Return a table of pyarrow as features and labels; `source` is its name in messages."""
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(
            f"{source} must have columns with different names, got several columns called "
            f"{', '.join(map(repr, twice))}. Rename them."
        )
    label = label_column(names, label, source)
    others = [name for name in names if name != label]
    if not others or table.num_rows < 2:
        raise InvalidShape(
            f"{source} must have at least 2 rows and 1 column beside the labels, got {table.num_rows} rows and "
            f"{len(others)} columns beside the labels. Add examples or features."
        )
    labels, classes = encode_labels(f"labels in column {label!r} of {source}", plain(table.column(label)).to_numpy())
    encoded = [encode_column(name, table.column(name), source) for name in others]
    features = np.concatenate([features for features, _ in encoded], axis=1)
    return Encoded(features, tuple(column for _, columns in encoded for column in columns), labels, classes)


def label_column(names: Sequence[str], label: str | None, source: object) -> str:
    """Return the name of the column of labels: the one that is given, or the only one with a usual name."""
    if label is not None:
        if label not in names:
            raise UnknownName(f"label column of {source}", label, names)
        return label
    found = [name for name in names if name in LABEL_NAMES]
    if len(found) != 1:
        raise InvalidArgument(
            f"{source} must have one column called {' or '.join(LABEL_NAMES)}, got {len(found)} among "
            f"{reprlib.repr(list(names))}. Name the column of labels with label=."
        )
    return found[0]


def encode_labels(name: str, values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return labels as indices into the sorted names of the classes, and these names.

    Args:
        name: The name of the labels, for messages.
        values: The labels: text, whole numbers or bools.

    Returns:
        (n,) The indices, and the names of the classes.

    Raises:
        InvalidArgument: If labels are missing, of several types, or not classes.
    """
    if values.dtype.kind == "O":
        known = [value for value in values.tolist() if not (value is None or value is np.nan)]
        check_none_missing(name, len(values) - len(known), len(values))
        kinds = sorted({type(value).__name__ for value in known})
        if len(kinds) > 1:  # numpy would make text of all of them
            raise InvalidArgument(
                f"{name} must all be text, whole numbers or bools, got a mix of {', '.join(kinds)}. Convert them to "
                "one type."
            )
        values = np.asarray(known)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        check_none_missing(name, int(np.sum(np.isnan(values))), len(values))
        fractional = values[(np.trunc(values) != values) | (np.abs(values) > LARGEST_WHOLE)]
        if fractional.size:
            raise InvalidArgument(
                f"{name} must be whole numbers, text or bools, got {fractional[0]}. Give a number or a name to each "
                "class."
            )
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuU":
        raise InvalidArgument(
            f"{name} must be text, whole numbers or bools, got values of type {values.dtype}. Convert them to text."
        )
    classes, labels = np.unique(values, return_inverse=True)
    return labels.astype(np.int32), tuple(str(value) for value in classes.tolist())


def check_none_missing(name: str, missing: int, rows: int) -> None:
    """Raise if the labels of some rows are missing."""
    if missing:
        raise InvalidArgument(
            f"{name} must not be missing, got {missing} of {rows} rows without a label. Drop these rows, or fill them."
        )


def encode_column(name: str, column: Any, source: object) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the features of one column of a table, and their names."""
    kinds, values = optional("pyarrow", PURPOSE).types, plain(column)
    numbers, names, others = None, [name], {}
    if kinds.is_dictionary(column.type) or kinds.is_string(values.type) or kinds.is_boolean(values.type):
        names, others = [], {name: values.to_pylist()}
    elif any(test(values.type) for test in (kinds.is_integer, kinds.is_floating, kinds.is_null)):
        numbers = values.cast("float64", safe=False).to_numpy()[:, None]
        check_all_finite(name, numbers, source)
    else:
        raise InvalidFeatures(
            f"Column {name!r} of {source} must hold numbers, text or bools, got the type {column.type}. Turn it into "
            "numbers or text, or leave it out."
        )
    features = Features(*fit_features(source, numbers, others), names, list(others))
    return features.encode(numbers, others, len(column))[:, 1:].astype(np.float32), tuple(features.names[1:])


def check_all_finite(name: str, values: np.ndarray, source: object) -> None:
    """Raise if numbers of a column are missing or infinite."""
    wrong = int(np.sum(~np.isfinite(values)))
    if wrong:
        raise InvalidFeatures(
            f"Column {name!r} of {source} must hold finite numbers, got {wrong} of {len(values)} rows without one. "
            "Drop these rows, fill them, or leave the column out."
        )


def plain(column: Any) -> Any:
    """Return a column of pyarrow without dictionaries, with text as `string` and decimals as `float64`."""
    arrow = optional("pyarrow", PURPOSE)
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type) in ("large_string", "string_view"):
        return column.cast("string")
    return column.cast("float64") if arrow.types.is_decimal(column.type) else column
