"""Names next to points, where nothing else is."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from common import Floats
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

RINGS = (6.0, 9.0, 13.0, 18.0, 24.0, 31.0, 39.0, 48.0, 58.0, 70.0, 84.0, 100.0)  # points from a point to its name
DIRECTIONS = 16


class Name(NamedTuple):
    """What to write, whose it is, and its colour."""

    text: str
    point: tuple[float, float]
    colour: str


class Place(NamedTuple):
    """Where a name may be: an offset from its point, and how it is aligned there."""

    offset: tuple[float, float]
    across: Literal["left", "center", "right"]
    up: Literal["bottom", "center", "top"]

    @property
    def far(self) -> bool:
        """Whether it takes a line to see whose name it is."""
        return float(np.hypot(*self.offset)) > RINGS[1] + 0.1

    @classmethod
    def at(cls, distance: float, angle: float) -> "Place":
        """The place at this distance and angle."""
        x, y = float(np.cos(angle)), float(np.sin(angle))
        return cls(
            (distance * x, distance * y),
            "center" if abs(x) < 0.3 else "left" if x > 0 else "right",
            "center" if abs(y) < 0.3 else "bottom" if y > 0 else "top",
        )


# The near ones first, and of these those to the right, then up and down.
TURNS = [(step + 1) // 2 * (-1) ** step for step in range(DIRECTIONS)]
PLACES = [Place.at(distance, 2 * np.pi * turn / DIRECTIONS) for distance in RINGS for turn in TURNS]


def write(axes: Axes, names: Sequence[Name], taken: Sequence[Bbox]) -> list[Annotation]:
    """Puts each name at the nearest place that is free, with a line to its point if that is not near.

    Free means: within the panel, and of what is taken already (in pixels), of other names, and of the lines to them; no
    line crosses a name or another point.  Names of crowded points go first, as they have the fewest places.  What finds
    no free place covers as little as it can.  The layout of the figure must be settled.
    """
    points = np.array([axes.transData.transform(name.point) for name in names])
    crowd = [np.sort(np.hypot(*(points - point).T))[1:4].sum() for point in points]
    writing = Writing(axes, points, list(taken), [])
    for index in np.argsort(crowd, kind="stable"):
        writing.add(names[index], points[index])
    return writing.texts


class Writing(NamedTuple):
    """What a panel has so far."""

    axes: Axes
    points: Floats  # no line may cross them
    taken: list[Bbox]  # no name may be there
    texts: list[Annotation]  # no line may cross them

    def add(self, name: Name, point: Floats) -> None:
        """Writes a name."""
        text = self.axes.annotate(name.text, name.point, xytext=(0, 0), textcoords="offset points", zorder=4)
        text.set(fontsize=7.5, color=name.colour)
        costs = []
        for place in PLACES:
            costs.append(self.cost(text, point, place))
            if costs[-1] == 0:
                break
        place = PLACES[int(np.argmin(costs))]
        self.taken.extend([moved(text, place), *line(text, point, place)])
        self.texts.append(text)
        if place.far:
            look = {"arrowstyle": "-", "color": name.colour, "linewidth": 0.4, "shrinkA": 0.0, "shrinkB": 3.0}
            self.axes.annotate("", name.point, xytext=place.offset, textcoords="offset points", arrowprops=look)

    def cost(self, text: Annotation, point: Floats, place: Place) -> float:
        """How much would be covered; infinite outside of the panel."""
        room, box = self.axes.get_window_extent(), moved(text, place)
        if box.x0 < room.x0 or box.x1 > room.x1 or box.y0 < room.y0 or box.y1 > room.y1:
            return np.inf
        crossed = [each.get_window_extent() for each in self.texts]
        crossed += [Bbox([other, other]).padded(5) for other in self.points if not np.array_equal(other, point)]
        return sum(overlap(box, other) for other in self.taken) + sum(
            overlap(spot, other) for spot in line(text, point, place) for other in crossed
        )


def moved(text: Annotation, place: Place) -> Bbox:
    """Moves a name and says what it covers, with some air."""
    text.set(position=place.offset, horizontalalignment=place.across, verticalalignment=place.up)
    return text.get_window_extent().padded(4, 1.5)


def line(text: Annotation, point: Floats, place: Place) -> list[Bbox]:
    """The line from a point to its name as small boxes, where there is one."""
    end = point + np.array(place.offset) * pixels(text)
    return [Bbox([spot, spot]).padded(1) for spot in np.linspace(point, end, 20)[3:-1]] if place.far else []


def pixels(artist: Artist) -> float:
    """How many of them a point is."""
    figure = artist.get_figure(root=True)
    assert figure is not None
    return figure.dpi / 72


def overlap(first: Bbox, second: Bbox) -> float:
    """The area that both cover."""
    width = min(first.x1, second.x1) - max(first.x0, second.x0)
    height = min(first.y1, second.y1) - max(first.y0, second.y0)
    return max(width, 0.0) * max(height, 0.0)
