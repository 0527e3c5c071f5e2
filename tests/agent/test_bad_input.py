"""Nonsense gets an error that names the argument, shows the value and says what to do; the agent stays as it was."""

import numpy as np
import pandas as pd
import pytest

from explorax import Agent, Encoder, arm_sets, errors, make
from explorax.policies.base import Policy
from tests.helpers import assert_same

MATRIX = np.random.default_rng(0).uniform(-1, 1, (4, 2))
SAMPLE = [{"user": user, "topic": topic, "age": age} for user, topic, age in zip("abab", "xxyy", range(4), strict=True)]
ENCODER = Encoder.fit(SAMPLE)
TOPICS = {topic: {"topic": topic} for topic in "xy"}

MAKING = [  # settings of an agent, and what they are told
    ({"policy": "glm_tsl", "arms": MATRIX}, "policy must be a Policy, got 'glm_tsl'. Build one with"),
    ({"policy": None}, "policy must be a Policy, got None. Build one with explorax.make"),
    ({}, "give arms, or n_features=d"),
    (
        {"arms": MATRIX, "seed": 2**70},
        "seed must be a whole number from 0 to 9223372036854775807, got 1180591620717411303424",
    ),
    ({"arms": MATRIX, "stderr": 1e-200}, "stderr must be at least 0.0005, got 1e-200"),
    ({"arms": MATRIX, "draws": 10**9}, "draws must be a whole number from 0 to 1000000, got 1000000000"),
    (
        {"arms": MATRIX, "explore_floor": 1.0},
        "explore_floor must be a number from 0 up to, but not including, 1, got 1",
    ),
    ({"arms": MATRIX, "explore_floor": "0.1"}, "explore_floor must be a number .* got '0.1'"),
    (
        {"arms": arm_sets.ball([0.0], 1.0), "explore_floor": 0.1},
        "explore_floor must be 0 for an infinite set of arms, got",
    ),
    ({"arms": {"": [1.0, 2.0]}}, "arm name '' must be text or a whole number, and not empty"),
    ({"arms": {"x": {"topic": None}}, "encoder": ENCODER}, "'topic' of arm 'x' must be text, got None"),
    ({"arms": MATRIX, "seed": -1}, "seed=-1 must be a whole number of at least 0"),
    ({"arms": MATRIX, "draws": -1}, "draws=-1 must be a whole number of at least 0"),
    ({"arms": MATRIX, "draws": 2.5}, "draws=2.5 must be a whole number"),
    ({"arms": MATRIX, "stderr": 0.0}, "stderr=0.0 must be a finite number above 0, for example 0.02"),
    ({"arms": MATRIX, "draws": 10, "stderr": 0.1}, "draws=10 and stderr=0.1 say the same: give one"),
    ({"arms": MATRIX, "max_pending": 0}, "max_pending=0 must be a whole number of at least 1"),
    ({"arms": MATRIX, "dtype": "float16"}, "unknown dtype 'float16': did you mean 'float"),
    ({"arms": MATRIX, "n_features": 3}, "arms have 2 features where the agent was made for 3"),
    ({"n_features": 0}, "n_features=0 must be a whole number of at least 1"),
    ({"arms": []}, r"arms have shape \(0,\): give a matrix"),
    ({"arms": {}}, r"arms have shape \(0,\): give a matrix"),
    ({"arms": [1.0, 2.0]}, r"arms have shape \(2,\): give a matrix with one row"),
    ({"arms": "red"}, "arms cannot be read as a matrix of numbers: red"),
    ({"arms": [["a", "b"]]}, "arms cannot be read as a matrix of numbers"),
    ({"arms": [[1.0, np.nan]]}, "arms contain NaN or infinity: clean the data"),
    ({"arms": {"red": [1.0, 2.0], "blue": [1.0]}}, "arms cannot be read as a matrix of numbers"),
    ({"arms": {2.5: [1.0, 2.0]}}, "arm name 2.5 must be text or a whole number"),
    ({"arms": {True: [1.0, 2.0]}}, "arm name True must be text or a whole number"),
    ({"arms": pd.DataFrame(MATRIX, index=list("aabc"))}, "arm name 'a' is given twice"),
    ({"arms": TOPICS}, "arms are given as dicts: make the agent with an encoder"),
    ({"arms": MATRIX, "encoder": "one-hot"}, "encoder must be an Encoder, got 'one-hot'. Make one with Encoder.fit"),
    ({"encoder": ENCODER, "n_features": 2}, "n_features=2 where the encoder makes 6: leave it out"),
    ({"arms": {"x": {"topik": "x"}}, "encoder": ENCODER}, "unknown column 'topik': did you mean 'topic'"),
    ({"arms": {"x": {"topic": "x"}, "y": {"age": 1}}, "encoder": ENCODER}, "arms have different attributes"),
    (
        {"policy": make("ucb_glm"), "arms": arm_sets.ball([0.0], 1.0)},
        "ucb_glm does not maximize a linear function.*glm_tsl",
    ),
    ({"policy": Policy(*make("lin_ts")[:3]), "arms": arm_sets.ball([0.0], 1.0)}, "this policy does not maximize"),
    (
        {"policy": make("lin_ts")._replace(act=lambda key, state, arms, t: None), "arms": MATRIX},
        "act takes no `mask`",
    ),
    ({"policy": make("deep_fpl"), "n_features": 2}, "noise in training.*redraws=True, or the agent with draws=0"),
]


