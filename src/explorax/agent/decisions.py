"""The answers of an agent: a decision, several decisions, and the propensities of all arms, also as plain JSON."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np


class Decision(NamedTuple):
    """The arm that an agent chose, with all that is worth keeping in a log.

    Two decisions are equal if all their fields are.

    Attributes:
        id: The id to give back with the reward: `agent.learn(decision.id, reward)`.
        arm: The name of the arm; its row, if arms have no names; the point itself, in an infinite set.
        propensity: P(arm | state, arms), the probability of this choice.  None if the agent has `draws=0`, and in a
            ball or an ellipsoid, where every single point has probability 0.
        propensity_stderr: The standard error of the propensity, 0 if it is exact; None if there is no propensity.
        row: The place of the arm among the arms on offer, or among the agent's own; 0 in an infinite set.
        features: (d,) The features of the arm, which the agent will learn from.
        forced: Whether the policy was in a round of its forced exploration (`warmup`).  With an `explore_floor` the
            arm may still be another one than the forced one.
        converged: Whether the fit behind the decision converged.
        all_propensities: The probabilities of all arms on offer, if `choose` was asked for them, else None.
        explanation: What speaks for each arm on offer, if `choose` was asked for it, else None.

    Example:
        >>> import explorax
        >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        >>> decision = agent.choose()
        >>> decision.id, decision.propensity, decision.features.shape
        (0, 0.5, (2,))
    """

    id: int
    arm: Any
    propensity: float | None
    propensity_stderr: float | None
    row: int
    features: np.ndarray
    forced: bool
    converged: bool
    all_propensities: "Propensities | None" = None
    explanation: "Explanation | None" = None

    def to_dict(self) -> dict[str, Any]:
        """Return the decision as a dict of plain values, which every JSON library can write.

        Returns:
            The fields by name, as text, numbers, bools, None and lists.

        Example:
            >>> import numpy as np
            >>> decision = Decision(7, "red", 0.25, 0.01, 0, np.array([1.0, 0.2]), False, True)
            >>> decision.to_dict()["features"]
            [1.0, 0.2]
        """
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}

    def to_json(self) -> str:
        """Return the decision as JSON on one line, ready for a log.

        Returns:
            What `to_dict` returns, as JSON.

        Example:
            >>> import numpy as np
            >>> Decision(7, "red", 0.25, 0.01, 0, np.array([1.0, 0.2]), False, True).to_json()[:41]
            '{"id": 7, "arm": "red", "propensity": 0.2'
        """
        return json.dumps(self.to_dict())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and all(map(same, self, other))

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.id)


@dataclass(frozen=True)
class Decisions(Sequence[Decision]):
    """The decisions of one `Agent.choose_many`: a sequence of `Decision`, stored column by column.

    Attributes:
        ids: (n,) The ids to give back with the rewards: `agent.learn(decisions.ids, rewards)`.
        arms: (n,) The names of the arms; their rows, if arms have no names; the points themselves, in an infinite set.
        propensities: (n,) The probability of each choice, or None if there are no propensities.
        propensity_stderrs: (n,) The standard errors of the propensities, 0 if they are exact, or None.
        rows: (n,) The places of the arms among the arms on offer, or among the agent's own.
        features: (n, d) The features of the arms.
        forced: (n,) Whether the policy was in a round of its forced exploration.
        converged: (n,) Whether the fit behind each decision converged.
        all_propensities: (n,) The probabilities of all arms on offer in each decision, if `choose_many` was asked for
            them, else None.

    Example:
        >>> import explorax
        >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        >>> decisions = agent.choose_many(3)
        >>> len(decisions), decisions.ids, decisions.features.shape
        (3, range(0, 3), (3, 2))
        >>> decisions[1].id
        1
    """

    ids: range
    arms: Sequence[Any]
    propensities: np.ndarray | None
    propensity_stderrs: np.ndarray | None
    rows: np.ndarray
    features: np.ndarray
    forced: np.ndarray
    converged: np.ndarray
    all_propensities: "Sequence[Propensities] | None" = None

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
            None if self.all_propensities is None else self.all_propensities[i],
        )

    def __iter__(self) -> Iterator[Decision]:
        return (self[i] for i in range(len(self)))

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the decisions as dicts of plain values, one for each.

        Returns:
            What `Decision.to_dict` returns, for each decision.
        """
        return [decision.to_dict() for decision in self]

    def to_json(self) -> str:
        """Return the decisions as a JSON list on one line.

        Returns:
            What `to_dicts` returns, as JSON.
        """
        return json.dumps(self.to_dicts())


class Propensities(NamedTuple):
    """The probability P(arm | state, arms) of every arm on offer, as the next decision would state it.

    Attributes:
        arms: (K,) The names of the arms on offer; their rows, if arms have no names.
        probabilities: (K,) The probability of each arm.
        stderrs: (K,) The standard errors of the probabilities, 0 if these are exact.

    Example:
        >>> import explorax
        >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        >>> agent.propensities()
        Propensities(arms=['red', 'blue'], probabilities=array([0.5, 0.5]), stderrs=array([0., 0.]))
    """

    arms: Sequence[Any]
    probabilities: np.ndarray
    stderrs: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return the propensities as a dict of plain values, which every JSON library can write.

        Returns:
            The lists `arms`, `probabilities` and `stderrs` by name.

        Example:
            >>> import numpy as np
            >>> Propensities(["red", "blue"], np.array([0.7, 0.3]), np.zeros(2)).to_dict()["probabilities"]
            [0.7, 0.3]
        """
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}

    def to_json(self) -> str:
        """Return the propensities as JSON on one line.

        Returns:
            What `to_dict` returns, as JSON.
        """
        return json.dumps(self.to_dict())


class Explanation(NamedTuple):
    """What speaks for each arm on offer in a decision: score = estimate + exploration + bonus.

    Attributes:
        arms: (K,) The names of the arms on offer; their rows, if arms have no names.
        means: (K,) The expected reward of each arm by the policy's estimate.
        estimates: (K,) The score xᵀθ̂ of each arm by the policy's estimate.
        explorations: (K,) What the policy's randomness added to each score in this decision; 0 for a policy that is
            not random.
        bonuses: (K,) What optimism added to each score; 0 for a policy that is random.
        scores: (K,) The scores by which the policy chose.
        own: The arm that the policy itself chose: the one of the best score, or the one whose turn it was in a forced
            round.  An `explore_floor` may have replaced it.

    Example:
        >>> import explorax
        >>> agent = explorax.Agent(explorax.lin_ucb(warmup="none"), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        >>> decision = agent.choose(explain=True)
        >>> decision.explanation.own == decision.arm, decision.explanation.estimates
        (True, array([0., 0.]))
    """

    arms: Sequence[Any]
    means: np.ndarray
    estimates: np.ndarray
    explorations: np.ndarray
    bonuses: np.ndarray
    scores: np.ndarray
    own: Any

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as a dict of plain values, which every JSON library can write.

        Returns:
            The fields by name, as lists and plain values.
        """
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}


def plain(value: Any) -> Any:
    """Return a value without NumPy's types: arrays as lists, NumPy's numbers as Python's, records as dicts."""
    if isinstance(value, Propensities | Explanation):
        return value.to_dict()
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value


def same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, or two records or arrays have equal entries."""
    if isinstance(one, Propensities | Explanation) and type(one) is type(other):
        return all(map(same, one, other))
    return np.array_equal(one, other)
