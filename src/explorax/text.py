"""Numbers, times and tables as text."""

from collections.abc import Sequence

UNITS = (("h", 3600), ("min", 60), ("s", 1))


def duration(seconds: float) -> str:
    """Return a time as one says it, in its two largest units: "3.2 s", "12 s", "2 min 5 s", "10 min", "2 h 5 min"."""
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
    """Return a mean and its error, "12.3 ± 0.4"; without one that there is not.

    Args:
        mean: The mean.
        error: Its standard error, or half the length of its interval; None where there is none.
        digits: Of both, after the point.
        sign: "+" to write the sign of a positive mean too.

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
    """Return one row of a table: cells of these widths, the first `left` of them flush left, the others right."""
    padded = [
        cell.ljust(width) if column < left else cell.rjust(width)
        for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def table(rows: Sequence[Sequence[str]], left: int = 1, indent: str = "") -> str:
    """Return rows as aligned text.

    Args:
        rows: The cells of each row; all rows have as many.
        left: How many columns, from the first on, are flush left; the others are flush right.
        indent: Before each line.

    Returns:
        A line for each row, without a line feed at the end.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(f"{indent}{line(row, widths, left)}" for row in rows)
