"""The paper's claims about Figure 2, on curves of that kind and on others; its settings."""

import json

import numpy as np
import pytest

from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments import deep
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Figure, Panel
from explorax.runner import local_processes, run
from tests import fabricate

HIGH, BEATS_FL, BEATS_REP, OPTIMUM = (
    "deep_fpl_is_high",
    "deep_fpl_beats_deep_fl",
    "deep_fpl_beats_rep_glm_fpl",
    "optimum_is_as_printed",
)
OPTIMA = dict.fromkeys(fabricate.DEEP_PANELS, 0.5757)


def verdicts(results, optima=OPTIMA, panel=None):
    return {claim.name: claim.holds for claim in deep.claims(results, optima) if claim.panel == panel}


def test_all_claims_hold_on_a_run_like_the_papers():
    found = deep.claims(fabricate.deep_results(), OPTIMA)
    assert [(claim.name, claim.panel) for claim in found] == [
        (name, panel) for name in (HIGH, BEATS_FL, BEATS_REP, OPTIMUM) for panel in (None, *fabricate.DEEP_PANELS)
    ]
    assert all(claim.holds for claim in found)
    json.dumps([claim._asdict() for claim in found])


@pytest.mark.parametrize(
    ("levels", "falls"),
    [
        ({"DeepFPL": 0.495, "DeepFL": 0.45}, {HIGH}),
        ({"DeepFL": 0.534}, {BEATS_FL}),  # worse, but not by two standard errors
        ({"DeepFL": 0.55}, {BEATS_FL}),
        ({"repGLM-FPL, m = 10 %": 0.54}, {BEATS_REP}),  # one variant is enough
        ({"DeepFPL": 0.4}, {HIGH, BEATS_FL, BEATS_REP}),
    ],
)
def test_claims_fall_when_rewards_change(levels, falls):
    found = verdicts(fabricate.deep_results(levels))
    assert {name for name, holds in found.items() if holds is False} == falls
    assert {name for name, holds in found.items() if holds} == {HIGH, BEATS_FL, BEATS_REP, OPTIMUM} - falls


def test_one_panel_is_enough_to_refute():
    first, *others = fabricate.DEEP_PANELS
    results = fabricate.deep_results({"DeepFL": 0.55}, panels=(first,)) + fabricate.deep_results(panels=tuple(others))
    assert verdicts(results)[BEATS_FL] is False
    assert verdicts(results, panel=first)[BEATS_FL] is False
    assert verdicts(results, panel=others[0])[BEATS_FL] is True
    assert verdicts(results, OPTIMA | {first: 0.6})[OPTIMUM] is False


def test_claims_that_the_run_cannot_answer_say_why():
    results = fabricate.deep_results(panels=("MNIST, ReLU",))
    without = {policy: [one for one in results if one.policy != policy] for policy in deep.POLICIES}
    assert verdicts(without["deep_fpl"]) == {HIGH: None, BEATS_FL: None, BEATS_REP: None, OPTIMUM: True}
    assert verdicts(without["deep_fl"]) == {HIGH: True, BEATS_FL: None, BEATS_REP: True, OPTIMUM: True}
    found = {claim.name: claim for claim in deep.claims(without["rep_glm_fpl"], {}) if claim.panel is None}
    assert {name: claim.holds for name, claim in found.items()} == {
        HIGH: True, BEATS_FL: True, BEATS_REP: None, OPTIMUM: None
    }  # fmt: skip
    assert found[BEATS_REP].reason == "MNIST, ReLU: There is no curve 'repGLM-FPL', which the claim is about."
    assert found[OPTIMUM].reason == "MNIST, ReLU: The labels of the data cannot be read."
    assert {claim.holds for claim in deep.claims([], {})} == {None}
    alone = fabricate.deep_results(instances=1)
    assert verdicts(alone) == {HIGH: True, BEATS_FL: None, BEATS_REP: None, OPTIMUM: True}


def test_a_variant_that_is_missing_in_one_panel_is_not_passed_over():
    """As in a run that is not finished."""
    last = ("repGLM-FPL, m = 20 %", "MNIST, tanh")
    results = [one for one in fabricate.deep_results() if (one.curve, one.panel) != last]
    assert verdicts(results)[BEATS_REP] is None
    assert verdicts(results, panel="MNIST, tanh")[BEATS_REP] is None
    assert verdicts(results, panel="MNIST, ReLU")[BEATS_REP] is True


def test_numbers_of_a_claim_are_those_of_the_run():
    results = {one.curve: one.records for one in fabricate.deep_results(panels=("MNIST, ReLU",))}
    judged = deep.claims(fabricate.deep_results(), OPTIMA)
    claims = {claim.name: claim for claim in judged if claim.panel == "MNIST, ReLU"}
    ends = {curve: records.reward[:, -1] / 10_000 for curve, records in results.items()}
    assert claims[HIGH].numbers["DeepFPL"]["mean"] == pytest.approx(ends["DeepFPL"].mean())
    assert claims[HIGH].numbers["DeepFPL"]["stderr"] == pytest.approx(ends["DeepFPL"].std(ddof=1) / 50**0.5)
    pair = claims[BEATS_FL].numbers["DeepFPL against DeepFL"]
    assert pair["difference"] == pytest.approx((ends["DeepFPL"] - ends["DeepFL"]).mean())
    assert pair["z"] > 2
    assert len(claims[BEATS_REP].numbers) == 4
    assert claims[OPTIMUM].numbers == {"optimum": {"mean": 0.5757}}


