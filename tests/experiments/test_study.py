"""A study: what its panels and curves ask for, what it imports, and what it says and draws."""

import dataclasses
import subprocess
import sys

import pytest

import explorax
from explorax.errors import InvalidArgument, UnknownName
from explorax.experiments import deep, logistic
from explorax.experiments.settings import from_settings
from explorax.experiments.study import Drawing, Figure, Panel
from tests import fabricate
from tests.experiments.plain import BY_PANELS, COUNTS, GOOD


def test_a_panel_adds_to_the_settings_of_the_study_and_of_those_curves_that_take_them():
    found = from_settings(BY_PANELS)
    little, much = found.panels
    tsl, uniform = found.curves
    assert found.arguments(tsl, little) == {"family": "bernoulli", "design": "informal", "scale": 2.0, "ridge": 0.1}
    assert found.arguments(tsl, much)["ridge"] == 10.0
    assert found.arguments(uniform, much) == {}
    assert found.environment_arguments(much) == {"n_features": 3, "n_arms": 7}
    assert found.make_environment(much).n_features == 3


def test_an_environment_may_need_no_panels():
    alone = from_settings({key: value for key, value in GOOD.items() if key != "dims"})
    assert alone.panels == (Panel("logistic", {}, {}, {"panel": "logistic"}),)
    with pytest.raises(InvalidArgument, match="n_features must be the number of features, got None"):
        alone.make_environment(alone.panels[0])
    assert dataclasses.replace(alone, environment_settings={"n_features": 4}).make_environment(alone.panels[0])


@pytest.mark.parametrize("rounds", [3, 99, 100, 2_000])
def test_a_short_run_has_fewer_checkpoints_unless_they_are_given(rounds):
    settings = GOOD | {"rounds": rounds}
    assert from_settings(settings | {"checkpoints": rounds}).checkpoints == rounds
    del settings["checkpoints"]
    assert from_settings(settings).checkpoints == min(100, rounds)
    for build in (logistic.study, logistic.quick):
        assert build(dims=[2], rounds=rounds).checkpoints == min(100, rounds)


@pytest.mark.parametrize("build", [logistic.study, deep.study])
def test_a_policy_that_is_named_twice(build):
    with pytest.raises(InvalidArgument, match=r"policies must be different ones, got uniform twice\. Leave one out\."):
        build(policies=["uniform", "Uniform"])


def test_curves_get_the_family_of_the_environment():
    able = [name for name, entry in explorax.list_policies().items() if "poisson" in entry.families]
    found = from_settings(COUNTS | {"curves": [{"policy": name} for name in able]})
    for one in found.curves:
        policy = found.make(one, found.panels[0])
        assert policy.families == (None if one.policy == "uniform" else ("poisson",)), one.policy
        assert policy.recipe.settings.get("family") == (None if one.policy == "uniform" else "poisson")
    linear = from_settings(GOOD | {"curves": [{"policy": "lin_phe"}, {"policy": "lin_ts"}]})
    assert [linear.make(one, linear.panels[0]).families[0] for one in linear.curves] == ["gaussian"] * 2
    panels = [{"label": "digits", "environment_settings": {"data": "digits"}}]  # no data is read for it
    given = {name: value for name, value in GOOD.items() if name != "dims"} | {"panels": panels}
    labelled = from_settings(given | {"environment": "classification"})
    assert labelled.arguments(labelled.curves[0], labelled.panels[0])["family"] == "bernoulli"


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (
            {"policy": "log_phe"},
            r"curve 'LogPHE' must model poisson rewards, .* got log_phe for bernoulli rewards\. Choose",
        ),
        ({"policy": "lin_ucb"}, r"curve 'LinUCB \(informal\)' must model poisson rewards, .* got lin_ucb for gaussian"),
        (
            {"policy": "glm_tsl", "settings": {"family": "bernoulli"}, "label": "mine"},
            r"curve 'mine' must model poisson rewards, .* got glm_tsl for bernoulli rewards\. Build it with family=",
        ),
    ],
)
def test_a_curve_that_does_not_model_the_rewards_is_refused(one, words):
    with pytest.raises(InvalidArgument, match=words):
        from_settings(COUNTS | {"curves": [one]})


def test_a_study_imports_the_policies_that_it_plays_and_no_other():
    """In a process of its own, where nothing has been imported yet; a panel sets something for one of the two."""
    code = """if True:
        import sys
        from explorax.experiments.settings import from_settings
        from explorax.registry import ENTRIES
        found = from_settings({
            "environment": "logistic",
            "panels": [{"label": "a", "environment_settings": {"n_features": 2}, "curve_settings": {"ridge": 2.0}}],
            "rounds": 10,
            "curves": [{"policy": "uniform"}, {"policy": "lin_ts"}],
        })
        print([found.make(curve, found.panels[0]).recipe.settings.get("ridge") for curve in found.curves])
        print(sorted(entry.name for entry in ENTRIES if f"explorax.policies.{entry.name}" in sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[None, 2.0]", "['lin_ts', 'uniform']"]


def test_a_study_says_what_is_played_in_a_paragraph():
    about = logistic.quick(dims=[2, 3], policies=["glm_tsl", "uniform"]).about.replace("\N{NO-BREAK SPACE}", " ")
    assert about.startswith("A reproduction of Figure 1 of Kveton et al.")
    assert (
        "GLM-TSL and Uniform play the same 50 random problems of the environment logistic for 2 000 rounds, in each of "
        "2 panels: d = 2 and d = 3. Regret is the expected reward of the best arm minus that of the pulled arm"
    ) in about
    assert about.endswith("The paper plays 50 000 rounds; its claims may not hold in shorter runs.")
    own = from_settings(GOOD | {"dims": [2], "instances": 1, "rounds": 1, "checkpoints": 1, "measure": "reward"})
    assert own.about == (
        "GLM-TSL plays the same 1 random problem of the environment logistic for 1 round, in one panel: d = 2. "
        "The measure is the average reward per round."
    )


def test_a_panel_sets_only_what_a_curve_takes():
    panel = {"label": "a", "environment_settings": {"n_features": 2}, "curve_settings": {"activation": "relu"}}
    with pytest.raises(UnknownName, match=r"setting of the curves' policies must be one of .*, got 'activation'"):
        from_settings(BY_PANELS | {"panels": [panel]})
    assert deep.study(policies=["uniform"]).panels[0].curve_settings == {}
    assert deep.study(policies=["uniform", "deep_fl"]).panels[0].curve_settings == {"activation": "relu"}


def test_a_study_of_ones_own_claims_nothing_and_draws_what_it_is_asked_for():
    own = from_settings(logistic.study().settings() | {"name": "mine"})
    results = fabricate.results()
    assert own.title == "Regret in the study 'mine'"
    assert (own.claims(results), own.optima) == ([], {})
    assert own.drawings(results, Figure()) == [Drawing("linear", (), "", "")]
    assert own.drawings(results, Figure(log=True)) == [Drawing("linear"), Drawing("log", (), "-log")]
    linear, log = own.drawings(results, Figure(bound=True))
    assert (linear, log[0], log[2:]) == (Drawing("linear"), "log", ("-log", ""))
    assert [(bound.panel, bound.policy) for bound in log.bounds] == [
        (f"d = {dim}", policy) for dim in (5, 10, 20) for policy in ("glm_tsl", "glm_fpl")
    ]
    assert own.arms(own.panels[0]) == 100
    given = dataclasses.replace(own, environment_settings={"fixed_arms": [[0.0]] * 7})
    assert given.arms(own.panels[0]) == 7
