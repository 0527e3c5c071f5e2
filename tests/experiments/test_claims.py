"""The paper's claims about Figure 1 hold on curves of that kind, and stop holding when the curves are exchanged."""

import dataclasses
import tomllib

import numpy as np
import pytest

import explorax
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments import logistic, study
from explorax.experiments.study import Curve, Study, from_settings
from tests.experiments import fabricate

BEAT, BEATEN, LINEAR, LOW = (
    "randomized_beat_glm_ucb",
    "ucb_glm_beats_randomized",
    "informal_ucbs_are_linear",
    "informal_randomized_are_low",
)


def verdicts(results, dim=None):
    return {claim.name: claim.holds for claim in logistic.claims(results) if claim.dim == dim}


def exchanged(first, second):
    return {first: fabricate.SHAPES[second], second: fabricate.SHAPES[first]}


def test_all_claims_hold_on_a_run_like_the_papers():
    found = logistic.claims(fabricate.results())
    assert [(claim.name, claim.dim) for claim in found] == [
        (name, dim) for name in (BEAT, BEATEN, LINEAR, LOW) for dim in (None, 5, 10, 20)
    ]
    assert all(claim.holds for claim in found)


@pytest.mark.parametrize(
    ("shapes", "falls"),
    [
        (exchanged(("glm_ucb", "theory"), ("glm_tsl", "theory")), {BEAT}),
        ({("ucb_glm", "theory"): ("sqrt", 1400.0)}, {BEATEN}),
        ({("glm_ucb", "informal"): ("log", 50.0)}, {LINEAR}),
        ({("ucb_glm", "informal"): ("sqrt", 2000.0)}, {LINEAR}),
        ({("glm_fpl", "informal"): ("stuck", 50.0)}, {LOW}),
        ({("glm_tsl", "informal"): ("log", 5000.0)}, {LOW}),  # sublinear but not low
    ],
)
def test_claims_flip_when_curves_are_exchanged(shapes, falls):
    found = verdicts(fabricate.results(shapes))
    assert {name for name, holds in found.items() if holds is False} == falls
    assert {name for name, holds in found.items() if holds} == {BEAT, BEATEN, LINEAR, LOW} - falls


def test_one_dimension_is_enough_to_refute():
    results = fabricate.results(dims=(5, 20)) + fabricate.results(
        exchanged(("ucb_glm", "theory"), ("glm_fpl", "theory")), dims=(10,)
    )
    assert verdicts(results)[BEATEN] is False
    assert [verdicts(results, dim)[BEATEN] for dim in (5, 10, 20)] == [True, False, True]


@pytest.mark.parametrize("rounds", [400, 2_000, 1_000_000])
def test_claims_mean_the_same_at_any_number_of_rounds(rounds):
    shapes = {key: (kind, final * rounds / 50_000) for key, (kind, final) in fabricate.SHAPES.items()}
    assert all(verdicts(fabricate.results(shapes, rounds=rounds)).values())


def test_claims_about_missing_policies_are_not_evaluated():
    results = [one for one in fabricate.results() if one.policy != "glm_ucb"]
    found = {claim.name: claim for claim in logistic.claims(results) if claim.dim is None}
    assert {name: claim.holds for name, claim in found.items()} == {BEAT: None, BEATEN: True, LINEAR: None, LOW: None}
    assert "no curves are glm_ucb (theory) at d = 5" in found[BEAT].reason
    assert {claim.holds for claim in logistic.claims([])} == {None}


def test_claims_need_instances_and_checkpoints():
    assert set(verdicts(fabricate.results(instances=1)).values()) == {None}
    few = [one._replace(records=_last(one.records)) for one in fabricate.results()]
    found = verdicts(few)
    assert (found[BEAT], found[LINEAR]) == (True, None)


def _last(records):
    ends = {name: getattr(records, name)[..., -1:] for name in ("rounds", "regret", "reward")}
    return records._replace(**ends)


def test_numbers_of_a_claim_are_those_of_the_run():
    results = fabricate.results(dims=(5,))
    finals = {(one.policy, one.design): one.records.regret[:, -1] for one in results}
    claims = {claim.name: claim for claim in logistic.claims(results) if claim.dim == 5}
    pair = claims[BEAT].numbers["GLM-TSL (theory) against GLM-UCB (theory)"]
    difference = finals["glm_tsl", "theory"] - finals["glm_ucb", "theory"]
    assert pair["difference"] == pytest.approx(difference.mean())
    assert pair["stderr"] == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)))
    assert pair["z"] == pytest.approx(pair["difference"] / pair["stderr"])
    assert claims[LINEAR].numbers["UCB-GLM (informal)"]["exponent"] == pytest.approx(1.0, abs=0.1)
    assert claims[LOW].numbers["GLM-TSL (informal)"]["exponent"] < 0.5


