"""Arms in the rows of a table: reading, naming and padding them, and choosing one.

A table of arms is a matrix, a mapping of names to rows, a pandas or polars DataFrame (the index of the former holds the
names), or with an encoder also a list of dicts.  A name is text or a whole number.

Programs are compiled for shapes.  If the number of arms varies, arms are padded to one of a few sizes, and a mask tells
which rows are arms.
"""

import reprlib
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from explorax.agent import compiled
from explorax.agent.encoding import Encoder
from explorax.agent.packing import Packed
from explorax.agent.rule import Rule
from explorax.checks import check_magnitude
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, UnknownName

LEAST_ROOM = 8  # the least number of rows that arms are padded to

Among = Iterable[Hashable] | None
AmongEach = Among | Iterable[Iterable[Hashable]]  # the same for all decisions, or a list for each


# Tables as they are given


class Table(NamedTuple):
    """A table of arms: their names and features."""

    names: Sequence[Any]
    rows: np.ndarray  # (K, d)


def read_table(given: Any, n_features: int | None, dtype: str, encoder: Encoder | None) -> Table:
    """Return the names and the features of arms in any of the forms that users may give; raise for others."""
    names: Sequence[Any] | None = None
    if type(given) is np.ndarray:
        pass  # the quickest to look at
    elif isinstance(given, Mapping):
        names, given = list(given), list(given.values())
    elif hasattr(given, "columns") and hasattr(given, "index"):  # pandas: an index that only counts has no names
        names = None if list(given.index) == list(range(len(given))) else list(given.index)
    rows = as_matrix(given, dtype) if encoder is None else encoder.transform(given).astype(dtype)
    check_magnitude("arms", rows)
    if n_features is not None:
        check_features(rows, n_features)
    return Table(range(len(rows)) if names is None else checked_names(names), rows)


def read_tables(given: Any, n_features: int, dtype: str) -> np.ndarray:
    """Return an array (N, K, d) of the features of K arms in each of N decisions."""
    rows = as_matrix(np.asarray(given).reshape(-1, np.shape(given)[-1]), dtype).reshape(np.shape(given))
    check_magnitude("arms", rows)
    check_features(rows, n_features)
    return rows


def check_features(rows: np.ndarray, n_features: int) -> None:
    """Raise unless each row has as many features as the agent was made for."""
    if rows.shape[-1] != n_features:
        raise InvalidShape(
            f"arms must have {n_features} features, as the agent was made for, got {rows.shape[-1]}. Give one number "
            "for each feature."
        )


def as_matrix(given: Any, dtype: str) -> np.ndarray:
    """Return rows of numbers as a matrix; raise for anything else."""
    if isinstance(given, list | tuple) and any(isinstance(row, Mapping) for row in given):
        raise InvalidFeatures(
            "arms must be rows of numbers for an agent without an encoder, got dicts. Make the agent with "
            "encoder=Encoder.fit(sample)."
        )
    try:
        rows = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
        if rows.dtype.kind not in "fiub":
            raise TypeError
        rows = rows.astype(dtype, copy=False)
    except (TypeError, ValueError):
        raise InvalidFeatures(
            f"arms must be a matrix of numbers, got {reprlib.repr(given)}. Give rows of equal length; rows of text "
            "need an encoder."
        ) from None
    if rows.ndim != 2 or 0 in rows.shape:
        raise InvalidShape(
            f"arms must be a matrix with one row of features for each arm, got shape {rows.shape}. Give at least one "
            "arm and one feature."
        )
    return rows


def checked_names(names: Iterable[Any]) -> list[Any]:
    """Return the names of arms as text and whole numbers; raise if one cannot be used, or is given twice."""
    plain = [int(name) if isinstance(name, np.integer) else name for name in names]
    for name in plain:
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            raise InvalidArgument(
                f"The name of an arm must be text, and not empty, or a whole number, got {reprlib.repr(name)}. Rename "
                "the arm."
            )
    if len(set(plain)) < len(plain):
        twice = next(name for name in plain if plain.count(name) > 1)
        raise InvalidArgument(f"The names of arms must differ, got {twice!r} twice. Rename one of these arms.")
    return plain


