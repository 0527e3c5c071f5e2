"""The problem of a fit: its derivatives against finite differences, in every layout of its rows."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families
from explorax.glm.kernel import InRegisters
from explorax.glm.problem import ByColumn, ByRow, Problem, gradient, gradient_error, hessian, loss, posed
from tests.problems import FAMILIES, random_history

RIDGE = 0.4


def some_problem(family, seed=1):
    rng = np.random.default_rng(seed)
    return posed(random_history(rng, family), ridge=RIDGE, tilt=jnp.asarray(rng.normal(size=4)))


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_and_hessian_against_finite_differences(family):
    problem, step = some_problem(family), 1e-5
    glm, theta = families.get(family), np.random.default_rng(2).normal(size=4)
    shifts = step * np.eye(4)
    slopes = [(loss(glm, problem, theta + s) - loss(glm, problem, theta - s)) / (2 * step) for s in shifts]
    np.testing.assert_allclose(gradient(glm, problem, theta), slopes, rtol=1e-7, atol=1e-6)
    bends = [(gradient(glm, problem, theta + s) - gradient(glm, problem, theta - s)) / (2 * step) for s in shifts]
    np.testing.assert_allclose(hessian(glm, problem, theta), bends, rtol=1e-7, atol=1e-6)


@pytest.mark.parametrize("layout", [ByColumn, InRegisters])
def test_a_layout_changes_nothing(layout):
    glm, problem = families.poisson, some_problem("poisson")
    other = problem._replace(rows=layout(problem.rows.features.T))
    theta, some = jnp.asarray([0.3, -1.0, 0.5, 0.1]), jnp.arange(12.0)
    # What rounding does to means is measured by a difference quotient, which is rounded itself.
    for function, rtol in ((loss, 1e-12), (gradient, 1e-12), (hessian, 1e-12), (gradient_error, 0.01)):
        np.testing.assert_allclose(function(glm, other, theta), function(glm, problem, theta), rtol=rtol, atol=1e-14)
    for method, given in (("scores", theta), ("pull", some), ("gram", some)):
        found, wanted = (getattr(each.rows, method)(given) for each in (other, problem))
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)
    for method in ("lengths", "peaks"):
        found, wanted = (getattr(each.rows, method)() for each in (other, problem))
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    np.testing.assert_array_equal(other.rows.magnitudes().columns, np.abs(problem.rows.features).T)


def test_sizes_of_rows():
    rows = ByRow(jnp.asarray([[3.0, -4.0], [0.0, 0.5]]))
    np.testing.assert_allclose(rows.lengths(), [5, 0.5])
    np.testing.assert_allclose(rows.peaks(), [4, 0.5])


def test_rows_that_were_never_seen_do_not_matter_even_where_they_overflow():
    columns = jnp.asarray([[1.0, 1e6, 0.5], [0.5, 1e6, -1.0]])
    theta, tilt = jnp.asarray([1.0, 1.0]), jnp.zeros(2)
    counts, sums = jnp.asarray([3.0, 0.0, 2.0]), jnp.asarray([4.0, 0.0, 1.0])
    whole = Problem(ByColumn(columns), counts, sums, tilt, RIDGE)
    seen = np.array([0, 2])
    without = Problem(ByColumn(columns[:, seen]), counts[seen], sums[seen], tilt, RIDGE)
    for function in (loss, gradient, hessian, gradient_error):
        found, wanted = (function(families.poisson, each, theta) for each in (whole, without))
        assert np.all(np.isfinite(found))
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert whole.largest(jnp.asarray([-2.0, 9.0, 1.0])) == 2
    np.testing.assert_array_equal(whole.of_seen(jnp.asarray([-2.0, np.inf, 1.0])), [-2, 0, 1])
