"""Targets: what can be evaluated from a log, behind one interface, the probabilities of all arms in some rows.

    an array (n, K)                 the probabilities themselves
    a function                      features (m, K, d) and arms on offer (m, K) → probabilities (m, K)
    an `explorax.Agent`             as it is now: its state, its arms, its floor
    `explorax.frozen(policy, …)`    a policy that stays in a state
    a `Policy` without a state      a policy that learns from the log (`replay.py`, `trained`)

`read_target` makes a `Target` of any of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import singledispatch
from typing import Any, NamedTuple

import jax
import numpy as np

from explorax.agent import Agent
from explorax.agent.compiled import check_possible, learn
from explorax.agent.decider import checked_policy
from explorax.agent.packing import Packed
from explorax.agent.pulled import Pulled
from explorax.errors import HistoryFull, InvalidArgument, InvalidShape, shown
from explorax.evaluation.frozen import Chances, Frozen
from explorax.evaluation.reward_models import fixed_arms
from explorax.glm.history import limited_rows
from explorax.log.data import LoggedData
from explorax.policies.base import Policy, State

LIMIT = 1e-6  # by how much probabilities may miss a sum of 1
TRAINED = (
    "{name} learned from the first {count} rows of the log, which are not evaluated, and did not learn after them."
)
DRAWN = "The probabilities of {name} have no formula and were estimated by repeating decisions."


class Target(ABC):
    """A policy to evaluate: the probabilities with which it would choose each arm.

    Attributes:
        notes: What a reader must know of how the probabilities came about, in sentences with `{name}` for the name of
            the target, or a list of several.
        reads_features: Whether the probabilities depend on the features that the log has in each row.
    """

    notes: tuple[str, ...] = ()
    reads_features: bool = True

    @abstractmethod
    def probabilities(self, rows: np.ndarray, features: np.ndarray | None, offered: np.ndarray) -> np.ndarray:
        """Return the probabilities of all arms in a block of rows.

        Args:
            rows: (m,) The places of the rows in the log.
            features: (m, K, d) The features of the arms there; None if the log has none.
            offered: (m, K) Whether each arm is on offer there.

        Returns:
            (m, K) The probabilities, which add up to 1 in each row and are 0 for arms that are not on offer.
        """


class Given(Target):
    """Probabilities that are given as an array."""

    reads_features = False

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def probabilities(self, rows: np.ndarray, features: np.ndarray | None, offered: np.ndarray) -> np.ndarray:
        """Return the probabilities of all arms in a block of rows."""
        return self.table[rows]


class Computed(Target):
    """Probabilities that a function computes from the features and the arms on offer."""

    def __init__(self, function: Callable[[Any, np.ndarray], Any]) -> None:
        self.function = function

    def probabilities(self, rows: np.ndarray, features: np.ndarray | None, offered: np.ndarray) -> np.ndarray:
        """Return the probabilities of all arms in a block of rows."""
        return np.asarray(self.function(features, offered), float)


class OfPolicy(Target):
    """The probabilities of a frozen policy for arms with the features that the log has."""

    def __init__(self, what: Frozen, log: LoggedData, seed: int, notes: tuple[str, ...] = ()) -> None:
        if log.features is None:
            raise InvalidArgument(
                "log must have features of the arms to evaluate a policy, got features=None. Read the log with "
                "features, or give the policy's probabilities as an array."
            )
        self.matrix, self.chances = fixed_arms(log.features), Chances(what, seed)
        self.notes = (*notes, *([DRAWN] if self.chances.estimated else []))

    def probabilities(self, rows: np.ndarray, features: np.ndarray | None, offered: np.ndarray) -> np.ndarray:
        """Return the probabilities of all arms in a block of rows."""
        if self.matrix is not None:
            return self.chances.of_alike(int(rows[0]), self.matrix, offered)
        assert features is not None
        return self.chances.of_each(int(rows[0]), features, offered)


class OfAgent(Target):
    """The probabilities of an agent with arms of its own, by name, as it is now."""

    reads_features = False

    def __init__(self, agent: Agent, log: LoggedData, seed: int) -> None:
        live, policy = agent._live, agent.policy
        missing = [name for name, on in agent.arms.items() if on and name not in log.names]
        if missing:
            raise InvalidArgument(
                f"policies must choose among the arms of the log, got an agent with the arm {missing[0]!r} on offer, "
                "which the log does not know. Retire the arm in a copy of the agent (save and load)."
            )
        own, floor = live.now.arms, live.decider.known.floor
        self.matrix = np.asarray(own.matrix, float)
        self.active = np.array([agent.arms.get(name, False) for name in log.names])
        self.places = np.array([own.places.get(name, 0) for name in log.names])  # of no use to those that are not
        self.chances = Chances(Frozen(policy, agent.state, floor, agent.decisions), seed)
        self.notes = (DRAWN,) if self.chances.estimated else ()

    def probabilities(self, rows: np.ndarray, features: np.ndarray | None, offered: np.ndarray) -> np.ndarray:
        """Return the probabilities of all arms in a block of rows."""
        on_offer = offered & self.active
        if not on_offer.any(axis=1).all():
            row = int(rows[np.argmin(on_offer.any(axis=1))])
            raise InvalidArgument(
                f"policies must have an arm to choose in each row, got an agent without one in row {row}. Leave out "
                "such rows, or restore the agent's arms."
            )
        masks = np.zeros((len(rows), len(self.matrix)), bool)
        masks[:, self.places[self.active]] = on_offer[:, self.active]
        found = self.chances.of_alike(int(rows[0]), self.matrix, masks)
        return np.where(on_offer, found[:, self.places], 0)


class Learning(NamedTuple):
    """A policy without a state, which learns from the log."""

    policy: Policy


@singledispatch
def read_target(value: Any, log: LoggedData, seed: int) -> Target | Learning:
    """Return what a user gave as a target.

    Args:
        value: An array, a function, an agent, a frozen policy, a policy, or a `Target`.
        log: The log that it is evaluated on.
        seed: The seed of repeated decisions.

    Returns:
        The target, or a policy that has to learn first.

    Raises:
        InvalidArgument: If it is nothing that can be evaluated on this log.
        InvalidShape: If an array does not have a row for each decision and a column for each arm.
    """
    if callable(value):
        return Computed(value)
    if hasattr(value, "columns") or not hasattr(value, "__array__"):
        raise InvalidArgument(
            f"policies must be an array of probabilities, an Agent, a Policy, explorax.frozen(policy, state) or a "
            f"function, got {shown(value)}. Give an array with a column for each arm, in the order of log.names."
        )
    table = np.asarray(value)
    if table.shape != (len(log), log.n_arms):
        raise InvalidShape(
            f"policies must have shape {(len(log), log.n_arms)} if given as an array, got {table.shape}. Give the "
            "probability of each arm in each row."
        )
    return Given(table)


@read_target.register
def _(value: Target, log: LoggedData, seed: int) -> Target:
    return value


@read_target.register
def _(value: list, log: LoggedData, seed: int) -> Target | Learning:  # type: ignore[type-arg]
    try:
        table = np.asarray(value, float)
    except (TypeError, ValueError):
        raise InvalidArgument(
            f"policies must be one target, or a mapping of names to targets, got {shown(value)}. Give, for example, "
            "{'greedy': explorax.greedy()}."
        ) from None
    return read_target(table, log, seed)


@read_target.register
def _(value: Agent, log: LoggedData, seed: int) -> Target:
    source = value._live.decider.source
    if source.set is not None:
        raise InvalidArgument(
            "policies must choose among the arms of the log, got an agent with an infinite set of arms. Give a policy "
            "with finitely many."
        )
    if source.kind == "fixed":
        return OfAgent(value, log, seed)
    if log.features is not None and log.features.shape[1] != value.n_features:
        raise InvalidShape(
            f"policies must take the {log.features.shape[1]} features that the arms have in the log, got an agent for "
            f"{value.n_features}. Read the log with the encoder of the agent."
        )
    known = value._live.decider.known
    return OfPolicy(Frozen(value.policy, value.state, known.floor, value.decisions), log, seed)


@read_target.register
def _(value: Frozen, log: LoggedData, seed: int) -> Target:
    return OfPolicy(value, log, seed)


@read_target.register
def _(value: Policy, log: LoggedData, seed: int) -> Learning:
    return Learning(checked_policy(value))


def first_state(policy: Policy, log: LoggedData, seed: int) -> State:
    """Return the state from which a policy starts to learn the arms of a log, in double precision."""
    if log.features is None:
        raise InvalidArgument(
            "log must have features of the arms for a policy to learn from it, got features=None. Read the log with "
            "features."
        )
    arms = fixed_arms(log.features)
    with jax.enable_x64(True):
        return policy.init(log.features.shape[1] if arms is None else arms, jax.random.key(seed))


def trained(what: Learning, log: LoggedData, count: int, seed: int) -> Target:
    """Return a policy that has learned from the first rows of a log and is frozen then.

    Args:
        what: The policy.
        log: The log.
        count: The number of rows to learn from.
        seed: The seed of repeated decisions, and of what training draws.

    Returns:
        The target.

    Raises:
        InvalidReward: If a reward is impossible in the policy's family.
        HistoryFull: If the policy has no room for so many rewards.
    """
    state, rows = first_state(what.policy, log, seed), np.arange(count)
    check_possible(what.policy, log.rewards[rows], "float64")
    check_capacity(state, count)
    assert log.features is not None
    pulled = Pulled.of(log.arms[rows], log.features.chosen(rows, log.arms[rows]).astype(float))
    with jax.enable_x64(True):
        state = learn(what.policy.update, Packed.of(state), pulled.paid(log.rewards[rows])).state()
    return OfPolicy(Frozen(what.policy, state, decisions=count), log, seed, (TRAINED.replace("{count}", str(count)),))


def check_capacity(state: State, count: int) -> None:
    """Raise `HistoryFull` unless the state of a policy that has learned nothing has room for some rewards."""
    for rows in limited_rows(state):
        if rows.capacity < count:
            raise HistoryFull(
                f"policies must have room for the rewards that they learn, got {rows.capacity} places for {count}. "
                f"Build the policy with capacity={count}, or with when_full='forget' to keep the newest rewards."
            )


def checked_probabilities(name: str, found: Any, rows: np.ndarray, offered: np.ndarray) -> np.ndarray:
    """Return the probabilities of a target; raise unless they are probabilities of arms on offer.

    Args:
        name: The name of the target.
        found: (m, K) What the target returned.
        rows: (m,) The places of the rows in the log.
        offered: (m, K) Whether each arm is on offer there.

    Returns:
        The probabilities as an array of floats.

    Raises:
        InvalidShape: If there is not one number for each arm in each row.
        InvalidArgument: If they are negative, do not add up to 1, or give a chance to an arm that is not on offer.
    """
    found = np.asarray(found, float)
    if found.shape != offered.shape:
        raise InvalidShape(
            f"policies must give probabilities of shape {offered.shape} for {len(rows)} rows, got {found.shape} from "
            f"{name!r}. Return one number for each arm."
        )
    fine = (found >= 0).all(axis=1) & (np.abs(found.sum(axis=1) - 1) <= LIMIT)  # which NaN is not
    if not fine.all():
        row = int(np.argmin(fine))
        raise InvalidArgument(
            f"policies must give probabilities that are at least 0 and add up to 1, got {found[row].sum():g} as the "
            f"sum and {found[row].min():g} as the least of {name!r} in row {rows[row]}. Correct the row."
        )
    outside = np.where(offered, 0, found).sum(axis=1)
    if outside.any():
        row = int(np.argmax(outside > 0))
        raise InvalidArgument(
            f"policies must choose among the arms on offer, got a probability of {outside[row]:g} for others from "
            f"{name!r} in row {rows[row]}. Set it to 0."
        )
    return found
