"""A log from the flat table that it was exported as, in a Parquet or CSV file.

The features of the arms are not in such a table.  The context is; with unit vectors for the arms it gives features.
"""

import csv
import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from explorax.errors import InvalidLog
from explorax.extras import optional
from explorax.log import frames
from explorax.log.arguments import arms_on_offer
from explorax.log.data import LoggedData
from explorax.log.flat import CONTEXT, FEATURE, PURPOSE
from explorax.log.statuses import UNKNOWN

NEEDED = ("id", "time", "arm", "propensity", "reward", "by_default", "status", "on_offer", "all_propensities")
PARQUET = b"PAR1"


def is_exported(path: Path) -> bool:
    """Tell whether a file is a flat table of a log: Parquet, or text that begins with the names of the columns."""
    try:
        with open(path, "rb") as file:
            head = file.read(len(PARQUET) + 60)
    except OSError:
        return False  # whoever reads it as a log says why
    return head.startswith(PARQUET) or head.replace(b'"', b"").startswith(b"id,time,version,arm,")


def read_exported(path: Path, by_default: bool) -> LoggedData:
    """Return the decisions whose rewards are known, with or without those that are known by default."""
    arrow = optional("pyarrow", PURPOSE)
    try:
        table = read_columns(path)
    except (arrow.ArrowException, OSError, ValueError, StopIteration) as error:
        raise InvalidLog(f"{path} cannot be read as a table of a log: {error}. Export the log again.") from error
    missing = [name for name in NEEDED if name not in table]
    if missing:
        raise InvalidLog(f"{path} is not a table of a log: it has no column {missing[0]!r}. Export the log again.")
    status = np.array(table["status"])
    known = status == "known"
    if not by_default:
        known &= ~np.array([value is True for value in table["by_default"]])
    rows = np.flatnonzero(known)
    if not len(rows):
        raise InvalidLog(f"{path} has no decision whose reward is known. Export the log when there are some.")
    parse = lru_cache(1000)(lambda text: tuple(json.loads(text)))
    try:
        names = tuple(dict.fromkeys(name for text in dict.fromkeys(table["on_offer"]) for name in parse(text)))
        listed = [parse(table["on_offer"][row]) for row in rows]
        arms = [named(table["arm"][row], on_offer) for row, on_offer in zip(rows, listed, strict=True)]
    except (TypeError, ValueError) as error:
        raise InvalidLog(
            f"{path} must list the arms on offer in each row, got {error}. An infinite set of arms has no such list, "
            "and cannot be evaluated."
        ) from error
    contexts = [frames.as_numbers(name, take(table[name], rows)) for name in table if name.startswith(CONTEXT)]
    propensities = take(table["propensity"], rows)
    data = LoggedData.of(
        arms,
        take(table["reward"], rows),
        names=names,
        propensities=None if None in propensities else propensities,
        offered=arms_on_offer(listed, names),
        all_propensities=every_of(take(table["all_propensities"], rows), listed, names),
        contexts=np.concatenate(contexts, axis=1) if contexts else None,
        times=take(table["time"], rows),
        ids=take(table["id"], rows),
    )
    return replace(data, left_out=int(np.isin(status, ("known", *UNKNOWN)).sum()) - len(rows))


def read_columns(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a flat table, without the features of the arms that were chosen."""
    with open(path, "rb") as file:
        if file.read(len(PARQUET)) == PARQUET:
            parquet = optional("pyarrow.parquet", PURPOSE)
            names = [name for name in parquet.read_schema(path).names if not name.startswith(FEATURE)]
            return dict(parquet.read_table(path, columns=names).to_pydict())
    with open(path, encoding="utf-8", newline="") as text:
        names = [name for name in next(csv.reader(text)) if not name.startswith(FEATURE)]
    arrow, reader = optional("pyarrow", PURPOSE), optional("pyarrow.csv", PURPOSE)
    texts = dict.fromkeys(("arm", "status", "on_offer", "all_propensities"), arrow.string())
    options = reader.ConvertOptions(
        include_columns=names,
        column_types={**texts, "by_default": arrow.bool_(), "propensity": arrow.float64(), "reward": arrow.float64()},
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    return dict(reader.read_csv(path, convert_options=options).to_pydict())


def take(column: list[Any], rows: np.ndarray) -> list[Any]:
    """Return some rows of a column."""
    return [column[row] for row in rows.tolist()]


def named(arm: Any, on_offer: tuple[Any, ...]) -> Any:
    """Return the name of an arm among those on offer, which a table may have as text; raise if it is not there."""
    found = [name for name in on_offer if name == arm or str(name) == arm]
    if len(found) != 1:
        raise ValueError(f"the arm {arm!r} among {list(on_offer)}")
    return found[0]


def every_of(texts: list[Any], listed: list[tuple[Any, ...]], names: tuple[Any, ...]) -> np.ndarray | None:
    """Return (n, K) the propensities of all arms, or None unless all rows have them."""
    if None in texts:
        return None
    place, found = {name: i for i, name in enumerate(names)}, np.zeros((len(texts), len(names)))
    for row, (text, on_offer) in enumerate(zip(texts, listed, strict=True)):
        found[row, [place[name] for name in on_offer]] = json.loads(text)
    return found
