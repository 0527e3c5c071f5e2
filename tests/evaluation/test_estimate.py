"""Estimates with what each row adds to their error."""

import numpy as np

from explorax.evaluation.estimate import Estimate


def test_the_standard_error_of_a_mean_is_the_textbooks():
    terms = np.random.default_rng(0).normal(size=50)
    estimate = Estimate(terms.mean(), (terms - terms.mean()) / 50)
    np.testing.assert_allclose(estimate.stderr, terms.std(ddof=1) / np.sqrt(50), rtol=1e-12)


def test_a_difference_of_correlated_estimates_has_the_error_of_the_differences():
    rng = np.random.default_rng(1)
    first = rng.normal(size=80)
    second = first + 0.1 * rng.normal(size=80)
    one, two = (Estimate(terms.mean(), (terms - terms.mean()) / 80) for terms in (first, second))
    difference = one.minus(two)
    np.testing.assert_allclose(difference.value, np.mean(first - second), rtol=1e-12)
    np.testing.assert_allclose(difference.stderr, (first - second).std(ddof=1) / np.sqrt(80), rtol=1e-12)
    assert difference.stderr < 0.3 * one.stderr


def test_a_single_row_has_no_standard_error():
    assert Estimate(1.0, np.zeros(1)).stderr == np.inf
