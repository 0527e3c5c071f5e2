"""A decision: what it depends on, and what an agent answers, also as plain JSON."""

import inspect
import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent.arm_tables import Among, Arms, Pick
from explorax.agent.compiled import Packed
from explorax.agent.offers import ArmSource, Offer, Offers
from explorax.agent.propensity import Knowledge
from explorax.checks import check_whole
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy, State
from explorax.simulation import FLOOR, INIT, POLICY, REPEAT, instance_keys

MOST_SEED = 2**63 - 1


def checked_policy(policy: object) -> Policy:
    """Return the policy, or raise if it is none that an agent can have."""
    if not isinstance(policy, Policy):
        raise InvalidArgument(f"policy must be a Policy, got {policy!r}. Build one with explorax.make('glm_tsl').")
    if len(inspect.signature(policy.act).parameters) < 5:
        raise InvalidArgument("policy.act takes no `mask`: give it that fifth argument, the arms that may be pulled")
    return policy


class Now(NamedTuple):
    """What changes of all that a decision depends on; replaced as a whole, so that no chooser sees half of a change."""

    packed: Packed  # the state
    arms: Arms  # the agent's own
    room: float  # for so many more rewards
    learned: Sequence[int] = ()  # ids of the decisions whose rewards the state has learned last


class Decider:
    """A policy, where its arms come from, and its randomness: a decision is a function of these, of t and of `Now`."""

    def __init__(self, policy: Policy, source: ArmSource, seed: int, draws: int, explore_floor: float) -> None:
        check_whole("seed", seed, 0, MOST_SEED)
        self.policy, self.source, self.seed = policy, source, seed
        self.known = Knowledge.of(policy, draws, explore_floor)
        self.rule = source.rule(policy, self.known)
        self.wide = source.dtype == "float64"
        with self.precision():
            keys = [instance_keys(seed, range(1), use)[0] for use in (POLICY, REPEAT, FLOOR)]
            self.keys = jnp.stack([jax.random.key_data(key) for key in keys])

    def precision(self) -> AbstractContextManager[Any]:
        """Return the context in which to compute."""
        return jax.enable_x64(self.wide)

    def nothing_seen(self, policy: Policy, own: Arms) -> State:
        """Return the state that a policy starts from; `own` are the agent's own arms."""
        return self.source.begin(policy, own, instance_keys(self.seed, range(1), INIT)[0])

    def decide(self, offer: Offer, now: Now, t: int) -> tuple[Pick, float | None, float | None]:
        """Make decision t; return what it fell on, the propensity and its standard error."""
        with self.precision():
            pick = offer.decide(self.rule, self.keys, now.packed, t)
            return pick, *self.known.stated_one(pick.count, pick.exact, offer.choices)

    def decide_many(self, offers: Offers, now: Now, first: int) -> tuple[Pick, Any, Any]:
        """Make the decisions first, first + 1, …; return what they fell on, propensities and standard errors."""
        with self.precision():
            picks = offers.decide(self.rule, self.keys, now.packed, first)
        return picks, *self.known.stated(picks.count, picks.exact, offers.choices)

    def propensities(self, now: Now, t: int, given: Any, among: Among) -> "Propensities":
        """Return what decision t would state of each arm on offer."""
        if self.known.estimated and not self.known.draws:
            raise InvalidArgument("draws=0: this agent was told not to estimate propensities")
        offer = self.source.offer(now.arms, given, among)
        with self.precision():
            names, found = offer.frequencies(self.rule, self.keys, now.packed, t)
        return Propensities(names, *self.known.stated(found, found, offer.choices))


class Decision(NamedTuple):
    """An arm to pull, and what to keep of it in a log.

    Attributes:
        id: What to give back with the reward, `agent.learn(id, reward)`.
        arm: The arm's name; its row, where arms have no names; the point itself, in an infinite set.
        propensity: P(arm | state, arms), or None if it was not asked for or the set has no points of positive
            probability.
        propensity_stderr: The standard error of the propensity, 0 where it is exact.
        row: The arm's place among the arms.
        features: (d,) What the agent will learn from.
        forced: Whether the decision was in a round of the exploration at the start, which a floor may have given
            another arm.
        converged: Whether the fit behind the decision did.
    """

    id: int
    arm: Any
    propensity: float | None
    propensity_stderr: float | None
    row: int
    features: np.ndarray
    forced: bool
    converged: bool

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
    """P(arm | state, arms) of every arm on offer, as the next decision would state it.

    Attributes:
        arms: The names of the arms on offer.
        probabilities: (K,) The probability of each.
        stderrs: (K,) Their standard errors, 0 where probabilities are exact.
    """

    arms: Sequence[Any]
    probabilities: np.ndarray
    stderrs: np.ndarray

    def to_dict(self) -> dict[str, Any]:
        """Return the three columns by name, as lists of plain values."""
        return {name: plain(value) for name, value in zip(self._fields, self, strict=True)}

    def to_json(self) -> str:
        """Return `to_dict` as JSON, on one line."""
        return json.dumps(self.to_dict())


def plain(value: Any) -> Any:
    """Return a value without NumPy's types."""
    return np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
