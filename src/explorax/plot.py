"""Figures of regret or average reward over rounds: the mean of each curve, with a band of ± 1 standard error.

On a linear scale, a curve far above all others would press these to the bottom of the panel.  Such a panel ends above
the second highest curve, and a label gives the name and the last value of the curve that leaves it.  On a log scale
both axes are logarithmic, linear regret has slope 1, and there is room for the theorems' bounds, which are orders of
magnitude above the curves.  Average rewards are close together and below their optimum: a panel of these shows the
range from the lowest curve to the optimum.
"""

import io
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from explorax import theory
from explorax.errors import InvalidArgument, UnknownName
from explorax.files import write_atomically
from explorax.glm.families import Family
from explorax.looks import GREY, STYLE, Look, line_style, looks
from explorax.places import Place, place
from explorax.summarize import MEASURES, Series

SCALES = ("linear", "log")
THIN = 0.8  # width of lines that curves and bounds are compared with
PANELS_IN_A_ROW = 3
FAR_ABOVE = 3.0  # the highest curve leaves a linear panel if it ends above this many times the second highest
LABEL_WIDTH = 18  # characters in a line of a label inside a panel


class Bound(NamedTuple):
    """A theorem's regret bound, drawn over the curves of one panel, and what it is compared with if that is known."""

    policy: str
    panel: str
    rounds: np.ndarray
    regret: np.ndarray
    explored: int = 0  # τ, a vertical line
    worst: np.ndarray | None = None  # regret of the worst instance at each checkpoint of the curve, a thin line
    max_gap: float = 0.0  # Δmax, the largest cost of a round: t Δmax is a gray line


def bounds(
    curves: Iterable[Series], *, n_features: int, n_arms: int, family: str | Family = "bernoulli"
) -> list[Bound]:
    """Return the bounds of Theorems 1 and 2 for the theory designs among the curves of a panel.

    The bounds have the constants of the paper's experiments.  The τ rounds of exploration that the theorems ask for are
    left out, because the curves do not play them either.

    Args:
        curves: Curves of one panel.
        n_features: Number of features d.
        n_arms: Number of arms K.
        family: Family of the rewards. Default: "bernoulli".

    Returns:
        One bound for each theory design of GLM-TSL and GLM-FPL.
    """
    found = []
    for curve in curves:
        if curve.policy in theory.THEOREMS and curve.design == "theory":
            rounds = curve.rounds[curve.rounds > max(n_features, 2 / theory.OPTIMISM)]
            if len(rounds):
                at = theory.problem(n_features=n_features, rounds=int(rounds[-1]), n_arms=n_arms, family=family)
                found.append(Bound(curve.policy, curve.panel, rounds, theory.regret_bounds(curve.policy, at, rounds)))
    return found


