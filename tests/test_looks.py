"""Curves can be told apart: by colors, without colors, and the same way in every figure."""

import numpy as np
import pytest

from explorax import looks, summarize
from tests import fabricate


@pytest.fixture(scope="module")
def curves():
    return summarize.series(fabricate.results(), "regret")


@pytest.fixture(scope="module")
def rewards():
    return summarize.series(fabricate.deep_results(), "reward")


def lightness(color):
    """CIE L*, from 0 (black) to 100 (white)."""
    srgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    y = float(linear @ [0.2126, 0.7152, 0.0722])
    return 116 * np.cbrt(y) - 16 if y > 0.008856 else 903.3 * y


def test_policies_differ_in_lightness_and_marker_and_designs_in_dash(curves):
    look = looks.looks(curves)
    assert len(set(look.values())) == 8
    for policy in ("GLM-UCB", "UCB-GLM", "GLM-TSL", "GLM-FPL"):
        theory_look, informal = look[f"{policy} (theory)"], look[f"{policy} (informal)"]
        assert (theory_look.color, theory_look.marker) == (informal.color, informal.marker)
        assert theory_look.dash == "solid"
        assert informal.dash != "solid"
        assert informal.hollow
        assert not theory_look.hollow
    shades = sorted(lightness(one.color) for one in look.values() if not one.hollow)
    assert min(np.diff(shades)) > 10
    assert shades[-1] < 75  # and the lightest is dark enough for white paper
    assert len({one.marker for one in look.values()}) == 4
    assert (len(set(looks.COLOURS)), len(set(looks.MARKERS))) == (7, 8)


def test_curves_of_figure_2_can_be_told_apart_by_colour_and_without(rewards):
    more = [rewards[0]._replace(curve=name, policy=name) for name in ("neural_linear", "uniform")]
    look = looks.looks([*rewards, *more])
    assert len({one.color for one in list(look.values())[:7]}) == 7
    assert len({one.marker for one in look.values()}) == 8
    deep_fpl, deep_fl, *variants = list(look.values())[:6]
    assert lightness(deep_fl.color) - lightness(deep_fpl.color) > 40
    assert deep_fpl.dash == deep_fl.dash == "solid"
    assert len({one.dash for one in variants}) == 4
    alone = [curve for curve in rewards if curve.policy == "rep_glm_fpl"]
    assert looks.looks(alone).items() <= look.items()


def test_looks_do_not_depend_on_what_else_is_drawn(curves):
    alone = [curve for curve in curves if curve.policy == "glm_fpl"]
    assert looks.looks(alone).items() <= looks.looks(curves).items()


def test_two_curves_of_one_policy_and_design_can_be_told_apart(curves):
    variants = [curves[5]._replace(curve=label) for label in ("a = 1", "a = 2", "a = 4")]
    assert len({one.color for one in looks.looks(variants).values()}) == 3
