import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize_scalar

from explorax import errors, theory
from explorax.glm import families

PAPER = {d: theory.problem(n_features=d, rounds=50_000, n_arms=100) for d in (5, 10, 20)}


@pytest.mark.parametrize(
    ("features", "alpha", "tsl", "fpl"), [(5, 11.93, 8.23, 4.11), (10, 15.08, 10.33, 5.17), (20, 19.60, 13.35, 6.67)]
)
def test_values_of_the_papers_experiments(features, alpha, tsl, fpl):
    at = PAPER[features]
    assert round(theory.width("ucb_glm", at), 2) == alpha
    assert round(theory.scale("glm_tsl", at), 2) == tsl
    assert round(theory.scale("glm_fpl", at), 2) == fpl


def test_constants_by_hand():
    at = theory.problem(n_features=2, rounds=100, n_arms=10, noise_std=1.0, min_slope=0.1, max_slope=0.2, max_gap=0.5)
    c1 = 10 * math.sqrt(2 * math.log(50) + 2 * math.log(100))
    assert theory.confidence(at) == pytest.approx(c1)
    assert theory.scale("glm_tsl", at) == pytest.approx(c1 * math.sqrt(0.2))
    assert theory.scale("glm_fpl", at) == pytest.approx(c1 * 0.2)
    assert theory.spread("glm_tsl", at) == pytest.approx(c1 * math.sqrt(2 * 2 * math.log(1000)))
    assert theory.spread("glm_fpl", at) == pytest.approx(c1 * 2 * math.sqrt(2 * math.log(1000)))
    rate = math.sqrt(2 * 2 * 100 * math.log(100))
    c2 = theory.spread("glm_tsl", at)
    expected = 0.2 * (c1 + c2) * (1 + 2 / (0.15 - 0.01)) * rate + (7 + 3) * 0.5
    assert theory.regret_bound("glm_tsl", at, exploration_rounds=7) == pytest.approx(expected)
    c2 = theory.spread("glm_fpl", at)
    expected = 0.2 * (c1 + c2) * (1 + 2 / (0.15 - 0.02)) * rate + (7 + 4) * 0.5
    assert theory.regret_bound("glm_fpl", at, exploration_rounds=7) == pytest.approx(expected)
    assert theory.required_eigenvalue("glm_tsl", at) == pytest.approx(c1**2)
    assert theory.required_eigenvalue("ucb_glm", at) == pytest.approx(c1**2)
    assert theory.required_eigenvalue("glm_ucb", at) == 1
    a = theory.scale("glm_fpl", at)
    printed = max(4 * c1**2, 8 * a**2 / 0.1**2 * math.log(100))
    assert theory.required_eigenvalue("glm_fpl", at, printed=True) == pytest.approx(printed)
    corrected = max(4 * c1**2, 4 * a**2 / 0.1**2 * (math.sqrt(2) + math.sqrt(2 * math.log(100))) ** 2)
    assert theory.required_eigenvalue("glm_fpl", at) == pytest.approx(corrected)
    kappa = math.sqrt(3 + 2 * math.log(1 + 2 * 1.5**2))
    rho = 2 * 0.2 * kappa * 3 / 0.1 * math.sqrt(2 * 2 * math.log(100) * math.log(2 * 2 * 100 / 0.05))
    assert theory.width("glm_ucb", at, delta=0.05, max_norm=1.5, max_reward=3.0) == pytest.approx(rho)


def test_the_printed_norm_bound_is_too_small_and_ours_is_not():
    # Erratum: P(‖z‖ > √(2 log n)) exceeds 1/n for d > 2; P(‖z‖ > √d + √(2 log n)) does not.
    for d in (3, 5, 20):
        for n in (100, 50_000):
            assert stats.chi2.sf(2 * math.log(n), d) > 1 / n
            assert stats.chi2.sf((math.sqrt(d) + math.sqrt(2 * math.log(n))) ** 2, d) <= 1 / n


@pytest.mark.parametrize("family", ["bernoulli", "gaussian", "poisson"])
def test_slopes_near_a_parameter(family):
    theta = [0.6, -0.8]
    slope = families.get(family).slope
    ends = {}
    for sign in (1, -1):
        found = minimize_scalar(lambda z, s=sign: s * float(slope(np.float64(z))), bounds=(-2, 2), method="bounded")
        ends[sign] = min(sign * float(slope(np.float64(z))) for z in (found.x, -2.0, 2.0)) * sign
    assert theory.min_slope_near(family, theta) == pytest.approx(ends[1], rel=1e-5)
    assert theory.max_slope_near(family, theta) == pytest.approx(ends[-1], rel=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: theory.problem(n_features=5, rounds=5),
            errors.TheoryNotApplicable,
            r"more than n_features=5, .* got 5\. Plan for more rounds",
        ),
        (
            lambda: theory.problem(n_features=0, rounds=5),
            errors.InvalidArgument,
            "n_features must be a whole number of at least 1, got 0",
        ),
        (
            lambda: theory.problem(n_features=2.5, rounds=50),
            errors.InvalidArgument,
            r"n_features must be a whole number of at least 1, got 2\.5",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, noise_std=0),
            errors.TheoryNotApplicable,
            r"noise_std must be .* above 0, got 0\.",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, min_slope=0.0),
            errors.TheoryNotApplicable,
            r"min_slope must be .* above 0, got 0\.0\.",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, min_slope=0.3),
            errors.TheoryNotApplicable,
            r"min_slope must be at most max_slope=0\.25, got 0\.3",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, max_gap=-1),
            errors.TheoryNotApplicable,
            "max_gap must be .* at least 0, got -1",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, noise_std="a"),
            errors.TheoryNotApplicable,
            "noise_std must be .* above 0, got 'a'",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, family="poisson"),
            errors.TheoryNotApplicable,
            "noise_std must be given for poisson rewards, which are not sub-Gaussian",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, family="poisson", noise_std=2.0),
            errors.TheoryNotApplicable,
            r"max_slope must be given .* theory\.max_slope_near",
        ),
        (lambda: theory.scale("ucb_glm", PAPER[5]), errors.UnknownName, "ucb_glm"),
        (lambda: theory.width("glm_tsl", PAPER[5]), errors.UnknownName, "glm_tsl"),
        (
            lambda: theory.width("ucb_glm", PAPER[5], delta=2),
            errors.TheoryNotApplicable,
            "delta must be .* between 0 and 1, got 2",
        ),
        (lambda: theory.required_eigenvalue("greedy", PAPER[5]), errors.UnknownName, "greedy"),
        (
            lambda: theory.problem(n_features=5, rounds=10**400),
            errors.InvalidArgument,
            "rounds must be .* 1 to 10{18}, got 1",
        ),
        (
            lambda: theory.min_slope_near("bernoulli", [np.nan]),
            errors.InvalidShape,
            "theta must be a finite vector, got",
        ),
    ],
)
def test_preconditions_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()