def test_the_study_is_that_of_the_paper():
    figure = logistic.study()
    assert (figure.dims, figure.rounds, figure.instances) == ((5, 10, 20), 50_000, 100)
    assert figure.environment_settings == {"arms": 100}
    assert {(curve.policy, curve.design) for curve in figure.curves} == set(fabricate.SHAPES)
    theory = next(curve for curve in figure.curves if curve.label == "GLM-TSL (theory)")
    assert figure.arguments(theory) == {"design": "theory", "horizon": 50_000, "ridge": 1.0, "tolerance": 1e-3}
    assert dataclasses.replace(figure, rounds=900).arguments(theory)["horizon"] == 900
    informal = next(curve for curve in figure.curves if curve.label == "GLM-FPL (informal)")
    assert figure.arguments(informal) == {"design": "informal", "ridge": 1.0, "tolerance": 1e-3}
    for curve in figure.curves:
        assert isinstance(figure.make(curve), explorax.Policy)


def test_the_quick_study_is_the_same_in_small():
    small = logistic.quick(ridge=0.1, tolerance=1e-3, policies=["GLM-TSL", "greedy", "uniform"])
    assert (small.rounds, small.instances, small.dims) == (2_000, 50, (5, 10, 20))
    assert [curve.label for curve in small.curves] == ["GLM-TSL (theory)", "GLM-TSL (informal)", "Greedy", "Uniform"]
    assert small.curves[2] == Curve("Greedy", "greedy", "", {"ridge": 0.1, "tolerance": 1e-3})
    assert small.curves[3].settings == {}  # has no fit


def test_settings_and_back():
    for one in (logistic.study(), dataclasses.replace(logistic.quick(), checkpoints=(1, 10, 2_000))):
        assert from_settings(one.settings()) == one


def test_the_settings_file_of_the_docstring_is_understood():
    example = study.__doc__[study.__doc__.index("    environment") :]
    found = from_settings(tomllib.loads(example))
    assert (found.name, found.dims, found.environment_settings) == ("mine", (5, 10, 20), {"arms": 50})
    assert found.curves[0] == Curve("GLM-TSL (theory)", "glm_tsl", "theory", {})
    assert found.curves[1] == Curve("GLM-FPL, a = 1/4", "glm_fpl", "informal", {"scale": 0.25})


GOOD = {"environment": "logistic", "dims": [5], "rounds": 100, "checkpoints": 10, "curves": [{"policy": "glm_tsl"}]}


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"rounds": 0}, InvalidArgument, "rounds=0 must be a whole number of at least 1"),
        ({"rounds": 2.5}, InvalidArgument, "rounds=2.5 must be a whole number"),
        ({"seed": -1}, InvalidArgument, "seed=-1"),
        ({"dims": 5}, InvalidArgument, "dims=5 must be a list"),
        ({"dims": []}, InvalidArgument, "at least one number of features"),
        ({"dims": [5, 5]}, InvalidArgument, "each once"),
        ({"dims": [True]}, InvalidArgument, "dims=True must be"),
        ({"name": 3}, InvalidArgument, "name=3 must be text"),
        ({"spacing": "lin"}, UnknownName, "unknown spacing 'lin'"),
        ({"checkpoints": 101}, InvalidArgument, "checkpoints=101 are more than rounds=100"),
        ({"checkpoints": [10, 50]}, InvalidArgument, "checkpoints end at 50: let the last one be rounds=100"),
        ({"checkpoints": [50, 20, 100]}, InvalidArgument, "checkpoints=20 must be a whole number of at least 51"),
        ({"environment_settings": 3}, InvalidArgument, "environment_settings=3 must be a table"),
        ({"curves": []}, InvalidArgument, "curves is empty"),
        ({"curves": "glm_tsl"}, InvalidArgument, "curves='glm_tsl' must be a list"),
        ({"curves": ["glm_tsl"]}, InvalidArgument, "must be a table with a policy"),
        ({"curves": [{"policy": "glm_tls"}]}, UnknownName, "did you mean 'glm_tsl'"),
        ({"curves": [{"policy": "glm_tsl", "desing": "theory"}]}, UnknownName, "did you mean 'design'"),
        ({"curves": [{"policy": "glm_tsl", "design": "theroy"}]}, UnknownName, "did you mean 'theory'"),
        ({"curves": [{"policy": "glm_tsl", "settings": {"scal": 1}}]}, UnknownName, "did you mean 'scale'"),
        ({"curves": [{"policy": "glm_tsl", "settings": {"scale": -1}}]}, InvalidArgument, "scale=-1"),
        ({"curves": [{"policy": "glm_tsl", "settings": 3}]}, InvalidArgument, "settings=3 must be a table"),
        ({"curves": [{"policy": "glm_tsl", "settings": {"design": "theory"}}]}, InvalidArgument, "two designs"),
        ({"curves": [{"policy": "glm_tsl"}] * 2}, InvalidArgument, "used twice"),
        ({"round": 3}, UnknownName, "did you mean 'rounds'"),
        (
            {"rounds": 5, "checkpoints": 5, "curves": [{"policy": "glm_tsl", "design": "theory"}]},
            InvalidArgument,
            "more",
        ),
    ],
)
def test_bad_settings_are_explained(change, error, message):
    with pytest.raises(error, match=message):
        from_settings(GOOD | change)


def test_what_is_missing_is_named():
    assert isinstance(from_settings(GOOD), Study)
    for name in ("environment", "dims", "rounds", "curves"):
        with pytest.raises(InvalidArgument, match=f"lacks '{name}'"):
            from_settings({key: value for key, value in GOOD.items() if key != name})
