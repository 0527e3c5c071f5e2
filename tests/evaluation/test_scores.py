"""Scores row by row: against the formulas with loops, their means by enumeration, blocks, and bad input."""

import numpy as np
import pytest

from explorax.errors import InvalidArgument, InvalidReward, InvalidShape
from explorax.evaluation.scores import CAP, Scores, joined, scored

BLOCK = {
    "rewards": [1.0, 0.0, 0.5],
    "arms": [0, 1, 1],
    "propensities": [0.5, 0.25, 0.4],
    "target": [[1.0, 0.0], [0.5, 0.5], [0.2, 0.8]],
}
MODEL = [[0.7, 0.2], [0.4, 0.9], [0.1, 0.6]]
EVERY = [[0.5, 0.5], [0.75, 0.25], [0.6, 0.4]]


def random_block(rng, rows=40, arms=5, low=0.0, high=1.0):
    """Return arguments of `scored` with everything known."""
    every = rng.dirichlet(np.ones(arms), rows)
    chosen = np.array([rng.choice(arms, p=each) for each in every])
    return {
        "rewards": rng.uniform(low, high, rows),
        "arms": chosen,
        "propensities": every[np.arange(rows), chosen],
        "target": rng.dirichlet(np.ones(arms), rows),
        "predictions": rng.uniform(low - 0.1, high + 0.1, (rows, arms)),
        "all_propensities": every,
        "reward_range": (low, high),
    }


def by_definition(block, mirrored, least=None):
    """Return φ of each row as EVALUATION states it, with min(q̂, k / w) and divisions, one arm at a time."""
    low, high = block["reward_range"]
    found = []
    for t, (reward, arm, propensity) in enumerate(
        zip(block["rewards"], block["arms"], block["propensities"], strict=True)
    ):
        target = block["target"][t]
        payoff, model = (reward - low) / (high - low), np.clip((block["predictions"][t] - low) / (high - low), 0, 1)
        if mirrored:
            payoff, model = 1 - payoff, 1 - model
        chances = block["all_propensities"][t] if least is None else np.full(len(target), least)
        cut = [min(model[a], CAP * chances[a] / target[a]) for a in range(len(target))]
        weight = target[arm] / propensity
        found.append(weight * (payoff - cut[arm]) + sum(target[a] * cut[a] for a in range(len(target))))
    return np.array(found)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.0, 5.0)])
@pytest.mark.parametrize("least", [None, 1e-4])
def test_scores_of_bounds_are_their_definition(mirrored, low, high, least):
    block = random_block(np.random.default_rng(0), low=low, high=high)
    block["all_propensities"] = np.maximum(block["all_propensities"], 1e-3)
    block["all_propensities"] /= block["all_propensities"].sum(axis=1, keepdims=True)
    block["propensities"] = block["all_propensities"][np.arange(40), block["arms"]]
    wanted = by_definition(block, mirrored, least)
    if least is not None:
        block = block | {"all_propensities": None, "least_propensity": least}
    scores = scored(**block)
    np.testing.assert_allclose(scores.upper if mirrored else scores.lower, wanted, rtol=1e-12, atol=1e-12)
    assert np.all(scores.caps == CAP)


def test_plain_columns():
    scores = scored(**BLOCK, predictions=MODEL, all_propensities=EVERY)
    np.testing.assert_allclose(scores.weights, [2, 2, 2])
    np.testing.assert_allclose(scores.modelled, [0.7, 0.65, 0.5])
    np.testing.assert_allclose(scores.predicted, [0.7, 0.9, 0.6])
    np.testing.assert_allclose(scores.spread, [2, 1 / 3 + 1, 0.04 / 0.6 + 0.64 / 0.4])
    assert np.all(scores.unsupported == 0)
    assert np.all(scores.rare == 0)
    assert scores.lower is scores.caps is scores.upper is None


@pytest.mark.parametrize("known", ["every", "least"])
@pytest.mark.parametrize("seed", range(5))
def test_the_mean_over_arms_is_the_value_and_no_score_is_below_the_cap(known, seed):
    rng = np.random.default_rng(seed)
    chances, target = rng.dirichlet(np.full(6, 0.3)) * 0.94 + 0.01, rng.dirichlet(np.full(6, 0.3))
    payoffs, model = rng.uniform(size=6), rng.uniform(size=6)
    knowledge = {"all_propensities": np.tile(chances, (6, 1))} if known == "every" else {"least_propensity": 0.01}
    scores = scored(  # one row for each arm that may be chosen
        payoffs, np.arange(6), chances, np.tile(target, (6, 1)), np.tile(model, (6, 1)),
        reward_range=(0, 1), **knowledge,
    )  # fmt: skip
    np.testing.assert_allclose(chances @ scores.lower, target @ payoffs, rtol=1e-12)
    np.testing.assert_allclose(chances @ scores.upper, 1 - target @ payoffs, rtol=1e-12)
    assert min(scores.lower.min(), scores.upper.min()) >= -CAP - 1e-12