def figure(
    curves: Sequence[Series],
    *,
    measure: str = "regret",
    scale: str = "linear",
    bounds: Sequence[Bound] = (),
    optima: Mapping[str, float] | None = None,
    title: str = "",
) -> Figure:
    """Draw curves over rounds, in panels with one legend below them.

    Args:
        curves: Curves with their panels, both in the order of the figure.
        measure: "regret" or "reward". Default: "regret".
        scale: "linear" or "log", the scale of both axes. Default: "linear".
        bounds: Regret bounds to draw over the curves, which need a log scale.
        optima: The largest possible average rewards, by panel; a panel that is missing has no line.
        title: Title above the panels. Default: none.

    Returns:
        The figure, laid out.

    Raises:
        InvalidArgument: If there is nothing to draw, or the scale does not suit the measure or the bounds.
        UnknownName: If there is no such measure or scale.
    """
    _check_figure(curves, measure, scale, bounds)
    labels = list(dict.fromkeys(curve.panel for curve in curves))
    rows = math.ceil(len(labels) / PANELS_IN_A_ROW)
    columns = math.ceil(len(labels) / rows)
    look = looks(curves)
    lines = [Line2D([], [], label=_literal(label), **line_style(one)) for label, one in look.items()]
    lines += _compared(bounds, curves, look)
    entry = 0.75 + 0.064 * max(len(str(line.get_label())) for line in lines)  # inches of a line of the legend
    width = 0.25 + max(2.55 * columns, entry * min(2, len(lines)))
    legend_columns = max(1, min(math.ceil(len(lines) / 2), int(width / entry)))
    height = 2.35 * rows + 0.2 * math.ceil(len(lines) / legend_columns) + (0.55 if title else 0.3)
    with style.context(["default", STYLE]):
        drawn = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(drawn)
        panels = drawn.subplots(rows, columns, squeeze=False).ravel()
        for axes in panels[len(labels) :]:
            axes.remove()
        for index, (axes, label) in enumerate(zip(panels, labels, strict=False)):
            here = [curve for curve in curves if curve.panel == label]
            _draw(axes, here, look, measure, scale)
            if measure == "reward":
                _reward_limits(axes, here, (optima or {}).get(label))
            elif scale == "linear":
                _linear_limits(axes, here, look)
            _draw_bounds(axes, [bound for bound in bounds if bound.panel == label], here, look)
            axes.set_title(f"${label}$" if re.fullmatch(r"d = \d+", label) else _literal(label), pad=4)
            if index % columns == 0:
                axes.set_ylabel("Regret" if measure == "regret" else "Average reward")
            if index + columns >= len(labels):
                axes.set_xlabel("Round $n$")
        if scale == "log":
            _log_limits(panels[: len(labels)], curves, bounds)
        drawn.legend(
            handles=lines,
            loc="outside lower center",
            ncols=legend_columns,
            frameon=False,
            handlelength=3.2,
            columnspacing=1.8,
            labelspacing=0.35,
            borderaxespad=0.2,
        )
        if title:
            drawn.suptitle(_literal(title), fontsize=10.5)
        drawn.draw_without_rendering()  # settles the layout in this style, whatever the caller's
    return drawn


def _check_figure(curves: Sequence[Series], measure: str, scale: str, bounds: Sequence[Bound]) -> None:
    """Raise `InvalidArgument` or `UnknownName` unless the figure can be drawn."""
    for name, value, known in (("scale", scale, SCALES), ("measure", measure, MEASURES)):
        if value not in known:
            raise UnknownName(name, value, known)
    if measure == "reward" and scale == "log":
        raise InvalidArgument("scale must be 'linear' for average rewards, which change too little for a log scale.")
    if bounds and scale != "log":
        raise InvalidArgument(f"scale must be 'log' with bounds, which are far above all curves, got {scale!r}.")
    if not curves:
        raise InvalidArgument("curves must have at least one curve, got none. There is nothing to draw.")


def to_bytes(drawn: Figure, kind: str = "png", dpi: int = 200) -> bytes:
    """Return a figure as the content of a file, with the same bytes every time.

    Args:
        drawn: The figure.
        kind: "png", "pdf" or "svg". Default: "png".
        dpi: Resolution of a PNG, in dots per inch. Default: 200.

    Returns:
        The content of the file.

    Raises:
        UnknownName: If there is no such kind of file.
    """
    undated = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    if kind not in undated:
        raise UnknownName("kind of figure", kind, undated)
    content = io.BytesIO()
    with style.context(["default", STYLE, {"svg.hashsalt": "explorax"}]):
        drawn.savefig(content, format=kind, dpi=dpi, metadata=undated[kind])
    return content.getvalue()


def save(drawn: Figure, path: Place | str, dpi: int = 200) -> None:
    """Write a figure to a file, in the format that its name ends with: png, pdf or svg."""
    path = place(path)
    write_atomically(path, to_bytes(drawn, path.suffix.removeprefix(".").lower(), dpi))


def _draw(axes: Axes, curves: Sequence[Series], look: dict[str, Look], measure: str, scale: str) -> None:
    labels = list(look)
    for curve in curves:
        one = look[curve.curve]
        rounds, mean, stderr = _points(curve, measure, scale)
        position = labels.index(curve.curve)
        if stderr is not None:
            low = np.maximum(mean - stderr, mean / 100) if scale == "log" else mean - stderr
            axes.fill_between(rounds, low, mean + stderr, color=one.color, alpha=0.16, linewidth=0)
        axes.plot(
            rounds,
            mean,
            **line_style(one),
            markevery=_marked(rounds, position, len(labels), scale),
            zorder=3 + position / 99,
        )
    if scale == "log":
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.grid(True, color="#DDDDDD", linewidth=0.5)
    axes.set_axisbelow(True)
    for axis in (axes.xaxis, axes.yaxis):
        if scale == "log":
            axis.set_major_locator(LogLocator(base=10, numticks=6))
            axis.set_minor_formatter(NullFormatter())
        else:
            axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: thousands(value)))


