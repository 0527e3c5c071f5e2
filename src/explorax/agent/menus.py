"""What is on offer in a decision, for each kind of arms that an agent can have.

    Fixed       arms with features of their own, the same in every decision
    Changing    a table of arms with every decision
    InContext   named arms whose features are an encoding of their attributes together with a context

Programs are compiled for shapes.  Where the number of arms varies they are padded to a power of two, and a mask says
which rows are there.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from explorax.agent.arms import Arms, Table, read_table, read_tables
from explorax.agent.encoding import Encoder
from explorax.checks import check_magnitude, check_whole
from explorax.errors import InvalidArgument, InvalidFeatures, UnknownName

LEAST_ROOM = 8  # rows that arms on offer are padded to, at the least

Among = Iterable[Hashable] | None


class Menu(NamedTuple):
    """The arms of one decision."""

    names: Sequence[Any]
    rows: np.ndarray  # (K, d)
    arms: Any  # (K or more, d) as the program takes them
    offered: np.ndarray | None  # which of these may be pulled; None if all


class Menus(NamedTuple):
    """The arms of several decisions."""

    number: int
    arms: Any  # (K, d) if the same for all, else (number, K, d)
    offered: np.ndarray | None
    pick: Callable[[np.ndarray], tuple[list[Any], np.ndarray]]  # indices -> names and features


@dataclass(frozen=True)
class Kind:
    """What all kinds of arms have in common."""

    features: int
    dtype: str
    encoder: Encoder | None
    name: ClassVar[str]
    arms_differ: ClassVar[bool] = True  # from one decision of a batch to the next

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """What is on offer in a decision; `arms` are the agent's own."""
        raise NotImplementedError

    def many(self, arms: Arms, given: Any, among: Among) -> Menus:
        """The same for several decisions."""
        raise NotImplementedError

    def add(self, arms: Arms, name: Hashable, features: Any) -> Arms:
        """The agent's own arms with a new one."""
        raise NotImplementedError


class Fixed(Kind):
    """Arms with features of their own."""

    name = "fixed"
    arms_differ = False

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """All of the agent's arms, and which are on offer."""
        if given is not None:
            raise InvalidArgument("this agent has arms of its own: choose() without arms, or add_arm first")
        return Menu(arms.names, arms.rows, arms.matrix, arms.offered(among))

    def many(self, arms: Arms, given: Any, among: Among) -> Menus:
        """The same, so many times."""
        check_whole("given", given, 1)

        def pick(indices: np.ndarray) -> tuple[list[Any], np.ndarray]:
            return [arms.names[i] for i in indices.tolist()], arms.rows[indices]

        return Menus(int(given), arms.matrix, arms.offered(among), pick)

    def add(self, arms: Arms, name: Hashable, features: Any) -> Arms:
        """With a new arm."""
        row = read_table([features], self.features, self.dtype, self.encoder).rows[0]
        return arms.added(name, row, None)


class Changing(Kind):
    """A table of arms with every decision; the agent has none of its own."""

    name = "changing"

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """The arms of this table."""
        table = self.table(given, among)
        return Menu(*table, *padded(table.rows))

    def many(self, arms: Arms, given: Any, among: Among) -> Menus:
        """Those of each table; an array of equal tables is taken as it is."""
        if among is None and self.encoder is None and getattr(given, "ndim", 0) == 3 and len(given):
            rows = read_tables(given, self.features, self.dtype)
            return Menus(len(rows), rows, None, lambda indices: (indices.tolist(), rows[np.arange(len(rows)), indices]))
        return joined([self.table(each, among) for each in several("tables of arms", given)])

    def table(self, given: Any, among: Among) -> Table:
        """The arms given."""
        if given is None:
            raise InvalidArgument("this agent has no arms of its own: choose(table) with the arms on offer")
        if among is not None:
            raise InvalidArgument("among is for an agent's own arms: give the eligible ones only")
        return read_table(given, self.features, self.dtype, self.encoder)

    def add(self, arms: Arms, name: Hashable, features: Any) -> Arms:
        """There is nothing to add to."""
        raise InvalidArgument("this agent has no arms of its own to change: give those on offer to choose()")