@pytest.mark.parametrize(("settings", "words"), MAKING)
def test_making(settings, words):
    policy = settings.get("policy", make("lin_ts"))
    with pytest.raises(errors.InvalidArgument, match=words):
        Agent(policy, **{name: value for name, value in settings.items() if name != "policy"})


@pytest.fixture(scope="module")
def agents():
    """One of each kind; the first has made decisions 0 to 3, and of these 0 has had its reward."""
    fixed = Agent(make("glm_tsl"), arms=dict(zip("abcd", MATRIX, strict=True)), draws=0)
    fixed.choose_many(4)
    fixed.learn(0, 1.0)
    fixed.retire_arm("d")
    full = Agent(make("glm_tsl", capacity=2), n_features=2, draws=0)
    full.choose_many([MATRIX] * 4)
    full.learn(0, 1.0)
    return {
        "fixed": fixed,
        "full": full,
        "counts": Agent(make("lin_ts"), n_features=2, dtype="float32", draws=0),
        "context": Agent(make("lin_ts"), arms=TOPICS, encoder=ENCODER, draws=0),
        "encoded": Agent(make("lin_ts"), encoder=ENCODER, draws=0),
        "set": Agent(make("lin_ts"), arms=arm_sets.ball([0.0, 0.0], 1.0)),
    }


