"""Settings that are written once: their names, defaults and help, for a small builder of our own."""

import inspect
import sys
from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict, Unpack

import pytest

import explorax
from explorax.builders import (
    Setting,
    defaults,
    documented,
    filled,
    parameters,
    rule_of,
    setting_names,
    settings_in,
    shared_settings,
    values_in,
)
from explorax.errors import UnknownName


class Shared(TypedDict, total=False):
    """Settings of two builders."""

    ridge: Annotated[float, Setting(1.0, "λ of the fit.")]
    window: Annotated[int | None, Setting(None, "W, the rewards that count.", "None, all count")]


def build(*, scale: Annotated[float, "How much to explore."] = 0.5, plain: int = 3, **settings: Unpack[Shared]) -> dict:
    """Build something."""
    return {"scale": scale, "plain": plain, **filled(Shared, settings)}


def alone(*, epsilon: float = 0.1) -> float:
    """Build something without shared settings."""
    return epsilon


def test_defaults_are_filled_in():
    assert build() == {"scale": 0.5, "plain": 3, "ridge": 1.0, "window": None}
    assert build(window=7)["window"] == 7
    given = {"ridge": 2.0}
    assert filled(Shared, given) == {"ridge": 2.0, "window": None}
    assert given == {"ridge": 2.0}


def test_unknown_settings_are_refused():
    with pytest.raises(UnknownName, match=r"setting must be one of .*, got 'rigde'. Did you mean 'ridge'"):
        filled(Shared, {"rigde": 2.0})


def test_names_and_defaults_stand_in_the_signature():
    assert setting_names(build) == ["scale", "plain", "ridge", "window"]
    assert {one.name: one.default for one in parameters(build)} == build()
    assert setting_names(alone) == ["epsilon"]
    assert (shared_settings(build), shared_settings(alone)) == (Shared, None)
    assert list(settings_in(Shared)) == ["ridge", "window"]


def test_a_builder_may_have_defaults_of_its_own():
    other = defaults(window=7)(build)
    assert other() == {"scale": 0.5, "plain": 3, "ridge": 1.0, "window": 7}
    assert other(window=None)["window"] is None
    assert {one.name: one.default for one in parameters(other)} == other()
    text = inspect.getdoc(documented(other, "Returns:\n    A record."))
    assert "    window: W, the rewards that count. Default: 7." in text
    assert build()["window"] is None


def test_a_rule_is_explained_by_the_module_of_its_builder():
    assert rule_of(build) == inspect.getdoc(sys.modules[__name__])
    rule = rule_of(explorax.glm_tsl)  # whose own first line says what the summary of the module does
    assert "GLM-TSL: " not in rule
    assert "θ̃ ~ N(θ̄, a² H⁻¹)" in rule


def test_help_explains_every_setting():
    def copy(*, scale: Annotated[float, "How much to explore."] = 0.5, **settings: Unpack[Shared]) -> dict:
        """Build something."""
        return build(scale=scale, **settings)

    text = inspect.getdoc(documented(copy, "Returns:\n    A record."))
    assert text.startswith("Build something.")
    assert "    scale: How much to explore. Default: 0.5." in text
    assert "    ridge: λ of the fit. Default: 1.0." in text
    assert "    window: W, the rewards that count. Default: None, all count." in text
    assert text.endswith("Returns:\n    A record.")
    assert list(inspect.signature(copy).parameters) == ["scale", "ridge", "window"]
    assert copy(scale=2.0, ridge=3.0)["ridge"] == 3.0


def test_lists_of_values_are_told_from_values_that_are_lists():
    def builder(
        *,
        one: Annotated[float | Literal["auto"] | None, "A number."] = 1.0,
        row: Annotated[Sequence[int], "Sizes."] = (1,),
        pair: Annotated[tuple[float, float], "Limits."] = (0.0, 1.0),
        table: Annotated[int | Sequence[Sequence[float]] | None, "Numbers, or one."] = None,
    ) -> None:
        """Build."""

    for name, value, values in (
        ("one", 1, None),
        ("one", [1, 2], [1, 2]),
        ("one", [], []),
        ("one", [[1, 2]], None),
        ("row", [1, 2], None),
        ("row", [], None),
        ("row", [[1], [2, 3]], [[1], [2, 3]]),
        ("row", 3, None),
        ("pair", [0, 1], None),
        ("pair", [[0, 1]], [[0, 1]]),
        ("table", [[1.0]], None),
        ("table", [1, 2], [1, 2]),
        ("table", [[[1.0]], [[2.0]]], [[[1.0]], [[2.0]]]),
        ("missing", [1, 2], None),
    ):
        assert values_in(builder, name, value) == values, (name, value)
