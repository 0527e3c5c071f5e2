"""A log as arrays: what was on offer, what was chosen with which probability, and what it paid."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from explorax.errors import InvalidArgument, InvalidFeatures, InvalidReward, InvalidShape
from explorax.log import arguments, frames
from explorax.log.features import Features

LIMIT = 1e-9  # by how much probabilities may miss a sum of 1, for rounding in the log of another system


@dataclass(frozen=True, eq=False)
class LoggedData:
    """A log as arrays: n decisions among K arms, each with the reward of the arm that was chosen.

    All of the log is looked at once, when it is made; what evaluates it need not look again.

    Attributes:
        arms: (n,) The place of the chosen arm, from 0 to K − 1.
        rewards: (n,) The reward of the chosen arm.
        features: The features of all arms in every row, or None if nothing is known of the arms.
        names: (K,) The names of the arms.
        propensities: (n,) The probability with which the chosen arm was chosen, or None if the log lacks it.
        offered: (n, K) Whether each arm was on offer, or None if all always were.
        all_propensities: (n, K) The probability of every arm, or None if the log lacks it.
        contexts: (n, c) What was known before each decision as numbers, or None.
        times: (n,) When each decision was made, in seconds, or None.
        ids: (n,) The ids of the decisions, or None.
        left_out: The number of decisions that are not among the n because nobody knows their rewards.

    Example:
        >>> import explorax
        >>> data = explorax.LoggedData.of(["blue", "red", "blue"], [1.0, 0.0, 1.0], names=["red", "blue"])
        >>> data.arms, data.names, len(data)
        (array([1, 0, 1]), ('red', 'blue'), 3)
    """

    arms: np.ndarray
    rewards: np.ndarray
    features: Features | None
    names: Sequence[Hashable]
    propensities: np.ndarray | None = None
    offered: np.ndarray | None = None
    all_propensities: np.ndarray | None = None
    contexts: np.ndarray | None = None
    times: np.ndarray | None = None
    ids: np.ndarray | None = None
    left_out: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        count, known = len(self), self.n_arms
        for name, value in self.columns().items():
            wanted: tuple[int, ...] = (count, known) if name in ("offered", "all_propensities") else (count,)
            wanted = (count, *(value.shape[1:2] or (1,))) if name == "contexts" else wanted
            if value.shape != wanted:
                raise InvalidShape(
                    f"{name} must have shape {wanted}, got {value.shape}. Give one row for each decision."
                )
            if name != "offered" and not np.isfinite(value).all():
                kind = (
                    InvalidReward if name == "rewards" else InvalidFeatures if name == "contexts" else InvalidArgument
                )
                row = int(np.argmin(np.isfinite(value).reshape(count, -1).all(axis=1)))
                raise kind(f"{name} must be finite, got NaN or infinity in row {row}. Leave such rows out of the log.")
        if not np.issubdtype(self.arms.dtype, np.integer) or (
            count and not 0 <= self.arms.min() <= self.arms.max() < known
        ):
            raise InvalidArgument(
                f"arms must be whole numbers from 0 to {known - 1}, got {self.arms[:3]}…. Give the place of each "
                "arm in names."
            )
        self._check_probabilities()

    def _check_probabilities(self) -> None:
        """Raise unless propensities are probabilities, and only what was on offer was chosen."""
        every, rows = self.all_propensities, np.arange(len(self))
        if self.propensities is not None and not np.all((self.propensities > 0) & (self.propensities <= 1 + LIMIT)):
            row = int(np.argmin((self.propensities > 0) & (self.propensities <= 1 + LIMIT)))
            raise InvalidArgument(
                f"propensities must be above 0 and at most 1, got {self.propensities[row]} in row {row}. An arm that "
                "was chosen had a chance: correct the row, or leave it out."
            )
        if self.offered is not None and not self.offered[rows, self.arms].all():
            row = int(np.argmin(self.offered[rows, self.arms]))
            raise InvalidArgument(
                f"arms must be among those on offer, got {self.names[self.arms[row]]!r} in row {row}, which was not. "
                "Correct the row, or leave it out."
            )
        if every is not None and not np.all((every >= 0) & (np.abs(every.sum(axis=1, keepdims=True) - 1) < 1e-6)):
            raise InvalidArgument(
                "all_propensities must be at least 0 and add up to 1 in each row. Give the probabilities of all arms."
            )
        if every is not None and self.offered is not None and np.any(every[~self.offered] > 0):
            row = int(np.argmax(np.any((every > 0) & ~self.offered, axis=1)))
            raise InvalidArgument(
                f"all_propensities must be 0 for arms that are not on offer, got another number in row {row}. Correct "
                "offered or the probabilities."
            )

    def columns(self) -> dict[str, np.ndarray]:
        """Return the arrays that have a row for each decision.

        Returns:
            The arrays by name, without those that the log lacks.
        """
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if isinstance(value, np.ndarray)}

    def __len__(self) -> int:
        return len(self.arms)

    @property
    def n_arms(self) -> int:
        """The number K of arms."""
        return len(self.names)

    def some(self, rows: Any) -> "LoggedData":
        """Return some rows of the log.

        Args:
            rows: What NumPy takes as an index of rows: a slice, places, or bools.

        Returns:
            The log of these rows, in this order.
        """
        places = np.arange(len(self))[rows]
        columns = {name: value[places] for name, value in self.columns().items()}
        features = None if self.features is None else self.features.some(places)
        return LoggedData(features=features, names=self.names, left_out=self.left_out, **columns)

    @classmethod
    def of(
        cls,
        arms: Any,
        rewards: Any,
        *,
        names: Any = None,
        features: Any = None,
        propensities: Any = None,
        offered: Any = None,
        all_propensities: Any = None,
        contexts: Any = None,
        arm_features: Any = None,
        times: Any = None,
        ids: Any = None,
    ) -> "LoggedData":
        """Return a log made of arrays, lists, or columns of a DataFrame, one row for each decision.

        Args:
            arms: (n,) The arm that was chosen in each row: its name, or its place among names that are text.
            rewards: (n,) The reward of this arm.
            names: (K,) The names of all arms, text or whole numbers.  Default: 0 to K − 1 if arms are whole numbers,
                else those among `arms`, sorted.
            features: (K, d) The features of the arms if they are the same in all rows, or (n, K, d) those in each row.
                Default: none, or those that contexts give.
            propensities: (n,) The probability with which this arm was chosen.  Default: that in `all_propensities`,
                or unknown.
            offered: (n, K) Whether each arm was on offer.  Default: all were.
            all_propensities: (n, K) The probability of each arm.  Default: unknown.
            contexts: (n, c) What was known before each decision, as numbers.  Unless features are given, those of the
                arms are the products of (1, arm_features) with (1, contexts).  Default: nothing was known.
            arm_features: (K, p) What describes the arms, to be multiplied with contexts.  Default: unit vectors, so
                that each arm has weights of its own for the context.
            times: (n,) When each decision was made, in seconds or as dates.  Default: unknown.
            ids: (n,) The ids of the decisions, whole numbers that differ.  Default: none.

        Returns:
            The log.

        Raises:
            InvalidArgument: If something cannot be used, or contradicts something else.
            InvalidFeatures: If features or contexts are not finite numbers.
            InvalidReward: If rewards are not finite numbers.
            InvalidShape: If columns do not have n rows, or there are not K arms in them.
            UnknownName: If `arms` has a name that is not in `names`.

        Example:
            >>> import explorax, numpy as np
            >>> data = explorax.LoggedData.of([0, 1, 1], [0.5, 2.0, 1.0], contexts=[[0.1], [0.7], [0.4]])
            >>> data.features.table(np.array([1]))[0]  # of both arms in row 1
            array([[1. , 0.7, 1. , 0.7, 0. , 0. ],
                   [1. , 0.7, 0. , 0. , 1. , 0.7]])
        """
        return cls(
            **arguments.columns(
                arms,
                rewards,
                names,
                features,
                propensities,
                offered,
                all_propensities,
                contexts,
                arm_features,
                times,
                ids,
            )
        )

    @classmethod
    def from_table(
        cls,
        table: Any,
        *,
        arm: str,
        reward: str,
        propensity: str | None = None,
        context: Sequence[str] | None = None,
        offered: str | None = None,
        all_propensities: Sequence[str] | None = None,
        time: str | None = None,
        id: str | None = None,
        names: Any = None,
        features: Any = None,
        arm_features: Any = None,
    ) -> "LoggedData":
        """Return the log in a table with one row for each decision.

        Args:
            table: A DataFrame of pandas or polars, a Table of pyarrow, a list of dicts, or a CSV or Parquet file.
            arm: The column of the arms that were chosen.
            reward: The column of their rewards, all of which are known.
            propensity: The column of their probabilities.  Default: unknown.
            context: The columns of what was known before each decision.  Numbers stay as they are; text and bools
                become a column of zeros and ones for each value, in sorted order.  Default: nothing was known.
            offered: The column of the arms on offer, a list of names in each row, which may be JSON.  Default: all.
            all_propensities: The columns of the probabilities of all arms, in the order of `names`.  Default: unknown.
            time: The column of the times of decisions, in seconds or as dates.  Default: unknown.
            id: The column of the ids of decisions.  Default: none.
            names: The names of all arms, as in `of`.  Default: those in the columns `arm` and `offered`.
            features: The features of the arms, as in `of`.  Default: those that contexts give.
            arm_features: What describes the arms, to be multiplied with contexts, as in `of`.  Default: unit vectors.

        Returns:
            The log.

        Raises:
            InvalidArgument: If the table, or something in it, cannot be used.
            InvalidFeatures: If contexts or features are missing, or not finite numbers, text or bools.
            InvalidReward: If rewards are missing, or not finite numbers.
            UnknownName: If the table has no column of a name.

        Example:
            >>> import explorax
            >>> table = [{"banner": "red", "clicks": 1, "p": 0.5}, {"banner": "blue", "clicks": 0, "p": 0.25}]
            >>> data = explorax.LoggedData.from_table(table, arm="banner", reward="clicks", propensity="p")
            >>> data.names, data.arms, data.propensities
            (('blue', 'red'), array([1, 0]), array([0.5 , 0.25]))
        """
        found = frames.columns(table, arm, reward, propensity, context, offered, all_propensities, time, id)
        listed = found.pop("listed", None)
        if listed is not None:
            every = [name for each in listed for name in each]
            named = arguments.checked_names(dict.fromkeys(every) if names is None else names)
            names, found["offered"] = named, arguments.arms_on_offer(listed, named)
        return cls.of(**found, names=names, features=features, arm_features=arm_features)