CALLS = [  # kind of agent, method, arguments, error and its message
    ("fixed", "choose", (MATRIX,), errors.InvalidArgument, "this agent has arms of its own: choose\\(\\) without arms"),
    ("fixed", "choose", {"among": "ab"}, errors.InvalidArgument, "among='ab' must be a list of names"),
    ("fixed", "choose", {"among": ["e"]}, errors.UnknownName, "unknown arm 'e': known are a, b, c, d"),
    (
        "fixed",
        "choose",
        {"among": ["d"]},
        errors.InvalidArgument,
        "arm 'd' of among is retired: leave it out, or restore",
    ),
    ("fixed", "choose", {"among": []}, errors.InvalidArgument, "no arm is on offer"),
    ("fixed", "choose_many", (0,), errors.InvalidArgument, "given=0 must be a whole number of at least 1"),
    ("fixed", "choose_many", (2.0,), errors.InvalidArgument, "given=2.0 must be a whole number"),
    ("fixed", "learn", (4, 1.0), errors.UnknownDecision, "decision 4 was never made here, the last one was 3"),
    ("fixed", "learn", (-1, 1.0), errors.UnknownDecision, "decision -1 was never made here"),
    ("fixed", "learn", (0, 1.0), errors.AlreadyRewarded, "decision 0 has had its reward already"),
    ("fixed", "learn", ([1, 1], [1.0, 0.0]), errors.AlreadyRewarded, "decision 1 is named twice"),
    ("fixed", "learn", ([1, 0], [1.0, 0.0]), errors.AlreadyRewarded, "decision 0 has had its reward already"),
    ("fixed", "learn", (1, 2.0), errors.InvalidReward, "reward must be between 0 and 1 in the bernoulli family, got 2"),
    (
        "fixed",
        "learn",
        ([1, 2], [1.0, -1.0]),
        errors.InvalidReward,
        "reward must be between 0 and 1 in the bernoulli family, got -1",
    ),
    ("fixed", "learn", (1, float("nan")), errors.InvalidReward, "reward must be finite, got nan"),
    ("fixed", "learn", (1, None), errors.InvalidReward, "reward must be a number, got None"),
    ("fixed", "learn", (1, "yes"), errors.InvalidReward, "reward must be a number, got 'yes'"),
    ("fixed", "learn", (1, "1"), errors.InvalidReward, "reward must be a number, got '1'"),
    ("fixed", "learn", (1, b"1"), errors.InvalidReward, "reward must be a number, got b'1'"),
    ("fixed", "learn", (1, 1 + 0j), errors.InvalidReward, r"reward must be a number, got \(1\+0j\)"),
    ("fixed", "learn", (1, np.datetime64(1, "s")), errors.InvalidReward, "reward must be a number, got .*datetime64"),
    ("fixed", "learn", (1, np.timedelta64(1, "s")), errors.InvalidReward, "reward must be a number"),
    ("fixed", "learn", (1, np.ma.masked), errors.InvalidReward, "reward must be a number, got masked"),
    ("fixed", "learn", ([1, 2], np.ma.array([1, 0], mask=[0, 1])), errors.InvalidReward, "reward must be a number"),
    ("fixed", "learn", ([1, 2], [1.0, "0"]), errors.InvalidReward, "reward must be a number"),
    ("fixed", "learn", ([1, 2], [1.0, pd.NA]), errors.InvalidReward, "reward must be a number"),
    ("fixed", "learn", (1, [1.0]), errors.InvalidShape, r"reward has shape \(1,\): give one number for each of 1"),
    ("fixed", "learn", ([1, 2], 1.0), errors.InvalidShape, r"reward has shape \(\): give one number for each of 2"),
    ("fixed", "learn", ("1", 1.0), errors.InvalidArgument, "decision_id='1' must be the id of a decision"),
    ("fixed", "learn", (1.0, 1.0), errors.InvalidArgument, "decision_id=1.0 must be the id of a decision"),
    ("fixed", "learn", (True, 1.0), errors.InvalidArgument, "decision_id=True must be the id of a decision"),
    ("full", "learn", ([1, 2], [1.0, 0.0]), errors.HistoryFull, r"1 of 2 rows are taken\. Give a larger capacity"),
    ("fixed", "add_arm", ("a", [1.0, 2.0]), errors.InvalidArgument, "arm 'a' is on offer already: update_arm gives it"),
    (
        "fixed",
        "add_arm",
        ("", [1.0, 2.0]),
        errors.InvalidArgument,
        "arm name '' must be text or a whole number, and not",
    ),
    ("fixed", "add_arm", ("d", [1.0]), errors.InvalidShape, "arms have 1 features where the agent was made for 2"),
    ("fixed", "update_arm", ("e", [1.0, 2.0]), errors.UnknownName, "unknown arm 'e': known are a, b, c, d"),
    ("fixed", "update_arm", ("a", [np.nan, 2.0]), errors.InvalidFeatures, "arms contain NaN or infinity"),
    (
        "fixed",
        "choose_many",
        {"given": 2, "among": [["a"]]},
        errors.InvalidShape,
        "one list of names for each of 2 dec",
    ),
    ("fixed", "choose_many", {"given": 2, "among": [["a"], []]}, errors.InvalidArgument, "no arm is on offer"),
    (
        "fixed",
        "choose_many",
        {"given": 2, "among": [["a"], ["d"]]},
        errors.InvalidArgument,
        "arm 'd' of among is retired",
    ),
    ("fixed", "add_arm", (None, [1.0, 2.0]), errors.InvalidArgument, "arm name None must be text or a whole number"),
    ("fixed", "add_arm", ("e", [1.0]), errors.InvalidShape, "arms have 1 features where the agent was made for 2"),
    ("fixed", "add_arm", ("e", [1.0, np.inf]), errors.InvalidFeatures, "arms contain NaN or infinity"),
    ("fixed", "add_arm", ("e", {"x": 1.0}), errors.InvalidFeatures, "arms are given as dicts"),
    ("fixed", "retire_arm", ("d",), errors.InvalidArgument, "arm 'd' is retired already"),
    ("fixed", "retire_arm", ("e",), errors.UnknownName, "unknown arm 'e'"),
    ("fixed", "restore_arm", ("a",), errors.InvalidArgument, "arm 'a' is on offer already"),
    ("counts", "choose", (), errors.InvalidArgument, r"this agent has no arms of its own: choose\(table\)"),
    ("counts", "choose", (MATRIX[0],), errors.InvalidShape, r"arms have shape \(2,\): give a matrix"),
    ("counts", "choose", (MATRIX[:, :1],), errors.InvalidShape, "arms have 1 features where the agent was made for 2"),
    ("counts", "choose", (np.full((3, 2), np.nan),), errors.InvalidFeatures, "arms contain NaN or infinity"),
    ("counts", "choose", ([{"x": 1.0}],), errors.InvalidFeatures, "arms are given as dicts"),
    ("counts", "choose_many", (5,), errors.InvalidArgument, "given='5' must be a list of tables of arms"),
    ("counts", "choose_many", ([],), errors.InvalidArgument, r"given='\[\]' must be a list of tables of arms"),
    ("counts", "choose_many", (np.ones((2, 4, 3)),), errors.InvalidShape, "arms have 3 features where"),
    ("counts", "choose_many", ([MATRIX, [[1.0]]],), errors.InvalidShape, "arms have 1 features where"),
    ("counts", "add_arm", ("a", [1.0, 2.0]), errors.InvalidArgument, "this agent has no arms of its own to change"),
    ("context", "choose", (), errors.InvalidArgument, "context=None must be a dict"),
    ("context", "choose", ({"user": "a"},), errors.InvalidFeatures, "row 0 of rows has no column 'age'"),
    (
        "context",
        "choose",
        ({"user": "a", "age": 1, "topic": "x"},),
        errors.InvalidArgument,
        "context has 'topic', which",
    ),
    ("context", "choose", ({"user": "a", "agee": 1},), errors.UnknownName, "'agee': did you mean 'age'"),
    ("context", "choose", ({"user": "a", "age": "old"},), errors.InvalidFeatures, "'age' is 'old': give a number"),
    (
        "context",
        "add_arm",
        ("z", {"age": 1}),
        errors.InvalidArgument,
        "arm 'z' has attributes .* where the others have",
    ),
    ("context", "add_arm", ("z", [1.0]), errors.InvalidFeatures, "must be a dict with the attributes of the arm"),
    ("context", "add_arm", ("z", {"topic": None}), errors.InvalidFeatures, "'topic' of arm 'z' must be text, got None"),
    ("context", "add_arm", ("z", {"topic": float("nan")}), errors.InvalidFeatures, "must be text, got nan"),
    ("context", "add_arm", ("z", {"topic": ["x"]}), errors.InvalidFeatures, r"must be text, got \['x'\]"),
    ("context", "add_arm", ("z", {"topic": 3}), errors.InvalidFeatures, "must be text, got 3"),
    ("context", "update_arm", ("x", {"topic": object}), errors.InvalidFeatures, "'topic' of arm 'x' must be text, got"),
    ("context", "update_arm", ("z", {"topic": "x"}), errors.UnknownName, "unknown arm 'z': known are x, y"),
    (
        "context",
        "choose_many",
        {"given": [{"user": "a", "age": 1}], "among": [["x"]] * 2},
        errors.InvalidShape,
        "got 2",
    ),
    ("encoded", "choose", ([{"user": "a", "topic": "x"}],), errors.InvalidFeatures, "has no column 'age'"),
    ("set", "choose", (MATRIX,), errors.InvalidArgument, "this agent has a set of arms of its own"),
    ("set", "choose_many", ([1],), errors.InvalidArgument, r"given=\[1\] must be a whole number of at least 1"),
    ("set", "choose", {"among": ["a"]}, errors.InvalidArgument, "among is for arms with names"),
    ("set", "propensities", (), errors.InvalidArgument, "an infinite set has no list of propensities"),
    ("set", "retire_arm", ("a",), errors.InvalidArgument, "this agent has no arms of its own to change"),
]


