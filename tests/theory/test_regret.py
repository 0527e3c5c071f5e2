import numpy as np
import pytest

from explorax import errors, theory


def test_schedule_reaches_what_it_was_asked_for_and_not_much_more():
    arms = np.random.default_rng(0).uniform(-1, 1, (40, 5))
    plan = theory.schedule(arms, 30.0)
    chosen = arms[plan.basis]
    assert plan.rounds == 5 * plan.pulls
    assert plan.pulls * np.linalg.eigvalsh(chosen.T @ chosen)[0] >= 30
    assert (plan.pulls - 1) * plan.eigenvalue < 30
    first = arms[:5]
    assert plan.eigenvalue > np.linalg.eigvalsh(first.T @ first)[0]


def test_bounds_grow_with_the_horizon_and_lie_over_a_curve():
    at = theory.problem(n_features=5, rounds=50_000, n_arms=100)
    horizons = np.array([100, 1000, 10_000])
    bounds = theory.regret_bounds("glm_fpl", at, horizons)
    assert bounds.shape == (3,)
    assert np.all(np.diff(bounds) > 0)
    assert bounds[2] == theory.regret_bound("glm_fpl", theory.problem(n_features=5, rounds=10_000, n_arms=100))


def test_bounds_of_a_run_end_at_the_bound_of_its_horizon():
    at = theory.problem(n_features=5, rounds=50_000, n_arms=100)
    bounds = theory.regret_bounds_of_run("glm_fpl", at, [100, 50_000], exploration_rounds=9)
    assert bounds[0] < bounds[1] == theory.regret_bound("glm_fpl", at, exploration_rounds=9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: theory.regret_bound("glm_tsl", theory.problem(n_features=2, rounds=6)),
            errors.TheoryNotApplicable,
            "rounds must be more than 6 for the bound of glm_tsl, got 6",
        ),
        (lambda: theory.schedule(np.ones((9, 3)), 5.0), errors.InvalidFeatures, "arms must span .* span only 1 of 3"),
        (
            lambda: theory.schedule(np.ones((2, 3)), 5.0),
            errors.InvalidShape,
            "arms must span .* got 2 arms for 3 features",
        ),
        (lambda: theory.schedule(np.full((4, 3), np.nan), 5.0), errors.InvalidFeatures, "arms must be finite, got NaN"),
        (
            lambda: theory.regret_bounds_of_run("glm_tsl", theory.problem(n_features=2, rounds=60), [1, 61]),
            errors.InvalidArgument,
            r"rounds must lie between 1 and the 60 rounds of the problem, got \[1, 61\]",
        ),
    ],
)
def test_preconditions_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()
