"""The forest plot of an evaluation: a line for each policy and estimator, with its interval.

The value of the policy that made the log is a vertical line with the band of its interval.  The shape of a marker
stands for the estimator, and its color for what is shown: green for better than the policy that made the log, orange
for worse, gray for undecided.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from explorax.evaluation.values import PolicyValue, percent
from explorax.looks import BLACK, GREEN, GREY, MARKERS, ORANGE, STYLE

SHOWN = {"better": GREEN, "worse": ORANGE, "undecided": GREY, "": BLACK}  # colors of verdicts
BAND = "#E8E8E8"
LINE, GAP = 0.17, 0.9  # the height of a line in inches, and the space between policies in lines


def draw(rows: Sequence[PolicyValue]) -> Figure:
    """Draw the values of policies with their intervals.

    Args:
        rows: The values, that of the policy that made the log first.

    Returns:
        The figure, laid out.
    """
    logging, *others = rows
    targets = list(dict.fromkeys(row.target for row in others))
    estimators = list(dict.fromkeys(row.estimator for row in others))
    marker = dict(zip(estimators, MARKERS * (1 + len(estimators) // len(MARKERS)), strict=False))
    blocks = [[logging], *([row for row in others if row.target == target] for target in targets)]
    heights = np.cumsum([0.0, *(len(block) + GAP for block in blocks)])  # of the first lines, in lines
    with style.context(["default", STYLE]):
        drawn = Figure(figsize=(6.2, 1.2 + LINE * heights[-1]), layout="constrained")
        FigureCanvasAgg(drawn)
        axes = drawn.subplots()
        axes.axvspan(logging.low, logging.high, color=BAND, linewidth=0, zorder=0)
        axes.axvline(logging.value, color=BLACK, linewidth=0.8, zorder=1)
        for first, block in zip(heights[:-1], blocks, strict=True):
            for number, row in enumerate(block):
                _line(axes, row, first + number, marker.get(row.estimator, "o"))
        centers = [first + (len(block) - 1) / 2 for first, block in zip(heights[:-1], blocks, strict=True)]
        axes.set_yticks(centers, [_literal(block[0].target) for block in blocks])
        axes.set_ylim(heights[-1] - 0.5 - GAP / 2, -0.5 - GAP / 2)
        axes.set_xlabel(f"Mean reward, with {percent(logging.level)} intervals")
        axes.grid(True, axis="x", color="#DDDDDD", linewidth=0.5)
        axes.set_axisbelow(True)
        axes.tick_params(axis="y", length=0)
        axes.spines["left"].set_visible(False)
        shapes = [
            Line2D([], [], label=_literal(name), color=GREY, marker=marker[name], markersize=4.6, linewidth=0)
            for name in estimators
        ]
        verdicts = [row.verdict for row in others]
        colors = [
            Line2D([], [], label=name, color=color, linewidth=2) for name, color in SHOWN.items() if name in verdicts
        ]
        drawn.legend(handles=[*shapes, *colors], loc="outside lower center", ncols=4, frameon=False, labelcolor=GREY)
        drawn.draw_without_rendering()
    return drawn


def _line(axes: Axes, row: PolicyValue, height: float, marker: str) -> None:
    """Draw a value and its interval as one line."""
    color = SHOWN[row.verdict]
    axes.plot([row.low, row.high], [height] * 2, color=color, linewidth=1.6, solid_capstyle="butt", zorder=2)
    axes.plot(row.value, height, marker, color=color, markersize=4.6, zorder=3)


def _literal(text: str) -> str:
    """Escape $, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")
