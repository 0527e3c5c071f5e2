"""Slates, arms left out, and explanations: decisions of one kind more; test_agent.py plays the others."""

import jax
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax import Agent, Encoder, arm_sets, errors
from tests.statistics import FALSE_ALARM

RNG = np.random.default_rng(2)
ARMS = {name: RNG.normal(size=3) for name in "abcde"}
MATRIX = np.stack(list(ARMS.values()))
ENCODER = Encoder.fit([{"user": user, "age": age} for user in "ab" for age in (1.0, 2.0, 4.0)], interactions=True)
AGES = {f"{age:g}": {"age": age} for age in (1.0, 2.0, 4.0)}


def agent_of(name="lin_ts", **settings):
    return Agent(explorax.make(name, warmup="none"), arms=ARMS, **settings)


def taught(agent, rounds=12):
    for i in range(rounds):
        agent.learn(agent.choose().id, float(i % 3 == 0))
    return agent


def test_a_slate_is_one_decision_after_the_other_without_the_arms_before():
    agent, plain = taught(agent_of(draws=50)), taught(agent_of(draws=50))
    slate = agent.choose_slate(5, all_propensities=True)
    assert sorted(slate.arms) == list("abcde")
    gone = []
    for place in slate:
        decision = plain.choose(exclude=gone or None, all_propensities=True)
        assert place == decision
        assert list(place.all_propensities.arms) == [name for name in "abcde" if name not in gone]
        gone.append(decision.arm)
    assert slate[4].propensity == 1.0
    agent.learn(slate.ids, [1.0, 0.0, 0.0, 0.0, 0.0])


def test_the_chance_of_a_slate_is_the_product_of_its_places():
    """With a formula, over all slates of two, the products add up to 1; and slates come that often (alarm 1e-6)."""
    agent = Agent(explorax.epsilon_greedy(epsilon=0.5, warmup="none"), arms=ARMS)
    taught(agent)
    counts, chances = {}, {}
    for _ in range(2000):
        slate = agent.choose_slate(2)
        counts[tuple(slate.arms)] = counts.get(tuple(slate.arms), 0) + 1
        chances[tuple(slate.arms)] = float(np.prod(slate.propensities))
    assert sum(chances.values()) == pytest.approx(1.0)
    assert len(chances) == 20
    statistic = sum((counts[each] - 2000 * chance) ** 2 / (2000 * chance) for each, chance in chances.items())
    assert stats.chi2.sf(statistic, 19) > FALSE_ALARM


def test_arms_that_are_left_out_are_those_that_are_not_among():
    left_out, among = taught(agent_of()), taught(agent_of())
    for _ in range(10):
        assert left_out.choose(exclude=["a", "d"]) == among.choose(among=["b", "c", "e"])
    assert left_out.choose(exclude=["a"], among=["a", "b"]).arm == "b"


def test_slates_in_a_context_and_of_tables_that_are_given():
    in_context = Agent(explorax.lin_ts(), arms=AGES, encoder=ENCODER)
    assert sorted(in_context.choose_slate(3, {"user": "a"}).arms) == sorted(AGES)
    assert in_context.choose({"user": "b"}, exclude=["1", "4"]).arm == "2"
    changing = Agent(explorax.lin_ts(), n_features=3)
    assert sorted(changing.choose_slate(5, ARMS).arms) == list("abcde")
    assert changing.choose(ARMS, exclude=list("abcd")).arm == "e"
    assert changing.choose(MATRIX, exclude=[0, 1, 2, 3]).arm == 4
    ball = Agent(explorax.lin_ts(), arms=arm_sets.ball(np.zeros(2), 1.0))
    assert len(ball.choose_slate(1)) == 1


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda agent: agent.choose(exclude=["z"]), "exclude must be one of a, b, c, d, e, got 'z'"),
        (lambda agent: agent.choose(exclude="ab"), r"exclude must be a list of names of arms, got 'ab'. Give \['ab'\]"),
        (lambda agent: agent.choose(exclude=list("abcde")), "exclude must leave an arm on offer, got all 5 of them"),
        (lambda agent: agent.choose_slate(6), "size must be at most 5, the number of arms on offer, got 6"),
        (lambda agent: agent.choose_slate(5, exclude=["a"]), "size must be at most 4"),
        (lambda agent: agent.choose_slate(0), "size must be a whole number of at least 1, got 0"),
        (lambda agent: agent.choose_slate(2, among=["a"]), "size must be at most 1"),
    ],
)
def test_what_cannot_be_left_out_or_put_on_a_slate(act, words):
    agent = agent_of()
    with pytest.raises(errors.InvalidArgument, match=words):
        act(agent)
    assert agent.decisions == 0
    assert agent.pending == []


