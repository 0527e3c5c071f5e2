"""An estimate with what each row adds to its error, from which standard errors and differences follow."""

from typing import NamedTuple

import numpy as np


class Estimate(NamedTuple):
    """An estimate of the value of a target.

    Attributes:
        value: The estimate, in units of rewards.
        influence: (n,) What each row adds to the error of the estimate, to first order; the sum is 0.
        setting: The threshold or the strength of shrinkage that was chosen; None if the estimator has no such setting.
    """

    value: float
    influence: np.ndarray
    setting: float | None = None

    @property
    def stderr(self) -> float:
        """The standard error √(n/(n−1) Σ influence²), infinite for a single row."""
        count = len(self.influence)
        return float(np.sqrt(np.sum(self.influence**2) * count / (count - 1))) if count > 1 else np.inf

    def minus(self, other: "Estimate") -> "Estimate":
        """Return the estimate of a difference, from two estimates on the same rows.

        Args:
            other: What is subtracted.

        Returns:
            The difference, whose standard error takes into account that both come from the same rewards.
        """
        return Estimate(self.value - other.value, self.influence - other.influence)
