"""Features of the arms in a log, row by row, without a table of all of them where that is not needed.

    FixedFeatures       the arms have the same features in every row of the log
    FeaturesByVersion   the features of arms have changed now and then
    GivenFeatures       each row has features of its own
    ListedFeatures      each row has features of its own, and a number of arms of its own
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
        """Return the features of all arms in some rows of the log.

        Args:
            rows: (m,) The places of the rows.

        Returns:
            (m, K, d) The features, which must not be changed.
        """

    @abstractmethod
    def some(self, rows: np.ndarray) -> "Features":
        """Return the features in some rows of the log only.

        Args:
            rows: (m,) The places of the rows.

        Returns:
            The features in a log of these rows.
        """

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return the features of one arm in each of some rows of the log.

        Args:
            rows: (m,) The places of the rows.
            arms: (m,) The place of the arm in each of them.

        Returns:
            (m, d) The features, which must not be changed.
        """
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


class FeaturesByVersion(Features):
    """Features of arms that have changed now and then, such as those of arms that were updated.

    Args:
        vectors: (m, d) All features that an arm ever had.
        which: (V, K) The row of `vectors` that belongs to each arm, in each of V versions.
        versions: (n,) The version, from 0 to V − 1, that each row of the log belongs to.
    """

    def __init__(self, vectors: Any, which: Any, versions: Any) -> None:
        self.vectors, self.which, self.versions = np.asarray(vectors), np.asarray(which), np.asarray(versions)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return self.which.shape[1], self.vectors.shape[1]

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        return self.vectors[self.which[self.versions[rows]]]

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return FeaturesByVersion(self.vectors, self.which, self.versions[rows])

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return self.vectors[self.which[self.versions[rows], arms]]


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


class ListedFeatures(Features):
    """Features that differ in every row of a log, as does the number of arms; places beyond it have zeros.

    Args:
        vectors: (m, d) The features of the arms of all rows of the log, one row after the other.
        first: (n,) The place of the first arm of each row among `vectors`.
        counts: (n,) The number of arms of each row.
        most: The number K of arms that a row is padded to.
    """

    def __init__(self, vectors: Any, first: Any, counts: Any, most: int) -> None:
        self.vectors, self.most = np.asarray(vectors), most
        self.first, self.counts = np.asarray(first), np.asarray(counts)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return self.most, self.vectors.shape[1]

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        places = np.arange(self.most)
        there = places < self.counts[rows][:, None]
        return np.where(there[..., None], self.vectors[np.where(there, self.first[rows][:, None] + places, 0)], 0)

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        return ListedFeatures(self.vectors, self.first[rows], self.counts[rows], self.most)

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        return self.vectors[self.first[rows] + arms]


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