def several(what: str, given: Any) -> Sequence[Any]:
    """Return what was given for several decisions as a list with one item for each."""
    if hasattr(given, "to_dicts"):  # polars
        given = given.to_dicts()
    elif hasattr(given, "to_dict") and hasattr(given, "columns"):  # pandas
        given = given.to_dict("records")
    if isinstance(given, str | Mapping) or not hasattr(given, "__len__") or len(given) == 0:
        raise InvalidArgument(
            f"given must be a list of {what}, one for each decision, got {reprlib.repr(given)}. Use choose() for a "
            "single decision."
        )
    return given if isinstance(given, list | tuple) else list(given)


def read_among(among: AmongEach, number: int) -> tuple[Among, list[Any] | None]:
    """Return the names that may be chosen in all decisions and None, or None and a list of names for each decision."""
    if among is None or isinstance(among, str):
        return among, None
    among = list(among)
    if not among or any(isinstance(each, str) or not isinstance(each, Iterable) for each in among):
        return among, None
    if len(among) != number:
        raise InvalidShape(
            f"among must have one list of names for each of {number} decisions, got {len(among)} lists. "
            "Give a single list of names if it is the same for all of them."
        )
    return None, among


def as_dict(given: Any) -> Any:
    """Return a row of a pandas DataFrame as a dict, and anything else unchanged."""
    return given.to_dict() if hasattr(given, "to_dict") and getattr(given, "ndim", 0) == 1 else given


# Choosing


class Pick(NamedTuple):
    """The choice of a decision, or of several decisions column by column."""

    arm: Any  # the name; the point itself, in an infinite set
    row: Any
    features: np.ndarray
    forced: Any
    converged: Any
    count: Any  # how often the policy chose it, in the decision and its repetitions; None if it has no probability
    exact: Any  # P(arm) if there is a formula, else the count
    every: "Every | None" = None  # the same of every arm, if that was asked for
    pooled: int = 1  # the number of decisions that were counted together


class Every(NamedTuple):
    """How often the policy chose each arm in a decision, or P(arm), for several decisions, some of which are alike."""

    found: np.ndarray  # (m, K)
    which: np.ndarray  # (n,) the row of `found` that belongs to each decision


def in_columns(picks: Sequence[Pick]) -> Pick:
    """Return the choices of several decisions column by column."""
    rows, features, forced, converged = (
        np.array([getattr(pick, name) for pick in picks]) for name in ("row", "features", "forced", "converged")
    )
    return Pick([pick.arm for pick in picks], rows, features, forced, converged, None, None)