class InContext(Kind):
    """Named arms in a context."""

    name = "context"

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """The arms on offer, in this context."""
        (table,) = self.tables(arms, [given], among)
        return Menu(*table, *padded(table.rows))

    def many(self, arms: Arms, given: Any, among: Among) -> Menus:
        """The same in each of several contexts."""
        return joined(self.tables(arms, several("contexts", given), among))

    def tables(self, arms: Arms, contexts: Sequence[Any], among: Among) -> list[Table]:
        """The arms on offer in each context, encoded together."""
        offered = arms.offered(among)
        places = range(len(arms.names)) if offered is None else np.flatnonzero(offered).tolist()
        names, attributes = [arms.names[i] for i in places], [arms.attributes[i] for i in places]
        for context in contexts:
            self.check_context(arms, context)
        assert self.encoder is not None
        rows = self.encoder.transform([{**context, **own} for context in contexts for own in attributes])
        rows = rows.astype(self.dtype)
        check_magnitude("features of arms in their context", rows)
        return [Table(names, each) for each in rows.reshape(len(contexts), len(names), -1)]

    def check_context(self, arms: Arms, context: Any) -> None:
        """Raise unless a context is a dict of columns that the arms do not have themselves."""
        if not isinstance(context, Mapping):
            raise InvalidArgument(f"context={context!r} must be a dict with a value for each column of the context")
        if both := sorted(set(context) & set(arms.attributes[0])):
            raise InvalidArgument(f"context has {both[0]!r}, which is an attribute of the arms: leave it out")

    def add(self, arms: Arms, name: Hashable, features: Any) -> Arms:
        """With a new arm, which must have the attributes that the others have."""
        if not isinstance(features, Mapping):
            raise InvalidFeatures(f"features={features!r} must be a dict with the attributes of the arm")
        if set(features) != set(arms.attributes[0]):
            wanted = ", ".join(arms.attributes[0])
            raise InvalidArgument(f"arm {name!r} has attributes {sorted(features)} where the others have {wanted}")
        return arms.added(name, np.zeros(0), dict(features))


def kind_of_arms(given: Any, features: int | None, encoder: Encoder | None, dtype: str) -> tuple[Kind, Arms]:
    """The kind of arms that an agent is made with, and the arms of its own."""
    if encoder is not None and not isinstance(encoder, Encoder):
        raise InvalidArgument(f"encoder={encoder!r} is none: Encoder.fit(sample), or Encoder.of(transformer, columns)")
    if encoder is not None and features not in (None, encoder.features):
        raise InvalidArgument(f"features={features} where the encoder makes {encoder.features}: leave it out")
    if given is None:
        if features is None and encoder is None:
            raise InvalidArgument("give arms, or features=d (or an encoder) for arms that differ every time")
        size = encoder.features if encoder is not None else features
        check_whole("features", size, 1)
        return Changing(int(size or 1), dtype, encoder), Arms.none()
    if encoder is not None and is_in_context(given, encoder):
        return InContext(encoder.features, dtype, encoder), Arms.in_context(given)
    table = read_table(given, features, dtype, encoder)
    return Fixed(table.rows.shape[1], dtype, encoder), Arms.of(table)


def is_in_context(given: Any, encoder: Encoder) -> bool:
    """Whether these are arms by name whose attributes are only some of the encoder's columns."""
    if not isinstance(given, Mapping) or not all(isinstance(each, Mapping) for each in given.values()):
        return False
    columns = [set(each) for each in given.values()]
    for each in columns:
        if unknown := sorted(each - set(encoder.columns)):
            raise UnknownName("column", unknown[0], encoder.columns)
        if each != columns[0]:
            raise InvalidArgument(f"arms have different attributes: {sorted(each ^ columns[0])} of some are missing")
    return bool(given) and columns[0] != set(encoder.columns)


def several(what: str, given: Any) -> Sequence[Any]:
    """What was given for several decisions, one after the other."""
    if hasattr(given, "to_dicts"):  # polars
        given = given.to_dicts()
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):  # pandas
        given = given.to_dict("records")
    if isinstance(given, str | Mapping) or not hasattr(given, "__len__") or len(given) == 0:
        raise InvalidArgument(f"given={str(given)[:200]!r} must be a list of {what}, one for each decision")
    return given if isinstance(given, list | tuple) else list(given)


def joined(tables: Sequence[Table]) -> Menus:
    """Tables of several decisions as one array."""
    room = padded_size(max(len(table.rows) for table in tables))
    rows = np.zeros((len(tables), room, tables[0].rows.shape[1]), tables[0].rows.dtype)
    for i, table in enumerate(tables):
        rows[i, : len(table.rows)] = table.rows
    offered = np.stack([there(len(table.rows), room) for table in tables])

    def pick(indices: np.ndarray) -> tuple[list[Any], np.ndarray]:
        names = [table.names[i] for table, i in zip(tables, indices.tolist(), strict=True)]
        return names, rows[np.arange(len(tables)), indices]

    return Menus(len(tables), rows, offered, pick)


def padded(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A matrix with rows of zeros after its own, and which rows are there."""
    count, features = rows.shape
    room = padded_size(count)
    if count < room:
        arms = np.zeros((room, features), rows.dtype)
        arms[:count] = rows
        rows = arms
    return rows, there(count, room)


@lru_cache(maxsize=1024)
def there(count: int, room: int) -> np.ndarray:
    """The first so many of all."""
    return np.arange(room) < count


def padded_size(count: int) -> int:
    """The power of two that so many are padded to."""
    return max(LEAST_ROOM, 1 << (count - 1).bit_length())
