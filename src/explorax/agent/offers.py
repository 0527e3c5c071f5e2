"""What may be pulled in a decision, wherever the arms come from.

    Fixed       arms with features of their own, the same in every decision
    Changing    a table of arms with every decision
    InContext   named arms whose features are an encoding of their attributes together with a context
    Infinite    all points of a ball, an ellipsoid, a box or a polytope

Each makes an offer for one decision, or offers for several, and these decide: an arm among the rows of a table
(`arm_tables.py`), or the point of a set that a random θ̃ likes best.

**Infinite sets.**  GLM-TSL, GLM-FPL, LinTS and greedy only ever maximize xᵀθ̃, so a set of arms may be anything with an
oracle for that (`arm_sets.py`).  θ̃ is read off a policy as the scores of the unit vectors.  During the forced rounds of
`warmup` the directions are the unit vectors in turn.  A point of a box or a polytope is, with probability 1, one of
its corners, and has a propensity.  In a ball or an ellipsoid every single point has probability 0, and there is none.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 3.3.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.agent import compiled
from explorax.agent.arm_sets import ArmSet
from explorax.agent.arm_tables import (
    Among,
    AmongEach,
    Arms,
    Listed,
    ListedEach,
    Pick,
    Table,
    as_dict,
    joined,
    padded,
    padded_size,
    read_among,
    read_table,
    read_tables,
    several,
)
from explorax.agent.compiled import Packed, Rule, one_rule
from explorax.agent.encoding import Encoder
from explorax.agent.propensity import Knowledge
from explorax.checks import check_magnitude, check_whole
from explorax.errors import InvalidArgument, InvalidFeatures, UnknownName
from explorax.policies.base import Policy, State
from explorax.registry import list_policies

# What is on offer


class Offer(Protocol):
    """The arms of one decision."""

    @property
    def choices(self) -> int:
        """How many may be pulled."""

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t."""

    def frequencies(self, rule: Rule, keys: Array, packed: Packed, t: int) -> tuple[list[Any], np.ndarray]:
        """Return the names on offer, and how often each comes up in decision t and its repetitions, or P(arm)."""


