"""Lists of values in settings become curves and panels, and nothing else does."""

import json

import pytest

from explorax import record
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Study
from explorax.experiments.sweep import Sweep
from tests.experiments.plain import GOOD

LIN_TS = GOOD | {"dims": [2], "curves": [{"policy": "lin_ts", "settings": {"scale": [0.5, 1.0]}}]}
DEEP = {"policy": "deep_fl", "label": "net"}


def curves(*several):
    return [(one.label, one.design, one.settings) for one in from_settings(LIN_TS | {"curves": list(several)}).curves]


def test_a_curve_for_each_combination():
    plain = {"policy": "uniform"}
    swept = {"policy": "lin_ts", "label": "L", "settings": {"scale": [0.5, 1.0], "noise_std": 2.0, "ridge": [1, 3]}}
    assert curves(plain, swept) == [
        ("Uniform", "", {}),
        *(
            (f"L, scale = {a:g}, ridge = {b}", "informal", {"scale": a, "noise_std": 2.0, "ridge": b})
            for a in (0.5, 1.0)
            for b in (1, 3)
        ),
    ]


def test_designs_are_swept_like_settings():
    both = {"policy": "lin_ts", "design": ["informal", "theory"], "settings": {"ridge": [2]}}
    assert curves(both) == [
        ("LinTS, design = informal, ridge = 2", "informal", {"ridge": 2}),
        ("LinTS, design = theory, ridge = 2", "theory", {"ridge": 2}),
    ]


def test_what_is_one_value_is_decided_by_the_type_of_the_setting():
    assert curves(DEEP | {"settings": {"hidden": [16, 4]}}) == [("net", "", {"hidden": [16, 4]})]
    assert curves(DEEP | {"settings": {"hidden": [[16], [8, 8]], "activation": ["relu", "tanh"]}}) == [
        (f"net, hidden = {hidden}, activation = {name}", "", {"hidden": hidden, "activation": name})
        for hidden in ([16], [8, 8])
        for name in ("relu", "tanh")
    ]
    arms, theta = [[1.0, 0.0], [0.0, 1.0]], [0.5, -0.5]
    without_dims = {name: value for name, value in LIN_TS.items() if name != "dims"}
    one = from_settings(without_dims | {"environment_settings": {"fixed_arms": arms, "theta": theta}})
    assert [panel.label for panel in one.panels] == ["logistic"]
    two = from_settings(without_dims | {"environment_settings": {"fixed_arms": arms, "theta": [theta, [1.0, 2.0]]}})
    assert [panel.environment_settings["theta"] for panel in two.panels] == [theta, [1.0, 2.0]]
    assert two.environment_settings == {"fixed_arms": arms}
    long = [[[float(number), 1.0] for number in range(start, start + 12)] for start in (0, 1)]
    assert [
        panel.label for panel in from_settings(without_dims | {"environment_settings": {"fixed_arms": long}}).panels
    ] == ["logistic, fixed_arms = no. 1", "logistic, fixed_arms = no. 2"]


def test_a_panel_for_each_combination():
    found = from_settings(LIN_TS | {"dims": [2, 3], "environment_settings": {"n_arms": [5, 9], "best_score": 2.5}})
    assert [(one.label, one.environment_settings, one.tags) for one in found.panels] == [
        (f"d = {d}, n_arms = {k}", {"n_features": d, "n_arms": k}, {"dim": d, "n_arms": k})
        for d in (2, 3)
        for k in (5, 9)
    ]
    assert found.environment_settings == {"best_score": 2.5}
    given = {"label": "p", "environment_settings": {"n_features": 2, "best_score": [1.5, 2.0]}}
    given |= {"curve_settings": {"ridge": [1, 9]}}
    found = from_settings({name: value for name, value in LIN_TS.items() if name != "dims"} | {"panels": [given]})
    assert [(one.label, one.environment_settings["best_score"], one.curve_settings) for one in found.panels] == [
        (f"p, best_score = {score:g}, ridge = {ridge}", score, {"ridge": ridge})
        for score in (1.5, 2.0)
        for ridge in (1, 9)
    ]
    tags = [{"panel": "p", "best_score": "1.5", "ridge": 1}, {"panel": "p", "best_score": 2, "ridge": 9}]
    assert [found.panels[0].tags, found.panels[-1].tags] == tags


@pytest.mark.parametrize("halving", [{}, {"halving": {"instances": 100, "keep": 2}}])
def test_a_sweep_comes_back_from_its_manifest(halving):
    found = from_settings(LIN_TS | {"instances": 201, "environment_settings": {"n_arms": [5.0, 9]}} | halving)
    assert type(found) is Sweep
    plain = json.loads(json.dumps(record.plain(found.settings())))
    assert plain["curves"][0]["settings"] == {"scale": [0.5, 1]}
    assert from_settings(plain) == found
    assert type(from_settings(GOOD)) is Study


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"scale": []}, InvalidArgument, r"scale of 'LinTS \(informal\)' must have at least one value, got \[\]"),
        ({"scale": [1, 1.0]}, InvalidArgument, "scale of 'LinTS .*' must have different values, got 1 twice"),
        ({"scale": [1, -1]}, InvalidArgument, r"LinTS \(informal\), scale = -1, d = 2: scale must be .*, got -1"),
        ({"scale": [[1], [2]]}, InvalidArgument, r"scale must be a finite number above 0, got \[\[1\], \[2\]\]"),
        ({"scal": [1, 2]}, UnknownName, "Did you mean 'scale'"),
        (
            {"scale": list(range(1, 102)), "ridge": list(range(1, 102))},
            InvalidArgument,
            "curves times panels must be at most 10.000, got 10.201 times 1. Give shorter",
        ),
    ],
)
def test_lists_of_a_curve_that_cannot_be_used(change, error, message):
    with pytest.raises(error, match=message):
        from_settings(LIN_TS | {"curves": [{"policy": "lin_ts", "settings": change}]})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": [100, 200]}, r"rounds must be one value, got \[100, 200\]. A list is a grid in the settings of"),
        ({"environment_settings": {"n_arms": [5, 5]}}, "n_arms of 'd = 2' must have different values, got 5 twice"),
        ({"environment_settings": {"n_features": [5, 6]}}, "'d = 2' and the study both set 'n_features'"),
        ({"curves": [{"policy": "lin_ts", "design": []}]}, "design of 'LinTS' must have at least one value"),
        ({"curves": LIN_TS["curves"] * 2}, "labels of curves must be different, got 'LinTS .* twice"),
        (
            {"curves": [{"policy": "lin_ts", "settings": {"noise_std": [1, 2]}}]}
            | {"environment": "gaussian", "environment_settings": {"noise_std": [1, 2]}},
            "Lists must have one name once, got 'noise_std' for curves and for panels",
        ),
        ({"curves": [{"policy": "lin_ts"}], "halving": {}}, "halving must be left out if no curve has a list"),
        ({"instances": 50, "halving": {}}, "instances must be more than 50, on which halving chooses among the 2"),
    ],
)
def test_lists_where_there_can_be_none(change, message):
    with pytest.raises(InvalidArgument, match=message):
        from_settings(LIN_TS | change)
