"""A sweep: a study of all combinations of settings, each a curve or a panel of its own, that ends in one table.

With successive halving, settings that look bad on the first instances play no others (`halving.py`).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

from explorax.environments import Environment
from explorax.errors import InvalidArgument
from explorax.experiments.grid import Grid, Swept
from explorax.experiments.ranking import Standing, columns, names_of, standings, table_of_all, table_of_fresh
from explorax.experiments.study import MEASURED, Curve, Drawing, Figure, Panel, Study
from explorax.halving import Halving, Race, Rung
from explorax.policies.base import Policy
from explorax.record import Result
from explorax.text import Table, grouped, listed

MOST_DRAWN = 24  # panels


@dataclass(frozen=True, kw_only=True)
class Sweep(Study):
    """A study whose curves and panels are the combinations of settings that are lists of values.

    Attributes:
        grid: The curves, the panels and the settings of the environment as they are given, with lists.
        halving: The settings of successive halving; None if every setting plays all instances.
    """

    stem: ClassVar[str] = "sweep"

    grid: Grid
    halving: Halving | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        names = names_of(self.swept)
        for name in self.panels[0].tags:
            if name in names:
                raise InvalidArgument(
                    f"Lists must have one name once, got {name!r} for curves and for panels, which are columns of one "
                    "table. Write out the panels, each with a label and tags of its own."
                )
        if self.halving and not names:
            raise InvalidArgument(
                "halving must be left out if no curve has a list of values for a setting, among which it would choose, "
                f"got {asdict(self.halving)}. Add a list, or leave it out."
            )
        self.races()  # complains if there are too few instances

    @classmethod
    def of(cls, grid: Grid, halving: Halving | None = None, **settings: Any) -> "Sweep":
        """Build a sweep.

        Args:
            grid: Curves, panels and settings of the environment, with lists.
            halving: The settings of successive halving. Default: every setting plays all instances.
            **settings: The other settings of the study.

        Returns:
            The sweep, with a curve and a panel for each combination.

        Raises:
            InvalidArgument: If a list cannot be used, or a combination of settings cannot.
        """
        grid.check()
        curves = tuple(curve for one in grid.swept() for curve in one.curves)
        return cls(
            environment=grid.environment,
            environment_settings=grid.without_lists(),
            panels=tuple(grid.all_panels()),
            curves=curves,
            grid=grid,
            halving=halving,
            **settings,
        )

    @cached_property
    def swept(self) -> list[Swept]:
        """The curves as they are given, each with those that its lists make."""
        return self.grid.swept()

    def settings(self) -> dict[str, Any]:
        """Return the sweep as plain data, with its lists, which `from_settings` turns back into it."""
        halving = {"halving": asdict(self.halving)} if self.halving else {}
        return super().settings() | self.grid.plain() | halving

    def races(self) -> list[Race]:
        """Return one race for the settings of each swept curve, and one for all other curves."""
        if self.halving is None:
            return super().races()
        others = tuple(one.curves[0].label for one in self.swept if not one.is_swept)
        return [
            *([Race(others, (Rung(len(others), self.instances),))] if others else []),
            *(
                self.halving.race(one.label, tuple(curve.label for curve in one.curves), self.instances)
                for one in self.swept
                if one.is_swept
            ),
        ]

    def make(self, curve: Curve, panel: Panel, **more: object) -> Policy:
        """Build the policy of a curve in a panel, and name both if that cannot be done."""
        try:
            return super().make(curve, panel, **more)
        except InvalidArgument as error:
            raise InvalidArgument(f"{curve.label}, {panel.label}: {error}") from error

    def make_environment(self, panel: Panel, **more: object) -> Environment:
        """Build the environment of a panel, and name the panel if that cannot be done."""
        try:
            return super().make_environment(panel, **more)
        except InvalidArgument as error:
            raise InvalidArgument(f"{panel.label}: {error}") from error

    @property
    def title(self) -> str:
        """The title of the report."""
        return f"{MEASURED[self.measure]} in the sweep {self.name!r}"

    @property
    def about(self) -> str:
        """The purpose of the study, and who plays what for how long, as one paragraph of text."""
        several = [f"{one.label} with {len(one.curves)} settings" for one in self.swept if one.is_swept]
        lists = f"The sweep plays {listed(several)}." if several else ""
        return " ".join(filter(None, [super().about, lists, self._halved()]))

    def _halved(self) -> str:
        """Return a sentence about successive halving."""
        if self.halving is None:
            return ""
        return (
            f"Successive halving gives up settings early: all play the first {grouped(self.halving.instances)} "
            f"problems, then in each panel the best 1 in {self.halving.keep} of a curve go on to "
            f"{self.halving.keep} times as many, until one is left, which plays all."
        )

    def standings(self, results: Sequence[Result]) -> list[Standing]:
        """Return the standings of all settings of each curve in each panel, the best first."""
        chosen_on = {label: race.chosen_on for race in self.races() for label in race.curves}
        return standings(self.swept, results, self.measure, chosen_on.__getitem__)

    def tables(self, results: Sequence[Result]) -> list[Table]:
        """Return the table of all settings and, with halving, that of the chosen ones on fresh instances."""
        found, halved = self.standings(results), self.halving is not None
        fresh = table_of_fresh(found, self.measure)
        return [table_of_all(found, self.measure, halved), *([fresh] if fresh else [])]

    def columns(self, results: Sequence[Result]) -> list[dict[str, object]]:
        """Return the values of swept settings, the mark and what fresh instances tell, for each row of summary.csv."""
        cells = columns(self.standings(results), self.halving is not None)
        return [cells[result.curve, result.panel] for result in results]

    def shown(self, results: Sequence[Result]) -> list[Result]:
        """Return the results that figures show: of each curve its best setting in each of the first panels."""
        panels = [panel.label for panel in self.panels[:MOST_DRAWN]]
        best = [one for one in self.standings(results) if one.rank == 1 and one.result.panel in panels]
        return [
            one.result._replace(curve=f"{one.swept.label}, best of {len(one.swept.curves)}")
            if one.swept.is_swept
            else one.result
            for one in best
        ]

    def drawings(self, results: Sequence[Result], asked: Figure) -> list[Drawing]:
        """Return the figures of the study, with what they leave out."""
        left_out = sum(len(one.curves) - 1 for one in self.swept)
        remarks = []
        if left_out:
            remarks.append(
                "Of each curve that was swept, the best setting of the panel is drawn, which the table marks; "
                f"{grouped(left_out)} other {'setting is' if left_out == 1 else 'settings are'} in the table only."
            )
        if len(self.panels) > MOST_DRAWN:
            remarks.append(f"The first {MOST_DRAWN} of {grouped(len(self.panels))} panels are drawn.")
        return [one._replace(remark=" ".join(remarks)) for one in super().drawings(results, asked)]
