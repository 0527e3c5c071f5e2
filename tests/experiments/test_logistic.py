"""The paper's claims about Figure 1 hold on curves of that kind, and stop holding when the curves are exchanged."""

import dataclasses

import numpy as np
import pytest

import explorax
from explorax.experiments import logistic
from explorax.experiments.study import Curve, Panel, for_features
from tests import fabricate

STUDY = logistic.study()
BEAT, BEATEN, LINEAR, LOW = (
    "randomized_beat_glm_ucb",
    "ucb_glm_beats_randomized",
    "informal_ucbs_are_linear",
    "informal_randomized_are_low",
)


def verdicts(results, panel=None):
    return {claim.name: claim.holds for claim in STUDY.claims(results) if claim.panel == panel}


def exchanged(first, second):
    return {first: fabricate.SHAPES[second], second: fabricate.SHAPES[first]}


def test_all_claims_hold_on_a_run_like_the_papers():
    found = STUDY.claims(fabricate.results())
    assert [(claim.name, claim.panel) for claim in found] == [
        (name, panel) for name in (BEAT, BEATEN, LINEAR, LOW) for panel in (None, "d = 5", "d = 10", "d = 20")
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
    assert [verdicts(results, f"d = {dim}")[BEATEN] for dim in (5, 10, 20)] == [True, False, True]


@pytest.mark.parametrize("rounds", [400, 2_000, 1_000_000])
def test_claims_mean_the_same_at_any_number_of_rounds(rounds):
    shapes = {key: (kind, final * rounds / 50_000) for key, (kind, final) in fabricate.SHAPES.items()}
    assert all(verdicts(fabricate.results(shapes, rounds=rounds)).values())


def test_claims_about_missing_policies_are_undecided():
    results = [one for one in fabricate.results() if one.policy != "glm_ucb"]
    found = {claim.name: claim for claim in STUDY.claims(results) if claim.panel is None}
    assert {name: claim.holds for name, claim in found.items()} == {BEAT: None, BEATEN: True, LINEAR: None, LOW: None}
    assert "d = 5: There is no curve 'GLM-UCB (theory)'" in found[BEAT].reason
    assert {claim.holds for claim in STUDY.claims([])} == {None}


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
    claims = {claim.name: claim for claim in STUDY.claims(results) if claim.panel == "d = 5"}
    pair = claims[BEAT].numbers["GLM-TSL (theory) against GLM-UCB (theory)"]
    difference = finals["glm_tsl", "theory"] - finals["glm_ucb", "theory"]
    assert pair["difference"] == pytest.approx(difference.mean())
    assert pair["stderr"] == pytest.approx(difference.std(ddof=1) / np.sqrt(len(difference)))
    assert pair["z"] == pytest.approx(pair["difference"] / pair["stderr"])
    assert claims[LINEAR].numbers["UCB-GLM (informal)"]["exponent"] == pytest.approx(1.0, abs=0.1)
    assert claims[LOW].numbers["GLM-TSL (informal)"]["exponent"] < 0.5


def test_the_study_is_that_of_the_paper():
    figure = logistic.study()
    assert (figure.rounds, figure.instances, figure.measure) == (50_000, 100, "regret")
    assert figure.panels == for_features((5, 10, 20))
    assert figure.panels[0] == Panel("d = 5", {"n_features": 5}, {}, {"dim": 5})
    assert figure.environment_settings == {"n_arms": 100}
    assert {(curve.policy, curve.design) for curve in figure.curves} == set(fabricate.SHAPES)
    theory = next(curve for curve in figure.curves if curve.label == "GLM-TSL (theory)")
    five = figure.panels[0]
    shared = {"family": "bernoulli", "ridge": 1.0, "tolerance": 1e-3}
    assert figure.arguments(theory, five) == {"design": "theory", "horizon": 50_000} | shared
    assert dataclasses.replace(figure, rounds=900).arguments(theory, five)["horizon"] == 900
    informal = next(curve for curve in figure.curves if curve.label == "GLM-FPL (informal)")
    assert figure.arguments(informal, five) == {"design": "informal"} | shared
    for curve in figure.curves:
        assert isinstance(figure.make(curve, five), explorax.Policy)


def test_the_quick_study_is_the_same_in_small():
    small = logistic.quick(ridge=0.1, tolerance=1e-3, policies=["GLM-TSL", "greedy", "uniform"])
    assert (small.rounds, small.instances, small.panels) == (2_000, 50, for_features((5, 10, 20)))
    assert [curve.label for curve in small.curves] == ["GLM-TSL (theory)", "GLM-TSL (informal)", "Greedy", "Uniform"]
    assert small.curves[2] == Curve("Greedy", "greedy", "", {"ridge": 0.1, "tolerance": 1e-3})
    assert small.curves[3].settings == {}  # has no fit
