"""An agent's own arms: their names and rows, and how arms are added, updated, retired and restored.

A table of arms is never changed, only replaced, so that whoever decides by it is not disturbed.  When its rows are used
up, it gets room for the next power of two.  So adding arms changes the shape of the table, for which programs are
compiled, only once for each power of two.

A retired arm of which the state knows no reward (`extension.py`) gives its row to the next new arm, so that a table
does not grow with all arms that ever came and went.  The features of an arm without a row are kept apart, and it gets a
row again when it is restored.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import numpy as np
from jax import Array

from explorax.agent.arm_tables import Among, Listed, Table, checked_names, padded, padded_size
from explorax.errors import InvalidArgument, UnknownName


@dataclass(frozen=True, eq=False)
class OnOffer:
    """The arms on offer in the context of a decision."""

    names: list[Any]
    rows: np.ndarray  # (K, p) what the attributes alone say about the features
    attributes: list[Mapping[str, Any]]

    def some(self, places: np.ndarray) -> "OnOffer":
        """Return the arms in some of these places."""
        names, attributes = ([each[i] for i in places] for each in (self.names, self.attributes))
        return OnOffer(names, self.rows[places], attributes)

    @cached_property
    def largest(self) -> float:
        """The largest size of a number in the rows."""
        return float(np.abs(self.rows).max(initial=0.0))

    @cached_property
    def factors(self) -> tuple[Array, Array]:
        """The rows as two matrices (2, K or more, d) on the device, padded, and the mask of the rows that are arms."""
        rows, mask = padded(np.stack(np.split(self.rows, 2, axis=1)))
        return jax.device_put(rows), jax.device_put(mask[0])


@dataclass(frozen=True, eq=False)
class Arms:
    """An agent's own arms, with names, each in a row of its own; never changed, only replaced."""

    names: tuple[Hashable | None, ...]  # None: a row with the former features of an arm that was updated
    places: Mapping[Hashable, int]  # the row of each name
    active: np.ndarray  # (S,) bool: on offer now; rows beyond the names are room for more
    rows: np.ndarray  # (S, d); if features depend on a context, what the attributes alone say about them
    matrix: Any  # the same on the device; None if features depend on a context
    attributes: tuple[Mapping[str, Any], ...] = ()  # of each arm, if features depend on a context
    grown: bool = False  # whether there was ever room for more arms
    rowless: Mapping[Hashable, np.ndarray] = field(default_factory=dict)  # features of retired arms without a row
    reused: bool = False  # whether a row was ever given to another arm

    @classmethod
    def of(cls, table: Table) -> "Arms":
        """Return the arms of a table, whose features are fixed."""
        names, rows = tuple(checked_names(table.names)), table.rows.copy()  # what was given may change
        return cls(names, places_of(names), np.ones(len(rows), bool), rows, jax.device_put(rows))

    @classmethod
    def none(cls) -> "Arms":
        """Return the empty table of an agent without arms of its own."""
        return cls((), {}, np.zeros(0, bool), np.zeros((0, 0)), None)

    @classmethod
    def in_context(cls, given: Mapping[Hashable, Mapping[str, Any]], rows: np.ndarray) -> "Arms":
        """Return arms whose features are made of their attributes, of which `rows` is the encoding, and a context."""
        names, attributes = tuple(checked_names(given)), tuple(dict(each) for each in given.values())
        return cls(names, places_of(names), np.ones(len(rows), bool), rows, None, attributes)

    def on_device(self) -> "Arms":
        """Return the arms with their features on the device, in the precision that JAX has now."""
        return replace(self, matrix=None if self.attributes else jax.device_put(self.rows))

    def changeable(self) -> "Arms":
        """Return the arms; raise if the agent has no arms of its own, which could be changed."""
        if not self.names:
            raise InvalidArgument(
                "This agent has no arms of its own to change. Make it with arms={name: features} to have some."
            )
        return self

    def with_reused_rows(self) -> "Arms":
        """Return the arms, known to have rows that were given to other arms."""
        return replace(self, reused=True)

    def place(self, name: Hashable) -> int:
        """Return the row of the arm with this name."""
        place = self.places.get(name)
        if place is None:
            raise UnknownName("arm", name, map(str, self.by_name()))
        return place

    def is_on_offer(self, name: Hashable) -> bool:
        """Tell whether an arm is on offer; raise if there is no arm of this name."""
        return name not in self.rowless and bool(self.active[self.place(name)])

    def by_name(self) -> dict[Hashable, bool]:
        """Return all arms by name, and whether each is on offer."""
        with_rows = zip(self.names, self.active.tolist(), strict=False)
        return {name: on for name, on in with_rows if name is not None} | dict.fromkeys(self.rowless, False)

    def added(
        self, name: Hashable, row: np.ndarray, attributes: Mapping[str, Any] | None, vacant: int | None = None
    ) -> "Arms":
        """Return the arms with a new one, or with a retired one that comes back with other features."""
        (name,) = checked_names([name])
        if name not in self.places:
            return self.appended(name, row, attributes, True, vacant)
        if self.is_on_offer(name):
            raise InvalidArgument(f"Arm {name!r} is on offer already. Use update_arm to give it other features.")
        return self.updated(name, row, attributes, vacant, True)

    def updated(
        self,
        name: Hashable,
        row: np.ndarray,
        attributes: Mapping[str, Any] | None,
        vacant: int | None = None,
        on: bool | None = None,
    ) -> "Arms":
        """Return the arms with other features of one of them.

        Attributes are replaced.  A row of features is not replaced, since rewards may belong to it: the arm gets a new
        row, and the old row is never on offer again.

        Args:
            name: The name of the arm.
            row: The new features, or what the new attributes say about them.
            attributes: The new attributes, or None if features are fixed.
            vacant: A row that may be given to the arm.  Default: a new row.
            on: Whether the arm is on offer afterwards.  Default: as before.

        Returns:
            The changed table of arms.
        """
        if name in self.rowless:
            return replace(self, rowless={**self.rowless, name: row})
        place, active = self.place(name), self.active.copy()
        on, active[place] = bool(active[place]) if on is None else on, False
        if attributes is None:
            names = (*self.names[:place], None, *self.names[place + 1 :])
            return replace(self, names=names, active=active).appended(name, row, None, on, vacant)
        rows, active[place] = self.rows.copy(), on
        rows[place] = row
        replaced = (*self.attributes[:place], attributes, *self.attributes[place + 1 :])
        return replace(self, active=active, rows=rows, attributes=replaced)

    def appended(
        self,
        name: Hashable | None,
        row: np.ndarray,
        attributes: Mapping[str, Any] | None,
        on: bool,
        vacant: int | None = None,
    ) -> "Arms":
        """Return the arms with one more, in a vacant row if there is one.

        If there is no room for a new row, there is afterwards for the next power of two.

        Args:
            name: The name of the arm; None for former features of an arm, to which rewards may belong.
            row: The features, or what the attributes say about them.
            attributes: The attributes, or None if features are fixed.
            on: Whether the arm is on offer.
            vacant: A row that may be given to the arm, whose features are fixed.  Default: a new row.

        Returns:
            The changed table of arms.
        """
        if vacant is not None:
            return self.reassigned(vacant, name, row, on)
        place, room = len(self.names), len(self.active)
        room = room if place < room else padded_size(place + 1)
        active, rows = np.zeros(room, bool), np.zeros((room, self.rows.shape[1]), self.rows.dtype)
        active[:place], rows[:place] = self.active[:place], self.rows[:place]
        active[place], rows[place] = on, row
        return Arms(
            (*self.names, name),
            self.places if name is None else {**self.places, name: place},
            active,
            rows,
            jax.device_put(rows) if attributes is None else None,
            self.attributes if attributes is None else (*self.attributes, attributes),
            grown=True,
            rowless={each: own for each, own in self.rowless.items() if each != name},
            reused=self.reused,
        )

    def reassigned(self, place: int, name: Hashable | None, row: np.ndarray, on: bool) -> "Arms":
        """Return the arms with a row of a retired arm given to another one; the features are fixed."""
        names, active, rows = list(self.names), self.active.copy(), self.rows.copy()
        former, names[place], active[place], rows[place] = names[place], name, on, row
        rowless = {each: own for each, own in self.rowless.items() if each != name}
        if former is not None:
            rowless[former] = self.rows[place].copy()
        return replace(
            self,
            names=tuple(names),
            places=places_of(tuple(names)),
            active=active,
            rows=rows,
            matrix=jax.device_put(rows),
            rowless=rowless,
            reused=True,
        )

    def switched(self, name: Hashable, on: bool, vacant: int | None = None) -> "Arms":
        """Return the arms with one of them put on offer, or taken off offer; one without a row gets one."""
        if self.is_on_offer(name) == on:
            state, remedy = (
                ("on offer", "retire_arm takes it off") if on else ("retired", "restore_arm puts it back on")
            )
            raise InvalidArgument(f"Arm {name!r} is {state} already. {remedy} offer.")
        if name in self.rowless:
            return self.appended(name, self.rowless[name], None, on, vacant)
        active = self.active.copy()
        active[self.place(name)] = on
        return replace(self, active=active)

    def offered(self, among: Among) -> np.ndarray | None:
        """Return a mask of the rows that may be pulled now, or None if all may be and there was never room for more."""
        mask = self.mask(among)
        return None if not self.grown and mask.all() else mask

    def mask(self, among: Among) -> np.ndarray:
        """Return a mask of the rows that may be pulled now; raise if no row may be."""
        mask = self.active
        if among is not None:
            if isinstance(among, str):
                raise InvalidArgument(f"among must be a list of names of arms, got {among!r}. Give [{among!r}].")
            mask = np.zeros_like(self.active)
            for name in among:
                if not self.is_on_offer(name):
                    raise InvalidArgument(
                        f"among must name arms on offer, got {name!r}, which is retired. Leave it out, or call "
                        f"restore_arm({name!r})."
                    )
                mask[self.place(name)] = True
        if not mask.any():
            raise InvalidArgument("No arm is on offer. Add one, restore one, or name one in among.")
        return mask

    @cached_property
    def listed(self) -> Listed:
        """All arms on offer now, with fixed features, for one decision."""
        offered = self.offered(None)
        return Listed(self.names, self.rows, self.matrix, None if offered is None else jax.device_put(offered))

    @property
    def listed_once(self) -> Listed | None:
        """The record `listed` if a decision has asked for it, else None."""
        return vars(self).get("listed")

    @cached_property
    def on_offer(self) -> OnOffer:
        """The arms on offer now, if features depend on a context."""
        return self.some(self.mask(None))

    def some(self, mask: np.ndarray) -> OnOffer:
        """Return the arms of some rows, if features depend on a context."""
        rows = np.flatnonzero(mask)
        return OnOffer([self.names[i] for i in rows], self.rows[rows], [self.attributes[i] for i in rows])


def places_of(names: tuple[Hashable | None, ...]) -> dict[Hashable, int]:
    """Return the row of each name."""
    return {name: row for row, name in enumerate(names) if name is not None}
