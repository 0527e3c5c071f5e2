"""The encoding of rows column by column, by the kinds of their columns, and of products of columns.

The features of single columns do not depend on other columns.  So those of arms are encoded once, when the arms are
added, and those of a context once in each decision; what remains to be done for each arm are the products.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.agent.columns import as_numbers, check_kind
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
        products = [both for a, b in pairs for both in itertools.product(spans[a], spans[b])]
        self.left, self.right = np.array(products, int).reshape(-1, 2).T
        self.first = 0 if bias else 1
        self.names = (*names[self.first :], *(f"{names[i]}:{names[j]}" for i, j in products))

    def encode(self, columns: Mapping[str, list[Any]]) -> np.ndarray:
        """Return columns of equal length as a matrix of features, which may be infinite if numbers are huge."""
        return self.with_products(self.part(columns, len(columns[self.columns[0]])))

    def part(self, columns: Mapping[str, list[Any]], rows: int) -> np.ndarray:
        """Return the features of single columns, with zeros for columns that are not given."""
        for name, values in columns.items():
            check_kind("rows", name, values, self.kinds[name])
        numbers = None
        given = [i for i, name in enumerate(self.numbers) if name in columns]
        if given:
            numbers = np.tile(self.features.mean, (rows, 1))  # of which a feature is 0
            numbers[:, given] = as_numbers("rows", {self.numbers[i]: columns[self.numbers[i]] for i in given})
        with np.errstate(over="ignore", invalid="ignore"):
            return self.features.encode(numbers, columns, rows)

    def with_products(self, singles: np.ndarray) -> np.ndarray:
        """Return (…, d) all features, given those of single columns."""
        with np.errstate(over="ignore", invalid="ignore"):
            products = singles[..., self.left] * singles[..., self.right]
        return np.concatenate([singles[..., self.first :], products], axis=-1)

    def completed(
        self, parts: np.ndarray, attributes: Sequence[Mapping[str, Any]], contexts: Sequence[Mapping[str, Any]]
    ) -> np.ndarray:
        """Return (n, K, d) the features of K rows, of which parts are known, in each of n contexts."""
        given = {name: [context[name] for context in contexts] for name in self.columns if name in contexts[0]}
        singles = parts + self.part(given, len(contexts))[:, None]  # one of the two terms is 0
        singles[..., 0] = 1.0  # the constant, which both have
        return self.with_products(singles)