def test_points_of_a_set_cannot_be_left_out():
    agent = Agent(explorax.lin_ts(), arms=arm_sets.box([-1.0], [1.0]))
    with pytest.raises(errors.InvalidArgument, match="Points of an infinite set cannot be left out of a decision"):
        agent.choose(exclude=[[1.0]])
    with pytest.raises(errors.InvalidArgument, match="size must be at most 1"):
        agent.choose_slate(2)


@pytest.mark.parametrize("name", ["glm_tsl", "lin_ts", "glm_fpl", "glm_ucb", "lin_ucb", "greedy"])
def test_an_explanation_adds_up_to_the_scores_that_chose(name):
    agent, plain = taught(agent_of(name)), taught(agent_of(name))
    agent.retire_arm("b")
    plain.retire_arm("b")
    for _ in range(10):
        decision = agent.choose(explain=True)
        why = decision.explanation
        assert decision._replace(explanation=None) == plain.choose()
        assert list(why.arms) == ["a", "c", "d", "e"]
        np.testing.assert_allclose(why.estimates + why.explorations + why.bonuses, why.scores, atol=1e-12)
        np.testing.assert_allclose(why.estimates, MATRIX[[0, 2, 3, 4]] @ agent.state.theta_hat, atol=1e-12)
        assert why.own == decision.arm == why.arms[int(np.argmax(why.scores))]
        sizes = [np.abs(each).max() > 0 for each in (why.explorations, why.bonuses)]
        assert sizes == {"greedy": [False, False]}.get(name, [name[-3:] != "ucb", name[-3:] == "ucb"])
        expected = why.estimates if name.startswith("lin") else jax.nn.sigmoid(why.estimates)
        np.testing.assert_allclose(why.means, expected, atol=1e-6)


def test_explanations_tell_forced_rounds_and_floors_apart():
    agent = Agent(explorax.glm_tsl(), arms=ARMS, explore_floor=0.9)
    decisions = [agent.choose(explain=True) for _ in range(40)]
    assert any(decision.explanation.own != decision.arm for decision in decisions)
    forced = [decision.explanation for decision in decisions if decision.forced]
    assert len(forced) == 3
    assert len({each.own for each in forced}) == 3
    assert [decision.explanation.own for decision in decisions[3:]] == [
        each.arms[int(np.argmax(each.scores))] for each in (decision.explanation for decision in decisions[3:])
    ]
    assert set(decisions[0].to_dict()["explanation"]) == set(explorax.Explanation._fields)
    assert decisions[0].to_json().startswith('{"id": 0')


@pytest.mark.parametrize("given", [{"user": "a"}, {"user": "b"}])
def test_explanations_in_a_context(given):
    agent = Agent(explorax.lin_ts(warmup="none"), arms=AGES, encoder=ENCODER)
    agent.learn(agent.choose(given).id, 1.0)
    decision = agent.choose(given, explain=True)
    assert decision.explanation.own == decision.arm
    rows = np.stack([ENCODER.transform({**given, **AGES[name]})[0] for name in decision.explanation.arms])
    np.testing.assert_allclose(decision.explanation.estimates, rows @ agent.state.theta_hat, atol=1e-12)


def test_policies_and_sets_that_cannot_be_explained():
    with pytest.raises(errors.InvalidArgument, match="explain must be False for a policy without an estimate"):
        Agent(explorax.uniform(), arms=ARMS).choose(explain=True)
    with pytest.raises(errors.InvalidArgument, match="infinite set"):
        Agent(explorax.lin_ts(), arms=arm_sets.ball(np.zeros(2), 1.0)).choose(explain=True)
