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
    ({"policy": None}, "policy must be a Policy, got None. Build one with explorax.glm_tsl"),
    ({}, "arms must be a table or a set of arms, got None. Give arms, or n_features=d"),
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
    ({"arms": {"": [1.0, 2.0]}}, "name of an arm must be text, and not empty, or a whole number, got ''"),
    ({"arms": {"x": {"topic": None}}, "encoder": ENCODER}, "'topic' of arm 'x' must be text, got None"),
    ({"arms": MATRIX, "seed": -1}, "seed must be a whole number of at least 0, got -1"),
    ({"arms": MATRIX, "draws": -1}, "draws must be a whole number of at least 0, got -1"),
    ({"arms": MATRIX, "draws": 2.5}, "draws must be a whole number of at least .*, got 2.5"),
    ({"arms": MATRIX, "stderr": 0.0}, "stderr must be a finite number above 0, got 0.0. Give, for example, 0.02"),
    (
        {"arms": MATRIX, "draws": 10, "stderr": 0.1},
        "draws and stderr must not both be given, got draws=10 and stderr=0.1. Give one",
    ),
    ({"arms": MATRIX, "max_pending": 0}, "max_pending must be a whole number of at least 1, got 0"),
    ({"arms": MATRIX, "dtype": "float16"}, "dtype must be one of .*, got 'float16'. Did you mean 'float"),
    ({"arms": MATRIX, "n_features": 3}, "arms must have 3 features, as the agent was made for, got 2"),
    ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
    ({"arms": []}, r"arms must be a matrix .*, got shape \(0,\)\. Give at least one arm"),
    ({"arms": {}}, r"arms must be a matrix .*, got shape \(0,\)\. Give at least one arm"),
    ({"arms": [1.0, 2.0]}, r"arms must be a matrix with one row of features for each arm, got shape \(2,\)"),
    ({"arms": "red"}, "arms must be a matrix of numbers, got 'red'"),
    ({"arms": [["a", "b"]]}, "arms must be a matrix of numbers, got .*\\. Give rows of equal length"),
    ({"arms": [[1.0, np.nan]]}, "arms must be finite, got NaN or infinity. Clean the data"),
    (
        {"arms": {"red": [1.0, 2.0], "blue": [1.0]}},
        "arms must be a matrix of numbers, got .*\\. Give rows of equal length",
    ),
    ({"arms": {2.5: [1.0, 2.0]}}, "name of an arm must be text, and not empty, or a whole number, got 2.5"),
    ({"arms": {True: [1.0, 2.0]}}, "name of an arm must be text, and not empty, or a whole number, got True"),
    ({"arms": pd.DataFrame(MATRIX, index=list("aabc"))}, "names of arms must differ, got 'a' twice. Rename"),
    ({"arms": TOPICS}, "arms must be rows of numbers .*, got dicts. Make the agent with encoder="),
    ({"arms": MATRIX, "encoder": "one-hot"}, "encoder must be an Encoder, got 'one-hot'. Make one with Encoder.fit"),
    ({"encoder": ENCODER, "n_features": 2}, "n_features must be 6, as the encoder makes, got 2. Leave it out"),
    (
        {"arms": {"x": {"topik": "x"}}, "encoder": ENCODER},
        "column must be one of .*, got 'topik'. Did you mean 'topic'",
    ),
    (
        {"arms": {"x": {"topic": "x"}, "y": {"age": 1}}, "encoder": ENCODER},
        "arms must all have the same attributes, got",
    ),
    (
        {"policy": make("ucb_glm"), "arms": arm_sets.ball([0.0], 1.0)},
        "policy must maximize a linear function .*, got ucb_glm. Use .*glm_tsl",
    ),
    (
        {"policy": Policy(*make("lin_ts")[:3]), "arms": arm_sets.ball([0.0], 1.0)},
        "policy must maximize a linear function .*, got a policy",
    ),
    (
        {"policy": make("lin_ts")._replace(act=lambda key, state, arms, t: None), "arms": MATRIX},
        "policy.act must take the arguments .*, got 4 of them. Add `mask`",
    ),
    (
        {"policy": make("deep_fpl"), "n_features": 2},
        "redraws=True .* draws its noise in training.*the agent with draws=0",
    ),
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
    (
        "fixed",
        "choose",
        (MATRIX,),
        errors.InvalidArgument,
        "given must be None for an agent with arms of its own, got .*choose\\(\\) without arms",
    ),
    (
        "fixed",
        "choose",
        {"among": "ab"},
        errors.InvalidArgument,
        r"among must be a list of names of arms, got 'ab'\. Give \['ab'\]",
    ),
    ("fixed", "choose", {"among": ["e"]}, errors.UnknownName, "arm must be one of a, b, c, d, got 'e'"),
    (
        "fixed",
        "choose",
        {"among": ["d"]},
        errors.InvalidArgument,
        "must name arms on offer, got 'd', which is retired. Leave it out, or call restore",
    ),
    ("fixed", "choose", {"among": []}, errors.InvalidArgument, "No arm is on offer"),
    ("fixed", "choose_many", (0,), errors.InvalidArgument, "given must be a whole number of at least 1, got 0"),
    ("fixed", "choose_many", (2.0,), errors.InvalidArgument, "given must be a whole number of at least .*, got 2.0"),
    (
        "fixed",
        "learn",
        (4, 1.0),
        errors.UnknownDecision,
        "decision_id must be an id that `choose` returned, got 4. The last one was 3",
    ),
    ("fixed", "learn", (-1, 1.0), errors.UnknownDecision, "decision_id must be an id that `choose` returned, got -1"),
    ("fixed", "learn", (0, 1.0), errors.AlreadyRewarded, "The reward of decision 0 is already known"),
    ("fixed", "learn", ([1, 1], [1.0, 0.0]), errors.AlreadyRewarded, "Decision 1 is named twice. Give one reward"),
    ("fixed", "learn", ([1, 0], [1.0, 0.0]), errors.AlreadyRewarded, "The reward of decision 0 is already known"),
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
    ("fixed", "learn", (1, [1.0]), errors.InvalidShape, r"reward must have shape \(\), got \(1,\)\. Give one number"),
    (
        "fixed",
        "learn",
        ([1, 2], 1.0),
        errors.InvalidShape,
        r"reward must have shape \(2,\), got \(\)\. Give one number",
    ),
    ("fixed", "learn", ("1", 1.0), errors.InvalidArgument, "decision_id must be the id of a decision, .* got '1'"),
    ("fixed", "learn", (1.0, 1.0), errors.InvalidArgument, "decision_id must be the id of a decision, .* got 1.0"),
    ("fixed", "learn", (True, 1.0), errors.InvalidArgument, "decision_id must be the id of a decision, .* got True"),
    ("full", "learn", ([1, 2], [1.0, 0.0]), errors.HistoryFull, "1 of 2 rows are taken. Give a larger capacity"),
    ("fixed", "add_arm", ("a", [1.0, 2.0]), errors.InvalidArgument, "Arm 'a' is on offer already. Use update_arm"),
    (
        "fixed",
        "add_arm",
        ("", [1.0, 2.0]),
        errors.InvalidArgument,
        "name of an arm must be text, and not empty, or a whole number, got ''",
    ),
    (
        "fixed",
        "add_arm",
        ("d", [1.0]),
        errors.InvalidShape,
        "arms must have 2 features, as the agent was made for, got 1",
    ),
    ("fixed", "update_arm", ("e", [1.0, 2.0]), errors.UnknownName, "arm must be one of a, b, c, d, got 'e'"),
    ("fixed", "update_arm", ("a", [np.nan, 2.0]), errors.InvalidFeatures, "arms must be finite, got NaN or infinity"),
    (
        "fixed",
        "choose_many",
        {"given": 2, "among": [["a"]]},
        errors.InvalidShape,
        "one list of names for each of 2 dec",
    ),
    ("fixed", "choose_many", {"given": 2, "among": [["a"], []]}, errors.InvalidArgument, "No arm is on offer"),
    (
        "fixed",
        "choose_many",
        {"given": 2, "among": [["a"], ["d"]]},
        errors.InvalidArgument,
        "got 'd', which is retired",
    ),
    (
        "fixed",
        "add_arm",
        (None, [1.0, 2.0]),
        errors.InvalidArgument,
        "name of an arm must be text, and not empty, or a whole number, got None",
    ),
    (
        "fixed",
        "add_arm",
        ("e", [1.0]),
        errors.InvalidShape,
        "arms must have 2 features, as the agent was made for, got 1",
    ),
    ("fixed", "add_arm", ("e", [1.0, np.inf]), errors.InvalidFeatures, "arms must be finite, got NaN or infinity"),
    ("fixed", "add_arm", ("e", {"x": 1.0}), errors.InvalidFeatures, "arms must be rows of numbers .*, got dicts"),
    ("fixed", "retire_arm", ("d",), errors.InvalidArgument, "Arm 'd' is retired already. restore_arm puts it back"),
    ("fixed", "retire_arm", ("e",), errors.UnknownName, "arm must be one of .*, got 'e'"),
    ("fixed", "restore_arm", ("a",), errors.InvalidArgument, "Arm 'a' is on offer already. retire_arm takes it off"),
    (
        "counts",
        "choose",
        (),
        errors.InvalidArgument,
        r"given must be a table of the arms on offer, got None\. .*choose\(table\)",
    ),
    ("counts", "choose", (MATRIX[0],), errors.InvalidShape, r"arms must be a matrix .*, got shape \(2,\)"),
    (
        "counts",
        "choose",
        (MATRIX[:, :1],),
        errors.InvalidShape,
        "arms must have 2 features, as the agent was made for, got 1",
    ),
    (
        "counts",
        "choose",
        (np.full((3, 2), np.nan),),
        errors.InvalidFeatures,
        "arms must be finite, got NaN or infinity",
    ),
    ("counts", "choose", ([{"x": 1.0}],), errors.InvalidFeatures, "arms must be rows of numbers .*, got dicts"),
    (
        "counts",
        "choose_many",
        (5,),
        errors.InvalidArgument,
        "given must be a list of tables of arms, one for each decision, got 5",
    ),
    (
        "counts",
        "choose_many",
        ([],),
        errors.InvalidArgument,
        r"given must be a list of tables of arms, one for each decision, got \[\]",
    ),
    ("counts", "choose_many", (np.ones((2, 4, 3)),), errors.InvalidShape, "arms must have 2 features, .* got 3"),
    ("counts", "choose_many", ([MATRIX, [[1.0]]],), errors.InvalidShape, "arms must have 2 features, .* got 1"),
    ("counts", "add_arm", ("a", [1.0, 2.0]), errors.InvalidArgument, "This agent has no arms of its own to change"),
    ("context", "choose", (), errors.InvalidArgument, "A context must be a dict with the columns user, age, got None"),
    (
        "context",
        "choose",
        ({"user": "a"},),
        errors.InvalidFeatures,
        "row 0 of rows must have the columns .*, got no column 'age'",
    ),
    (
        "context",
        "choose",
        ({"user": "a", "age": 1, "topic": "x"},),
        errors.InvalidArgument,
        "must not have the attributes of the arms, got 'topic'. Leave it out",
    ),
    ("context", "choose", ({"user": "a", "agee": 1},), errors.UnknownName, "got 'agee'. Did you mean 'age'"),
    (
        "context",
        "choose",
        ({"user": "a", "age": "old"},),
        errors.InvalidFeatures,
        "'age' must be a number in row 0 of rows, got 'old'",
    ),
    (
        "context",
        "add_arm",
        ("z", {"age": 1}),
        errors.InvalidArgument,
        r"must have the attributes topic, .* got \['age'\] for arm 'z'",
    ),
    (
        "context",
        "add_arm",
        ("z", [1.0]),
        errors.InvalidFeatures,
        r"features must be a dict with the attributes of the arm, got \[1\.0\]\. Give topic",
    ),
    ("context", "add_arm", ("z", {"topic": None}), errors.InvalidFeatures, "'topic' of arm 'z' must be text, got None"),
    ("context", "add_arm", ("z", {"topic": float("nan")}), errors.InvalidFeatures, "must be text, got nan"),
    ("context", "add_arm", ("z", {"topic": ["x"]}), errors.InvalidFeatures, r"must be text, got \['x'\]"),
    ("context", "add_arm", ("z", {"topic": 3}), errors.InvalidFeatures, "must be text, got 3"),
    ("context", "update_arm", ("x", {"topic": object}), errors.InvalidFeatures, "'topic' of arm 'x' must be text, got"),
    ("context", "update_arm", ("z", {"topic": "x"}), errors.UnknownName, "arm must be one of x, y, got 'z'"),
    (
        "context",
        "choose_many",
        {"given": [{"user": "a", "age": 1}], "among": [["x"]] * 2},
        errors.InvalidShape,
        "got 2",
    ),
    ("encoded", "choose", ([{"user": "a", "topic": "x"}],), errors.InvalidFeatures, "got no column 'age'"),
    (
        "set",
        "choose",
        (MATRIX,),
        errors.InvalidArgument,
        "given must be None for an agent with an infinite set of arms, got",
    ),
    ("set", "choose_many", ([1],), errors.InvalidArgument, r"given must be a whole number of at least 1, got \[1\]"),
    (
        "set",
        "choose",
        {"among": ["a"]},
        errors.InvalidArgument,
        r"among must be None for an infinite set of arms, got \['a'\]\. Its points have no names",
    ),
    ("set", "propensities", (), errors.InvalidArgument, "propensities of an infinite set of arms cannot be listed"),
    ("set", "retire_arm", ("a",), errors.InvalidArgument, "This agent has no arms of its own to change"),
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
    assert "Did you mean 'article" in str(error)
    assert "arm must be one of 50000 names, got 'artcle 31234'. Did you mean" in str(error)
    assert str(error).endswith("article 00049 and 49950 more.")
    assert len(str(errors.UnknownName("arm", "x" * 10**6, ["y" * 10**6, "x" * 10**5]))) < 500
    assert len(str(errors.UnknownName("family", ["x"] * 10**6, ["bernoulli"]))) < 500
    agent = Agent(make("uniform"), arms=dict(zip(names[:3000], np.ones((3000, 1)), strict=True)))
    with pytest.raises(errors.UnknownName, match=r"arm must be one of .*, got 'tennis'") as caught:
        agent.choose(among=["tennis"])
    assert len(str(caught.value)) < 1500


def test_nothing_to_learn_changes_nothing(agents):
    agent = agents["fixed"]
    state, pending = agent.state, agent.pending
    agent.learn([], [])
    assert_same(agent.state, state)
    assert agent.pending == pending != []
