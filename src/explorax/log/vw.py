"""Logs as text for Vowpal Wabbit, and back.

    adf   a block of lines for each decision, as `--cb_adf` reads it: one with the context, if there is one, and one for
          each arm on offer; that of the chosen arm begins with `0:cost:probability`
    cb    one line for each decision, as `--cb K` reads it, with the arms numbered from 1 on; if only some were on
          offer, the label lists them, of which Vowpal Wabbit 9 takes no notice

Vowpal Wabbit learns costs: the cost is minus the reward.  An arm's name is the tag of its line.  The context is in the
namespace `c`, the features of an arm in the namespace `x`, and an arm that has no features has its name in the
namespace `a`.  Names are written as in web addresses, with `%20` for a space, since spaces, colons and bars mean
something in this format; text that looks like a number has its first character written like this.

Numbers are written with all their digits, so that what is read back is what was written.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple
from urllib.parse import quote, unquote

import numpy as np

from explorax.errors import InvalidArgument, UnknownName
from explorax.files import temporary, writing
from explorax.log.arguments import checked_names
from explorax.log.data import LoggedData
from explorax.log.features import ContextFeatures, FixedFeatures, with_one

BLOCK = 1000  # rows whose features are in memory at a time while writing
WHOLE = re.compile(r"-?[0-9]+")
Cells = Mapping[tuple[str, str], float]  # namespace and name of a feature -> its value


# Writing


def to_vw(data: LoggedData, path: str | os.PathLike[str], *, format: str = "adf") -> None:
    """Write a log as text that Vowpal Wabbit reads.

    Args:
        data: The log, with propensities.
        path: The file to write, which must not exist.
        format: "adf" for `vw --cb_adf`, with the features of each arm; "cb" for `vw --cb K`, with contexts only.
            Default: "adf".

    Raises:
        InvalidArgument: If the log has no propensities, the file exists, or the format has no place for features that
            differ from row to row.
        UnknownName: If `format` is something else.
        CannotWrite: If the file cannot be written.

    Example:
        >>> import explorax, tempfile, pathlib
        >>> data = explorax.LoggedData.of([0, 1], [1.0, 0.0], propensities=[0.25, 0.5], contexts=[[7.0], [8.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "log.vw")
        ...     explorax.to_vw(data, path, format="cb")
        ...     print(path.read_text())
        1:-1.0:0.25 |c 0:7.0
        2:0.0:0.5 |c 0:8.0
        <BLANKLINE>
    """
    if format not in FORMATS:
        raise UnknownName("format", format, FORMATS)
    if data.propensities is None:
        raise InvalidArgument(
            "data must have propensities to be written for Vowpal Wabbit, got a log without them. Give the probability "
            "of each arm that was chosen, or make the agent with draws above 0."
        )
    target = Path(path)
    if target.exists():
        raise InvalidArgument(f"path must be a new file, got {str(path)!r}, which exists. Give another name.")
    with writing(target), temporary(target) as beside:
        with open(beside, "w", encoding="ascii", newline="\n") as file:
            FORMATS[format](data, file)
        os.replace(beside, target)


def write_adf(data: LoggedData, file: IO[str]) -> None:
    """Write a block of lines for each decision."""
    tags = [escaped(name) for name in data.names]
    described = data.features.arms if isinstance(data.features, ContextFeatures) else None
    assert data.propensities is not None
    rewards, chances = data.rewards.tolist(), data.propensities.tolist()
    for start in range(0, len(data), BLOCK):
        rows = np.arange(start, min(start + BLOCK, len(data)))
        tables = None
        if described is None and data.features is not None:
            tables = data.features.table(rows)
        for i, row in enumerate(rows.tolist()):
            table = described if tables is None else tables[i]
            if data.contexts is not None:
                file.write(f"shared |c {numbered(data.contexts[row])}\n")
            for arm in range(data.n_arms) if data.offered is None else np.flatnonzero(data.offered[row]).tolist():
                label = ""
                if arm == data.arms[row]:
                    label = f"0:{0.0 - rewards[row]!r}:{chances[row]!r}"
                known = f"|a {tags[arm]}" if table is None else f"|x {numbered(table[arm])}"
                file.write(f"{label} '{tags[arm]}{known}\n")
            file.write("\n")


def write_cb(data: LoggedData, file: IO[str]) -> None:
    """Write a line for each decision."""
    if not (data.features is None or isinstance(data.features, ContextFeatures | FixedFeatures)):
        raise InvalidArgument(
            "format must be 'adf' for a log whose arms have features that differ from row to row, got 'cb'. Write it "
            "with format='adf'."
        )
    assert data.propensities is not None
    for row, (arm, reward, chance) in enumerate(
        zip(data.arms.tolist(), data.rewards.tolist(), data.propensities.tolist(), strict=True)
    ):
        label = f"{arm + 1}:{0.0 - reward!r}:{chance!r}"
        if data.offered is not None:
            offered = np.flatnonzero(data.offered[row]).tolist()
            label = " ".join(label if each == arm else str(each + 1) for each in offered)
        file.write(f"{label} |" + ("\n" if data.contexts is None else f"c {numbered(data.contexts[row])}\n"))


FORMATS: Mapping[str, Callable[[LoggedData, IO[str]], None]] = {"adf": write_adf, "cb": write_cb}


def numbered(values: np.ndarray) -> str:
    """Return numbers as features that are named by their places."""
    return " ".join(f"{i}:{value!r}" for i, value in enumerate(values.tolist()))


def escaped(name: Any) -> str:
    """Return the name of an arm as a word that Vowpal Wabbit reads, different for every name."""
    if isinstance(name, int):
        return str(name)
    first = f"%{ord(name[0]):02X}" if WHOLE.fullmatch(name) else ""
    return first + quote(name[1:] if first else name, safe="", errors="surrogatepass")


def unescaped(word: str) -> Any:
    """Return the name that `escaped` was given."""
    return int(word) if WHOLE.fullmatch(word) else unquote(word, errors="surrogatepass")


# Reading


class Line(NamedTuple):
    """A line of text as Vowpal Wabbit understands it."""

    labels: list[str]
    tag: str | None
    cells: Cells


class Row(NamedTuple):
    """A decision as text tells it."""

    arm: Any
    offered: list[Any] | None  # the arms on offer; None if all are
    cost: float
    chance: float
    shared: Cells
    own: list[Cells]  # of each arm on offer


class Parsed(NamedTuple):
    """What a text tells."""

    rows: list[Row]
    left_out: int  # decisions without a label
    tagged: bool  # whether arms have names, else they are places


def from_vw(path: str | os.PathLike[str], *, format: str = "adf", names: Sequence[Any] | None = None) -> LoggedData:
    """Return the log in a text file for contextual bandits of Vowpal Wabbit; a reward is minus the cost.

    A feature that a line lacks is 0, and one without a value is 1.  If decisions have contexts and arms have features,
    those of the log are the products of both.  Decisions without a label are left out, and `left_out` counts them.

    Args:
        path: The file.
        format: "adf" for what `vw --cb_adf` reads, "cb" for what `vw --cb K` reads.  Default: "adf".
        names: The names of all arms.  Default: the tags of the lines of arms, if all have one, else 0 to K − 1.

    Returns:
        The log.

    Raises:
        InvalidArgument: If the file cannot be read, or has another format.
        UnknownName: If `format` is something else.

    Example:
        >>> import explorax, os, tempfile, pathlib
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "log.vw")
        ...     length = path.write_text(os.linesep.join(["shared |user age:0.3", " 'red|", "0:-1.0:0.25 'blue|"]))
        ...     data = explorax.from_vw(path)
        >>> data.names, data.arms, data.rewards, data.propensities, data.contexts
        (('red', 'blue'), array([1]), array([1.]), array([0.25]), array([[0.3]]))
    """
    if format not in PARSERS:
        raise UnknownName("format", format, PARSERS)
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgument(
            f"path must be a text file that can be read, got {str(path)!r}: {error}. Give another file."
        ) from error
    parsed = PARSERS[format](text, str(path))
    if not parsed.rows:
        raise InvalidArgument(
            f"path must have decisions with labels, got {str(path)!r} without any. Give another file."
        )
    return replace(assembled(parsed, names), left_out=parsed.left_out)


def parse_adf(text: str, path: str) -> Parsed:
    """Return the decisions in text for `--cb_adf`."""
    blocks = [[parse_line(line, path) for line in block] for block in split(text)]
    shared = [block.pop(0).cells if block[0].labels[:1] == ["shared"] else {} for block in blocks]
    tagged = all(line.tag is not None for block in blocks for line in block)
    rows = []
    for block, context in zip(blocks, shared, strict=True):
        told = [i for i, line in enumerate(block) if line.labels]
        if len(told) > 1:
            raise InvalidArgument(
                f"{path} must have one chosen arm in each block of lines, got {len(told)} lines with labels. Separate "
                "decisions by empty lines, or read it with format='cb'."
            )
        if told:
            arms = [unescaped(line.tag) if tagged and line.tag else i for i, line in enumerate(block)]
            label = parse_label(block[told[0]].labels[-1], path)
            rows.append(Row(arms[told[0]], arms, *label, context, [line.cells for line in block]))
    return Parsed(rows, len(blocks) - len(rows), tagged)


def parse_cb(text: str, path: str) -> Parsed:
    """Return the decisions in text for `--cb K`."""
    lines = [parse_line(line, path) for line in text.split("\n") if line.strip()]
    rows = []
    for line in lines:
        parts = [label.partition(":") for label in line.labels]
        if not all(WHOLE.fullmatch(arm) and int(arm) >= 1 for arm, _, _ in parts):
            raise InvalidArgument(
                f"{path} must have labels of arms from 1 on, got {line.labels}. Read it with format='adf'."
            )
        arms, told = [int(arm) - 1 for arm, _, _ in parts], [i for i, (_, colon, _) in enumerate(parts) if colon]
        if told:
            label = parse_label(line.labels[told[0]], path)
            offered = arms if len(arms) > 1 else None
            rows.append(Row(arms[told[0]], offered, *label, line.cells, [{}] * len(offered or ())))
    return Parsed(rows, len(lines) - len(rows), False)


PARSERS: Mapping[str, Callable[[str, str], Parsed]] = {"adf": parse_adf, "cb": parse_cb}


def split(text: str) -> Iterator[list[str]]:
    """Yield the blocks of lines of a text, which empty lines separate."""
    for empty, block in groupby(text.split("\n"), key=lambda line: not line.strip()):
        if not empty:
            yield list(block)


def parse_line(line: str, path: str) -> Line:
    """Return a line as Vowpal Wabbit understands it."""
    head, *sections = line.rstrip("\r").split("|")
    words, tag = words_of(head), None
    if words and (words[-1].startswith("'") or not head[-1].isspace()) and words[-1] != "shared":
        tag = words.pop().removeprefix("'")
    cells: dict[tuple[str, str], float] = {}
    for section in sections:
        found = words_of(section)
        space, _, scale = (found.pop(0) if found and not section[0].isspace() else "").partition(":")
        for word in found:
            name, _, value = word.partition(":")
            number = as_float(value or "1")
            key, amount = (name, number) if number is not None else (f"{name}={value}", 1.0)
            cells[space, key] = amount * (as_float(scale or "1") or 0.0)
    if not all(map(math.isfinite, cells.values())):
        raise InvalidArgument(f"{path} must have finite features, got the line {line!r}. Correct it.")
    return Line(words, tag, cells)


def words_of(text: str) -> list[str]:
    """Return the words of a text, which only spaces and tabs separate."""
    return [word for word in text.replace("\t", " ").split(" ") if word]


def parse_label(label: str, path: str) -> tuple[float, float]:
    """Return the cost and the probability of a label."""
    numbers = [as_float(part) for part in label.split(":")]
    if len(numbers) != 3 or None in numbers:
        raise InvalidArgument(f"{path} must have labels action:cost:probability, got {label!r}. Correct the line.")
    return numbers[1] or 0.0, numbers[2] or 0.0


def as_float(text: str) -> float | None:
    """Return a text as a number, or None if it is something else."""
    try:
        return float(text)
    except ValueError:
        return None


def assembled(parsed: Parsed, names: Sequence[Any] | None) -> LoggedData:
    """Return decisions as a log."""
    rows = parsed.rows
    seen = dict.fromkeys(arm for row in rows for arm in (row.offered or [row.arm]))
    own = tuple(seen) if parsed.tagged else tuple(range(max(seen) + 1))
    named = own if names is None else checked_names(names)
    place = {arm: i for i, arm in enumerate(named if parsed.tagged else range(len(named)))}
    for arm in seen:
        if arm not in place:
            raise UnknownName("arm", arm, map(str, place))
    offered = np.array([row.offered is None for row in rows])[:, None] | np.zeros(len(place), bool)
    for i, row in enumerate(rows):
        offered[i, [place[arm] for arm in row.offered or ()]] = True
    contexts = matrix_of([row.shared for row in rows])
    return LoggedData.of(
        [named[place[row.arm]] for row in rows],
        [0.0 - row.cost for row in rows],
        names=named,
        propensities=[row.chance for row in rows],
        offered=None if offered.all() else offered,
        contexts=contexts,
        **features_of(rows, place, contexts),
    )


def features_of(rows: Sequence[Row], place: Mapping[Any, int], contexts: np.ndarray | None) -> dict[str, Any]:
    """Return what `LoggedData.of` is told of the features of arms."""
    pairs = [(i, pair) for i, row in enumerate(rows) for pair in zip(row.offered or (), row.own, strict=True)]
    listed = [(i, place[arm], cells) for i, (arm, cells) in pairs]
    words = {i: {("a", escaped(arm))} for arm, i in place.items()}
    if all(cells.keys() <= words[arm] for _, arm, cells in listed):
        return {}
    matrix = matrix_of([cells for _, _, cells in listed])
    assert matrix is not None
    which, arms = np.array([(i, arm) for i, arm, _ in listed]).T
    table = np.zeros((len(place), matrix.shape[1]))
    table[arms] = matrix
    if np.array_equal(table[arms], matrix):  # each arm always has the same features
        return {"features" if contexts is None else "arm_features": table}
    tables = np.zeros((len(rows), *table.shape))
    tables[which, arms] = matrix
    if contexts is None:
        return {"features": tables}
    products = with_one(tables.reshape(-1, table.shape[1])).reshape(len(rows), len(place), -1, 1)
    return {"features": (products * with_one(contexts)[:, None, None]).reshape(len(rows), len(place), -1)}


def matrix_of(rows: Sequence[Cells]) -> np.ndarray | None:
    """Return features by name as a matrix with a column for each name, or None if there are no names."""
    column = {name: i for i, name in enumerate(dict.fromkeys(name for row in rows for name in row))}
    if not column:
        return None
    matrix = np.zeros((len(rows), len(column)))
    for i, row in enumerate(rows):
        matrix[i, [column[name] for name in row]] = list(row.values())
    return matrix
