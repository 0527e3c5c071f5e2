"""Lists of values in the settings of curves and panels, and the curves and panels of all their combinations.

A list in the place of one value means: play each of them.  What is one value is decided by the declared type of the
setting (`builders.values_in`), so `scale = [0.5, 1]` are two values, `hidden = [16, 16]` is one, and
`hidden = [[16], [32]]` are two.
"""

import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from explorax import environments
from explorax.builders import values_in
from explorax.errors import InvalidArgument
from explorax.experiments.labels import check_labels
from explorax.experiments.study import Curve, Panel
from explorax.record import plain
from explorax.registry import entry_of
from explorax.text import grouped

MOST = 10_000  # curves times panels
LONG = 40  # characters of a value in a label

Lists = dict[str, list[Any]]  # of values, by the name of the setting


class Swept(NamedTuple):
    """A curve as it is given, with the curves that its lists make; one without lists makes itself.

    Attributes:
        label: The label of the curve as it is given.
        curves: The curves, each with a value from each list.
        values: For each of these curves, its values as text, by the name of the setting.
    """

    label: str
    curves: tuple[Curve, ...]
    values: tuple[dict[str, str], ...]

    @property
    def is_swept(self) -> bool:
        """Whether the curve has lists."""
        return bool(self.values[0])


class Grid(NamedTuple):
    """Curves, panels and settings of an environment as they are given, which may have lists of values.

    Attributes:
        environment: The name of the environment.
        environment_settings: Its settings that all panels share.
        panels: The panels.
        curves: The curves, of which `design` may be a list, too.
    """

    environment: str
    environment_settings: dict[str, Any]
    panels: tuple[Panel, ...]
    curves: tuple[Curve, ...]

    def plain(self) -> dict[str, Any]:
        """Return the grid as plain data, as it stands in the settings of a study."""
        return {
            "panels": [one._asdict() for one in self.panels],
            "curves": [one._asdict() for one in self.curves],
            "environment_settings": self.environment_settings,
        }

    def has_lists(self) -> bool:
        """Return whether anything is a list of values."""
        panels = (table for panel in self.panels for table in (self.of_environment(panel), self.of_curves(panel)))
        return any(self.of_curve(curve) for curve in self.curves) or any(panels) or bool(self.shared())

    def of_curve(self, curve: Curve) -> Lists:
        """Return the lists of a curve."""
        design: Lists = {"design": list(curve.design)} if isinstance(curve.design, list) else {}
        builder = entry_of(curve.policy).builder()
        return design | lists(curve.settings, lambda name, value: values_in(builder, name, value), {"design"})

    def of_environment(self, panel: Panel) -> Lists:
        """Return the lists in the settings of a panel's environment."""
        return lists(panel.environment_settings, self.of_builder)

    def of_curves(self, panel: Panel) -> Lists:
        """Return the lists in the settings that a panel adds to its curves."""
        builders = [entry_of(curve.policy).builder() for curve in self.curves]

        def read(name: str, value: Any) -> list[Any] | None:
            found = (values_in(one, name, value) for one in builders)
            return next((values for values in found if values is not None), None)

        return lists(panel.curve_settings, read)

    def shared(self) -> Lists:
        """Return the lists in the settings of the environment that all panels share."""
        return lists(self.environment_settings, self.of_builder)

    def of_builder(self, name: str, value: Any) -> list[Any] | None:
        """Return the values in a list for a setting of the environment; None if it is one value."""
        builder = environments.BUILDERS.get(str(self.environment).lower())
        return None if builder is None else values_in(builder, name, value)

    def check(self) -> None:
        """Raise `InvalidArgument` if labels are missing or not unique, lists cannot be used, or there is too much."""
        check_labels("panels", [panel.label for panel in self.panels])
        check_labels("curves", [curve.label for curve in self.curves])
        of_curves = [(curve.label, self.of_curve(curve)) for curve in self.curves]
        of_panels = [
            (panel.label, self.shared() | self.of_environment(panel) | self.of_curves(panel)) for panel in self.panels
        ]
        for label, found in (*of_curves, *of_panels):
            for name, values in found.items():
                check_values(f"{name} of {label!r}", values)
        curves, panels = (
            sum(math.prod(map(len, found.values())) for _, found in of_some) for of_some in (of_curves, of_panels)
        )
        if curves * panels > MOST:
            raise InvalidArgument(
                f"curves times panels must be at most {grouped(MOST)}, got {grouped(curves)} times {grouped(panels)}. "
                "Give shorter lists, or make several studies."
            )

    def swept(self) -> list[Swept]:
        """Return each curve with those that its lists make."""
        return [self._swept(curve) for curve in self.curves]

    def _swept(self, curve: Curve) -> Swept:
        curves, values = [], []
        for chosen, said in combinations(self.of_curve(curve)):
            design = chosen.pop("design", curve.design)
            curves.append(Curve(labelled(curve.label, said), curve.policy, design, curve.settings | chosen))
            values.append(said)
        return Swept(curve.label, tuple(curves), tuple(values))

    def all_panels(self) -> list[Panel]:
        """Return the panels that the lists of panels and environment make."""
        shared, found = self.shared(), []
        for panel in self.panels:
            own, of_curves = self.of_environment(panel), self.of_curves(panel)
            for name in shared:
                if name in panel.environment_settings:
                    raise InvalidArgument(
                        f"Panel {panel.label!r} and the study both set {name!r}. Leave one of the two out."
                    )
            for name in of_curves:
                if name in shared or name in own:
                    raise InvalidArgument(
                        f"Panel {panel.label!r} has lists of {name!r} for its environment and for its curves. "
                        "Make a panel of each value of one of the two."
                    )
            for chosen, said in combinations(shared | own | of_curves):
                of_environment = {name: value for name, value in chosen.items() if name not in of_curves}
                found.append(
                    Panel(
                        labelled(panel.label, said),
                        panel.environment_settings | of_environment,
                        panel.curve_settings | {name: chosen[name] for name in of_curves},
                        panel.tags | {name: tag(plain(chosen[name]), text) for name, text in said.items()},
                    )
                )
        return found

    def without_lists(self) -> dict[str, Any]:
        """Return the settings of the environment that have the same value in all panels."""
        return {name: value for name, value in self.environment_settings.items() if name not in self.shared()}


