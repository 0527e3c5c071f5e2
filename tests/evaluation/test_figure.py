"""The forest plot: a line for each value, in the right place."""

import numpy as np
import pytest

from explorax.evaluation.figure import draw
from explorax.looks import GREEN, GREY, ORANGE
from explorax.plot import to_bytes
from tests.evaluation.test_values import row

LOG = row(target="logging policy", estimator="on_policy", value=0.4, low=0.35, high=0.44, gain=None, gain_low=None)
ROWS = [
    LOG,
    row(target="a$b", low=0.45, high=0.55),
    row(target="a$b", estimator="snips", gain_low=-0.3, gain_high=-0.1),
    row(target="c", gain_low=-0.1, gain_high=0.1),
]


def test_every_value_has_its_line_and_its_color():
    (axes,) = draw(ROWS).axes
    spans = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and len(set(line.get_ydata())) == 1]
    assert [tuple(line.get_xdata()) for line in spans] == [(one.low, one.high) for one in ROWS]
    assert [line.get_color() for line in spans[1:]] == [GREEN, ORANGE, GREY]
    heights = [line.get_ydata()[0] for line in spans]
    assert np.all(np.diff(heights) > 0)  # the axis goes down
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    ticks = dict(zip([each.get_text() for each in axes.get_yticklabels()], axes.get_yticks(), strict=True))
    assert ticks == {"logging policy": heights[0], r"a\$b": np.mean(heights[1:3]), "c": heights[3]}


def test_the_legend_names_estimators_and_verdicts():
    (legend,) = draw(ROWS).legends
    assert {text.get_text() for text in legend.get_texts()} == {"dr", "snips", "better", "worse", "undecided"}


def test_a_log_alone_and_many_estimators():
    draw([LOG])
    draw([LOG, *(row(estimator=f"e{place}") for place in range(20))])


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_the_same_rows_make_the_same_file(kind, start):
    first = to_bytes(draw(ROWS), kind)
    assert first.startswith(start)
    assert to_bytes(draw(ROWS), kind) == first
