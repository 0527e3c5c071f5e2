"""Encoders, which turn rows of a table into vectors of numbers, as an agent needs for arms and contexts.

    a constant                  ->  1, named "bias"
    numbers                     ->  one feature, standardized: mean 0 and variance 1 in the sample
    text, bools                 ->  one-hot: a feature of zeros and ones for each value in the sample, in sorted order
    pairs of columns            ->  products of each feature of one with each of the other, named "a:b"

Features come in this order.  Text that the sample did not have is encoded as zeros: nothing is known about it, and the
prediction for such a row comes from the other columns.  If a column of numbers is constant in the sample, its value
becomes 0, and any other number its difference from that value.  The products of two one-hot columns are the joint
one-hot encoding, with a weight for each pair of values.

Rows are a DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.

`tables.py` makes the features of single columns, as it does for data sets.  skops stores what scikit-learn fitted,
without pickle.
"""

import io
import json
import reprlib
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from explorax.agent.by_column import ByColumn
from explorax.agent.columns import (
    PLAIN,
    as_numbers,
    check_finite,
    check_no_categories,
    checked_value,
    fitted_kind,
    kind_of,
    read_pairs,
)
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape
from explorax.extras import optional
from explorax.tables import check_columns, check_own_columns, fit_features, read_columns

FORMAT = 1  # of saved encoders
SETTINGS, FITTED = "encoder.json", "fitted.skops"  # the files in a saved encoder


class ByTransformer:
    """The encoding by a fitted transformer in the style of scikit-learn."""

    def __init__(self, fitted: Any, columns: Iterable[str]) -> None:
        self.fitted, self.columns = fitted, tuple(columns)
        self.settings: dict[str, Any] = {"columns": list(self.columns)}
        check_own_columns("transformer", self.columns)
        estimator = optional("sklearn.base", "a transformer", "agent").BaseEstimator
        if not (isinstance(fitted, estimator) and hasattr(fitted, "transform")):
            raise InvalidArgument(
                f"transformer must be a transformer in the style of scikit-learn, got {reprlib.repr(fitted)}. Give a "
                "fitted Pipeline or ColumnTransformer, for example."
            )
        try:
            optional("sklearn.utils.validation", "a transformer", "agent").check_is_fitted(fitted)
        except ValueError as error:  # what NotFittedError is
            raise InvalidArgument(f"transformer must be fitted, got {fitted!r}. Call its fit method first.") from error
        self.named = hasattr(fitted, "feature_names_in_")
        if self.named and self.columns != tuple(fitted.feature_names_in_):
            needed = tuple(fitted.feature_names_in_)
            raise InvalidArgument(
                f"columns must be those that the transformer was fitted with, got {self.columns}. Give {needed}."
            )
        count = getattr(fitted, "n_features_in_", len(self.columns))
        if count != len(self.columns):
            raise InvalidShape(
                f"columns must be as many as the transformer was fitted with, got {self.columns}. Give {count} names."
            )
        try:
            names = fitted.get_feature_names_out(None if self.named else self.columns)
        except (AttributeError, ValueError) as error:
            raise InvalidArgument(
                f"transformer must be able to name its features, got {fitted!r} ({error}). Give one with the method "
                "get_feature_names_out."
            ) from error
        self.names = tuple(str(name) for name in names)

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """Return the features that the transformer makes of the columns, which may have missing values."""
        try:
            encoded = self.fitted.transform(self.table(columns))
            if hasattr(encoded, "toarray"):  # a sparse matrix
                encoded = encoded.toarray()
            encoded = np.asarray(encoded, np.float64)
        except (OverflowError, TypeError, ValueError) as error:
            raise InvalidFeatures(
                f"The transformer refuses these rows. Give rows like those that it was fitted with: {error}"
            ) from error
        expected = (len(columns[self.columns[0]]), len(self.names))
        if encoded.shape != expected:
            raise InvalidShape(
                f"The transformer must return an array of shape {expected}, one column for each name of a feature, got "
                f"{encoded.shape}."
            )
        return encoded

    def part(self, columns: Mapping[str, list[Any]], rows: int) -> np.ndarray:
        """Return no features, because a transformer may make each of them from all columns."""
        return np.zeros((rows, 0))

    def completed(
        self, parts: np.ndarray, attributes: Sequence[Mapping[str, Any]], contexts: Sequence[Mapping[str, Any]]
    ) -> np.ndarray:
        """Return (n, K, d) the features of K rows with these attributes in each of n contexts."""
        rows = [{**context, **own} for context in contexts for own in attributes]
        encoded = self.encode({name: [row[name] for row in rows] for name in self.columns})
        return encoded.reshape(len(contexts), len(attributes), -1)

    def context(self, values: Mapping[str, Any]) -> None:
        """Return None, because a transformer may make each feature from all columns."""

    def table(self, columns: Mapping[str, list[Any]]) -> Any:
        """Return the columns in the form with which the transformer was fitted: a DataFrame, or an array."""
        if self.named:
            return optional("pandas", "a transformer that was fitted with column names", "dev").DataFrame(columns)
        array = np.array(list(columns.values()), dtype=object).T
        types = {type(value) for values in columns.values() for value in values}
        return array.astype(np.float64) if all(kind_of(each) == "number" for each in types) else array