def test_the_study_is_that_of_the_paper():
    figure = deep.study()
    assert (figure.environment, figure.measure, figure.rounds, figure.instances) == (
        "classification", "reward", 10_000, 500
    )  # fmt: skip
    assert figure.environment_settings == {"n_arms": 10}
    assert tuple(panel.label for panel in figure.panels) == fabricate.DEEP_PANELS
    assert figure.panels[2] == Panel(
        "Fashion-MNIST, ReLU", {"data": "fashion"}, {"activation": "relu"}, {"dataset": "fashion", "activation": "relu"}
    )
    assert {curve.label: curve.policy for curve in figure.curves} == {
        label: policy for label, (policy, _) in fabricate.REWARDS.items()
    }
    assert [curve.settings for curve in figure.curves[:3]] == [
        {"scale": 1.0, "replay": "recent"},
        {"replay": "recent"},
        {"percent": 1, "horizon": 10_000, "replay": "recent"},
    ]
    assert figure.arguments(figure.curves[1], figure.panels[1]) == {
        "family": "bernoulli",
        "replay": "recent",
        "activation": "tanh",
    }
    assert from_settings(figure.settings()) == figure


def test_the_quick_study_is_on_small_images():
    small = deep.quick()
    assert [panel.label for panel in small.panels] == ["Digits, ReLU", "Digits, tanh"]
    assert [curve.label for curve in small.curves] == [
        "DeepFPL", "DeepFL", "repGLM-FPL, m = 5 %", "repGLM-FPL, m = 20 %"
    ]  # fmt: skip
    assert small.curves[3].settings["horizon"] == small.rounds


def test_other_data_and_other_policies():
    data = {"datasets": ["some/flowers.csv"], "activations": ["tanh"]}
    own = deep.study(policies=["DeepFPL", "uniform"], replay="uniform", scale=0.5, **data)
    (panel,) = own.panels
    assert (panel.label, panel.tags) == ("flowers, tanh", {"dataset": "flowers", "activation": "tanh"})
    assert panel.environment_settings == {"data": "some/flowers.csv"}
    assert [curve.settings for curve in own.curves] == [{"scale": 0.5, "replay": "uniform"}, {}]
    assert own.optima == {}  # there is no such file
    assert own.stem == "figure2"
    assert from_settings(own.settings() | {"name": "mine"}).stem == "figure1"
    spelled = deep.study(datasets=["Fashion-MNIST"], policies=["uniform"])
    assert spelled.panels == deep.study(policies=["uniform"]).panels[2:]
    with pytest.raises(UnknownName, match=r"data set must be one of .*, got 'mnits'. Did you mean 'mnist'"):
        deep.study(datasets=["mnits"], policies=["uniform"])
    with pytest.raises(InvalidArgument, match="Figures of average reward have no --log and --bound"):
        own.check_figure(Figure(log=True))


def test_the_optimum_is_the_formula_of_the_paper(tmp_path, monkeypatch):
    path = tmp_path / "flowers.csv"
    path.write_text("petal,label\n" + "1,rose\n" * 3 + "2,daisy\n")
    by_hand = np.mean([0.75 - 0.5 * (1 - share) ** 10 for share in (0.75, 0.25)])
    assert deep.optimum(str(path)) == pytest.approx(by_hand)
    own = deep.study(datasets=[str(path)], activations=["relu"], policies=["uniform"])
    assert own.optima == {"flowers, ReLU": pytest.approx(by_hand)}
    assert deep.optimum("digits") == pytest.approx(0.5757, abs=1e-3)
    other = from_settings(own.settings() | {"environment_settings": {"n_arms": 10, "high": 0.9}})
    assert other.optima == {}  # the formula is not about it
    monkeypatch.setenv("EXPLORAX_DATA", str(tmp_path))
    assert deep.study(policies=["uniform"]).optima == {}


def test_a_file_of_ones_own_is_played_and_must_not_change_meanwhile(tmp_path, on_the_cpu):
    table = tmp_path / "mine.csv"
    table.write_text("size,color,kind\n" + "".join(f"{i},{'red' if i % 3 else 'blue'},{i % 2}\n" for i in range(40)))
    study = deep.study(
        datasets=[str(table)],
        label="kind",
        activations=["relu"],
        policies=["uniform"],
        rounds=50,
        instances=3,
        checkpoints=2,
    )
    assert from_settings(study.settings()) == study
    outputs = run(study, tmp_path / "out", on=local_processes(1))
    assert outputs.complete
    (row,) = outputs.summaries
    assert row.panel == "mine, ReLU"
    assert 0.25 < row.mean < 0.75
    assert study.optima["mine, ReLU"] == pytest.approx(0.75 - 0.5 * 0.5**10)
    run(study, tmp_path / "out", on=local_processes(1))
    table.write_text(table.read_text().replace("red", "green"))
    with pytest.raises(InvalidArgument, match=r"other data.*data is .* there, .* now"):
        run(study, tmp_path / "out", on=local_processes(1))
