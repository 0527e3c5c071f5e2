"""The arms on offer in one decision or in several, and how an offer decides.

Every offer has the same interface (`Offer`, `Offers`).  Arms in the rows of a table are in `arm_tables.py`; here are
the points of an infinite set.

**Infinite sets.**  GLM-TSL, GLM-FPL, LinTS and greedy only ever maximize xᵀθ̃, so any set of arms will do that has an
oracle for this maximum (`arm_sets.py`).  The scores of the unit vectors are θ̃ itself.  During the forced rounds of
`warmup` the directions are the unit vectors in turn.  The choice from a box or a polytope is, with probability 1, one
of its corners, and has a propensity.  In a ball or an ellipsoid every single point has probability 0, so there is no
propensity.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 3.3.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, Protocol

import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.agent import compiled
from explorax.agent.arm_sets import ArmSet
from explorax.agent.arm_tables import Pick
from explorax.agent.packing import Packed
from explorax.agent.rule import Rule
from explorax.errors import InvalidArgument


class Shown(NamedTuple):
    """The arms on offer in a decision as a log tells them, without what it knows already."""

    names: list[Any] | None = None  # of the arms on offer; None: all of the agent's own, or rows without names
    table: np.ndarray | None = None  # (K, d) the features of arms that were given with the decision
    context: Mapping[str, Any] | None = None


class Offer(Protocol):
    """The arms on offer in one decision."""

    @property
    def choices(self) -> int:
        """The number of arms that may be pulled."""

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t by a rule."""

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Return the names and the rows of the arms that may be pulled."""

    def table(self, i: int) -> np.ndarray:
        """Return (K, d) the features of all arms, if they are in the rows of a table."""

    def as_played(self) -> tuple[Any, Any]:
        """Return (K or more, d) the features and the mask of the arms, as the policy is given them."""

    def without(self, names: Collection[Any]) -> "Offer":
        """Return the offer without some of its arms."""


class Offers(Protocol):
    """The arms on offer in several decisions."""

    @property
    def number(self) -> int:
        """The number of decisions."""

    @property
    def choices(self) -> Any:
        """The number of arms that may be pulled in each decision; a single number if it is the same in all."""

    def decide(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make as many decisions as there are offers, the first of them with the number `first`."""

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Return the names and the rows of the arms that may be pulled in decision i."""

    def table(self, i: int) -> np.ndarray:
        """Return (K, d) the features of all arms in decision i, if they are in the rows of a table."""


class Points(NamedTuple):
    """The points of an infinite set, for several decisions."""

    set: ArmSet
    dtype: str
    number: int

    @property
    def choices(self) -> int:
        """The number 1, which no formula uses: points of an infinite set are never drawn uniformly."""
        return 1

    def decide(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make several decisions, each for the point of largest xᵀθ̃, the first of them with the number `first`."""
        if rule.vector:
            raise not_listed()
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

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Refuse to list infinitely many points."""
        raise not_listed()

    def table(self, i: int) -> np.ndarray:
        """Refuse to list infinitely many points."""
        raise not_listed()


class OnePoint(NamedTuple):
    """The points of an infinite set, for one decision."""

    set: ArmSet
    dtype: str

    @property
    def choices(self) -> int:
        """The number 1, which no formula uses: points of an infinite set are never drawn uniformly."""
        return 1

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t for the point of largest xᵀθ̃."""
        picks = Points(self.set, self.dtype, 1).decide(rule, keys, packed, t)
        point, count = picks.features[0], None if picks.count is None else int(picks.count[0])
        return Pick(point, 0, point, bool(picks.forced[0]), bool(picks.converged[0]), count, 1.0)

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Refuse to list infinitely many points."""
        raise not_listed()

    def table(self, i: int) -> np.ndarray:
        """Refuse to list infinitely many points."""
        raise not_listed()

    def as_played(self) -> tuple[Any, Any]:
        """Refuse to list infinitely many points."""
        raise not_listed()

    def without(self, names: Collection[Any]) -> Offer:
        """Refuse to leave out points, which have no names."""
        raise InvalidArgument(
            "Points of an infinite set cannot be left out of a decision. Give the agent a table of arms instead."
        )


def not_listed() -> InvalidArgument:
    """Return the error that refuses the propensities of all points of an infinite set."""
    return InvalidArgument(
        "The propensities of an infinite set of arms cannot be listed. Use Decision.propensity of a choice."
    )
