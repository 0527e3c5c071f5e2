"""The value of a policy as one estimator sees it, with its interval: a row of the table that an evaluation is."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from explorax.text import table

LOGGING = "logging policy"  # the name of the row that all others are compared with


@dataclass(frozen=True)
class PolicyValue:
    """The value of a policy, estimated from a log.

    Attributes:
        target: The name of the policy; "logging policy" for the one that made the log.
        estimator: The name of the estimator, or "replay".
        value: The estimate: the mean reward that the policy would have had.
        stderr: Its standard error.
        low: The lower bound of the interval.
        high: The upper bound of the interval.
        interval: The kind of interval.
        level: The probability with which the interval holds.
        rows: The number of rows that the estimate is from.
        effective: The effective sample size: the number of rows of the policy's own that would be worth as much;
            None if the estimate does not weigh rows.
        gain: The estimate minus the value of the logging policy; None for the logging policy itself, as what follows.
        gain_low: The lower bound of that difference.
        gain_high: The upper bound of that difference.
    """

    target: str
    estimator: str
    value: float
    stderr: float
    low: float
    high: float
    interval: str
    level: float
    rows: int
    effective: float | None = None
    gain: float | None = None
    gain_low: float | None = None
    gain_high: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the policy is shown to be "better" or "worse" than the logging policy; "undecided" otherwise."""
        if self.gain_low is None or self.gain_high is None:
            return ""
        return "better" if self.gain_low > 0 else "worse" if self.gain_high < 0 else "undecided"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields and the verdict by name.

        Returns:
            Texts, numbers and None by the names of the fields, and "verdict".
        """
        return asdict(self) | {"verdict": self.verdict}


COLUMNS = (*(field.name for field in fields(PolicyValue)), "verdict")


def percent(level: float) -> str:
    """Return a level as text, such as "95 %"."""
    return f"{100 * level:.4g}\N{NO-BREAK SPACE}%"


def cells(rows: Sequence[PolicyValue]) -> list[list[str]]:
    """Return the rows as cells of a table of text, with a head.

    Args:
        rows: The values of the policies.

    Returns:
        The head and a list of cells for each row.
    """
    head = ["policy", "estimator", "value", f"{percent(rows[0].level)} interval", "kind"]
    head += [f"minus {LOGGING}", "verdict", "rows", "effective"]
    return [head, *(_cells(row) for row in rows)]


def as_text(rows: Sequence[PolicyValue]) -> str:
    """Return the rows as aligned text."""
    return table(cells(rows), left=2)


def number(value: float) -> str:
    """Return a value with four digits after the point, or with four digits in all if it is large."""
    return f"{value:.4f}" if abs(value) < 100 else f"{value:.4g}"


def _cells(row: PolicyValue) -> list[str]:
    """Return the cells of a row."""
    gain = "-" if row.gain_low is None or row.gain_high is None else span(row.gain_low, row.gain_high, "+")
    effective = "-" if row.effective is None else f"{row.effective:.0f}"
    found = [row.target, row.estimator, number(row.value), span(row.low, row.high), row.interval]
    return [*found, gain, row.verdict or "-", str(row.rows), effective]


def span(low: float, high: float, sign: str = "-") -> str:
    """Return an interval as text, with signs also of positive bounds if `sign` is "+"."""
    low_text, high_text = (f"{'+' if sign == '+' and each > 0 else ''}{number(each)}" for each in (low, high))
    return f"{low_text} to {high_text}"