class Offers(Protocol):
    """The arms of several decisions."""

    @property
    def number(self) -> int:
        """How many decisions."""

    @property
    def choices(self) -> Any:
        """How many arms may be pulled; one number if the same for all."""

    def decide(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make the decisions first, first + 1, …"""


class Points(NamedTuple):
    """The points of an infinite set, for several decisions."""

    set: ArmSet
    dtype: str
    number: int

    @property
    def choices(self) -> int:
        """Return 1: infinitely many may be pulled, and none is ever drawn uniformly."""
        return 1

    def decide(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make the decisions first, first + 1, …"""
        size, number = self.set.n_features, self.number
        units, times = jnp.eye(size, dtype=self.dtype), np.arange(first, first + number)
        found = []
        for _, room, piece in compiled.pieces(number, least=1):
            program = compiled.directions(rule, packed.packing, room)
            found.append(program(keys, packed.arrays, units, times[piece]))
        thetas, flags = (np.concatenate([np.asarray(each) for each in column]) for column in zip(*found, strict=True))
        forced, converged = flags[:number].T
        points = self.set.maximize(thetas[:number].astype(float).reshape(-1, size)).reshape(number, -1, size)
        chosen = points[:, 0].astype(self.dtype)
        count = np.all(points == points[:, :1], axis=2).sum(axis=1) if self.set.countable else None
        return Pick(list(chosen), np.zeros(number, np.int64), chosen, forced, converged, count, np.ones(number))


class OnePoint(NamedTuple):
    """The points of an infinite set, for one decision."""

    set: ArmSet
    dtype: str

    @property
    def choices(self) -> int:
        """Return 1: infinitely many may be pulled, and none is ever drawn uniformly."""
        return 1

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t."""
        picks = Points(self.set, self.dtype, 1).decide(rule, keys, packed, t)
        point, count = picks.features[0], None if picks.count is None else int(picks.count[0])
        return Pick(point, 0, point, bool(picks.forced[0]), bool(picks.converged[0]), count, 1.0)

    def frequencies(self, rule: Rule, keys: Array, packed: Packed, t: int) -> tuple[list[Any], np.ndarray]:
        """Raise: infinitely many points are on offer."""
        raise InvalidArgument("an infinite set has no list of propensities: see Decision.propensity")


# Where arms come from


@dataclass(frozen=True)
class ArmSource:
    """Where the arms of an agent's decisions come from: what all kinds have in common."""

    n_features: int
    dtype: str
    encoder: Encoder | None = None
    set: ArmSet | None = None  # of which arms are points
    kind: ClassVar[str]
    named: ClassVar[bool] = False  # whether the agent has arms of its own, by name

    def describe(self) -> str:
        """Return the kind of arms in words."""
        return self.kind

    def rule(self, policy: Policy, known: Knowledge) -> Rule:
        """Return what decisions of the policy depend on; raise if it cannot decide on such arms."""
        return one_rule(policy.act, policy.probabilities, policy.redraw, known.repetitions, known.floor)

    def begin(self, policy: Policy, arms: Arms, key: Array) -> State:
        """Return the state that a policy starts from; `arms` are the agent's own."""
        return policy.init(self.n_features, key)

    def extend(self, policy: Policy, state: State, arms: Arms) -> State:
        """Return the state after the agent's own arms have changed."""
        return state

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Return what may be pulled in a decision; `arms` are the agent's own."""
        raise NotImplementedError

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Return what may be pulled in each of several decisions."""
        raise NotImplementedError

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return the features of one of the agent's own arms, or its attributes where they depend on a context."""
        raise NotImplementedError


class Fixed(ArmSource):
    """Arms with features of their own."""

    kind = "fixed"
    named = True

    def begin(self, policy: Policy, arms: Arms, key: Array) -> State:
        """Return the state of a policy that knows these arms."""
        return policy.init(arms.matrix, key)

    def extend(self, policy: Policy, state: State, arms: Arms) -> State:
        """Return the state of a policy that knows these arms too."""
        return state if policy.extend is None else policy.extend(state, arms.matrix)

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the agent's arms that are active, or some of them."""
        if given is not None:
            raise InvalidArgument("this agent has arms of its own: choose() without arms, or add_arm first")
        return Listed(arms.names, arms.rows, arms.matrix, arms.offered(among))

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer the same, so many times."""
        check_whole("given", given, 1)
        among, own = read_among(among, int(given))
        offered = arms.offered(among) if own is None else np.stack([arms.mask(each) for each in own])

        def pick(rows: np.ndarray) -> tuple[list[Any], np.ndarray]:
            return [arms.names[row] for row in rows.tolist()], arms.rows[rows]

        return ListedEach(int(given), arms.matrix, offered, pick)

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return a row."""
        features = features if self.encoder is None else as_dict(features)
        return read_table([features], self.n_features, self.dtype, self.encoder).rows[0], None


class Changing(ArmSource):
    """A table of arms with every decision; the agent has none of its own."""

    kind = "changing"

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the arms of this table."""
        table = self.table(given, among)
        return Listed(*table, *padded(table.rows))

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer those of each table; an array of equal tables is taken as it is, where no rows must be added."""
        if among is None and self.encoder is None and getattr(given, "ndim", 0) == 3 and len(given):
            tables = read_tables(given, self.n_features, self.dtype)
            taken, offered = (tables, None) if tables.shape[1] == padded_size(tables.shape[1]) else padded(tables)
            every = np.arange(len(tables))
            return ListedEach(len(tables), taken, offered, lambda rows: (rows.tolist(), tables[every, rows]))
        return joined([self.table(each, among) for each in several("tables of arms", given)])

    def table(self, given: Any, among: AmongEach) -> Table:
        """Return the arms given."""
        if given is None:
            raise InvalidArgument("this agent has no arms of its own: choose(table) with the arms on offer")
        if among is not None:
            raise InvalidArgument("among is for an agent's own arms: give the eligible ones only")
        return read_table(given, self.n_features, self.dtype, self.encoder)


class InContext(ArmSource):
    """Named arms in a context."""

    kind = "context"
    named = True

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer the agent's active arms, or some of them, in this context."""
        (table,) = self.tables(arms, [given], [arms.mask(among)])
        return Listed(*table, *padded(table.rows))

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer the same in each of several contexts."""
        contexts = several("contexts", given)
        among, own = read_among(among, len(contexts))
        masks = [arms.mask(among)] * len(contexts) if own is None else [arms.mask(each) for each in own]
        return joined(self.tables(arms, contexts, masks))

    def tables(self, arms: Arms, contexts: Sequence[Any], masks: Sequence[np.ndarray]) -> list[Table]:
        """Return the arms on offer in each context, encoded together."""
        contexts = [self.read_context(arms, context) for context in contexts]
        places = [np.flatnonzero(mask).tolist() for mask in masks]
        assert self.encoder is not None
        whole = [{**context, **arms.attributes[i]} for context, own in zip(contexts, places, strict=True) for i in own]
        encoded = self.encoder.transform(whole).astype(self.dtype)
        check_magnitude("features of arms in their context", encoded)
        rows = np.split(encoded, np.cumsum([len(own) for own in places])[:-1])
        return [Table([arms.names[i] for i in own], each) for own, each in zip(places, rows, strict=True)]

    def read_context(self, arms: Arms, context: Any) -> Mapping[str, Any]:
        """Return a context as a dict of columns that the arms do not have themselves."""
        context = as_dict(context)
        if not isinstance(context, Mapping):
            raise InvalidArgument(f"context={context!r} must be a dict with a value for each column of the context")
        if both := sorted(set(context) & set(arms.attributes[0])):
            raise InvalidArgument(f"context has {both[0]!r}, which is an attribute of the arms: leave it out")
        return context

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Return attributes, which must be those that the other arms have."""
        features = as_dict(features)
        if not isinstance(features, Mapping):
            raise InvalidFeatures(f"features={features!r} must be a dict with the attributes of the arm")
        if set(features) != set(arms.attributes[0]):
            wanted = ", ".join(arms.attributes[0])
            raise InvalidArgument(
                f"arm {name!r} has attributes {list(features)} where the others have {wanted}: give these"
            )
        assert self.encoder is not None
        return np.zeros(0), self.encoder.checked(f"arm {name!r}", features)


class Infinite(ArmSource):
    """All points of a set, for policies that maximize a linear function."""

    kind = "set"

    def describe(self) -> str:
        """Return the kind of set."""
        return self.points.kind

    @property
    def points(self) -> ArmSet:
        """The set."""
        assert self.set is not None
        return self.set

    def rule(self, policy: Policy, known: Knowledge) -> Rule:
        """Return what decisions of the policy depend on; raise unless it maximizes xᵀθ̃."""
        linear = [name for name, entry in list_policies().items() if entry.linear]
        if policy.recipe is None or policy.recipe.name not in linear:
            name = policy.recipe.name if policy.recipe else "this policy"
            raise InvalidArgument(
                f"{name} does not maximize a linear function, as an infinite set of arms needs: use {', '.join(linear)}"
            )
        if known.floor:
            raise InvalidArgument(
                f"explore_floor must be 0 for an infinite set of arms, got {known.floor}. It has no uniform choice of "
                "an arm: give a list of arms, or leave the floor out."
            )
        return one_rule(policy.act, None, None, known.repetitions if self.points.countable else 0)

    def offer(self, arms: Arms, given: Any, among: Among) -> Offer:
        """Offer all points of the set."""
        if given is not None:
            raise InvalidArgument("this agent has a set of arms of its own: choose() without arms")
        check_no_names(among)
        return OnePoint(self.points, self.dtype)

    def offers(self, arms: Arms, given: Any, among: AmongEach) -> Offers:
        """Offer all points of the set, so many times."""
        check_whole("given", given, 1)
        check_no_names(among)
        return Points(self.points, self.dtype, int(given))


def check_no_names(among: AmongEach) -> None:
    """Raise if names of arms are given where there are none."""
    if among is not None:
        raise InvalidArgument("among is for arms with names: an infinite set has none")


KINDS: dict[str, type[ArmSource]] = {each.kind: each for each in (Fixed, InContext, Changing, Infinite)}


def read_source(given: Any, n_features: int | None, encoder: Encoder | None, dtype: str) -> tuple[ArmSource, Arms]:
    """Return where the arms of an agent come from that is made with these arguments, and the arms of its own."""
    if encoder is not None and not isinstance(encoder, Encoder):
        raise InvalidArgument(
            f"encoder must be an Encoder, got {encoder!r}. Make one with Encoder.fit(sample), or "
            "Encoder.from_transformer(transformer, columns)."
        )
    size = getattr(encoder, "n_features", None)
    if isinstance(given, ArmSet):
        if encoder is not None:
            raise InvalidArgument("encoder must be None for an infinite set of arms, whose points are features already")
        size = given.n_features
    if size is not None and n_features not in (None, size):
        what = "the set of arms has" if isinstance(given, ArmSet) else "the encoder makes"
        raise InvalidArgument(f"n_features={n_features} where {what} {size}: leave it out")
    if isinstance(given, ArmSet):
        return Infinite(given.n_features, dtype, set=given), Arms.none()
    if given is None:
        if n_features is None and encoder is None:
            raise InvalidArgument("give arms, or n_features=d (or an encoder) for arms that differ every time")
        check_whole("n_features", n_features if size is None else size, 1)
        return Changing(int(size or n_features or 1), dtype, encoder), Arms.none()
    if encoder is not None and is_in_context(given, encoder):
        attributes = {name: encoder.checked(f"arm {name!r}", each) for name, each in given.items()}
        return InContext(encoder.n_features, dtype, encoder), Arms.in_context(attributes)
    table = read_table(given, n_features, dtype, encoder)
    return Fixed(table.rows.shape[1], dtype, encoder), Arms.of(table)


def is_in_context(given: Any, encoder: Encoder) -> bool:
    """Tell whether these are arms by name whose attributes are only some of the encoder's columns."""
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        return False
    columns = [set(each) for each in given.values()]
    for each in columns:
        if unknown := sorted(each - set(encoder.columns)):
            raise UnknownName("column", unknown[0], encoder.columns)
        if each != columns[0]:
            raise InvalidArgument(f"arms have different attributes: {sorted(each ^ columns[0])} of some are missing")
    return bool(given) and columns[0] != set(encoder.columns)
