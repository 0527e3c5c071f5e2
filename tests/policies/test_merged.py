"""Policies that learn alike share a program, and pull the arms that each pulls alone."""

import pytest

import explorax
from explorax.checkpoints import check_schedule
from explorax.environments import gaussian, logistic
from explorax.policies.merged import merge
from explorax.simulation import Job, play, program_for, share_program, simulate
from tests.helpers import assert_same

ROUNDS, BLOCK = 300, range(50)
WORLD = logistic(n_features=3, n_arms=10)
CHANGING = logistic(n_features=3, n_arms=10, arms_change=True)
THEORY = {"design": "theory", "horizon": ROUNDS}
FIGURE = ("glm_ucb", "ucb_glm", "glm_tsl", "glm_fpl")
ALIKE = [(name, design) for name in FIGURE for design in ({}, THEORY)]
OTHERS = [(name, {}) for name in ("greedy", "epsilon_greedy", "rand_ucb", "evill", "pg_ts")]


def built(cases, **settings):
    return [explorax.make(name, **own, **settings) for name, own in cases]


def alone_and_merged(cases, world, rounds=ROUNDS, **settings):
    policies = built(cases, **settings)
    merged = merge(policies, world.arms_change)
    for policy, one in zip(policies, merged, strict=True):
        assert one.siblings
        yield simulate(policy, world, rounds=rounds, instances=50), simulate(one, world, rounds=rounds, instances=50)


def test_policies_that_learn_alike_have_one_update_and_an_act_each():
    policies = built([*ALIKE, *OTHERS, ("uniform", {}), ("lin_ts", {}), ("ofuglb_e", {})])
    *merged, uniform, lin_ts, ofuglb = merge(policies, arms_change=False)
    assert (uniform, lin_ts, ofuglb) == tuple(policies[-3:])
    assert len({policy.update for policy in merged}) == 1
    assert {policy.act for policy in merged} == set(merged[0].siblings)
    assert len(merged[0].siblings) == len(FIGURE) + len(OTHERS)
    assert [policy.recipe for policy in merged] == [policy.recipe for policy in policies[:-3]]
    assert share_program(Job(merged[0], WORLD), Job(merged[1], WORLD))  # two designs of one policy
    assert not share_program(Job(merged[1], WORLD), Job(merged[2], WORLD))  # a batch is of one policy


@pytest.mark.parametrize(
    "settings",
    [
        {"tolerance": 1e-3},
        {"ridge": 2.0, "discount": 0.9},
        {"window": 9},
        {"family": "gaussian"},
        {"warmup": "none"},
        {"memory": "constant"},
        {"memory": "refitted"},
    ],
    ids=str,
)
def test_policies_that_learn_otherwise_are_not_merged(settings):
    policies = [explorax.make("glm_tsl"), explorax.make("glm_fpl", **settings)]
    assert merge(policies, arms_change=False) == policies


def test_numbers_keep_no_policies_apart():
    policies = [explorax.make("greedy", ridge=0.5, discount=0.9), explorax.make("glm_fpl", ridge=2.0, discount=0.8)]
    assert all(policy.siblings for policy in merge(policies, arms_change=False))


def test_a_policy_whose_like_is_not_there_stays_as_it_is():
    policies = built([("glm_tsl", {}), ("glm_tsl", THEORY), ("uniform", {})])
    assert merge(policies, arms_change=False) == policies


def test_changing_arms_are_remembered_for_what_a_rule_asks():
    """A root or widths that a rule does not ask for would cost it time where rewards are kept one by one."""
    names = ("glm_tsl", "evill", "glm_ucb", "ucb_glm", "glm_fpl", "greedy")
    merged = merge([explorax.make(name) for name in names], arms_change=True)
    shared = [
        frozenset(other for other, its in zip(names, merged, strict=True) if its.update is one.update) for one in merged
    ]
    assert set(shared) == {frozenset(names[:2]), frozenset(names[2:4]), frozenset(names[4:])}


def test_merged_policies_pull_the_arms_of_each_alone():
    for alone, merged in alone_and_merged([*ALIKE, *OTHERS], WORLD, tolerance=1e-3):
        assert_same(merged, alone)


@pytest.mark.parametrize(
    ("settings", "cases"),
    [
        ({"discount": 0.95}, [("glm_ucb", {}), ("ucb_glm", {})]),
        ({"window": 40}, [("greedy", {}), ("glm_fpl", {"prior_noise": True})]),
    ],
    ids=str,
)
def test_merged_policies_that_forget_pull_the_arms_of_each_alone(settings, cases):
    for alone, merged in alone_and_merged(cases, WORLD, rounds=100, **settings):
        assert_same(merged, alone)


@pytest.mark.parametrize("memory", ["exact", "constant"])
def test_with_changing_arms_merged_policies_pull_the_arms_of_each_alone(memory):
    cases = [(name, {}) for name in ("glm_ucb", "ucb_glm")]
    for alone, merged in alone_and_merged(cases, CHANGING, rounds=60, memory=memory, capacity=60):
        assert_same(merged, alone)


def test_merged_policies_of_other_rewards_pull_the_arms_of_each_alone():
    cases = [("glm_tsl", {}), ("glm_fpl", {"prior_noise": True}), ("ucb_glm", {})]
    for alone, merged in alone_and_merged(cases, gaussian(n_features=3, n_arms=10), family="gaussian"):
        assert_same(merged, alone)


def test_one_program_plays_all_of_them():
    jobs = [Job(policy, WORLD) for policy in merge(built(ALIKE), arms_change=False)]
    programs, places = zip(*(program_for(job, 7) for job in jobs), strict=True)
    assert len(set(programs)) == 1
    assert places == (0, 0, 1, 1, 2, 2, 3, 3)
    for job in jobs:
        play([job], check_schedule(7, 1, "even", None, None), BLOCK, 0)
    assert programs[0].programs._cache_size() == 1
