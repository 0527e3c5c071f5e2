"""The figure of ranks names every policy."""

from explorax.arena import figure
from explorax.arena.standings import ranks
from tests.arena.played import ROWS


def test_the_figure_names_every_policy():
    drawn = figure.draw(ranks(ROWS))
    labels = [label.get_text() for axes in drawn.axes for label in axes.get_yticklabels()]
    assert labels == ["B", "GLM_TSL"]  # by tuned rank
