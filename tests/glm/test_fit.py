"""The fit against other people's fits, and on the histories that break naive ones."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import linprog
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from benchmarks.fit_stress import RESOLVED, RIDGES, SHAPES, hard_cases, is_solved, solve
from explorax import errors
from explorax.glm import families
from explorax.glm.fit import MAX_STEPS, NO, UNKNOWN, YES, fit
from explorax.glm.history import Grouped, Rows
from explorax.glm.problem import hessian, posed
from tests.problems import FAMILIES, random_history, random_rows, scipys


def rows(x, y):
    return Grouped(jnp.asarray(x), jnp.ones(len(y)), jnp.asarray(y))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ridge", [1.0, 1e-3])
def test_against_scipy(family, seed, ridge):
    rng = np.random.default_rng(seed)
    history = random_history(rng, family)
    tilt = jnp.asarray(rng.normal(size=4))
    expected = scipys(family, posed(history, ridge=ridge, tilt=tilt), 4)
    found = fit(family, history, ridge=ridge, tilt=tilt)
    assert found.converged
    np.testing.assert_allclose(found.theta, expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_logistic_ridge_against_scikit_learn(seed):
    x, y = random_rows(np.random.default_rng(seed), "bernoulli")
    model = LogisticRegression(C=1 / 0.7, fit_intercept=False, solver="newton-cholesky", tol=1e-14, max_iter=1000)
    np.testing.assert_allclose(fit("bernoulli", rows(x, y), ridge=0.7).theta, model.fit(x, y).coef_[0], rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_poisson_ridge_against_scikit_learn(seed):
    x, y = random_rows(np.random.default_rng(seed), "poisson")
    model = PoissonRegressor(
        alpha=0.7 / len(y), fit_intercept=False, solver="newton-cholesky", tol=1e-14, max_iter=1000
    )
    np.testing.assert_allclose(fit("poisson", rows(x, y), ridge=0.7).theta, model.fit(x, y).coef_, rtol=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("family", FAMILIES)
def test_plain_maximum_likelihood_against_statsmodels(family, seed):
    x, y = random_rows(np.random.default_rng(seed), family)
    theirs = {"bernoulli": sm.families.Binomial(), "gaussian": sm.families.Gaussian(), "poisson": sm.families.Poisson()}
    expected = sm.GLM(y, x, family=theirs[family]).fit(tol=1e-14, maxiter=200).params
    found = fit(family, rows(x, y), ridge=0.0)
    assert found.mle_exists == YES
    np.testing.assert_allclose(found.theta, expected, rtol=1e-8)


def test_gaussian_is_the_normal_equations():
    rng = np.random.default_rng(0)
    history = random_history(rng, "gaussian")
    tilt = rng.normal(size=4)
    x, n, y = (np.asarray(part) for part in history)
    expected = np.linalg.solve((x.T * n) @ x + 0.3 * np.eye(4), y @ x + tilt)
    np.testing.assert_allclose(fit("gaussian", history, ridge=0.3, tilt=jnp.asarray(tilt)).theta, expected, rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", range(3))
def test_lemma_1_with_the_averaged_hessian(family, seed):
    # Σ (y₂ − y₁) x = ∫₀¹ ∇²L(θ₁ + s (θ₂ − θ₁)) ds (θ₂ − θ₁): the paper's lemma, with the average over the segment
    # in place of a single point between θ₁ and θ₂, which need not exist.
    rng = np.random.default_rng(seed)
    history = random_history(rng, family)
    shifted = history._replace(sums=history.sums + jnp.asarray(rng.normal(size=12)))
    first, second = fit(family, history, ridge=1e-3).theta, fit(family, shifted, ridge=1e-3).theta
    nodes, weights = np.polynomial.legendre.leggauss(30)
    problem = posed(history, ridge=1e-3)
    average = sum(
        weight / 2 * hessian(families.get(family), problem, first + (node + 1) / 2 * (second - first))
        for node, weight in zip(nodes, weights, strict=True)
    )
    difference = (shifted.sums - history.sums) @ history.features
    np.testing.assert_allclose(average @ (second - first), difference, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("dtype", "least"), RESOLVED.items())
@pytest.mark.parametrize("family", FAMILIES)
def test_no_hard_case_fails(family, dtype, least):
    # A slice of `make stress`, which draws 100 000.  Ridges share a compiled program.
    rng = np.random.default_rng(17)
    said = []
    for shape, ridge in itertools.product(SHAPES[1::2], [ridge for ridge in RIDGES if ridge >= least]):
        cases = hard_cases(rng, family, 100, shape, np.dtype(dtype), ridge)
        found = solve(family, cases, ridge)
        assert np.all(np.isfinite(found.theta))
        assert np.all(is_solved(found))
        assert np.all(found.iterations < MAX_STEPS)
        assert found.theta.dtype == dtype
        said.append(np.asarray(found.converged))
        if dtype == "float32":  # where float64 knows the answer, no promise is broken
            exact = solve(family, jax.tree.map(lambda part: jnp.asarray(part, float), cases), ridge)
            seen = np.asarray(cases.history.features, float) * (np.asarray(cases.history.counts) > 0)[..., None]
            scores = np.einsum("skd,sd->sk", seen, np.asarray(exact.theta))
            errors = np.abs(np.einsum("skd,sd->sk", seen, np.asarray(found.theta, float)) - scores).max(axis=1)
            means = np.abs(cases.history.sums) / np.maximum(cases.history.counts, 1)
            unit = np.maximum(1, np.max(means, axis=1)) if family == "gaussian" else np.ones(100)
            known = said[-1] & np.asarray(exact.converged)
            assert np.all((errors / unit)[known] <= np.finfo(dtype).eps ** (1 / 3))
    assert np.mean(said) > (0.8 if dtype == "float64" else 0.5)


@pytest.mark.parametrize("family", FAMILIES)
def test_beyond_what_float32_resolves_nothing_is_nan(family):
    # A ridge this small next to the features makes scores of 1e9 and more, which float32 cannot tell apart.
    history = random_history(np.random.default_rng(0), family, dtype="float32")
    history = history._replace(features=1000 * history.features)
    for tilt in (1e6, -1e6):
        found = fit(family, history, ridge=1e-6, tilt=jnp.full(4, tilt, jnp.float32))
        assert np.all(np.isfinite(found.theta))
        assert not np.isnan(found.gradient_error)


def test_d_single_pulls_have_no_estimate_without_a_ridge():
    history = Grouped(jnp.eye(3), jnp.ones(3), jnp.asarray([1.0, 0.0, 1.0]))
    assert fit("bernoulli", history, ridge=1.0).mle_exists == NO
    with pytest.raises(
        errors.NoMaximumLikelihood, match=r"ridge must be above 0 for this history, got 0\. .* Give ridge > 0"
    ):
        fit("bernoulli", history, ridge=0.0)


def test_extreme_counts():
    history = Grouped(jnp.eye(2), jnp.asarray([1e6, 1e6]), jnp.asarray([1.0, 1e6 - 1]))
    expected = np.log(1 / (1e6 - 1))
    np.testing.assert_allclose(fit("bernoulli", history, ridge=0.0).theta, [expected, -expected], rtol=1e-8)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_start_leads_to_the_same_answer(family):
    history = random_history(np.random.default_rng(4), family)
    expected = fit(family, history, ridge=1e-3)
    for start in (expected.theta, 50 * np.ones(4), -50 * np.ones(4), [1e3, -1e3, 1e3, -1e3], 1e-9 * np.ones(4)):
        found = fit(family, history, ridge=1e-3, start=jnp.asarray(start))
        assert found.converged
        np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-8)
    assert fit(family, history, ridge=1e-3, start=expected.theta).iterations == 1


def test_a_looser_tolerance_is_kept():
    history = random_history(np.random.default_rng(4), "bernoulli")
    exact, loose = fit("bernoulli", history), fit("bernoulli", history, tolerance=1e-2)
    assert loose.iterations <= exact.iterations
    assert loose.converged
    assert np.max(np.abs(history.features @ (loose.theta - exact.theta))) < 1e-4


def test_rows_and_groups_agree():
    rng = np.random.default_rng(2)
    arms = jnp.asarray(rng.uniform(-1, 1, (5, 3)))
    grouped, one_by_one = Grouped.of(arms), Rows.of(50, 3, arms.dtype, forgets=False)
    for arm, reward in zip(rng.integers(0, 5, 40), rng.integers(0, 2, 40), strict=True):
        grouped = grouped.record(arm, arms[arm], float(reward))
        one_by_one = one_by_one.record(arm, arms[arm], float(reward))
    np.testing.assert_allclose(fit("bernoulli", grouped).theta, fit("bernoulli", one_by_one).theta, rtol=1e-10)
    np.testing.assert_allclose(grouped.gram(), one_by_one.gram(), rtol=1e-12)


def test_compiled_batched_and_scanned_fits_agree():
    histories = [random_history(np.random.default_rng(seed), "bernoulli") for seed in range(6)]
    plain = np.stack([fit("bernoulli", history).theta for history in histories])
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *histories)

    def one(history):
        return fit("bernoulli", history).theta

    np.testing.assert_allclose(np.stack([jax.jit(one)(history) for history in histories]), plain, rtol=1e-12)
    np.testing.assert_allclose(jax.vmap(one)(stacked), plain, rtol=1e-10)
    np.testing.assert_allclose(jax.lax.map(one, stacked), plain, rtol=1e-10)
    nested = jax.tree.map(lambda part: part.reshape(2, 3, *part.shape[1:]), stacked)
    np.testing.assert_allclose(jax.vmap(jax.vmap(one))(nested).reshape(6, -1), plain, rtol=1e-10)


def test_plain_lists_and_whole_numbers_are_read():
    exact = fit("bernoulli", Grouped(jnp.eye(2), jnp.asarray([3.0, 5.0]), jnp.asarray([1.0, 2.0]))).theta
    np.testing.assert_allclose(fit("bernoulli", Grouped([[1, 0], [0, 1]], [3, 5], [1, 2])).theta, exact, rtol=1e-12)
    mixed = fit("bernoulli", Grouped(np.eye(2, dtype="float32"), np.array([3, 5]), np.array([1.0, 2.0])), tilt=[0, 0])
    assert mixed.theta.dtype == "float32"
    assert mixed.converged
    np.testing.assert_allclose(mixed.theta, exact, rtol=1e-5)


def separable(x, y):
    """Whether some direction separates the rewards, by linear programming: then no estimate exists."""
    signs = np.where(y == 1, 1, -1)[:, None] * x
    # maximize Σ s_i xᵢᵀv subject to s_i xᵢᵀv ≥ 0 and |v| ≤ 1: above zero exactly if (quasi-)separated.
    result = linprog(-signs.sum(axis=0), A_ub=-signs, b_ub=np.zeros(len(y)), bounds=(-1, 1))
    return -result.fun > 1e-9


def test_existence_never_contradicts_linear_programming():
    rng = np.random.default_rng(6)
    verdicts = {YES: 0, NO: 0, UNKNOWN: 0}
    for _ in range(300):
        x = rng.normal(size=(rng.choice([6, 9, 13, 19]), 3))
        y = (rng.random(len(x)) < 1 / (1 + np.exp(-2 * x[:, 0]))).astype(float)
        verdict = int(fit("bernoulli", rows(x, y), ridge=1e-6).mle_exists)
        verdicts[verdict] += 1
        assert verdict in (NO if separable(x, y) else YES, UNKNOWN)
    # With a small ridge hardly anything stays unknown.
    assert verdicts[YES] > 50
    assert verdicts[NO] > 50
    assert verdicts[UNKNOWN] < 15


def test_existence_knows_rank_and_tilts():
    x = np.array([[1.0, 1.0], [2.0, 2.0], [1.0, 1.0]])
    assert fit("gaussian", rows(x, np.ones(3))).mle_exists == NO
    history = random_history(np.random.default_rng(3), "bernoulli", pulls=50)
    assert fit("bernoulli", history).mle_exists == YES
    far = jnp.asarray(1e4 * np.ones(4))
    assert fit("bernoulli", history, tilt=far).mle_exists == NO
    # Zero counts alone do not rule an estimate out: with features in all directions the loss still has a minimum.
    zeros = history._replace(sums=jnp.zeros(12))
    assert fit("poisson", zeros).mle_exists == YES
    assert fit("poisson", zeros._replace(features=jnp.abs(history.features))).mle_exists == NO


def test_zero_ridge_inside_compiled_code():
    history = random_history(np.random.default_rng(3), "gaussian")
    plain = fit("gaussian", history, ridge=0.0).theta
    np.testing.assert_allclose(jax.jit(lambda h: fit("gaussian", h, ridge=0.0).theta)(history), plain, rtol=1e-10)
    with pytest.raises(
        errors.NoMaximumLikelihood,
        match=r"ridge must be above 0 inside compiled code, got 0\. .* in the bernoulli family",
    ):
        jax.jit(lambda h: fit("bernoulli", h, ridge=0.0).theta)(history)


def broken(**changes):
    history = random_history(np.random.default_rng(3), "bernoulli")
    return history._replace(**changes)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"ridge": -1.0}, errors.InvalidArgument, r"ridge must be a finite number of at least 0, got -1\.0\."),
        ({"ridge": float("nan")}, errors.InvalidArgument, "ridge must be .* at least 0, got nan"),
        ({"ridge": "big"}, errors.InvalidArgument, "ridge must be .* at least 0, got 'big'"),
        ({"tolerance": 0.0}, errors.InvalidArgument, r"tolerance must be a finite number above 0, got 0\.0\."),
        ({"max_steps": 0}, errors.InvalidArgument, "max_steps must be a whole number of at least 1, got 0"),
        ({"tilt": jnp.zeros(3)}, errors.InvalidShape, r"tilt must have shape \(4,\), got shape \(3,\)"),
        ({"start": jnp.zeros((4, 1))}, errors.InvalidShape, r"start must have shape \(4,\), got shape \(4, 1\)"),
        ({"tilt": jnp.asarray([0.0, np.nan, 0, 0])}, errors.InvalidFeatures, "tilt must be finite, got NaN"),
        (
            {"history": broken(counts=jnp.ones(3))},
            errors.InvalidShape,
            r"counts must have shape \(12,\), got shape \(3,\)",
        ),
        (
            {"history": broken(features=jnp.ones(3))},
            errors.InvalidShape,
            r"features must be a matrix .* got shape \(3,\)",
        ),
        (
            {"history": broken(features=jnp.full((12, 4), np.inf))},
            errors.InvalidFeatures,
            "features must be finite, got NaN",
        ),
        ({"history": broken(counts=-jnp.ones(12))}, errors.InvalidArgument, "counts must be at least 0, got -1"),
        (
            {"history": broken(sums=jnp.full(12, np.nan))},
            errors.InvalidFeatures,
            "sums must be finite, got NaN",
        ),
        ({"family": "binomal"}, errors.UnknownName, "family must be one of .*, got 'binomal'"),
    ],
)
def test_bad_input_is_named(arguments, error, words):
    arguments = {"family": "bernoulli", "history": broken(), **arguments}
    with pytest.raises(error, match=words):
        fit(arguments.pop("family"), arguments.pop("history"), **arguments)
