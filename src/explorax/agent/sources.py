"""The sources of an agent's arms, each of which makes offers for decisions.

    Fixed       arms with features of their own, the same in every decision
    Changing    a table of arms with every decision
    InContext   named arms whose features are an encoding of their attributes together with a context
    Infinite    all points of a ball, an ellipsoid, a box or a polytope

A source makes an offer for one decision, or offers for several.  An offer decides: it returns an arm among the rows of
a table (`arm_tables.py`), or the point of a set with the largest xᵀθ̃ for a random θ̃ (`offers.py`).
"""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jax import Array

from explorax.agent.arm_sets import ArmSet
from explorax.agent.arm_tables import (
    Among,
    AmongEach,
    Listed,
    ListedEach,
    Table,
    as_dict,
    joined,
    listed_alike,
    padded,
    read_among,
    read_table,
    read_tables,
    several,
)
from explorax.agent.encoding import Encoder
from explorax.agent.extension import extended, vacant, with_rows
from explorax.agent.factored import Factored
from explorax.agent.offers import Offer, Offers, OnePoint, Points, Shown
from explorax.agent.own_arms import Arms, OnOffer
from explorax.agent.packing import Packed
from explorax.agent.propensity import Knowledge
from explorax.agent.rule import Rule, one_rule
from explorax.checks import check_magnitude, check_whole
from explorax.errors import InvalidArgument, InvalidFeatures
from explorax.log.data import LoggedData
from explorax.policies.base import Policy, State
from explorax.registry import list_policies


