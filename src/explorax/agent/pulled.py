"""The arms that were pulled, as compiled programs learn from them: one row of numbers for each decision.

A row holds the features of the arm, a place for the reward, the row of the arm, and a place for the number of the
decision that comes next, which some programs make as well.  The last two are whole numbers and stand there bit by bit.
Decisions wait in this form, so that a reward is learned from a single vector, which is there already.
"""

from typing import NamedTuple

import numpy as np
from jax import Array

from explorax.agent.packing import WHOLE

REWARD, ROW, NEXT = -3, -2, -1  # the places after the features


class Pulled(NamedTuple):
    """The arms that were pulled, and what they paid."""

    numbers: np.ndarray  # (n, d + 3)

    @classmethod
    def nothing(cls, count: int, n_features: int, dtype: str) -> "Pulled":
        """Return room for as many arms."""
        return cls(np.zeros((count, n_features - REWARD), dtype))

    @classmethod
    def of(cls, rows: np.ndarray, features: np.ndarray) -> "Pulled":
        """Return the arms with these rows and features."""
        count, n_features = features.shape
        pulled = cls.nothing(count, n_features, features.dtype.str)
        pulled.rows[:], pulled.features[:] = rows, features
        return pulled

    @property
    def features(self) -> np.ndarray:
        """The (n, d) features of the arms, a view."""
        return self.numbers[:, :REWARD]

    @property
    def rewards(self) -> np.ndarray:
        """The (n,) rewards, a view."""
        return self.numbers[:, REWARD]

    @property
    def rows(self) -> np.ndarray:
        """The (n,) rows of the arms at the time, a view."""
        return self.numbers.view(WHOLE[self.numbers.itemsize])[:, ROW]

    def paid(self, rewards: float | np.ndarray) -> "Pulled":
        """Write the rewards into their places, and return this record."""
        self.numbers[:, REWARD] = rewards
        return self

    def before(self, t: int) -> np.ndarray:
        """Return the row of the last arm with the number of the decision that comes next in its place."""
        last = self.numbers[-1]
        last.view(WHOLE[last.itemsize])[NEXT] = t
        return last


def apart(pulled: Array) -> tuple[Array, Array, Array]:
    """Return the row, the features and the reward of one arm that was pulled, in a compiled program."""
    return whole(pulled, ROW), pulled[:REWARD], pulled[REWARD]


def number_next(pulled: Array) -> Array:
    """Return the number of the decision that comes next, in a compiled program."""
    return whole(pulled, NEXT)


def whole(pulled: Array, place: int) -> Array:
    """Return a whole number that stands in its place bit by bit."""
    return pulled[place].view(WHOLE[pulled.dtype.itemsize]).astype(int)
