"""The arms of an agent: how they are given, named, added, retired and returned.

A table of arms is a matrix, a mapping of names to rows, a pandas or polars DataFrame (the index of the former holds the
names), or with an encoder also a list of dicts.  A name is text or a whole number.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.agent.encoding import Encoder
from explorax.checks import check_magnitude
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName

LEAST_ROOM = 8  # rows that are added at a time, at the least


class Table(NamedTuple):
    """Arms on offer."""

    names: Sequence[Any]
    rows: np.ndarray  # (K, d)


def read_table(given: Any, features: int | None, dtype: str, encoder: Encoder | None) -> Table:
    """The names and the features of arms, however they are given; raises for what cannot be used."""
    names: Sequence[Any] | None = None
    if type(given) is np.ndarray:
        pass  # the quickest to look at
    elif isinstance(given, Mapping):
        names, given = list(given), list(given.values())
    elif hasattr(given, "columns") and hasattr(given, "index"):  # pandas: an index that only counts has no names
        names = None if list(given.index) == list(range(len(given))) else list(given.index)
    rows = as_matrix(given, dtype) if encoder is None else encoder.transform(given).astype(dtype)
    check_magnitude("arms", rows)
    if features not in (None, rows.shape[1]):
        raise InvalidShape(f"arms have {rows.shape[1]} features where the agent was made for {features}")
    return Table(range(len(rows)) if names is None else checked_names(names), rows)


def read_tables(given: Any, features: int, dtype: str) -> np.ndarray:
    """An array (N, K, d) of the features of arms in N decisions."""
    rows = as_matrix(np.asarray(given).reshape(-1, np.shape(given)[-1]), dtype).reshape(np.shape(given))
    check_magnitude("arms", rows)
    if rows.shape[-1] != features:
        raise InvalidShape(f"arms have {rows.shape[-1]} features where the agent was made for {features}")
    return rows


def as_matrix(given: Any, dtype: str) -> np.ndarray:
    """Rows of numbers as a matrix."""
    if isinstance(given, list | tuple) and any(isinstance(row, Mapping) for row in given):
        raise InvalidFeatures("arms are given as dicts: make the agent with an encoder, Encoder.fit(sample)")
    try:
        rows = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
        if rows.dtype.kind not in "fiub":
            raise TypeError
        rows = rows.astype(dtype, copy=False)
    except (TypeError, ValueError):
        raise InvalidFeatures(
            f"arms cannot be read as a matrix of numbers: {str(given)[:200]}; rows of text need an encoder"
        ) from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidShape(f"arms have shape {rows.shape}: give a matrix with one row of features for each arm")
    return rows


def checked_names(names: Iterable[Any]) -> list[Any]:
    """The names, unless one cannot be used."""
    plain = [int(name) if isinstance(name, np.integer) else name for name in names]
    for name in plain:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise InvalidArgument(f"arm name {name!r} must be text or a whole number, and not empty")
    if len(set(plain)) < len(plain):
        twice = next(name for name in plain if plain.count(name) > 1)
        raise InvalidArgument(f"arm name {twice!r} is given twice: names must differ")
    return plain


class Arms(NamedTuple):
    """Arms with names, in rows that stay theirs; never changed, only replaced."""

    names: tuple[Hashable | None, ...]  # None: a row with the former features of an arm that was updated
    active: np.ndarray  # (S,) bool: on offer now; rows beyond the names are room for more
    rows: np.ndarray  # (S, d); without columns where rows depend on a context
    matrix: Array  # the same on the device
    attributes: tuple[Mapping[str, Any], ...] = ()  # of each arm, where rows depend on a context

    @classmethod
    def of(cls, table: Table) -> "Arms":
        """Arms whose features are fixed."""
        names, active = tuple(checked_names(table.names)), np.ones(len(table.rows), bool)
        rows = table.rows.copy()  # what was given may change
        return cls(names, active, rows, jnp.asarray(rows))

    @classmethod
    def none(cls) -> "Arms":
        """Those of an agent that has none of its own."""
        return cls((), np.zeros(0, bool), np.zeros((0, 0)), jnp.zeros((0, 0)))

    @classmethod
    def in_context(cls, given: Mapping[Hashable, Mapping[str, Any]]) -> "Arms":
        """Arms whose features are made of their attributes and a context."""
        rows = np.zeros((len(given), 0))
        return cls.of(Table(list(given), rows))._replace(attributes=tuple(dict(each) for each in given.values()))

    def place(self, name: Hashable) -> int:
        """The row of a name."""
        if name is None or name not in self.names:
            raise UnknownName("arm", name, (str(each) for each in self.names if each is not None))
        return self.names.index(name)

    def added(self, name: Hashable, row: np.ndarray, attributes: Mapping[str, Any] | None) -> "Arms":
        """With one arm more, or with a retired one that comes back with other features."""
        checked_names([name])
        if name not in self.names:
            return self.appended(name, row, attributes)
        if self.active[self.place(name)]:
            raise InvalidArgument(f"arm {name!r} is on offer already: update_arm gives it other features")
        return self.updated(name, row, attributes).switched(name, True)

    def updated(self, name: Hashable, row: np.ndarray, attributes: Mapping[str, Any] | None) -> "Arms":
        """With other features of an arm.

        Attributes are replaced.  A row is not, since rewards may belong to it: the arm gets a new one, and the old one
        is never on offer again.
        """
        place = self.place(name)
        if attributes is not None:
            return self._replace(attributes=(*self.attributes[:place], attributes, *self.attributes[place + 1 :]))
        without = self._replace(names=(*self.names[:place], None, *self.names[place + 1 :]))
        if not self.active[place]:
            return without.appended(name, row, None).switched(name, False)
        active = self.active.copy()
        active[place] = False
        return without._replace(active=active).appended(name, row, None)

    def appended(self, name: Hashable, row: np.ndarray, attributes: Mapping[str, Any] | None) -> "Arms":
        """With a row more; room is doubled when there is none left."""
        place, room = len(self.names), len(self.active)
        active, rows = self.active, self.rows
        if place == room:
            more = max(room, LEAST_ROOM)
            active = np.concatenate([active, np.zeros(more, bool)])
            rows = np.concatenate([rows, np.zeros((more, rows.shape[1]), rows.dtype)])
        active, rows = active.copy(), rows.copy()
        active[place] = True
        rows[place] = row
        more_attributes = () if attributes is None else (attributes,)
        return Arms((*self.names, name), active, rows, jnp.asarray(rows), self.attributes + more_attributes)

    def switched(self, name: Hashable, on: bool) -> "Arms":
        """With this arm on offer, or not."""
        place = self.place(name)
        if self.active[place] == on:
            state = "on offer already" if on else "retired already"
            raise InvalidArgument(f"arm {name!r} is {state}")
        active = self.active.copy()
        active[place] = on
        return self._replace(active=active)

    def offered(self, among: Iterable[Hashable] | None) -> np.ndarray | None:
        """Which rows may be pulled now; None if all."""
        mask = self.mask(among)
        return None if np.count_nonzero(mask) == len(mask) else mask

    def mask(self, among: Iterable[Hashable] | None) -> np.ndarray:
        """Which rows may be pulled now."""
        mask = self.active
        if among is not None:
            if isinstance(among, str):
                raise InvalidArgument(f"among={among!r} must be a list of names of arms")
            mask = np.zeros_like(self.active)
            for name in among:
                place = self.place(name)
                if not self.active[place]:
                    raise InvalidArgument(f"arm {name!r} of among is retired: leave it out, or return_arm({name!r})")
                mask[place] = True
        if not mask.any():
            raise InvalidArgument("no arm is on offer: add one, return one, or name one in among")
        return mask
