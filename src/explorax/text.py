"""Numbers, times and tables as text."""

from collections.abc import Sequence
from typing import NamedTuple

UNITS = (("h", 3600), ("min", 60), ("s", 1))


class Table(NamedTuple):
    """A table that is printed, or part of a page: a caption, headings, cells, and what they mean as sentences."""

    caption: str
    head: list[str]
    rows: list[list[str]]  # the first cell is flush left
    note: str = ""


def duration(seconds: float) -> str:
    """Return a duration in its two largest units, such as "3.2 s", "12 s", "2 min 5 s", "10 min" or "2 h 5 min"."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    left = round(seconds)
    said: list[tuple[int, str]] = []
    for unit, length in UNITS:
        count, left = divmod(left, length)
        if count or said:
            said.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in said[:2] if count)


def with_error(mean: float, error: float | None, digits: int, sign: str = "-") -> str:
    """Return a mean and its error as text, such as "12.3 ± 0.4", or the mean alone if the error is None.

    Args:
        mean: The mean.
        error: The standard error of the mean, or half the length of its interval; None if it is unknown.
        digits: The number of digits after the decimal point, for both.
        sign: "+" to write the sign of a positive mean, too.  Default: "-", for the sign of a negative mean only.

    Returns:
        The text.
    """
    return f"{mean:{sign}.{digits}f}" + ("" if error is None else f" ± {error:.{digits}f}")


def grouped(value: int) -> str:
    """Return a whole number with its digits in groups of three, as in "50 000"; the spaces do not break."""
    return f"{value:,}".replace(",", "\N{NO-BREAK SPACE}")


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: "a", "a and b", "a, b and c"."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), names[-1]])


def line(cells: Sequence[str], widths: Sequence[int], left: int = 1) -> str:
    """Return one row of a table, with cells of these widths: the first `left` are flush left, the others right."""
    padded = [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def table(rows: Sequence[Sequence[str]], left: int = 1, indent: str = "") -> str:
    """Return the rows of a table as aligned text.

    Args:
        rows: The cells of each row; all rows have the same number of cells.
        left: The number of columns that are flush left; the others are flush right.  Default: 1.
        indent: The text before each line.  Default: none.

    Returns:
        A line for each row, without a line feed at the end.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"{indent}{line(row, widths, left)}" for row in rows)