def lists(settings: Mapping[str, Any], read: Callable[[str, Any], list[Any] | None], but: Iterable[str] = ()) -> Lists:
    """Return those settings that have a list of values, except for some names."""
    found = {name: read(name, value) for name, value in settings.items() if name not in but}
    return {name: values for name, values in found.items() if values is not None}


def check_values(name: str, values: Sequence[Any]) -> None:
    """Raise `InvalidArgument` unless a list has at least one value, and each once."""
    if not values:
        raise InvalidArgument(f"{name} must have at least one value, got []. Leave it out for its default.")
    texts = list(map(text_of, values))
    for text in texts:
        if texts.count(text) > 1:
            raise InvalidArgument(f"{name} must have different values, got {text} twice. Leave one out.")


def combinations(found: Lists) -> Iterable[tuple[dict[str, Any], dict[str, str]]]:
    """Yield each choice of one value from each list, together with the values as text; the last list changes first."""
    numbered = [[(name, value, shortened(value, number)) for number, value in enumerate(found[name])] for name in found]
    for chosen in itertools.product(*numbered):
        yield {name: value for name, value, _ in chosen}, {name: text for name, _, text in chosen}


def labelled(label: str, values: Mapping[str, str]) -> str:
    """Return a label with values behind it, as in "GLM-TSL, scale = 0.5"."""
    return ", ".join([label, *(f"{name} = {text}" for name, text in values.items())])


def text_of(value: Any) -> str:
    """Return a value as a settings file has it, the same for equal numbers; text is not in quotes."""
    return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)


def shortened(value: Any, number: int) -> str:
    """Return a value as a label has it: whole, or by its number in the list if it is long."""
    text = text_of(value)
    return text if len(text) <= LONG else f"no. {number + 1}"


def tag(value: Any, text: str) -> str | int:
    """Return a value as the tag of a panel, which is text or a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else text
