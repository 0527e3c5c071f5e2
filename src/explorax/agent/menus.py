"""What is on offer in a decision, for each kind of arms that an agent can have.

    Fixed       arms with features of their own, the same in every decision
    Changing    a table of arms with every decision
    InContext   named arms whose features are an encoding of their attributes together with a context

Programs are compiled for shapes.  Where the number of arms varies they are padded to one of a few sizes, and a mask
says which rows are there.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from explorax.agent.arms import Arms, Table, read_table, read_tables
from explorax.agent.encoding import Encoder
from explorax.checks import check_magnitude, check_whole
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName

LEAST_ROOM = 8  # rows that arms on offer are padded to, at the least

Among = Iterable[Hashable] | None
AmongEach = Among | Iterable[Iterable[Hashable]]  # the same for all decisions, or a list for each


class Menu(NamedTuple):
    """The arms of one decision."""

    names: Sequence[Any]
    rows: np.ndarray  # (K, d)
    arms: Any  # (K or more, d) as the program takes them
    offered: np.ndarray | None  # which of these may be pulled; None if all

    @property
    def choices(self) -> int:
        """How many may be pulled."""
        return len(self.arms) if self.offered is None else int(np.count_nonzero(self.offered))


class Menus(NamedTuple):
    """The arms of several decisions."""

    number: int
    arms: Any  # (K, d) if the same for all, else (number, K, d)
    offered: np.ndarray | None  # (K,) if the same for all, else (number, K)
    pick: Callable[[np.ndarray], tuple[list[Any], np.ndarray]]  # indices -> names and features

    @property
    def choices(self) -> Any:
        """How many may be pulled; one number if the same for all."""
        return self.arms.shape[-2] if self.offered is None else np.count_nonzero(self.offered, axis=-1)


@dataclass(frozen=True)
class Kind:
    """What all kinds of arms have in common."""

    features: int
    dtype: str
    encoder: Encoder | None
    name: ClassVar[str]

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """What is on offer in a decision; `arms` are the agent's own."""
        raise NotImplementedError

    def many(self, arms: Arms, given: Any, among: AmongEach) -> Menus:
        """The same for several decisions."""
        raise NotImplementedError

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """The row of features of one of the agent's own arms, or its attributes where rows depend on a context."""
        raise InvalidArgument("this agent has no arms of its own to change: give those on offer to choose()")


class Fixed(Kind):
    """Arms with features of their own."""

    name = "fixed"

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """All of the agent's arms, and which are on offer."""
        if given is not None:
            raise InvalidArgument("this agent has arms of its own: choose() without arms, or add_arm first")
        return Menu(arms.names, arms.rows, arms.matrix, arms.offered(among))

    def many(self, arms: Arms, given: Any, among: AmongEach) -> Menus:
        """The same, so many times."""
        check_whole("given", given, 1)
        among, own = read_among(among, int(given))
        offered = arms.offered(among) if own is None else np.stack([arms.mask(each) for each in own])

        def pick(indices: np.ndarray) -> tuple[list[Any], np.ndarray]:
            return [arms.names[i] for i in indices.tolist()], arms.rows[indices]

        return Menus(int(given), arms.matrix, offered, pick)

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """A row."""
        features = features if self.encoder is None else as_dict(features)
        return read_table([features], self.features, self.dtype, self.encoder).rows[0], None


class Changing(Kind):
    """A table of arms with every decision; the agent has none of its own."""

    name = "changing"

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """The arms of this table."""
        table = self.table(given, among)
        return Menu(*table, *padded(table.rows))

    def many(self, arms: Arms, given: Any, among: AmongEach) -> Menus:
        """Those of each table; an array of equal tables is taken as it is, where no rows must be added."""
        if among is None and self.encoder is None and getattr(given, "ndim", 0) == 3 and len(given):
            rows = read_tables(given, self.features, self.dtype)
            taken, offered = (rows, None) if rows.shape[1] == padded_size(rows.shape[1]) else padded(rows)
            return Menus(
                len(rows), taken, offered, lambda indices: (indices.tolist(), rows[np.arange(len(rows)), indices])
            )
        return joined([self.table(each, among) for each in several("tables of arms", given)])

    def table(self, given: Any, among: AmongEach) -> Table:
        """The arms given."""
        if given is None:
            raise InvalidArgument("this agent has no arms of its own: choose(table) with the arms on offer")
        if among is not None:
            raise InvalidArgument("among is for an agent's own arms: give the eligible ones only")
        return read_table(given, self.features, self.dtype, self.encoder)


