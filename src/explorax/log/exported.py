"""A log from the flat table that it was exported as, in a Parquet or CSV file.

The features of the arms are not in such a table.  The context is; with unit vectors for the arms it gives features.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from explorax.errors import InvalidLog
from explorax.extras import optional
from explorax.log import frames
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
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InvalidLog(f"{path} cannot be read as a table of a log: {error}. Export the log again.") from error
    missing = [name for name in NEEDED if name not in table.column_names]
    if missing:
        raise InvalidLog(f"{path} is not a table of a log: it has no column {missing[0]!r}. Export the log again.")
    statuses, status = encoded(table["status"])
    is_known = np.array([word == "known" for word in statuses], bool)
    known = is_known[status]
    if not by_default:
        known &= ~table["by_default"].fill_null(False).to_numpy()
    shown = np.array([word in ("known", *UNKNOWN) for word in statuses], bool)[status]
    if not known.any():
        raise InvalidLog(f"{path} has no decision whose reward is known. Export the log when there are some.")
    try:
        offers, which = encoded(table["on_offer"])
        listed = [json.loads(text) for text in offers]
        names = tuple(dict.fromkeys(name for each in listed for name in each))
        arms, chosen = encoded(table["arm"])
        pairs, pair = np.unique(np.stack([chosen, which])[:, known], axis=1, return_inverse=True)
        of_pair = np.array([names.index(named(arms[arm], listed[offer])) for arm, offer in pairs.T])
    except (TypeError, ValueError) as error:
        raise InvalidLog(
            f"{path} must list the arms on offer in each row, got {error}. An infinite set of arms has no such list, "
            "and cannot be evaluated."
        ) from error
    masks = np.array([[name in each for name in names] for each in listed])
    table, which = table.filter(arrow.array(known)), which[known]
    contexts = [frames.as_numbers(name, table[name]) for name in table.column_names if name.startswith(CONTEXT)]
    data = LoggedData.of(
        [names[place] for place in of_pair[pair.reshape(-1)]],
        table["reward"],
        names=names,
        propensities=None if table["propensity"].null_count else table["propensity"],
        offered=None if masks[which].all() else masks[which],
        all_propensities=every_of(table["all_propensities"], [listed[each] for each in which], names),
        contexts=np.concatenate(contexts, axis=1) if contexts else None,
        times=table["time"],
        ids=table["id"],
    )
    return replace(data, left_out=int(shown.sum() - known.sum()))


def encoded(column: Any) -> tuple[list[Any], np.ndarray]:
    """Return the different values of a column of pyarrow, and the place of each row among them."""
    found = column.combine_chunks().dictionary_encode(null_encoding="encode")
    return found.dictionary.to_pylist(), found.indices.to_numpy()


def read_columns(path: Path) -> Any:
    """Return a flat table of pyarrow, without the features of the arms that were chosen."""
    with open(path, "rb") as file:
        if file.read(len(PARQUET)) == PARQUET:
            parquet = optional("pyarrow.parquet", PURPOSE)
            names = [name for name in parquet.read_schema(path).names if not name.startswith(FEATURE)]
            return parquet.read_table(path, columns=names)
    with open(path, encoding="utf-8", newline="") as text:
        header, first = fields_of(text), fields_of(text)
    names = [name.strip('"') for name in header]
    kept = [name for name in names if not name.startswith(FEATURE)]
    arrow, reader = optional("pyarrow", PURPOSE), optional("pyarrow.csv", PURPOSE)
    texts = ["arm", "status", "on_offer", "all_propensities"]
    texts += [name for name, value in zip(names, first, strict=False) if value.startswith('"')]  # also if like numbers
    types = dict.fromkeys(("propensity", "reward"), arrow.float64()) | {"by_default": arrow.bool_()}
    options = reader.ConvertOptions(
        include_columns=kept,
        column_types=types | dict.fromkeys(texts, arrow.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    return reader.read_csv(path, convert_options=options, parse_options=reader.ParseOptions(newlines_in_values=True))


def fields_of(text: TextIO) -> list[str]:
    """Return the fields of the next row of a CSV file, with their quotes, in which there may be line feeds."""
    row = text.readline()
    while row.count('"') % 2:
        more = text.readline()
        row += more or '"'
    return re.findall(r'(?:^|,)((?:[^",]|"[^"]*")*)', row.rstrip("\r\n"))


def named(arm: Any, on_offer: list[Any]) -> Any:
    """Return the name of an arm among those on offer, which a table may have as text; raise if it is not there."""
    found = [name for name in on_offer if name == arm or str(name) == arm]
    if len(found) != 1:
        raise ValueError(f"the arm {arm!r} among {on_offer}")
    return found[0]


def every_of(column: Any, listed: list[list[Any]], names: tuple[Any, ...]) -> np.ndarray | None:
    """Return (n, K) the propensities of all arms, or None unless all rows have them."""
    if column.null_count:
        return None
    place, found = {name: i for i, name in enumerate(names)}, np.zeros((len(column), len(names)))
    for row, (text, on_offer) in enumerate(zip(column, listed, strict=True)):
        found[row, [place[name] for name in on_offer]] = json.loads(text.as_py())
    return found