def _points(curve: Series, measure: str, scale: str) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return the points of a curve: regret from round 0 on a linear scale, and only positive regret on a log scale."""
    if measure == "reward":
        return curve.rounds, curve.mean, curve.stderr
    if scale == "log":
        used = curve.mean > 0
        return curve.rounds[used], curve.mean[used], None if curve.stderr is None else curve.stderr[used]
    start = np.zeros(1)
    stderr = None if curve.stderr is None else np.concatenate([start, curve.stderr])
    return np.concatenate([start, curve.rounds]), np.concatenate([start, curve.mean]), stderr


def _marked(rounds: np.ndarray, position: int, count: int, scale: str) -> list[int]:
    """Return the places of five markers, shifted from curve to curve so that they do not cover each other."""
    if not len(rounds):
        return []
    places = (np.arange(5) + (position + 0.5) / count) / 5
    first, last = float(rounds[0]), float(rounds[-1])
    wanted = np.geomspace(first, last, 501) if scale == "log" else np.linspace(first, last, 501)
    nearest = {int(np.argmin(np.abs(rounds - wanted[int(500 * place)]))) for place in places}
    return sorted(nearest - {0})  # the first point lies on the axis


def _linear_limits(axes: Axes, curves: Sequence[Series], look: dict[str, Look]) -> None:
    """Set limits that show all curves, or all but the highest one if it is far above, which then gets a label."""
    axes.set_xlim(0, max(float(curve.rounds[-1]) for curve in curves))
    ends = sorted(curves, key=lambda curve: float(curve.mean.max()))
    top = float(ends[-1].mean.max())
    second = float(ends[-2].mean.max()) if len(ends) > 1 else 0.0
    if not second > 0 or top <= FAR_ABOVE * second:
        axes.set_ylim(0, 1.08 * top or 1.0)
        return
    axes.set_ylim(0, 1.3 * second)
    highest = ends[-1]
    leaves = float(np.interp(1.3 * second, highest.mean, highest.rounds))
    # Regret that leaves the panel early has room for its label on the right, above all other curves; regret that leaves
    # late, which only a convex curve does, has it on the left.
    early = leaves < 0.5 * axes.get_xlim()[1]
    axes.annotate(
        f"{_literal(textwrap.fill(highest.curve, LABEL_WIDTH))}\n↑ {thousands(top)}",
        (1 if early else 0, 1),
        xycoords="axes fraction",
        xytext=(-1 if early else 4, -1),
        textcoords="offset points",
        ha="right" if early else "left",
        va="top",
        fontsize=7.5,
        color=look[highest.curve].color,
    )


def _reward_limits(axes: Axes, curves: Sequence[Series], optimum: float | None) -> None:
    """Set limits from the lowest curve to the highest one or to the optimum, and draw the optimum."""
    means = np.concatenate([curve.mean for curve in curves] + ([] if optimum is None else [np.array([optimum])]))
    low, high = float(means.min()), float(means.max())
    air = 0.12 * (high - low) or 0.05
    axes.set_xlim(0, max(float(curve.rounds[-1]) for curve in curves))
    axes.set_ylim(low - air, high + air)
    if optimum is not None:
        axes.axhline(optimum, color=GREY, linestyle=(0, (5, 3)), linewidth=1.0, zorder=2)
        right: dict[str, Any] = {"xytext": (-2, 2), "textcoords": "offset points", "ha": "right", "va": "bottom"}
        axes.annotate(f"optimum {optimum:.3f}", (axes.get_xlim()[1], optimum), **right, fontsize=7.5, color=GREY)


def _log_limits(panels: Iterable[Axes], curves: Sequence[Series], bounds: Sequence[Bound]) -> None:
    """Set the same limits in all panels, from curves and bounds but not from the bands."""
    means = np.concatenate([curve.mean[curve.mean > 0] for curve in curves] or [np.ones(1)])
    rounds = np.concatenate([curve.rounds for curve in curves])
    highest = [np.append(bound.regret, bound.max_gap * rounds.max() or bound.regret[:1]) for bound in bounds]
    regrets = np.concatenate([means, *highest]) if len(means) else np.ones(1)
    for axes in panels:
        axes.set_xlim(
            float(rounds.min()), float(rounds.max()) if rounds.max() > rounds.min() else 2.0 * float(rounds.max())
        )
        axes.set_ylim(0.7 * float(regrets.min()), 1.6 * float(regrets.max()))


def _draw_bounds(axes: Axes, bounds: Sequence[Bound], curves: Sequence[Series], look: dict[str, Look]) -> None:
    """Draw bounds with the lines that they are compared with, or alone with a label beside them."""
    for bound in bounds:
        curve = next(curve for curve in curves if curve.policy == bound.policy)
        line = _bound_line(bound, look[curve.curve])
        axes.plot(bound.rounds, bound.regret, **line)
        if bound.explored:
            axes.axvline(bound.explored, color=line["color"], linestyle=(0, (1, 2)), linewidth=0.8, zorder=1)
            foot: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points", "ha": "right"}
            axes.annotate(r"$\tau$", (bound.explored, 0), xytext=(-2, 2), **foot, fontsize=8, color=line["color"])
        if bound.worst is not None:
            used = bound.worst > 0
            axes.plot(curve.rounds[used], bound.worst[used], color=line["color"], linewidth=THIN)
    max_gap = max((bound.max_gap for bound in bounds), default=0.0)
    if max_gap:
        ends = curves[0].rounds[[0, -1]]
        axes.plot(ends, max_gap * ends, color=GREY, linewidth=THIN, zorder=1)
    elif bounds:
        numbers = " and ".join(str(_theorem(bound)) for bound in bounds)
        name = f"bounds of Theorems {numbers}" if len(bounds) > 1 else f"bound of Theorem {numbers}"
        low = min(float(bound.regret[0]) for bound in bounds)
        below: dict[str, Any] = {"xytext": (6, -5), "textcoords": "offset points", "ha": "left", "va": "top"}
        axes.annotate(name, (float(bounds[0].rounds[0]), low), **below, fontsize=7.5, color="#444444")


def _bound_line(bound: Bound, look: Look) -> dict[str, Any]:
    """Return the dashed line of a bound.

    If μ̇min = μ̇max the two theorems' bounds are equal, so the second one fills the gaps of the first.  If they begin in
    different rounds they are not equal, and the second one has shorter dashes.

    Args:
        bound: The bound.
        look: The look of the curve that the bound is about.

    Returns:
        Arguments of `matplotlib.axes.Axes.plot`.
    """
    second = _theorem(bound) == 2
    dash = (0, (3, 5) if second else (9, 4)) if bound.explored else (6.0 if second else 0.0, (5, 7))
    return {"color": look.color, "linestyle": dash, "linewidth": 1.3}


def _theorem(bound: Bound) -> int:
    return 1 + list(theory.THEOREMS).index(bound.policy)


def _compared(bounds: Sequence[Bound], curves: Sequence[Series], look: dict[str, Look]) -> list[Line2D]:
    """Return the lines of the legend for bounds, and for what they are compared with."""
    colors = {curve.policy: look[curve.curve] for curve in curves}
    kinds = {bound.policy: bound for bound in bounds if bound.max_gap}
    lines = [
        Line2D([], [], label=f"bound of Theorem {_theorem(bound)}", **_bound_line(bound, colors[policy]))
        for policy, bound in kinds.items()
    ]
    if kinds:
        lines.append(Line2D([], [], label="worst instance", color=colors[next(iter(kinds))].color, linewidth=THIN))
        lines.append(Line2D([], [], label="n Δmax, largest possible", color=GREY, linewidth=THIN))
    return lines


def _literal(text: str) -> str:
    """Escape $, which would start a formula in matplotlib."""
    return text.replace("$", r"\$")


def thousands(value: float) -> str:
    """Return a number as it is written on an axis: 500, 2k, 12.5k, 1M."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
