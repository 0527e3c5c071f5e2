"""The encoding of rows column by column, by the kinds of their columns, and of products of columns.

Every feature is the product of two features of single columns; one of these is the constant 1 if the feature is that of
a column itself.  Those of single columns do not depend on other columns, and are 0 for columns that are not given.  So
feature j of arm k in a context is

    (A_kj + a_j) (B_kj + b_j)

with factors A, B of the arms, which are encoded once, when the arms are added, and factors a, b of the context, which
are encoded once in each decision.  In each of the sums one of the two terms is 0.
"""

import itertools
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from explorax.agent.columns import as_numbers, check_kind, kind_of
from explorax.tables import Features


class ByColumn:
    """The encoding of each column by its kind, and of products of columns."""

    def __init__(self, fitted: Mapping[str, Any], kinds: dict[str, str], pairs: list[list[str]], bias: bool) -> None:
        self.fitted = fitted  # "numbers": a StandardScaler, "values": a OneHotEncoder; or None
        self.settings: dict[str, Any] = {"kinds": kinds, "pairs": pairs, "bias": bias}
        self.columns, self.kinds = tuple(kinds), kinds
        self.numbers = [name for name, kind in kinds.items() if kind == "number"]
        others = [name for name in kinds if name not in self.numbers]
        self.features = Features(fitted["numbers"], fitted["values"], self.numbers, others)
        names, spans = self.features.names, self.features.spans
        self.nothing = [0.0] * len(names)
        measures = zip(self.features.mean.tolist(), self.features.scale.tolist(), strict=True)
        self.measures = {name: (i, *each) for i, (name, each) in enumerate(zip(self.numbers, measures, strict=True), 1)}
        first = 0 if bias else 1
        products = [both for a, b in pairs for both in itertools.product(spans[a], spans[b])]
        self.names = (*names[first:], *(f"{names[i]}:{names[j]}" for i, j in products))
        factors = [*((i, 0) for i in range(first, len(names))), *products]  # feature 0 is the constant
        self.factors = np.array(factors, int).T.reshape(-1)

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """Return columns of equal length as a matrix of features, which may be infinite if numbers are huge."""
        factors = self.part(columns, len(columns[self.columns[0]]))
        with np.errstate(over="ignore", invalid="ignore"):
            return multiplied(factors)

    def part(self, columns: Mapping[str, list[Any]], rows: int) -> np.ndarray:
        """Return (n, 2d) the first and then the second factor of each feature, 0 if it is of a column not given."""
        return self.singles(columns, rows)[:, self.factors]

    def singles(self, columns: Mapping[str, list[Any]], rows: int) -> np.ndarray:
        """Return the constant and the features of single columns, with zeros for columns that are not given."""
        for name, values in columns.items():
            check_kind("rows", name, values, self.kinds[name])
        numbers = None
        given = [i for i, name in enumerate(self.numbers) if name in columns]
        if given:
            numbers = np.tile(self.features.mean, (rows, 1))  # of which a feature is 0
            numbers[:, given] = as_numbers("rows", {self.numbers[i]: columns[self.numbers[i]] for i in given})
        with np.errstate(over="ignore", invalid="ignore"):
            return self.features.encode(numbers, columns, rows)

    def context(self, values: Mapping[str, Any]) -> np.ndarray:
        """Return (2d,) the factors a and b of the features of one context."""
        singles: Any = self.quick_singles(values)
        if singles is None:  # of which the slow way knows what is wrong
            singles = self.singles({name: [value] for name, value in values.items()}, 1)[0]
        singles[0] = 0.0  # the arms have the constant already
        return np.array(singles).take(self.factors)

    def quick_singles(self, values: Mapping[str, Any]) -> list[float] | None:
        """Return what `singles` does for one row, in a fifth of the time; None if a value may not be encoded."""
        singles, features = self.nothing.copy(), self.features
        for name, value in values.items():
            kind = self.kinds[name]
            if kind_of(type(value)) != kind:
                return None
            if kind != "number":
                singles[features.places[name].get(value, 0)] = 1.0
                continue
            place, mean, scale = self.measures[name]
            try:
                number = float(value)
            except (OverflowError, ValueError):
                return None
            if not isfinite(number):
                return None
            singles[place] = (number - mean) / scale
        return singles

    def completed(
        self, parts: np.ndarray, attributes: Sequence[Mapping[str, Any]], contexts: Sequence[Mapping[str, Any]]
    ) -> np.ndarray:
        """Return (n, K, d) the features of K rows, of which parts are known, in each of n contexts."""
        given = {name: [context[name] for context in contexts] for name in self.columns if name in contexts[0]}
        singles = self.singles(given, len(contexts))
        singles[:, 0] = 0.0  # the rows have the constant already
        with np.errstate(over="ignore", invalid="ignore"):
            return multiplied(parts + singles[:, None, self.factors])


def multiplied(factors: np.ndarray) -> np.ndarray:
    """Return (…, d) features, given (…, 2d) their first and then their second factors."""
    half = factors.shape[-1] // 2
    return factors[..., :half] * factors[..., half:]
