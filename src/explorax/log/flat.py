"""The log of an agent as a flat table: one row for each decision, also for those without a reward.

    id, time, version                 of the decision; the version tells what its state had learned
    arm                               its name, or its place if it has no name; missing for a point of an infinite set
    propensity, stderr                missing if the arm has no probability
    reward, reward_time, by_default   missing if there is no reward
    forced, converged, deferred       as the agent told them
    status                            what became of the decision (`statuses.py`)
    on_offer                          the arms on offer, as JSON; missing for an infinite set
    all_propensities                  their probabilities, as JSON, in the same order; missing if nobody asked for them
    context_…                         a column for each column of the context
    feature_0, feature_1, …           the features of the arm that was chosen

Floats are written with all their digits.  The features of the other arms are not in the table: with `explorax log
export` a copy of the log itself (`.db`) has them.
"""

import contextlib
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorax.agent.archive import checked_path
from explorax.errors import UnknownName
from explorax.extras import optional
from explorax.log.statuses import STATUS, Statuses, opened, read_as_log
from explorax.log.versions import Began, Versions, began

PURPOSE = "a table of a log"
PACKAGES = ("pandas", "polars", "pyarrow")
COLUMNS = f"""
d.id, d.time, d.version, d.arm, d.propensity, d.stderr, r.reward, r.time, r.by_default, d.forced, d.converged,
d.deferred, {STATUS}, d.names, d.every, d.context, d.features, length(d.arms)
"""
NUMBERS = {bool: "bool", int: "number", float: "number", str: "text"}
CONTEXT, FEATURE = "context_", "feature_"  # what the names of columns begin with


def log_table(path: str | os.PathLike[str], *, package: str = "pandas") -> Any:
    """Return the log of an agent as a table, one row for each decision, also for those without a reward.

    The columns are id, time, version, arm, propensity, stderr, reward, reward_time, by_default, forced, converged,
    deferred, status, on_offer (the arms on offer, as JSON), all_propensities (as JSON), one for each column of the
    context, and one for each feature of the arm that was chosen.

    Args:
        path: The file that an agent logs to, which may go on with it meanwhile.
        package: The package whose table is wanted: "pandas", "polars" or "pyarrow".  Default: "pandas".

    Returns:
        The table: a DataFrame of pandas or polars, or a Table of pyarrow.

    Raises:
        InvalidLog: If the file is not a log, is truncated or damaged, or has a newer format.
        UnknownName: If `package` is something else.
        ImportError: If pyarrow, or the package that is asked for, is not installed.

    Example:
        >>> import explorax, os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "decisions.db")
        ...     agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0], "blue": [0.5]}, log=path)
        ...     agent.learn(agent.choose(among=["red"]).id, 1.0)
        ...     table = explorax.log_table(path)
        ...     agent.close()
        >>> table[["arm", "reward", "status", "on_offer"]].values.tolist()
        [['red', 1.0, 'known', '["red"]']]
    """
    if package not in PACKAGES:
        raise UnknownName("package", package, PACKAGES)
    arrow, wanted = optional("pyarrow", PURPOSE), optional(package, PURPOSE, "dev")
    with rows_of(checked_path(path)) as table:
        found = arrow.Table.from_batches(list(table.batches), table.schema)
    if package == "polars":
        return wanted.from_arrow(found)
    return found.to_pandas() if package == "pandas" else found


class FlatTable(NamedTuple):
    """A flat table of a log, which is read while it is used."""

    schema: Any  # of pyarrow
    batches: Iterator[Any]  # of pyarrow
    size: int  # the number of rows


