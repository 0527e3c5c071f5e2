"""Who plays a problem, with which settings, and why others do not."""

import pytest

import explorax
from explorax.arena.contestants import contestant, contestants, study
from explorax.arena.problems import LABELLED, PROBLEMS, problem_of


def test_every_knob_has_a_grid():
    for name, entry in explorax.list_policies().items():
        assert bool(entry.knob) == bool(entry.grid)
        assert len(set(entry.grid)) == len(entry.grid) != 1
        for value in entry.grid:
            explorax.make(name, **{entry.knob: value})


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda one: one.name)
def test_every_policy_plays_or_says_why_not(problem):
    playing, absent = contestants(problem, explorax.list_policies(), 100)
    assert {one.policy for one in (*playing, *absent)} == set(explorax.list_policies())
    assert all(one.reason for one in absent)
    names = {one.policy for one in playing}
    assert "glm_tsl" in names
    assert ("deep_fpl" in names) == (problem.group == LABELLED)
    misspecified = {one.policy for one in playing if one.misspecified}
    assert ("lin_ts" in misspecified) == (problem.family == "bernoulli")
    assert "glm_tsl" not in misspecified


def test_settings_are_what_the_problem_dictates():
    entry = explorax.list_policies()["glm_tsl"]
    assert contestant(entry, problem_of("poisson"), 70).settings["family"] == "poisson"
    labelled = contestant(entry, problem_of("digits"), 70)
    assert labelled.settings["memory"] == "constant"
    made = study(problem_of("sparse"), [labelled], rounds=70, tuning=3, instances=5, seed=9)
    assert (made.instances, made.rounds, made.seed) == (8, 70, 9)
    assert [one.settings.get("scale") for one in made.curves] == [None, *entry.grid]
    assert made.environment_arguments(made.panels[0]) == problem_of("sparse").settings
