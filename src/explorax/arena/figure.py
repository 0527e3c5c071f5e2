"""The figure of ranks: a panel for each group of problems, and a row for each policy, the best one on top.

Hollow markers are policies with default settings, filled markers are tuned policies, and bars are the intervals of
`standings`.
"""

from collections.abc import Sequence

from matplotlib import style
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from explorax.arena.standings import REFERENCE, Rank
from explorax.looks import BLACK, BLUE, GREY, ORANGE, STYLE

LOOKS = {"default": (ORANGE, "white"), "tuned": (BLUE, BLUE)}  # colors of the line and of the inside of the marker


def draw(ranks: Sequence[Rank]) -> Figure:
    """Draw the mean ranks of all policies in each group of problems."""
    groups = list(dict.fromkeys(rank.group for rank in ranks))
    lines = max(len({rank.policy for rank in ranks if rank.group == group}) for group in groups)
    with style.context(["default", STYLE]):
        drawn = Figure(figsize=(0.4 + 3.1 * len(groups), 1.1 + 0.2 * lines), layout="constrained")
        FigureCanvasAgg(drawn)
        for axes, group in zip(drawn.subplots(1, len(groups), squeeze=False)[0], groups, strict=True):
            here = [rank for rank in ranks if rank.group == group]
            order = sorted(here, key=lambda rank: (rank.variant != "tuned", rank.mean))
            titles = {rank.policy: rank.title for rank in order}
            place = {policy: number for number, policy in enumerate(titles)}
            for rank in here:
                color, fill = LOOKS[rank.variant]
                height = place[rank.policy] + (0.14 if rank.variant == "default" else -0.14)
                axes.plot([rank.low, rank.high], [height] * 2, color=color, linewidth=1.4, solid_capstyle="butt")
                axes.plot(rank.mean, height, "o", color=color, markerfacecolor=fill, markersize=4.2)
            axes.set_yticks(list(place.values()), list(titles.values()))
            for label, policy in zip(axes.get_yticklabels(), titles, strict=True):
                label.set_color(BLACK)
                label.set_fontweight("bold" if policy == REFERENCE else "normal")
            axes.set_ylim(len(place) - 0.4, -0.6)
            axes.set_xlim(0.5, max(rank.rivals for rank in here) + 0.5)
            axes.set_title(f"{group[0].upper()}{group[1:]}", pad=4)
            axes.set_xlabel("Mean rank by regret")
            axes.grid(True, axis="both", color="#DDDDDD", linewidth=0.5)
            axes.set_axisbelow(True)
            axes.tick_params(axis="y", length=0)
        handles = [
            Line2D([], [], label=label, color=color, marker="o", markerfacecolor=fill, markersize=4.2, linewidth=1.4)
            for label, (color, fill) in (("default settings", LOOKS["default"]), ("tuned", LOOKS["tuned"]))
        ]
        drawn.legend(handles=handles, loc="outside lower center", ncols=2, frameon=False, labelcolor=GREY)
        drawn.draw_without_rendering()
    return drawn
