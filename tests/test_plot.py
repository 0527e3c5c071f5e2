"""Figures: legible without colors, complete, and the same every time."""

import io
import re
import sys

import matplotlib
import numpy as np
import pytest
from PIL import Image

from explorax import plot, summarize, theory
from explorax.errors import InvalidArgument, UnknownName
from tests import fabricate


@pytest.fixture(scope="module")
def curves():
    return summarize.series(fabricate.results(), "regret")


@pytest.fixture(scope="module")
def rewards():
    return summarize.series(fabricate.deep_results(), "reward")


def panel_lines(axes):
    """The curves of a panel, without bounds."""
    return [line for line in axes.lines if line.get_marker() != "None"]


@pytest.mark.parametrize(("dims", "grid"), [((5,), (1, 1)), ((5, 10, 20), (1, 3)), ((2, 3, 5, 8), (2, 2))])
def test_a_panel_for_each_number_of_features(dims, grid):
    drawn = plot.figure(summarize.series(fabricate.results(dims=dims), "regret"))
    assert [axes.get_title() for axes in drawn.axes] == [f"$d = {dim}$" for dim in dims]
    assert drawn.axes[0].get_gridspec().get_geometry() == grid
    assert drawn.axes[0].get_ylabel() == "Regret"
    assert drawn.axes[-1].get_xlabel() == "Round $n$"
    assert all(len(panel_lines(axes)) == 8 for axes in drawn.axes)


def test_lines_are_the_means_from_round_zero_and_bands_one_standard_error(curves):
    axes = plot.figure(curves).axes[0]
    for curve, line, band in zip(curves, panel_lines(axes), axes.collections, strict=False):
        np.testing.assert_allclose(line.get_ydata(), [0.0, *curve.mean])
        np.testing.assert_allclose(line.get_xdata(), [0, *curve.rounds])
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx((curve.mean + curve.stderr).max())


def test_every_curve_is_in_the_legend_and_the_legend_covers_no_panel(curves):
    drawn = plot.figure(curves)
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [curve.curve for curve in curves[:8]]
    renderer = drawn.canvas.get_renderer()
    inside = legend.get_window_extent(renderer)
    assert drawn.bbox.x0 <= inside.x0
    assert inside.x1 <= drawn.bbox.x1
    for axes in drawn.axes:
        assert not inside.overlaps(axes.get_tightbbox(renderer))


def test_a_curve_far_above_the_others_does_not_press_them_to_the_floor(curves):
    axes = plot.figure(curves).axes[0]
    second = sorted(float(curve.mean.max()) for curve in curves if curve.panel == "d = 5")[-2]
    assert axes.get_ylim()[1] == pytest.approx(1.3 * second)
    (note,) = axes.texts
    assert re.fullmatch(r"GLM-UCB \(theory\)\n↑ [\d.]+k", note.get_text())
    without = plot.figure([curve for curve in curves if curve.curve != "GLM-UCB (theory)"]).axes[0]
    assert not without.texts
    assert without.get_ylim()[1] > second