@dataclass(frozen=True)
class ArmSource(ABC):
    """The source of the arms of an agent's decisions: what all kinds have in common."""

    n_features: int
    dtype: str
    encoder: Encoder | None = None
    set: ArmSet | None = None  # of which arms are points
    kind: ClassVar[str]
    named: ClassVar[bool] = False  # whether the agent has arms of its own, by name
    settles: ClassVar[bool] = False  # whether looking for forced rounds costs enough for a program without it

    def describe(self) -> str:
        """Return the kind of arms as a word of a sentence."""
        return self.kind

    def rule(self, policy: Policy, known: Knowledge) -> Rule:
        """Return the rule by which the policy decides; raise if it cannot decide on arms of this kind."""
        return one_rule(
            policy.act, policy.probabilities, policy.redraw, known.repetitions, known.floor, policy.stationary
        )

    def begin(self, policy: Policy, arms: Arms, key: Array) -> State:
        """Return the state from which a policy starts, given the agent's own arms."""
        return policy.init(self.n_features, key)

    def extend(self, policy: Policy, packed: Packed, arms: Arms) -> Packed:
        """Return the packed state after the agent's own arms have changed."""
        return packed

    def vacant(self, policy: Policy, packed: Packed, arms: Arms) -> int | None:
        """Return a row of the agent's own arms that may be given to another arm, or None."""
        return None

    def with_rows(
        self, policy: Policy, packed: Packed, arms: Arms, rows: np.ndarray, features: np.ndarray
    ) -> tuple[Arms, np.ndarray]:
        """Return the agent's own arms with a row for each arm that was pulled, and these rows."""
        return arms, rows

    @abstractmethod
    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Return the arms on offer in one decision, given the agent's own arms and the arguments of `choose`."""

    @abstractmethod
    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Return the arms on offer in several decisions, given the arguments of `choose_many`."""

    def shown(self, offers: Offer | Offers, count: int, given: Any, restricted: bool) -> list[Shown]:
        """Return what a log must be told of the arms on offer in decisions that are made together.

        Args:
            offers: The arms on offer.
            count: The number of decisions.
            given: What was given for each of them.
            restricted: Whether only some of the agent's own arms might be chosen.

        Returns:
            What the log does not know already, for each decision.
        """
        return [Shown(offers.on_offer(i)[0]) for i in range(count)] if restricted else [Shown()] * count

    def earlier(self, arms: Arms, log: LoggedData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows, the features and the rewards of arms that others pulled, as a log tells them."""
        size = None if log.features is None else log.features.shape[1]
        if log.features is None or size != self.n_features:
            raise InvalidArgument(
                f"log must have {self.n_features} features of each arm, as the agent's arms have, got {size}. Give "
                "LoggedData.of the features of the arms."
            )
        features = log.features.chosen(np.arange(len(log)), log.arms).astype(self.dtype)
        check_magnitude("features of a log", features)
        return np.zeros(len(log), np.int64), features, log.rewards

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return the features of one of the agent's own arms, or its attributes if features depend on a context.

        Args:
            arms: The agent's own arms.
            name: The name of the arm.
            features: The features or attributes, as they are given to `Agent.add_arm`.

        Returns:
            The row of features, and the attributes or None.

        Raises:
            InvalidArgument: If this kind of source has no arms of the agent's own.
        """
        raise InvalidArgument(
            f"Arm {name!r} cannot be read, because an agent with arms of the kind {self.describe()!r} has no arms of "
            "its own. Make it with arms={name: features} to have some."
        )


class Fixed(ArmSource):
    """A source of arms with features of their own, the same in every decision."""

    kind = "fixed"
    named = True

    def begin(self, policy: Policy, arms: Arms, key: Array) -> State:
        """Return the state from which a policy starts that knows all arms in advance."""
        return policy.init(arms.matrix, key)

    def extend(self, policy: Policy, packed: Packed, arms: Arms) -> Packed:
        """Return the packed state of the policy with room for the arms that were added."""
        return packed if policy.extend is None else extended(policy.extend, packed, arms.matrix)

    def vacant(self, policy: Policy, packed: Packed, arms: Arms) -> int | None:
        """Return the row of a retired arm of which the state knows no reward, or None."""
        return vacant(policy, packed, arms)

    def with_rows(
        self, policy: Policy, packed: Packed, arms: Arms, rows: np.ndarray, features: np.ndarray
    ) -> tuple[Arms, np.ndarray]:
        """Return the agent's own arms with rows for late rewards of arms whose rows were given away."""
        return with_rows(policy, packed, arms, rows, features)

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the agent's active arms, or those of them that are named in `among`."""
        if given is not None:
            raise InvalidArgument(
                f"given must be None for an agent with arms of its own, got {reprlib.repr(given)}. Call choose() "
                "without arms, or add them by add_arm."
            )
        if among is None:
            return arms.listed
        return Listed(arms.names, arms.rows, arms.matrix, arms.offered(among))

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer the agent's active arms in each of several decisions, whose number is given."""
        check_whole("given", given, 1)
        among, own = read_among(among, int(given))
        offered = arms.offered(among) if own is None else np.stack([arms.mask(each) for each in own])

        def pick(rows: np.ndarray) -> tuple[list[Any], np.ndarray]:
            return [arms.names[row] for row in rows.tolist()], arms.rows[rows]

        return ListedEach(int(given), arms.matrix, offered, pick, lambda i: arms.names)

    def earlier(self, arms: Arms, log: LoggedData) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the rows, the features and the rewards of arms that others pulled, which have the agent's names."""
        rows = np.array([arms.place(name) for name in log.names], np.int64)[log.arms]
        return rows, arms.rows[rows], log.rewards

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return the features of an arm as a row."""
        features = features if self.encoder is None else as_dict(features)
        return read_table([features], self.n_features, self.dtype, self.encoder).rows[0], None


class Changing(ArmSource):
    """A source of arms that differ every time: each decision is given a table of arms."""

    kind = "changing"
    settles = True

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the arms of the table that is given."""
        table = self.table(given, among)
        return Listed(*table, *padded(table.rows))

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer the arms of each table, or those of an array (n, K, d)."""
        if among is None and self.encoder is None and getattr(given, "ndim", 0) == 3 and len(given):
            tables = read_tables(given, self.n_features, self.dtype)
            return listed_alike(range(tables.shape[1]), tables)
        return joined([self.table(each, among) for each in several("tables of arms", given)])

    def shown(self, offers: Offer | Offers, count: int, given: Any, restricted: bool) -> list[Shown]:
        """Return the names and the features of the arms on offer in each decision."""
        each = [(*offers.on_offer(i), offers.table(i)) for i in range(count)]
        return [Shown(None if names == list(range(len(names))) else names, table[rows]) for names, rows, table in each]

    def table(self, given: Any, among: AmongEach) -> Table:
        """Return the arms given, with their names."""
        if given is None:
            raise InvalidArgument(
                "given must be a table of the arms on offer, got None. This agent has no arms of its own: call "
                "choose(table)."
            )
        if among is not None:
            raise InvalidArgument(
                f"among must be None for an agent without arms of its own, got {reprlib.repr(among)}. Give the table "
                "of eligible arms only."
            )
        return read_table(given, self.n_features, self.dtype, self.encoder)


class InContext(ArmSource):
    """A source of named arms whose features are made of their attributes and a context."""

    kind = "context"
    named = True
    settles = True

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the agent's active arms, or those named in `among`, in the context that is given."""
        assert self.encoder is not None
        offered = arms.on_offer if among is None else arms.some(arms.mask(among))
        context = self.read_context(arms, given)
        factors = self.encoder.context(arms.attributes[0], context)
        if factors is None:
            (rows,) = self.tables(offered, [context])
            return Listed(offered.names, rows, *padded(rows))
        offer = Factored(offered, factors, self.dtype)
        if not offer.are_small():
            self.tables(offered, [context])  # which raises if a feature is too large
        return offer

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer the agent's active arms in each of several contexts."""
        contexts = [self.read_context(arms, context) for context in several("contexts", given)]
        among, own = read_among(among, len(contexts))
        if own is None:
            offered = arms.on_offer if among is None else arms.some(arms.mask(among))
            return listed_alike(offered.names, self.tables(offered, contexts))
        each = [(arms.some(arms.mask(names)), context) for names, context in zip(own, contexts, strict=True)]
        return joined([Table(offered.names, self.tables(offered, [context])[0]) for offered, context in each])

    def shown(self, offers: Offer | Offers, count: int, given: Any, restricted: bool) -> list[Shown]:
        """Return each context, and the names of the arms on offer if these are only some of the agent's own."""
        found = super().shown(offers, count, given, restricted)
        contexts = several("contexts", given)
        return [each._replace(context=as_dict(context)) for each, context in zip(found, contexts, strict=True)]

    def tables(self, offered: OnOffer, contexts: Sequence[Mapping[str, Any]]) -> np.ndarray:
        """Return (n, K, d) the features of the arms on offer in each of n contexts."""
        assert self.encoder is not None
        encoded = self.encoder.completed(offered.rows, offered.attributes, contexts).astype(self.dtype, copy=False)
        check_magnitude("features of arms in their context", encoded)
        return encoded

    def read_context(self, arms: Arms, context: Any) -> Mapping[str, Any]:
        """Return a context as a dict of columns; raise if it has an attribute of the arms."""
        context = as_dict(context)
        if not isinstance(context, Mapping):
            assert self.encoder is not None
            columns = ", ".join(name for name in self.encoder.columns if name not in arms.attributes[0])
            raise InvalidArgument(
                f"A context must be a dict with the columns {columns}, got {reprlib.repr(context)}. Call "
                "choose(context), or choose_many(contexts)."
            )
        if not arms.attributes[0].keys().isdisjoint(context):
            both = sorted(set(context) & set(arms.attributes[0]))
            raise InvalidArgument(
                f"A context must not have the attributes of the arms, got {both[0]!r}. Leave it out of the context."
            )
        return context

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return the attributes of an arm; raise unless they are those that the other arms have."""
        features, wanted = as_dict(features), ", ".join(arms.attributes[0])
        if not isinstance(features, Mapping):
            raise InvalidFeatures(
                f"features must be a dict with the attributes of the arm, got {reprlib.repr(features)}. Give {wanted}."
            )
        if set(features) != set(arms.attributes[0]):
            raise InvalidArgument(
                f"features must have the attributes {wanted}, as the other arms do, got {list(features)} for arm "
                f"{name!r}. Give these attributes."
            )
        assert self.encoder is not None
        attributes = self.encoder.checked(f"arm {name!r}", features)
        return self.encoder.part([attributes])[0], attributes


class Infinite(ArmSource):
    """A source whose arms are all points of a set, for policies that maximize a linear function."""

    kind = "set"

    def describe(self) -> str:
        """Return the kind of set as a word of a sentence."""
        return self.points.kind

    @property
    def points(self) -> ArmSet:
        """The set of which arms are points."""
        assert self.set is not None
        return self.set

    def rule(self, policy: Policy, known: Knowledge) -> Rule:
        """Return the rule by which the policy decides; raise unless it maximizes xᵀθ̃."""
        linear = [name for name, entry in list_policies().items() if entry.linear]
        if policy.recipe is None or policy.recipe.name not in linear:
            name = policy.recipe.name if policy.recipe else "a policy of another kind"
            raise InvalidArgument(
                f"policy must maximize a linear function for an infinite set of arms, got {name}. Use one of "
                f"{', '.join(linear)}."
            )
        if known.floor:
            raise InvalidArgument(
                f"explore_floor must be 0 for an infinite set of arms, got {known.floor}. There is no uniform choice "
                "of an arm: give a table of arms, or leave the floor out."
            )
        return one_rule(policy.act, None, None, known.repetitions if self.points.countable else 0)

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer all points of the set."""
        if given is not None:
            raise InvalidArgument(
                f"given must be None for an agent with an infinite set of arms, got {reprlib.repr(given)}. Call "
                "choose() without arms."
            )
        check_no_names(among)
        return OnePoint(self.points, self.dtype)

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer all points of the set in each of several decisions, whose number is given."""
        check_whole("given", given, 1)
        check_no_names(among)
        return Points(self.points, self.dtype, int(given))


def check_no_names(among: AmongEach) -> None:
    """Raise if names of arms are given, since the points of an infinite set have no names."""
    if among is not None:
        raise InvalidArgument(
            f"among must be None for an infinite set of arms, got {reprlib.repr(among)}. Its points have no names."
        )
