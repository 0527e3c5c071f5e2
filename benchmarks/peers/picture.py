"""Regret against time: a point for each contender, with intervals, and its algorithm next to it.

The interval of regret is that of 95 %, that of time from the least to the most of the instances.  A library has a
colour and a marker, hollow where the model is misspecified.  Left and down is better.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from contenders import ENTRIES
from labels import Name, pixels, write
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox
from results import Row, Table

from explorax.looks import COLOURS, GREY, MARKERS, STYLE
from explorax.plot import thousands

LIBRARIES = list(dict.fromkeys(entry[0] for entry in ENTRIES))
MARKER = 5.0  # points


def picture(tables: Sequence[Table]) -> Figure:
    """A panel for each kind of problem."""
    rows = (len(tables) + 1) // 2
    with style.context(["default", STYLE]):
        drawn = Figure(figsize=(10.0, 4.2 * rows + 0.3), layout="constrained")
        FigureCanvasAgg(drawn)
        panels = drawn.subplots(rows, 2, squeeze=False).ravel()
        for axes in panels[len(tables) :]:
            axes.remove()
        for axes, table in zip(panels, tables, strict=False):
            draw(axes, table)
        for axes in panels[-2:]:
            axes.set_xlabel("µs per decision: one choose and one learn")
        for axes in panels[::2]:
            axes.set_ylabel("Regret")
        drawn.legend(handles=handles(), loc="outside lower center", ncols=len(LIBRARIES) + 1, frameon=False)
        drawn.draw_without_rendering()  # settles where everything is
        drawn.set_layout_engine("none")  # names do not move it again
        for axes, table in zip(panels, tables, strict=False):
            label(axes, table.rows)
    return drawn


def handles() -> list[Line2D]:
    """The libraries, and what hollow markers mean."""
    styles = [(name, COLOURS[place], MARKERS[place], COLOURS[place]) for place, name in enumerate(LIBRARIES)]
    styles.append(("hollow: misspecified model", GREY, "o", "white"))
    return [
        Line2D([], [], linestyle="", label=name, color=colour, marker=marker, markersize=MARKER, markerfacecolor=face)
        for name, colour, marker, face in styles
    ]


def draw(axes: Axes, table: Table) -> None:
    """The points of a kind of problem and their intervals."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    for row in table.rows:
        place = LIBRARIES.index(row.contender.library)
        left, right, low, high = bars(row)
        axes.hlines(row.regret.mean, left, right, color=COLOURS[place], linewidth=0.8)
        axes.vlines(row.microseconds.median, low, high, color=COLOURS[place], linewidth=0.8)
        axes.plot(
            row.microseconds.median,
            row.regret.mean,
            marker=MARKERS[place],
            markersize=MARKER,
            color=COLOURS[place],
            markerfacecolor="white" if row.contender.misspecified else COLOURS[place],
        )
    axes.set_title(str(table.kind).capitalize())
    ends = np.array([bars(row) for row in table.rows])
    axes.set_xlim(0.7 * ends[:, 0].min(), 3.2 * ends[:, 1].max())  # long names have room
    axes.set_ylim(0.8 * ends[:, 2].min(), 1.25 * ends[:, 3].max())
    axes.grid(True, color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))  # less than a decade
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))
        axis.set_minor_locator(NullLocator())


def bars(row: Row) -> tuple[float, float, float, float]:
    """Where its intervals end: of time, and of regret; a log scale has no room for what is not above 0."""
    low = max(row.regret.low, row.regret.mean / 4)
    high = min(row.regret.high, row.regret.mean * 4)
    return row.microseconds.least, row.microseconds.most, low, high


def label(axes: Axes, rows: Sequence[Row]) -> list[Annotation]:
    """The algorithm of each contender next to its point."""
    names = [
        Name(
            row.contender.algorithm,
            (row.microseconds.median, row.regret.mean),
            COLOURS[LIBRARIES.index(row.contender.library)],
        )
        for row in rows
    ]
    return write(axes, names, [box for row in rows for box in boxes(axes, row)])


def boxes(axes: Axes, row: Row) -> Iterator[Bbox]:
    """What a contender's marker and intervals cover, in pixels."""
    left, right, low, high = bars(row)
    x, y = row.microseconds.median, row.regret.mean
    radius = (MARKER / 2 + 0.5) * pixels(axes)
    for corners in (((x, y), (x, y)), ((left, y), (right, y)), ((x, low), (x, high))):
        box = Bbox(axes.transData.transform(corners))
        yield box.padded(radius) if corners[0] == corners[1] else box.padded(1)
