import numpy as np
import pytest

from explorax import errors, theory


def test_description_prints_a_table():
    arms = np.random.default_rng(0).uniform(-1, 1, (100, 5))
    text = str(theory.describe(arms, rounds=50_000))
    assert "K = 100" in text
    assert len(text.splitlines()) == 7
    for value in ("8.23", "4.11", "11.93"):
        assert value in text
    described = theory.describe(arms, rounds=50_000)
    by_policy = {row["policy"]: row for row in described.rows}
    tau = theory.schedule(arms, theory.required_eigenvalue("glm_tsl", described.problem)).rounds
    assert by_policy["glm_tsl"]["exploration rounds"] == tau
    bound = theory.regret_bound("glm_tsl", described.problem, exploration_rounds=tau)
    assert by_policy["glm_tsl"]["regret bound"] == bound
    assert "-" in str(theory.describe(100, n_features=5, rounds=50_000))


def test_a_bound_above_the_most_regret_there_can_be_is_called_empty():
    loose = theory.describe(100, n_features=5, rounds=1000)
    assert loose.empty_bounds == ["glm_tsl", "glm_fpl"]
    assert loose.largest_regret == 1000
    assert str(loose).endswith(
        "true but empty: glm_tsl, glm_fpl. No policy can have more regret than n times the largest gap, 1000."
    )
    tight = theory.describe(100, n_features=2, rounds=1_000_000, family="gaussian", noise_std=0.01)
    assert tight.empty_bounds == []
    assert "empty" not in str(tight)


def test_large_numbers_are_printed_short():
    assert max(map(len, str(theory.describe(100, n_features=5, rounds=1000, min_slope=1e-30)).splitlines())) < 130


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: theory.describe(100, rounds=50),
            errors.InvalidArgument,
            "n_features must be given with arms=100, .* Give n_features too",
        ),
        (
            lambda: theory.describe(9, n_features=5, rounds=50, min_slope=1e-300),
            errors.TheoryNotApplicable,
            "min_slope must be large enough .* got 1e-300",
        ),
        (
            lambda: theory.describe(np.ones(4), rounds=50),
            errors.InvalidShape,
            r"arms must be a matrix .* got shape \(4,\)",
        ),
        (
            lambda: theory.describe(np.ones((4, 3)), n_features=2, rounds=50),
            errors.InvalidShape,
            r"arms must be a matrix .* n_features=2 columns, got shape \(4, 3\)",
        ),
    ],
)
def test_preconditions_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()
