"""What an agent answers: a decision, a batch of them, or the propensities of all arms; each also as plain JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np


class Decision(NamedTuple):
    """An arm to pull, and what to keep of it in a log."""

    id: int  # to be given back with the reward: agent.learn(id, reward)
    arm: Any  # its name; the row, where arms have no names; the point itself, in a set of arms
    propensity: float | None  # P(arm | state, arms); None if it was not asked for, or the set has no points of mass
    propensity_stderr: float | None  # 0 where the propensity is exact
    row: int  # its place among the arms
    features: np.ndarray  # (d,) what the agent will learn from
    forced: bool  # in a round of the exploration at the start, which a floor may have given another arm
    converged: bool  # whether the fit behind the decision did

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, as text, numbers, bools, None and lists only."""
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON, on one line."""
        return json.dumps(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True)
class Decisions(Sequence[Decision]):
    """Decisions of one `choose_many`, column by column; an element is a `Decision`."""

    ids: range
    arms: Sequence[Any]
    propensities: np.ndarray | None
    propensity_stderrs: np.ndarray | None
    rows: np.ndarray
    features: np.ndarray  # (n, d)
    forced: np.ndarray
    converged: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, i: int) -> Decision: ...
    @overload
    def __getitem__(self, i: slice) -> "list[Decision]": ...
    def __getitem__(self, i: int | slice) -> "Decision | list[Decision]":
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return Decision(
            self.ids[i],
            self.arms[i],
            None if self.propensities is None else float(self.propensities[i]),
            None if self.propensity_stderrs is None else float(self.propensity_stderrs[i]),
            int(self.rows[i]),
            self.features[i],
            bool(self.forced[i]),
            bool(self.converged[i]),
        )

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each decision as a dict of plain values, as `Decision.to_dict` does."""
        return [decision.to_dict() for decision in self]

    def to_json(self) -> str:
        """Return `to_dicts` as JSON, on one line."""
        return json.dumps(self.to_dicts())


class Propensities(NamedTuple):
    """P(arm | state, arms) of every arm on offer, as the next decision would state it."""

    arms: Sequence[Any]
    probabilities: np.ndarray
    stderrs: np.ndarray  # 0 where probabilities are exact

    def to_dict(self) -> dict[str, Any]:
        """Return the three columns by name, as lists of plain values."""
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON, on one line."""
        return json.dumps(self.to_dict())


def plain(value: Any) -> Any:
    """A value without NumPy's types."""
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
