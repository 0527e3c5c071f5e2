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
    horizons = np.array([100, 1000, 10_000])
    bounds = theory.regret_bounds("glm_fpl", PAPER[5], horizons)
    assert bounds.shape == (3,)
    assert np.all(np.diff(bounds) > 0)
    assert bounds[2] == theory.regret_bound("glm_fpl", theory.problem(n_features=5, rounds=10_000, n_arms=100))


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
        (lambda: theory.problem(n_features=5, rounds=5), errors.TheoryNotApplicable, "more rounds than features"),
        (
            lambda: theory.problem(n_features=0, rounds=5),
            errors.InvalidArgument,
            "n_features must be a whole number of at least 1, got 0",
        ),
        (
            lambda: theory.problem(n_features=2.5, rounds=50),
            errors.InvalidArgument,
            "n_features must be a whole number of at least 1, got 2.5",
        ),
        (lambda: theory.problem(n_features=5, rounds=50, noise_std=0), errors.TheoryNotApplicable, "noise_std=0"),
        (lambda: theory.problem(n_features=5, rounds=50, min_slope=0.0), errors.TheoryNotApplicable, "min_slope=0.0"),
        (
            lambda: theory.problem(n_features=5, rounds=50, min_slope=0.3),
            errors.TheoryNotApplicable,
            "exceeds max_slope",
        ),
        (lambda: theory.problem(n_features=5, rounds=50, max_gap=-1), errors.TheoryNotApplicable, "max_gap=-1"),
        (lambda: theory.problem(n_features=5, rounds=50, noise_std="a"), errors.TheoryNotApplicable, "noise_std='a'"),
        (
            lambda: theory.problem(n_features=5, rounds=50, family="poisson"),
            errors.TheoryNotApplicable,
            "not sub-Gaussian",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=50, family="poisson", noise_std=2.0),
            errors.TheoryNotApplicable,
            "max_slope_near",
        ),
        (
            lambda: theory.regret_bound("glm_tsl", theory.problem(n_features=2, rounds=6)),
            errors.TheoryNotApplicable,
            "6 rounds",
        ),
        (lambda: theory.scale("ucb_glm", PAPER[5]), errors.UnknownName, "ucb_glm"),
        (lambda: theory.width("glm_tsl", PAPER[5]), errors.UnknownName, "glm_tsl"),
        (lambda: theory.width("ucb_glm", PAPER[5], delta=2), errors.TheoryNotApplicable, "delta=2"),
        (lambda: theory.required_eigenvalue("greedy", PAPER[5]), errors.UnknownName, "greedy"),
        (lambda: theory.describe(100, rounds=50), errors.InvalidArgument, "give n_features too"),
        (
            lambda: theory.describe(9, n_features=5, rounds=50, min_slope=1e-300),
            errors.TheoryNotApplicable,
            "min_slope must be large enough .* got 1e-300",
        ),
        (
            lambda: theory.problem(n_features=5, rounds=10**400),
            errors.InvalidArgument,
            "rounds must be .* 1 to 10{18}, got 1",
        ),
        (lambda: theory.describe(np.ones(4), rounds=50), errors.InvalidShape, r"shape \(4,\)"),
        (lambda: theory.schedule(np.ones((9, 3)), 5.0), errors.InvalidFeatures, "span only 1 of 3"),
        (lambda: theory.schedule(np.ones((2, 3)), 5.0), errors.InvalidShape, "2 arms cannot span"),
        (lambda: theory.schedule(np.full((4, 3), np.nan), 5.0), errors.InvalidFeatures, "NaN"),
        (lambda: theory.min_slope_near("bernoulli", [np.nan]), errors.InvalidShape, "finite vector"),
    ],
)
def test_preconditions_are_explained(call, error, words):
    with pytest.raises(error, match=words):
        call()
