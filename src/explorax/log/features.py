"""Features of the arms in a log, row by row, without a table of all of them where that is not needed.

    FixedFeatures       the arms have the same features in every row of the log
    GivenFeatures       each row has features of its own
    ContextFeatures     the arms have features, each row has a context, and both are multiplied
    JoinedFeatures      the same side by side, with a number for each pair of both

All return an array (m, K, d) for m rows of a log, and an array (m, d) for the arms that were chosen.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Features(ABC):
    """The features of K arms in each row of a log."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""

    @abstractmethod
    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""

    @abstractmethod
    def some(self, rows: np.ndarray) -> "Features":
        """Return the features in some rows of the log only."""

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return self.table(rows)[np.arange(len(rows)), arms]


class FixedFeatures(Features):
    """Features that are the same in every row of a log.

    Args:
        matrix: (K, d) The features of the arms.
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = np.asarray(matrix)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return self.matrix.shape

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        return np.broadcast_to(self.matrix, (len(rows), *self.matrix.shape))

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return self

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return self.matrix[arms]


class GivenFeatures(Features):
    """Features that differ in every row of a log.

    Args:
        tables: (n, K, d) The features of the arms in each row of the log.
    """

    def __init__(self, tables: Any) -> None:
        self.tables = np.asarray(tables)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return self.tables.shape[1:]

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        return self.tables[rows]

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return GivenFeatures(self.tables[rows])

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return self.tables[rows, arms]


class ContextFeatures(Features):
    """Products of what describes an arm and what describes a context, with both of them alone and a constant.

    The features of an arm with description a in a context c are the products of (1, a) with (1, c), so that every
    feature of an arm may count differently in every context.

    Args:
        contexts: (n, c) The context of each row of the log.
        arms: (K, p) What describes the arms, for example unit vectors.
    """

    def __init__(self, contexts: Any, arms: Any) -> None:
        self.contexts, self.arms = np.asarray(contexts), np.asarray(arms)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return len(self.arms), (1 + self.arms.shape[1]) * (1 + self.contexts.shape[1])

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        contexts, arms = with_one(self.contexts[rows]), with_one(self.arms)
        return (arms[None, :, :, None] * contexts[:, None, None, :]).reshape(len(rows), *self.shape)

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return ContextFeatures(self.contexts[rows], self.arms)

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        contexts, chosen = with_one(self.contexts[rows]), with_one(self.arms[arms])
        return (chosen[:, :, None] * contexts[:, None, :]).reshape(len(rows), -1)


class JoinedFeatures(Features):
    """What describes a context, what describes an arm, and one number for the two together, side by side.

    Args:
        contexts: (n, c) The context of each row of the log.
        arms: (K, p) What describes the arms.
        pairs: (n, K) A number for each arm in each row of the log, for example how much a user likes an item.
    """

    def __init__(self, contexts: Any, arms: Any, pairs: Any) -> None:
        self.contexts, self.arms, self.pairs = np.asarray(contexts), np.asarray(arms), np.asarray(pairs)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return len(self.arms), self.contexts.shape[1] + self.arms.shape[1] + 1

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        contexts, (known, _) = self.contexts[rows], self.shape
        shared = np.broadcast_to(contexts[:, None], (len(contexts), known, contexts.shape[1]))
        own = np.broadcast_to(self.arms, (len(contexts), *self.arms.shape))
        return np.concatenate([shared, own, self.pairs[rows][:, :, None]], axis=2)

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return JoinedFeatures(self.contexts[rows], self.arms, self.pairs[rows])

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return np.concatenate([self.contexts[rows], self.arms[arms], self.pairs[rows, arms][:, None]], axis=1)


def with_one(rows: np.ndarray) -> np.ndarray:
    """Return a matrix with a column of ones before it."""
    return np.concatenate([np.ones((len(rows), 1), rows.dtype), rows], axis=1)
