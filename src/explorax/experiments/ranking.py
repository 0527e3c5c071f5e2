"""The settings of a swept curve, ranked in each panel, and the tables that show this.

The *best* setting in a panel has played the most instances there, and has the best mean among those.  Another is *not
worse* if, instance by instance, the best one does not beat it by more than 2 standard errors (`summarize.compare`).
All settings play the same random problems, so their differences have little noise; and with noise the best is a set.

With successive halving, the instances that no choice has seen are fresh, and the mean over them is not too good.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from explorax.experiments.grid import Swept
from explorax.record import Result
from explorax.summarize import NAMES, compare, mean_and_stderr, measured
from explorax.text import Table, with_error

MARKS = {"best": " *", "not worse": " ~", "": "  "}
LEGEND = (
    "* is the best setting of its curve in the panel, and ~ is not worse: instance by instance, the best one does not "
    "beat it by more than 2 standard errors. Rows are in the order of their mean rank over the panels."
)
CHOSEN = "The best of many looks better than it is, because its mean was chosen: play it again with another seed."
HALVED = "Settings with fewer instances were given up after these."
FRESH = "No choice has seen these instances, so these are the numbers to report of the settings that were chosen."


class Standing(NamedTuple):
    """One setting of a swept curve in one panel, or a curve that was not swept.

    Attributes:
        swept: The curve that it is a setting of.
        values: The values of its settings as text, by name; empty if the curve was not swept.
        result: Its records.
        final: The measure of each instance at the end of the run.
        fresh: That of the instances that no choice has seen; none of a setting that was given up.
        rank: Its rank among the settings of the curve in this panel, from 1.
        mark: "best", "not worse" or ""; always "" if the curve was not swept.
    """

    swept: Swept
    values: dict[str, str]
    result: Result
    final: np.ndarray
    fresh: np.ndarray
    rank: int
    mark: str


def standings(
    swept: Sequence[Swept], results: Sequence[Result], measure: str, chosen_on: Callable[[str], int]
) -> list[Standing]:
    """Rank the settings of each curve in each panel.

    Args:
        swept: The curves as they were given, with those that their lists make.
        results: The results of all these.
        measure: "regret" or "reward".
        chosen_on: Tells for the label of a curve on how many instances, the first ones, settings were chosen.

    Returns:
        The standings by panel, then by curve, the best setting first; of equal ones the first of the list.
    """
    groups: dict[tuple[str, str], list[Result]] = {}
    of_label = {curve.label: one for one in swept for curve in one.curves}
    for result in results:
        groups.setdefault((result.panel, of_label[result.curve].label), []).append(result)
    sign = -1 if measure == "reward" else 1

    def order(result: Result) -> tuple[int, float]:
        return -len(result.records.instances), sign * float(np.mean(final(result, measure)))

    found = []
    for group in groups.values():
        best, *_ = ranked = sorted(group, key=order)
        one = of_label[best.curve]
        values = {curve.label: of for curve, of in zip(one.curves, one.values, strict=True)}
        for rank, result in enumerate(ranked, 1):
            near = "not worse" if is_near(best, result, measure) else ""
            mark = ("best" if rank == 1 else near) if one.is_swept else ""
            ends, first = final(result, measure), chosen_on(result.curve)
            fresh = ends[result.records.instances >= first] if first else ends[:0]
            found.append(Standing(one, values[result.curve], result, ends, fresh, rank, mark))
    return found


def final(result: Result, measure: str) -> np.ndarray:
    """Return the measure of each instance at the end of the run."""
    return measured(result.records, measure)[:, -1]


def is_near(best: Result, other: Result, measure: str) -> bool:
    """Return whether a setting is not beaten on the instances that both played, of which there must be two."""
    common = np.intersect1d(best.records.instances, other.records.instances)
    return len(common) > 1 and not compare(best, other, measure).beats


def names_of(swept: Iterable[Swept]) -> list[str]:
    """Return the names of all settings that are swept."""
    return list(dict.fromkeys(name for one in swept for values in one.values for name in values))


def table_of_all(found: Sequence[Standing], measure: str, halved: bool) -> Table:
    """Return the table with a row for each setting, in the order of the mean rank, and a column for each panel."""
    panels = list(dict.fromkeys(one.result.panel for one in found))
    counts = sorted({len(one.final) for one in found})
    rows: dict[str, dict[str, dict[str, Standing]]] = {}  # by swept curve, setting and panel
    for one in found:
        rows.setdefault(one.swept.label, {}).setdefault(one.result.curve, {})[one.result.panel] = one
    names = names_of(one.swept for one in found)
    body = []
    for label, settings in rows.items():
        swept = next(one.swept for one in found if one.swept.label == label)
        in_order = [settings[curve.label] for curve in swept.curves if curve.label in settings]
        for here in sorted(in_order, key=lambda here: np.mean([one.rank for one in here.values()])):
            values = next(iter(here.values())).values
            cells = {panel: as_cell(one, measure, len(counts) > 1) for panel, one in here.items()}
            body.append([label, *(values.get(name, "") for name in names), *(cells.get(one, "-  ") for one in panels)])
    over = f"{counts[0]} instances" if len(counts) == 1 else "the instances in brackets"
    caption = (
        f"{NAMES[measure][0]} after {found[0].result.records.rounds[-1]} rounds, mean ± standard error over {over}"
    )
    note = f"{LEGEND} {HALVED if halved else CHOSEN}" if names else ""
    return Table(caption, ["", *names, *(f"{panel}  " for panel in panels)], body, note)


def as_cell(one: Standing, measure: str, counted: bool) -> str:
    """Return the mean of a setting with its standard error, its mark and, if `counted`, its number of instances."""
    return mean_of(one.final, measure) + (f" ({len(one.final)})" if counted else "") + MARKS[one.mark]


def mean_of(values: np.ndarray, measure: str) -> str:
    """Return a mean with its standard error as text."""
    mean, stderr = mean_and_stderr(values)
    return with_error(float(mean), None if stderr is None else float(stderr), NAMES[measure][1])


def table_of_fresh(found: Sequence[Standing], measure: str) -> Table | None:
    """Return the table of the chosen settings on fresh instances; None if none of these has been played."""
    panels = list(dict.fromkeys(one.result.panel for one in found))
    rows: dict[str, dict[str, dict[str, str]]] = {}  # by swept curve, setting and panel
    for one in found:
        if len(one.fresh):
            cells = rows.setdefault(one.swept.label, {}).setdefault(one.result.curve, {})
            cells[one.result.panel] = f"{mean_of(one.fresh, measure)} ({len(one.fresh)})"
    body = [
        [label, *(cells.get(panel, "-") for panel in panels)]
        for settings in rows.values()
        for label, cells in settings.items()
    ]
    caption = f"{NAMES[measure][0]} of the chosen settings over the fresh instances in brackets, mean ± standard error"
    return Table(caption, ["", *panels], body, FRESH) if rows else None


def columns(found: Iterable[Standing], halved: bool) -> dict[tuple[str, str], dict[str, object]]:
    """Return the cells that a sweep adds to a row of summary.csv, by curve and panel.

    Args:
        found: The standings.
        halved: Whether there are columns of fresh instances.

    Returns:
        The values of the swept settings but for the design, which has a column in any study, the mark, and what fresh
        instances tell.
    """
    found = list(found)
    names = names_of(one.swept for one in found)
    cells: dict[tuple[str, str], dict[str, object]] = {}
    for one in found:
        mean, stderr = mean_and_stderr(one.fresh) if len(one.fresh) else (None, None)
        row: dict[str, object] = {name: one.values.get(name) for name in names if name != "design"}
        row |= {"mark": one.mark} if names else {}
        if halved:
            row |= {"fresh_instances": len(one.fresh)}
            row |= {"fresh_mean": mean and float(mean), "fresh_stderr": stderr and float(stderr)}
        cells[one.result.curve, one.result.panel] = row
    return cells