@pytest.mark.parametrize(("kind", "method", "arguments", "error", "words"), CALLS)
def test_calling(agents, kind, method, arguments, error, words):
    agent = agents[kind]
    state, before = agent.state, (agent.decisions, agent.pending, agent.arms)
    positional, named = ((), arguments) if isinstance(arguments, dict) else (arguments, {})
    with pytest.raises(error, match=words):
        getattr(agent, method)(*positional, **named)
    assert_same(agent.state, state)
    assert (agent.decisions, agent.pending, agent.arms) == before


def test_rewards_too_large_for_the_precision(agents):
    agent = agents["counts"]
    decision = agent.choose(MATRIX)
    with pytest.raises(errors.InvalidReward, match=r"reward must be at most 2.6e\+15 in float32, .* got 1e\+300"):
        agent.learn(decision.id, 1e300)
    agent.learn(decision.id, 1.0)


def test_attributes_of_numbers_are_numbers():
    ages = Encoder.fit(SAMPLE)
    for age in (None, "old", float("nan"), float("inf"), 10**400, True, [1]):
        with pytest.raises(errors.InvalidFeatures, match="'age' of arm 'new' must be a number, got"):
            Agent(make("lin_ts"), arms={"new": {"age": age}}, encoder=ages, draws=0)
    assert type(ages.checked("arm 'new'", {"age": np.int64(3)})["age"]) is float


def test_a_message_stays_short_whatever_the_list():
    names = [f"article {number:05d}" for number in range(50_000)]
    error = errors.UnknownName("arm", "artcle 31234", names)
    assert len(str(error)) < 1500
    assert "did you mean 'article" in str(error)
    assert str(error).endswith("and 49950 more")
    assert len(str(errors.UnknownName("arm", "x" * 10**6, ["y" * 10**6, "x" * 10**5]))) < 500
    assert len(str(errors.UnknownName("family", ["x"] * 10**6, ["bernoulli"]))) < 500
    agent = Agent(make("uniform"), arms=dict(zip(names[:3000], np.ones((3000, 1)), strict=True)))
    with pytest.raises(errors.UnknownName, match="unknown arm 'tennis'") as caught:
        agent.choose(among=["tennis"])
    assert len(str(caught.value)) < 1500


def test_nothing_to_learn_changes_nothing(agents):
    agent = agents["fixed"]
    state, pending = agent.state, agent.pending
    agent.learn([], [])
    assert_same(agent.state, state)
    assert agent.pending == pending != []