@pytest.mark.parametrize("power", [0.5, 0.8, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("ratio", [2.9, 3.1, 10.0, 300.0])
def test_the_label_of_a_curve_that_leaves_a_panel_covers_no_curve(curves, ratio, power):
    """Of three panels, the narrowest there are; a curve with t^power, and the second highest, which is linear."""
    drawn = []
    for panel in ("a", "b", "c"):
        ours = curves[0]._replace(panel=panel)
        steps = ours.rounds / ours.rounds[-1]
        second = curves[2]._replace(panel=panel, mean=100 * steps, stderr=None)
        drawn += [ours._replace(mean=100 * ratio * steps**power, stderr=None), second]
    figure = plot.figure(drawn)
    for axes in figure.axes:
        assert len(axes.texts) == (ratio > plot.FAR_ABOVE)
        for note in axes.texts:
            box = note.get_window_extent(figure.canvas.get_renderer())
            inside = axes.get_window_extent()
            assert inside.x0 <= box.x0 < box.x1 <= inside.x1 + 1
            assert inside.y0 <= box.y0 < box.y1 <= inside.y1
            for line in panel_lines(axes):
                points = line.get_transform().transform(line.get_xydata())
                for x in np.linspace(box.x0, box.x1, 50):
                    y = np.interp(x, points[:, 0], points[:, 1])
                    assert not box.y0 <= y <= box.y1, (ratio, power)


def test_average_rewards_are_drawn_below_their_optimum(rewards):
    optima = dict.fromkeys(fabricate.DEEP_PANELS[:3], 0.5757)
    drawn = plot.figure(rewards, measure="reward", optima=optima)
    assert [axes.get_title() for axes in drawn.axes] == list(fabricate.DEEP_PANELS)
    assert drawn.axes[0].get_gridspec().get_geometry() == (2, 2)
    assert [axes.get_ylabel() for axes in drawn.axes] == ["Average reward", "", "Average reward", ""]
    for axes, panel in zip(drawn.axes, fabricate.DEEP_PANELS, strict=True):
        here = [curve for curve in rewards if curve.panel == panel]
        for curve, line, band in zip(here, panel_lines(axes), axes.collections, strict=True):
            np.testing.assert_allclose(line.get_ydata(), curve.mean)  # from the first checkpoint on
            np.testing.assert_allclose(line.get_xdata(), curve.rounds)
            assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx((curve.mean + curve.stderr).max())
        lowest, highest = min(c.mean.min() for c in here), max(c.mean.max() for c in here)
        low, high = axes.get_ylim()
        if panel in optima:
            (line,) = [one for one in axes.lines if one.get_marker() == "None"]
            assert list(line.get_ydata()) == [0.5757, 0.5757]
            assert [text.get_text() for text in axes.texts] == ["optimum 0.576"]
            highest = 0.5757
        else:
            assert len(axes.lines) == 6
            assert not axes.texts
        assert lowest - 0.2 * (highest - lowest) < low < lowest < highest < high < highest + 0.2 * (highest - lowest)


def test_log_scale_keeps_to_what_can_be_drawn(curves):
    start = curves[0]._replace(curve="starts late", mean=np.maximum(curves[0].mean - 2000, 0.0))
    axes = plot.figure([*curves, start], scale="log").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert all(np.all(line.get_ydata() > 0) for line in panel_lines(axes))
    assert np.all(np.isfinite(np.log(axes.get_ylim())))


def test_bounds_are_the_theorems_and_need_a_log_scale(curves):
    bounds = []
    for dim in (5, 10, 20):
        here = [curve for curve in curves if curve.panel == f"d = {dim}"]
        bounds += plot.bounds(here, n_features=dim, n_arms=100)
    assert [(bound.panel, bound.policy) for bound in bounds] == [
        (f"d = {d}", p) for d in (5, 10, 20) for p in ("glm_tsl", "glm_fpl")
    ]
    at = theory.problem(n_features=5, rounds=50_000, n_arms=100)
    assert bounds[0].regret[-1] == pytest.approx(theory.regret_bound(bounds[0].policy, at))
    with pytest.raises(InvalidArgument, match=r"scale must be 'log' with bounds, .* got 'linear'"):
        plot.figure(curves, bounds=bounds)
    drawn = plot.figure(curves, scale="log", bounds=bounds)
    for axes in drawn.axes:
        assert [text.get_text() for text in axes.texts] == ["bounds of Theorems 1 and 2"]
        assert len(axes.lines) == 8 + 2
        assert axes.get_ylim()[1] > max(float(bound.regret.max()) for bound in bounds)
    assert plot.bounds([curves[0]], n_features=5, n_arms=100) == []


def test_bounds_begin_where_the_theorems_do():
    early = summarize.series(fabricate.results(rounds=100, dims=(20,)), "regret")
    assert [int(bound.rounds[0]) for bound in plot.bounds(early, n_features=20, n_arms=100)] == [21, 21]
    assert plot.bounds(early, n_features=200, n_arms=100) == []


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_odd_runs_are_drawn_too(curves, scale):
    one = curves[0]._replace(rounds=np.array([7]), mean=np.array([3.0]), stderr=None, curve="costs $5 and $6")
    for drawn in (plot.figure([one], scale=scale), plot.figure([one._replace(mean=np.zeros(1))], scale=scale)):
        assert plot.to_bytes(drawn, dpi=40).startswith(b"\x89PNG")
    if scale == "linear":
        assert plot.to_bytes(plot.figure([one._replace(panel="$5")], measure="reward"), dpi=40)


def test_png_has_the_size_asked_for_and_is_not_empty(curves):
    drawn = plot.figure(curves, title="Logistic bandit")
    image = Image.open(io.BytesIO(plot.to_bytes(drawn, "png", dpi=100)))
    assert image.size == tuple(int(100 * inches) for inches in drawn.get_size_inches())
    assert image.size[0] > 2 * image.size[1]
    assert len(image.convert("RGB").getcolors(maxcolors=10**6)) > 50


def test_files_are_written_by_suffix_and_are_always_the_same(curves, tmp_path):
    for kind, start in (("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")):
        contents = []
        for attempt in range(2):
            path = tmp_path / f"{attempt}.{kind}"
            plot.save(plot.figure(curves), path)
            contents.append(path.read_bytes())
        assert contents[0].startswith(start)
        assert contents[0] == contents[1]
        assert b"CreationDate" not in contents[0]
    with pytest.raises(UnknownName, match=r"kind of figure must be one of .*, got 'jpg'"):
        plot.save(plot.figure(curves), tmp_path / "figure.jpg")


def test_what_cannot_be_drawn_is_explained(curves):
    with pytest.raises(UnknownName, match=r"scale must be one of .*, got 'loglog'"):
        plot.figure(curves, scale="loglog")
    with pytest.raises(UnknownName, match=r"measure must be one of .*, got 'gain'"):
        plot.figure(curves, measure="gain")
    with pytest.raises(InvalidArgument, match="scale must be 'linear' for average rewards"):
        plot.figure(curves, measure="reward", scale="log")
    with pytest.raises(InvalidArgument, match="nothing to draw"):
        plot.figure([])


def test_no_global_state(curves, monkeypatch):
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    before = matplotlib.rcParams.copy()  # unlike dict(), does not ask for a backend
    plot.to_bytes(plot.figure(curves), "png", dpi=40)
    assert matplotlib.rcParams.copy() == before
    assert "matplotlib.pyplot" not in sys.modules


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (500, "500"), (2000, "2k"), (12_500, "12.5k"), (1e6, "1M"), (0.5, "0.5")]
)
def test_numbers_of_an_axis(value, text):
    assert plot.thousands(value) == text