class Listed(NamedTuple):
    """An offer of arms in the rows of a table."""

    names: Sequence[Any]
    rows: np.ndarray  # (K, d)
    arms: Any  # (K or more, d) as the program takes them
    offered: Any  # which of these may be pulled, a mask; None if all

    @property
    def choices(self) -> int:
        """The number of arms that may be pulled."""
        return len(self.arms) if self.offered is None else int(np.count_nonzero(self.offered))

    def decide(self, rule: Rule, keys: Array, packed: Packed, t: int) -> Pick:
        """Make decision t by a rule."""
        program = compiled.decision(rule, packed.packing, self.arms.shape, self.offered is None)
        numbers, known = program(keys, packed.arrays, self.arms, t, self.offered)
        return self.picked(rule, np.asarray(numbers).tolist(), known)

    def picked(self, rule: Rule, whole: list[int], known: Any) -> Pick:
        """Return the choice of a decision, from what `rule.decide` returned."""
        features = self.rows[whole[0]].copy()  # what was given may change hands
        return picked(rule, whole, known, self.names, features)

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Return the names and the rows of the arms that may be pulled."""
        return named_rows(self.names, self.offered)

    def table(self, i: int) -> np.ndarray:
        """Return (K, d) the features of all arms."""
        return self.rows

    def as_played(self) -> tuple[Any, Any]:
        """Return (K or more, d) the features and the mask of the arms, as the policy is given them."""
        return self.arms, self.offered

    def without(self, names: Collection[Any]) -> "Listed":
        """Return the offer without some of its arms."""
        offered, rows = self.on_offer(0)
        mask = np.zeros(len(self.arms), bool)
        mask[rows] = kept_among(offered, names)
        return self._replace(offered=jax.device_put(mask))


def kept_among(offered: Sequence[Any], names: Collection[Any]) -> np.ndarray:
    """Return a mask of the arms on offer that are not left out; raise for names that are not on offer."""
    if isinstance(names, str) or not isinstance(names, Collection):
        raise InvalidArgument(f"exclude must be a list of names of arms, got {names!r}. Give [{names!r}].")
    for name in names:
        if name not in offered:
            raise UnknownName("exclude", name, map(str, offered))
    keep = np.array([name not in names for name in offered])
    if not keep.any():
        raise InvalidArgument(f"exclude must leave an arm on offer, got all {len(keep)} of them. Leave out fewer.")
    return keep


def picked(rule: Rule, whole: list[int], known: Any, names: Sequence[Any], features: np.ndarray) -> Pick:
    """Return the choice of one decision, from what `rule.decide` returned, the names of rows, and its features."""
    row, forced, converged, count, _ = whole
    told = names[row], row, features, bool(forced), bool(converged), count
    if not rule.vector:
        return Pick(*told, count if known is None else known)
    stated = np.asarray(known, float)
    return Pick(*told, stated[row], Every(stated[None], np.zeros(1, int)))


class ListedEach(NamedTuple):
    """Offers of arms for several decisions, in the rows of one table or of a table for each decision."""

    number: int
    arms: Any  # (K, d) if the same for all, else (number, K, d)
    offered: np.ndarray | None  # (K,) if the same for all, else (number, K)
    pick: Callable[[np.ndarray], tuple[list[Any], np.ndarray]]  # rows -> names and features
    naming: Callable[[int], Sequence[Any]]  # decision -> names of the rows

    @property
    def choices(self) -> Any:
        """The number of arms that may be pulled in each decision; a single number if it is the same in all."""
        return self.arms.shape[-2] if self.offered is None else np.count_nonzero(self.offered, axis=-1)

    def decide(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make as many decisions as there are offers, the first of them with the number `first`."""
        offered = self.offered
        if rule.draws and rule.stationary and self.arms.ndim == 2 and (offered is None or offered.ndim == 1):
            return self.decide_alike(rule, keys, packed, first)
        whole, known = self.played(rule, keys, packed, first)
        rows, forced, converged, count, _ = whole.T
        names, features = self.pick(rows)
        found, every = count if known is None else known, None
        if rule.vector:
            decisions = np.arange(self.number)
            every, found = Every(found, decisions), found[decisions, rows]
        return Pick(names, rows, features, forced.astype(bool), converged.astype(bool), count, found, every)

    def decide_alike(self, rule: Rule, keys: Array, packed: Packed, first: int) -> Pick:
        """Make decisions that have one law, and count them together with the repetitions of the last of them."""
        whole, _ = self.played(rule.changed(draws=0, vector=False), keys, packed, first)
        rows, forced, converged, is_own, own = whole.T
        forced = forced.astype(bool)
        program = compiled.repetitions(rule, packed.packing, self.arms.shape, self.offered is None)
        repeated = np.asarray(program(keys, packed.arrays, self.arms, first + self.number - 1, self.offered))
        pool = repeated + np.bincount(own[~forced], minlength=len(repeated))
        total = int(pool.sum())
        count = np.where(forced, total * is_own, pool[rows])  # a forced arm is certain
        every = None
        if rule.vector:
            certain = total * (np.arange(len(pool)) == own[forced][:, None])
            every = Every(np.vstack([pool, certain]), np.where(forced, np.cumsum(forced), 0))
        names, features = self.pick(rows)
        return Pick(
            names, rows, features, forced, converged.astype(bool), count, count, every, pooled=total - rule.draws
        )

    def on_offer(self, i: int) -> tuple[list[Any], np.ndarray]:
        """Return the names and the rows of the arms that may be pulled in decision i."""
        offered = self.offered
        return named_rows(self.naming(i), offered if offered is None or offered.ndim == 1 else offered[i])

    def table(self, i: int) -> np.ndarray:
        """Return (K, d) the features of all arms in decision i."""
        return np.asarray(self.arms if self.arms.ndim == 2 else self.arms[i])

    def played(self, rule: Rule, keys: Array, packed: Packed, first: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return what `rule.decide` returns for each decision, computed in batches."""
        arms, offered = self.arms, self.offered
        each_arms, each_offered = arms.ndim == 3, offered is not None and offered.ndim == 2
        found = []
        for start, room, piece in compiled.pieces(self.number):
            some = arms[piece] if each_arms else arms
            which = offered[piece] if offered is not None and each_offered else offered
            shape = None if which is None else which.shape
            program = compiled.decisions(rule, packed.packing, some.shape, shape, room)
            times = np.arange(first + start, first + start + room)
            found.append(program(keys, packed.arrays, some, times, which))
        whole, known = (
            None if column[0] is None else np.concatenate([np.asarray(each) for each in column])[: self.number]
            for column in zip(*found, strict=True)
        )
        assert whole is not None
        return whole, known


def listed_alike(names: Sequence[Any], tables: np.ndarray) -> ListedEach:
    """Return the offers of an array (number, K, d): arms of the same names, with other features in each decision."""
    every = np.arange(len(tables))

    def pick(rows: np.ndarray) -> tuple[list[Any], np.ndarray]:
        return [names[row] for row in rows.tolist()], tables[every, rows]

    return ListedEach(len(tables), *padded(tables), pick, lambda i: names)


def named_rows(names: Sequence[Any], offered: np.ndarray | None) -> tuple[list[Any], np.ndarray]:
    """Return the names and the rows of the arms of a table that may be pulled; all if `offered` is None."""
    rows = np.arange(len(names)) if offered is None else np.flatnonzero(offered)
    return [names[row] for row in rows.tolist()], rows


def joined(tables: Sequence[Table]) -> ListedEach:
    """Return the offers of several tables, padded to the same size and joined to one array."""
    room = padded_size(max(len(table.rows) for table in tables))
    rows = np.zeros((len(tables), room, tables[0].rows.shape[1]), tables[0].rows.dtype)
    for i, table in enumerate(tables):
        rows[i, : len(table.rows)] = table.rows
    offered = np.stack([there(len(table.rows), room) for table in tables])

    def pick(chosen: np.ndarray) -> tuple[list[Any], np.ndarray]:
        names = [table.names[row] for table, row in zip(tables, chosen.tolist(), strict=True)]
        return names, rows[np.arange(len(tables)), chosen]

    return ListedEach(len(tables), rows, offered, pick, lambda i: tables[i].names)


def padded(rows: np.ndarray) -> tuple[np.ndarray, Any]:
    """Return tables (…, K, d) padded with rows of zeros, and a mask (…, K) of the rows that are arms."""
    *several_tables, count, features = rows.shape
    room = padded_size(count)
    if count < room:
        arms = np.zeros((*several_tables, room, features), rows.dtype)
        arms[..., :count, :] = rows
        rows = arms
    mask = there(count, room)
    if not several_tables:
        return rows, on_device(count, room)
    return rows, np.broadcast_to(mask, (*several_tables, room))


@lru_cache(maxsize=1024)
def there(count: int, room: int) -> np.ndarray:
    """Return a mask of length `room` whose first `count` entries are true."""
    return np.arange(room) < count


@lru_cache(maxsize=1024)
def on_device(count: int, room: int) -> Array:
    """Return the mask of `there` as an array of JAX, which a compiled program takes without a copy."""
    return jax.device_put(there(count, room))


@lru_cache(maxsize=1024)
def padded_size(count: int) -> int:
    """Return the size that `count` arms are padded to: a power of two."""
    return max(LEAST_ROOM, 1 << (count - 1).bit_length())