@contextlib.contextmanager
def rows_of(path: Path) -> Iterator[FlatTable]:
    """Open the flat table of a log."""
    arrow = optional("pyarrow", PURPOSE)
    with opened(path) as connection, read_as_log(path):
        start = began(connection, path)
        statuses = Statuses(connection, start.window)
        offers = Offers(start, Versions.of(connection, start))
        types = [name for (name,) in connection.execute("SELECT DISTINCT typeof(arm) FROM decisions")]
        contexts = context_kinds(statuses)
        named = {"number": arrow.float64(), "bool": arrow.bool_(), "text": arrow.string(), "json": arrow.string()}
        whole, real, yes = arrow.int64(), arrow.float64(), arrow.bool_()
        fields = {"id": whole, "time": real, "version": whole}
        fields |= {"arm": whole if types == ["integer"] else arrow.string(), "propensity": real, "stderr": real}
        fields |= {"reward": real, "reward_time": real, "by_default": yes, "forced": yes, "converged": yes}
        fields |= {"deferred": yes, "status": arrow.string(), "on_offer": arrow.string()}
        fields |= {"all_propensities": arrow.string()} | {
            CONTEXT + name: named[kind] for name, kind in contexts.items()
        }
        dtype = arrow.from_numpy_dtype(np.dtype(start.source.dtype))
        fields |= {f"{FEATURE}{i}": dtype for i in range(start.source.n_features)}
        schema = arrow.schema(list(fields.items()))
        (count,) = connection.execute("SELECT count(*) FROM decisions").fetchone()

        def batches() -> Iterator[Any]:
            for rows in statuses.rows(COLUMNS):
                columns = as_columns(rows, offers, contexts, fields["arm"] == whole, start.source.dtype)
                arrays = [arrow.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
                yield arrow.record_batch(arrays, schema=schema)

        yield FlatTable(schema, batches(), count)


def as_columns(
    rows: list[tuple[Any, ...]], offers: "Offers", contexts: dict[str, str], whole: bool, dtype: str
) -> list[Any]:
    """Return some decisions as the columns of a flat table."""
    (*plain, status, names, every, context, features, size) = map(list, zip(*rows, strict=True))
    plain[3] = plain[3] if whole else [None if arm is None else str(arm) for arm in plain[3]]
    plain[8:12] = [[None if value is None else bool(value) for value in column] for column in plain[8:12]]
    on_offer = [offers.listed(*each) for each in zip(names, plain[2], size, strict=True)]
    chances = [
        None if each is None or not offers.ordered(shown, version) else json.dumps(np.frombuffer(each).tolist())
        for each, shown, version in zip(every, names, plain[2], strict=True)
    ]
    told = [json.loads(each or "{}") for each in context]
    values = [[as_kind(kind, each.get(name)) for each in told] for name, kind in contexts.items()]
    matrix = np.frombuffer(b"".join(features), dtype).reshape(len(rows), -1)
    return [*plain, status, on_offer, chances, *values, *matrix.T]


def as_kind(kind: str, value: Any) -> Any:
    """Return a value of a context as a column of this kind has it."""
    if kind == "json":
        return json.dumps(value)
    return float(value) if kind == "number" and value is not None else value


def context_kinds(statuses: Statuses) -> dict[str, str]:
    """Return the columns of all contexts, and whether each holds numbers, text, bools, or several of them as JSON."""
    found: dict[str, set[str]] = {}
    for rows in statuses.rows("d.context", "d.context IS NOT NULL"):
        for (text,) in rows:
            for name, value in json.loads(text).items():
                kinds = found.setdefault(name, set())
                if value is not None:
                    kinds.add(NUMBERS.get(type(value), "json"))
    return {name: kinds.pop() if len(kinds) == 1 else "json" for name, kinds in found.items()}


class Offers:
    """The names of the arms on offer in the decisions of a log, as JSON."""

    def __init__(self, start: Began, known: Versions) -> None:
        self.own, self.size = start.source.named, start.source.n_features * np.dtype(start.source.dtype).itemsize
        self.known, self.texts = known, functools.lru_cache(1000)(self.text)

    def listed(self, names: str | None, version: int, size: int | None) -> str | None:
        """Return the names of the arms on offer in a decision.

        Args:
            names: What the log says of them.
            version: The version that the decision was made by.
            size: The length of the table that was given with the decision.

        Returns:
            The names as JSON, or None for an infinite set.
        """
        if names is not None:
            return names
        if self.own:
            return self.texts(
                self.known.on_offer[np.searchsorted(self.known.switches, version, side="right")].tobytes()
            )
        return None if size is None else json.dumps(list(range(size // self.size)))

    def ordered(self, names: str | None, version: int) -> bool:
        """Tell whether it is known in which order a decision has the arms on offer."""
        return names is not None or version < self.known.sure_below

    def text(self, mask: bytes) -> str:
        """Return the names of the agent's own arms in a mask."""
        pairs = zip(self.known.names, np.frombuffer(mask, bool).tolist(), strict=True)
        return json.dumps([name for name, on in pairs if on])