class Encoder:
    """An encoder of table rows as vectors of features, for arms and contexts that are not numbers already.

    Build one with `Encoder.fit` from a sample of rows, or with `Encoder.from_transformer` from a fitted transformer of
    scikit-learn.  An encoder never changes.

    Attributes:
        columns: The names of the columns that each row must have.
        names: The names of the d features.

    Example:
        >>> from explorax import Encoder
        >>> encoder = Encoder.fit([{"topic": "art", "age": 20}, {"topic": "news", "age": 40}])
        >>> encoder.names
        ('bias', 'age', 'topic_art', 'topic_news')
        >>> encoder.transform({"topic": "news", "age": 30})
        array([[1., 0., 0., 1.]])
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]

    def __init__(self, encoding: ByColumn | ByTransformer) -> None:
        self._encoding = encoding
        self.columns, self.names = encoding.columns, encoding.names
        self._known = frozenset(encoding.columns)

    @property
    def n_features(self) -> int:
        """The number d of features of an encoded row."""
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
        """Fit an encoder to a sample of rows: numbers are standardized, text and bools become one-hot.

        Args:
            sample: A DataFrame of pandas or polars, or a list of dicts, with all values of text that shall have a
                feature.
            interactions: True for the products of all pairs of columns, or a list of pairs of columns.  Default: False.
            scale: Whether to standardize numbers to mean 0 and variance 1 in the sample.  Default: True.
            bias: Whether to add a constant feature.  Default: True.

        Returns:
            The encoder.

        Raises:
            InvalidArgument: If the sample or the pairs cannot be read.
            InvalidFeatures: If a value is missing or infinite, a column mixes text and numbers, or text has more than
                1000 values.
            InvalidShape: If the sample has no rows or no columns.
            ImportError: If scikit-learn is not installed.

        Example:
            >>> from explorax import Encoder
            >>> sample = [{"topic": "art", "device": "phone"}, {"topic": "news", "device": "desk"}]
            >>> Encoder.fit(sample, interactions=[("topic", "device")], bias=False).n_features
            8
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
        """Build an encoder from a fitted transformer of scikit-learn, such as a Pipeline or a ColumnTransformer.

        Args:
            transformer: A fitted transformer in the style of scikit-learn that can name its features.  It is given a
                DataFrame of pandas if it was fitted with column names, else an array, of floats if all are numbers.
            columns: The names of the columns with which it was fitted, in their order.

        Returns:
            The encoder.

        Raises:
            InvalidArgument: If the transformer cannot be used, or was fitted with other columns.
            InvalidShape: If the transformer was fitted with another number of columns.
            ImportError: If scikit-learn is not installed.

        Example:
            >>> from explorax import Encoder
            >>> from sklearn.preprocessing import MinMaxScaler
            >>> scaler = MinMaxScaler().fit([[0.0, 10.0], [4.0, 20.0]])
            >>> Encoder.from_transformer(scaler, columns=["hours", "price"]).transform({"hours": 1.0, "price": 20.0})
            array([[0.25, 1.  ]])
        """
        return cls(ByTransformer(transformer, columns))

    def transform(self, rows: Any) -> np.ndarray:
        """Encode rows as features; a value of text that the sample of `fit` did not have becomes zeros.

        Args:
            rows: A DataFrame of pandas or polars, a list of dicts, or a dict, which is one row.

        Returns:
            (n, d) The features of n rows.

        Raises:
            InvalidArgument: If the rows cannot be read.
            UnknownName: If the rows have a column that is not in `columns`.
            InvalidFeatures: If a column or a value is missing, or a value is infinite or not of the kind in the sample.
            InvalidShape: If there are no rows.
        """
        encoded = self._encoding.encode(read_columns("rows", rows, self.columns))
        check_finite("rows", "Feature", self.names, encoded)
        return encoded

    def part(self, rows: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Encode what some columns alone say about rows, for `completed`.

        Args:
            rows: Dicts with the same columns, which are some of the encoder's.

        Returns:
            (n, 2d) The two factors of each feature (`by_column.py`); (n, 0) if the encoder needs all columns at once.

        Raises:
            InvalidFeatures: If a value is missing, infinite, or not of the kind in the sample.
        """
        return self._encoding.part({name: [row[name] for row in rows] for name in rows[0]}, len(rows))

    def context(self, attributes: Mapping[str, Any], values: Mapping[str, Any]) -> np.ndarray | None:
        """Encode what one context alone says about rows that lack its columns.

        Args:
            attributes: The attributes of one of these rows.
            values: The context.

        Returns:
            (2d,) What is added to what `part` returns for a row to get the two factors of each of its features; None if
            the encoder needs all columns at once.

        Raises:
            UnknownName: If the context has a column that is not in `columns`.
            InvalidFeatures: If a column or a value is missing, or a value is infinite or not of the kind in the sample.
        """
        if len(values) + len(attributes) != len(self.columns) or not values.keys() <= self._known:
            check_columns("row 0 of rows", (*values, *attributes), self.columns)
        return self._encoding.context(values)

    def completed(
        self, parts: np.ndarray, attributes: Sequence[Mapping[str, Any]], contexts: Sequence[Mapping[str, Any]]
    ) -> np.ndarray:
        """Encode K rows in each of n contexts, which have the columns that the rows lack.

        Args:
            parts: (K, 2d) What `part` returned for the rows.
            attributes: The rows themselves.
            contexts: The contexts, each a dict.

        Returns:
            (n, K, d) The features, which `transform` would return for the rows together with the contexts.

        Raises:
            UnknownName: If a context has a column that is not in `columns`.
            InvalidFeatures: If a column or a value is missing, or a value is infinite or not of the kind in the sample.
        """
        for i, context in enumerate(contexts):
            check_columns(f"row {i} of rows", (*context, *attributes[0]), self.columns)
        encoded = self._encoding.completed(parts, attributes, contexts)
        check_finite("rows", "Feature", self.names, encoded.reshape(-1, self.n_features))
        return encoded

    def checked(self, source: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return some values of a row as plain text, numbers and bools.

        Args:
            source: The name of the row, for messages.
            values: The values by the names of their columns.

        Returns:
            The same values, without NumPy's types.

        Raises:
            InvalidFeatures: If a value is not of the kind of its column.
        """
        kinds: Mapping[str, str] = getattr(self._encoding, "kinds", {})
        return {name: checked_value(f"{name!r} of {source}", value, kinds.get(name)) for name, value in values.items()}

    def dumps(self) -> bytes:
        """Return the encoder as bytes, without pickle, from which `Encoder.loads` makes an equal one.

        Returns:
            The bytes.

        Raises:
            InvalidArgument: If the encoder has a transformer that could not be loaded again.
            ImportError: If skops is not installed.

        Example:
            >>> from explorax import Encoder
            >>> encoder = Encoder.fit([{"topic": "art"}, {"topic": "news"}])
            >>> Encoder.loads(encoder.dumps()).names
            ('bias', 'topic_art', 'topic_news')
        """
        skops = optional("skops.io", "saving an encoder", "agent")
        try:
            fitted = skops.dumps(self._encoding.fitted)
        except Exception as error:  # a transformer of the user's own may hold anything
            raise InvalidArgument(f"The transformer {self._encoding.fitted!r} cannot be saved: {error}") from error
        check_trusted(skops, fitted, "The transformer could not be loaded again if it were saved")
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(SETTINGS, json.dumps({"format": FORMAT, **self._encoding.settings}))
            archive.writestr(FITTED, fitted)
        return file.getvalue()

    @classmethod
    def loads(cls, data: bytes) -> "Encoder":
        """Return the encoder that was saved by `dumps`, without running code from the bytes.

        Args:
            data: The bytes that `dumps` returned.

        Returns:
            The encoder.

        Raises:
            InvalidArgument: If the bytes are not a saved encoder, come from another version, or hold types that are not
                trusted.
            ImportError: If skops is not installed.
        """
        skops = optional("skops.io", "loading an encoder", "agent")
        try:
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                settings, fitted = json.loads(archive.read(SETTINGS)), archive.read(FITTED)
            if (version := settings.pop("format")) != FORMAT:
                raise InvalidArgument(
                    f"data must have format {FORMAT}, got {version!r}. Load them with the version of explorax that "
                    "saved them."
                )
            check_trusted(skops, fitted, "data cannot be loaded")
            encoding = ByColumn if "kinds" in settings else ByTransformer
            return cls(encoding(skops.loads(fitted), **settings))
        except InvalidArgument:
            raise
        except Exception as error:  # bytes that are something else fail in any way
            raise InvalidArgument(
                f"data must be a saved encoder, got {reprlib.repr(data)} ({error!r}). Give what Encoder.dumps returned."
            ) from error


def check_trusted(skops: Any, fitted: bytes, trouble: str) -> None:
    """Raise if a dump of skops has types that skops does not know to be harmless."""
    untrusted = skops.get_untrusted_types(data=fitted)
    if untrusted:
        raise InvalidArgument(
            f"{trouble}, because skops does not trust {', '.join(untrusted)}. Use scikit-learn's own types instead."
        )
