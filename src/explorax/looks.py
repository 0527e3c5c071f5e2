"""The looks of curves in figures: colors, markers, dashes and fonts.

A policy has a color and a marker, and a design has a dash: theory designs are solid lines with filled markers, informal
designs are dotted lines with hollow markers.  Colors are from the palette of Okabe & Ito, which color-blind readers can
tell apart, in an order in which the first ones also differ in lightness, so that the figure can be printed without
colors.  Curves of one policy that differ in its settings have colors, markers and dashes of their own.
"""

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from explorax.summarize import Series

BLACK, BLUE, ORANGE, GREEN, GREY = "#000000", "#0072B2", "#E69F00", "#009E73", "#666666"
COLOURS = (BLACK, BLUE, ORANGE, GREEN, "#D55E00", "#CC79A7", "#56B4E9")
MARKERS = ("s", "^", "o", "D", "v", "P", "X", "*")  # one more than colors, so that no look is repeated early
Dash = Literal["solid"] | tuple[float, tuple[float, ...]]
INFORMAL: Dash = (0, (1, 1.1))
DASHES: tuple[Dash, ...] = ("solid", (0, (4, 1.5)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
# Curves that look the same in every figure: (policy, number of earlier curves of that policy).
FAVOURITES: tuple[tuple[tuple[str, int], ...], ...] = (
    (("glm_ucb", 0), ("ucb_glm", 0), ("glm_tsl", 0), ("glm_fpl", 0)),
    (("deep_fpl", 0), ("deep_fl", 0), *(("rep_glm_fpl", count) for count in range(4)), ("neural_linear", 0)),
)
STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so every machine draws the same
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8.5,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "lines.dash_capstyle": "butt",
    "pdf.fonttype": 42,  # text stays text
}


class Look(NamedTuple):
    """The look of a curve: color, marker, whether the marker is hollow, and dash."""

    color: str
    marker: str
    hollow: bool
    dash: Dash


def looks(curves: Iterable[Series]) -> dict[str, Look]:
    """Return the look of each curve by its label; curves of the same policy and design get different colors."""
    keys: dict[str, tuple[str, int]] = {}
    hollow: dict[str, bool] = {}
    seen: dict[tuple[str, str], int] = {}
    for curve in curves:
        if curve.curve not in keys:
            count = seen.get((curve.policy, curve.design), 0)
            seen[curve.policy, curve.design] = count + 1
            keys[curve.curve] = (curve.policy, count)
            hollow[curve.curve] = curve.design == "informal"
    favourites = [key for group in FAVOURITES if not set(group).isdisjoint(keys.values()) for key in group]
    order = list(dict.fromkeys([*favourites, *keys.values()]))  # without policies of the paper: the best colors first
    found = {}
    for label, key in keys.items():
        place = order.index(key)
        dash = INFORMAL if hollow[label] else DASHES[(key[1] + place // len(COLOURS)) % len(DASHES)]
        found[label] = Look(COLOURS[place % len(COLOURS)], MARKERS[place % len(MARKERS)], hollow[label], dash)
    return found


def line_style(one: Look) -> dict[str, Any]:
    """Return a look as arguments of `matplotlib.axes.Axes.plot`."""
    return {
        "color": one.color,
        "linestyle": one.dash,
        "linewidth": 1.5,
        "marker": one.marker,
        "markersize": 4.2,
        "markerfacecolor": "white" if one.hollow else one.color,
        "markeredgecolor": one.color,
        "markeredgewidth": 0.9,
    }
