"""Features of named arms in a context, which an encoder makes for the rows that are asked for."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from explorax.agent.encoding import Encoder
from explorax.log.features import Features


class EncodedFeatures(Features):
    """Features that an encoder makes of the attributes of arms and the context of each row of a log.

    Args:
        encoder: The encoder.
        dtype: The precision of the features.
        attributes: (m,) All attributes that an arm ever had.
        which: (V, K) The place among `attributes` of those of each arm, in each of V versions.
        versions: (n,) The version, from 0 to V − 1, that each row of the log belongs to.
        contexts: The context of each row of the log, column by column: (n,) values each.
    """

    def __init__(
        self,
        encoder: Encoder,
        dtype: str,
        attributes: Sequence[Mapping[str, Any]],
        which: np.ndarray,
        versions: np.ndarray,
        contexts: Mapping[str, np.ndarray],
    ) -> None:
        self.encoder, self.dtype, self.attributes = encoder, dtype, list(attributes)
        self.which, self.versions, self.contexts = which, versions, dict(contexts)
        self.parts = encoder.part(self.attributes)

    @property
    def shape(self) -> tuple[int, int]:
        """The number K of arms, and the number d of features of each."""
        return self.which.shape[1], self.encoder.n_features

    def table(self, rows: np.ndarray) -> np.ndarray:
        """Return (m, K, d) the features of all arms in some rows of the log; the result must not be changed."""
        found = np.empty((len(rows), *self.shape), self.dtype)
        for version in np.unique(self.versions[rows]):
            alike = self.versions[rows] == version
            found[alike] = self.encoded(self.which[version], rows[alike])
        return found

    def some(self, rows: np.ndarray) -> Features:
        """Return the features in some rows of the log only."""
        contexts = {name: values[rows] for name, values in self.contexts.items()}
        return EncodedFeatures(self.encoder, self.dtype, self.attributes, self.which, self.versions[rows], contexts)

    def chosen(self, rows: np.ndarray, arms: np.ndarray) -> np.ndarray:
        """Return (m, d) the features of one arm in each of some rows of the log."""
        found, which = np.empty((len(rows), self.shape[1]), self.dtype), self.which[self.versions[rows], arms]
        for place in np.unique(which):
            alike = which == place
            found[alike] = self.encoded(np.array([place]), rows[alike])[:, 0]
        return found

    def encoded(self, places: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return (m, k, d) the features of arms with some of the attributes, in some rows of the log."""
        values = [self.contexts[name][rows].tolist() for name in self.contexts]
        contexts = [dict(zip(self.contexts, each, strict=True)) for each in zip(*values, strict=True)]
        return self.encoder.completed(self.parts[places], [self.attributes[i] for i in places], contexts)