class InContext(Kind):
    """Named arms in a context."""

    name = "context"

    def one(self, arms: Arms, given: Any, among: Among) -> Menu:
        """The arms on offer, in this context."""
        (table,) = self.tables(arms, [given], [arms.mask(among)])
        return Menu(*table, *padded(table.rows))

    def many(self, arms: Arms, given: Any, among: AmongEach) -> Menus:
        """The same in each of several contexts."""
        contexts = several("contexts", given)
        among, own = read_among(among, len(contexts))
        masks = [arms.mask(among)] * len(contexts) if own is None else [arms.mask(each) for each in own]
        return joined(self.tables(arms, contexts, masks))

    def tables(self, arms: Arms, contexts: Sequence[Any], masks: Sequence[np.ndarray]) -> list[Table]:
        """The arms on offer in each context, encoded together."""
        contexts = [self.read_context(arms, context) for context in contexts]
        places = [np.flatnonzero(mask).tolist() for mask in masks]
        assert self.encoder is not None
        whole = [{**context, **arms.attributes[i]} for context, own in zip(contexts, places, strict=True) for i in own]
        encoded = self.encoder.transform(whole).astype(self.dtype)
        check_magnitude("features of arms in their context", encoded)
        rows = np.split(encoded, np.cumsum([len(own) for own in places])[:-1])
        return [Table([arms.names[i] for i in own], each) for own, each in zip(places, rows, strict=True)]

    def read_context(self, arms: Arms, context: Any) -> Mapping[str, Any]:
        """A context as a dict of columns that the arms do not have themselves."""
        context = as_dict(context)
        if not isinstance(context, Mapping):
            raise InvalidArgument(f"context={context!r} must be a dict with a value for each column of the context")
        if both := sorted(set(context) & set(arms.attributes[0])):
            raise InvalidArgument(f"context has {both[0]!r}, which is an attribute of the arms: leave it out")
        return context

    def read(self, arms: Arms, name: Hashable, features: Any) -> tuple[np.ndarray, dict[str, Any] | None]:
        """Attributes, which must be those that the other arms have."""
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
        attributes = {name: encoder.checked(f"arm {name!r}", each) for name, each in given.items()}
        return InContext(encoder.features, dtype, encoder), Arms.in_context(attributes)
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
    """Read what was given for several decisions, one after the other."""
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
    """(…, K, d) rows with rows of zeros after them, and (…, K) which rows are there."""
    *several_tables, count, features = rows.shape
    room = padded_size(count)
    if count < room:
        arms = np.zeros((*several_tables, room, features), rows.dtype)
        arms[..., :count, :] = rows
        rows = arms
    mask = there(count, room)
    return rows, np.broadcast_to(mask, (*several_tables, room)) if several_tables else mask


@lru_cache(maxsize=1024)
def there(count: int, room: int) -> np.ndarray:
    """The first so many of all."""
    return np.arange(room) < count


@lru_cache(maxsize=1024)
def padded_size(count: int) -> int:
    """The size that so many arms are padded to: a power of two, or 1, 2 or 5 times a power of ten."""
    unit = 10 ** (len(str(count)) - 1)
    round_number = next(unit * step for step in (1, 2, 5, 10) if unit * step >= count)
    return max(LEAST_ROOM, min(1 << (count - 1).bit_length(), round_number))


def read_among(among: AmongEach, number: int) -> tuple[Among, list[Any] | None]:
    """The names that are eligible in all of so many decisions; or those of each, where it has a list of its own."""
    if among is None or isinstance(among, str):
        return among, None
    among = list(among)
    if not among or any(isinstance(each, str) or not isinstance(each, Iterable) for each in among):
        return among, None
    if len(among) != number:
        raise InvalidShape(
            f"among must have one list of names for each of {number} decisions, got {len(among)} lists. "
            "Give a single list of names for what is the same in all of them."
        )
    return None, among


def as_dict(given: Any) -> Any:
    """A row of a pandas DataFrame as a dict; anything else as it is."""
    return given.to_dict() if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1 else given
