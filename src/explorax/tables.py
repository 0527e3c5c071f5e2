"""A table with one row for each example as a matrix of numbers and a vector of labels.

    numbers                     ->  one column, standardized: mean 0, variance 1; zeros if constant
    text, bools, dictionaries   ->  a column of zeros and ones for each value, named "column=value", in sorted order
    the label column            ->  whole numbers from 0 on that index the sorted names of the classes

A cell is missing where the file has none, and in CSV also where it says NA, NaN or null.  Missing text is a value like
any other, `MISSING`; a missing number or label is an error, since nothing put in its place would be right for everyone.

Tables are read by pyarrow, which is imported when it is needed.
"""

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName
from explorax.extras import optional

PURPOSE = "reading a table"
ENDINGS = (".csv", ".csv.gz", ".parquet")
LABEL_NAMES = ("label", "target", "class", "y")  # one of these is the label column unless another is named
MISSING = "(missing)"
MOST_VALUES = 1000  # of a text column; one with more is probably an identifier
LARGEST_WHOLE = 2.0**53  # up to here a float is an exact whole number


class Encoded(NamedTuple):
    """A table of n examples as numbers."""

    features: np.ndarray  # (n, d) float32
    columns: tuple[str, ...]  # names of the features
    labels: np.ndarray  # (n,) int32
    classes: tuple[str, ...]  # names of the labels, sorted


def read(path: Path) -> Any:
    """The table in a CSV file with a header, or in a Parquet file, as pyarrow has it."""
    if not path.name.lower().endswith(ENDINGS):
        raise InvalidArgument(f"{path} is no table: give a file that ends in {', '.join(ENDINGS)}")
    if not path.is_file():
        raise InvalidArgument(f"{path} is not there: give the path of a file that is")
    arrow = optional("pyarrow", PURPOSE)
    try:
        if path.suffix.lower() == ".parquet":
            return optional("pyarrow.parquet", PURPOSE).read_table(io.BytesIO(path.read_bytes()))
        content = path.read_bytes()
        return read_csv(gzip.decompress(content) if path.suffix.lower() == ".gz" else content)
    except (OSError, EOFError, zlib.error, arrow.ArrowException) as error:
        raise InvalidArgument(f"{path} cannot be read: {error}; write it anew, or give another file") from error


def read_csv(content: bytes, columns: Sequence[str] | None = None) -> Any:
    """The table in a CSV file; `columns` are its names where it has no header."""
    csv = optional("pyarrow.csv", PURPOSE)
    return csv.read_csv(
        io.BytesIO(content),
        read_options=csv.ReadOptions(column_names=columns),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )


def encode(table: Any, label: str | None, source: object) -> Encoded:
    """The table as numbers; `source` is what messages call it."""
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InvalidArgument(f"{source} has several columns called {', '.join(map(repr, twice))}: rename them")
    label = label_column(names, label, source)
    others = [name for name in names if name != label]
    if not others or table.num_rows < 2:
        raise InvalidShape(
            f"{source} has {table.num_rows} rows and {len(others)} columns beside the labels: "
            "at least 2 examples and 1 feature are needed"
        )
    labels, classes = encode_labels(f"labels in column {label!r} of {source}", plain(table.column(label)).to_numpy())
    encoded = [encode_column(name, table.column(name), source) for name in others]
    features = np.concatenate([features for features, _ in encoded], axis=1)
    return Encoded(features, tuple(column for _, columns in encoded for column in columns), labels, classes)


def label_column(names: Sequence[str], label: str | None, source: object) -> str:
    """The name of the column with the labels."""
    if label is not None:
        if label not in names:
            raise UnknownName(f"label column of {source}", label, names)
        return label
    found = [name for name in names if name in LABEL_NAMES]
    if len(found) != 1:
        raise InvalidArgument(
            f"{source} has {', '.join(names)}, of which {len(found)} are called {' or '.join(LABEL_NAMES)}: "
            "say with label= which column holds the labels"
        )
    return found[0]