def test_an_arm_without_a_chance_adds_nothing_to_bounds_and_is_told():
    scores = scored([1.0], [0], [1.0], [[0.25, 0.75]], [[0.5, 0.5]], [[1.0, 0.0]], (0, 1))
    assert scores.spread == np.inf
    assert scores.unsupported == 0.75
    assert scores.rare == 0.75
    assert scored([1.0], [0], [0.991], [[0.25, 0.75]], all_propensities=[[0.991, 0.009]]).rare == 0.75
    assert scores.lower <= 0.25 + 1e-12  # the value of the arm that had a chance
    assert scores.upper <= 1e-12


def test_without_a_model_or_knowledge_of_propensities_bounds_take_plain_weights():
    for knowledge in ({"predictions": MODEL}, {"all_propensities": EVERY}, {"least_propensity": 0.1}):
        scores = scored(**BLOCK, **knowledge, reward_range=(0, 2))
        np.testing.assert_allclose(scores.lower, [1, 0, 0.5])
        np.testing.assert_allclose(scores.upper, [1, 2, 1.5])
        assert np.all(scores.caps == 0)


def test_blocks_are_joined_to_the_scores_of_all_rows():
    block = random_block(np.random.default_rng(2))
    cut = {name: value for name, value in block.items() if name != "reward_range"}
    parts = [
        scored(**{name: value[rows] for name, value in cut.items()}, reward_range=(0, 1))
        for rows in (slice(0, 13), slice(13, 14), slice(14, 40))
    ]
    whole = scored(**block)
    for got, wanted in zip(joined(parts), whole, strict=True):
        np.testing.assert_array_equal(got, wanted)
    assert whole.size == 40


def test_some_rows():
    whole = scored(**random_block(np.random.default_rng(3)))
    some = whole.some([5, 5, 0])
    np.testing.assert_array_equal(some.lower, whole.lower[[5, 5, 0]])
    assert whole.some(slice(3)).size == 3
    assert some.reward_range == (0, 1)
    assert scored(**BLOCK).some([0]).spread is None


@pytest.mark.parametrize(
    ("error", "changes", "words"),
    [
        (InvalidShape, {"target": [0.5, 0.5, 0.5]}, r"target must have shape \(3, K\), got \(3,\)"),
        (InvalidShape, {"arms": [0, 1]}, r"arms must have shape \(3,\), got \(2,\)"),
        (InvalidShape, {"predictions": [[0.1]] * 3}, r"predictions must have shape \(3, 2\), got \(3, 1\)"),
        (InvalidShape, {"all_propensities": [[1.0]] * 3}, r"all_propensities must have shape"),
        (InvalidArgument, {"rewards": [1.0, np.nan, 0.0]}, "rewards must be finite"),
        (InvalidArgument, {"predictions": [[np.inf, 0.0]] * 3}, "predictions must be finite"),
        (InvalidArgument, {"arms": [0, 1, 2]}, "arms must be whole numbers from 0 to 1"),
        (InvalidArgument, {"arms": [0.0, 1.0, 1.0]}, "arms must be whole numbers"),
        (InvalidArgument, {"propensities": [0.5, 0.0, 0.4]}, r"propensities must be above 0, got 0\.0"),
        (InvalidArgument, {"propensities": [0.5, 1e-320, 0.4]}, "propensities must be large enough to divide by"),
        (InvalidArgument, {"target": [[1.0, 0.5]] * 3}, "target must be at least 0 and add up to 1"),
        (InvalidArgument, {"target": [[1.5, -0.5]] * 3}, "target must be at least 0 and add up to 1"),
        (InvalidArgument, {"all_propensities": [[0.5, 0.6]] * 3}, "all_propensities must be at least 0"),
        (InvalidArgument, {"all_propensities": [[0.3, 0.7]] * 3}, "propensities must be those of the chosen arms"),
        (InvalidArgument, {"reward_range": (1, 0)}, "reward_range must be two finite numbers"),
        (InvalidReward, {"reward_range": (0, 0.75)}, r"rewards must lie in the range from 0 to 0\.75, got 1 in row 0"),
        (InvalidArgument, {"least_propensity": 0.3}, r"least_propensity must be above 0 and at most .* 0\.25"),
        (InvalidArgument, {"least_propensity": 0.0}, "least_propensity must be above 0"),
    ],
)
def test_bad_input_is_refused(error, changes, words):
    with pytest.raises(error, match=words):
        scored(**(BLOCK | changes))


def test_blocks_of_different_kinds_are_not_joined():
    with pytest.raises(InvalidArgument, match="blocks must not be empty"):
        joined([])
    with pytest.raises(InvalidArgument, match="blocks must all have the same reward_range"):
        joined([scored(**BLOCK, reward_range=(0, 1)), scored(**BLOCK, reward_range=(0, 2))])
    with pytest.raises(InvalidArgument, match="blocks must all have spread or all lack it, got 1 of 2"):
        joined([scored(**BLOCK), scored(**BLOCK, all_propensities=EVERY)])


def test_a_log_without_rows_has_empty_scores():
    empty = np.zeros((0, 2))
    assert isinstance(scored([], np.zeros(0, int), [], empty, empty, empty, (0, 1)), Scores)