def encode_labels(name: str, values: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Labels as indices into their sorted names, and these; `name` is what messages call them."""
    if values.dtype.kind == "O":
        known = [value for value in values.tolist() if not (value is None or value is np.nan)]
        check_none_missing(name, len(values) - len(known), len(values))
        kinds = sorted({type(value).__name__ for value in known})
        if len(kinds) > 1:  # numpy would make text of all of them
            raise InvalidArgument(f"{name} mix {', '.join(kinds)}: give text, whole numbers or bools, and none missing")
        values = np.asarray(known)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        check_none_missing(name, int(np.sum(np.isnan(values))), len(values))
        fractional = values[(np.trunc(values) != values) | (np.abs(values) > LARGEST_WHOLE)]
        if fractional.size:
            raise InvalidArgument(f"{name} have the value {fractional[0]}: give whole numbers, or text, as classes")
        values = values.astype(np.int64)
    if values.dtype.kind not in "biuU":
        raise InvalidArgument(f"{name} have the type {values.dtype}: give text, whole numbers or bools")
    classes, labels = np.unique(values, return_inverse=True)
    return labels.astype(np.int32), tuple(str(value) for value in classes.tolist())


def check_none_missing(name: str, missing: int, rows: int) -> None:
    """Raise if labels are missing."""
    if missing:
        raise InvalidArgument(f"{name} are missing in {missing} of {rows} rows: drop these rows, or fill them")


def encode_column(name: str, column: Any, source: object) -> tuple[np.ndarray, tuple[str, ...]]:
    """One column of a table as one or more of features, and their names."""
    kinds, values = optional("pyarrow", PURPOSE).types, plain(column)
    if kinds.is_dictionary(column.type) or kinds.is_string(values.type) or kinds.is_boolean(values.type):
        return one_hot(name, values, source)
    if not any(test(values.type) for test in (kinds.is_integer, kinds.is_floating, kinds.is_null)):
        raise InvalidFeatures(
            f"column {name!r} of {source} has the type {column.type}: turn it into numbers or text, or leave it out"
        )
    return standardized(name, values.cast("float64", safe=False).to_numpy(), source), (name,)


def plain(column: Any) -> Any:
    """The same values without dictionaries, and with one kind of text and of fractions."""
    arrow = optional("pyarrow", PURPOSE)
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type) in ("large_string", "string_view"):
        return column.cast("string")
    return column.cast("float64") if arrow.types.is_decimal(column.type) else column


def one_hot(name: str, column: Any, source: object) -> tuple[np.ndarray, tuple[str, ...]]:
    """A column of zeros and ones for each value, in sorted order with missing ones last."""
    coded = column.combine_chunks().dictionary_encode(null_encoding="encode")
    values = coded.dictionary.to_pylist()
    if len(values) > MOST_VALUES:
        raise InvalidFeatures(
            f"column {name!r} of {source} has {len(values)} different values, more than {MOST_VALUES}: leave it out if "
            "it is an identifier, or make it numbers"
        )
    order = sorted(range(len(values)), key=lambda code: (values[code] is None, values[code]))
    place = np.argsort(order)  # of each code
    features = np.zeros((len(column), len(values)), np.float32)
    features[np.arange(len(column)), place[coded.indices.to_numpy()]] = 1
    return features, tuple(f"{name}={MISSING if values[code] is None else values[code]}" for code in order)


def standardized(name: str, values: np.ndarray, source: object) -> np.ndarray:
    """Numbers with mean 0 and variance 1, as a matrix of one column."""
    wrong = int(np.sum(~np.isfinite(values)))
    if wrong:
        raise InvalidFeatures(
            f"column {name!r} of {source} has no finite number in {wrong} of {len(values)} rows: "
            "drop these rows, fill them, or leave the column out"
        )
    if np.all(values == values[0]):
        return np.zeros((len(values), 1), np.float32)
    values = values / np.max(np.abs(values))  # squares of very large or small numbers would not be finite or be 0
    values = values - np.mean(values)
    return (values / np.std(values)).astype(np.float32)[:, None]
