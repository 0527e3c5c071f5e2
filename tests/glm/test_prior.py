"""A prior as rewards: the fit of nothing else has its mean and its precision, in every family."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax import errors, families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.prior import rewards_of_prior
from explorax.glm.problem import hessian, posed

RNG = np.random.default_rng(3)
MEAN = np.array([0.5, -1.0, 0.2])
ROOT = RNG.normal(size=(3, 3))
PRECISION = ROOT @ ROOT.T + 2.0 * np.eye(3)


def past_of(rewards):
    return Grouped(rewards.features, rewards.weights, rewards.weights * rewards.rewards)


@pytest.mark.parametrize("family", [families.bernoulli, families.gaussian, families.poisson])
@pytest.mark.parametrize("ridge", [1e-3, 0.5, 1.5])
def test_the_fit_of_the_prior_is_its_mean_and_its_curvature_there_is_its_precision(family, ridge):
    past = past_of(rewards_of_prior(family, ridge, MEAN, PRECISION))
    found = fit(family, past, ridge=ridge)
    assert found.converged
    np.testing.assert_allclose(found.theta, MEAN, atol=1e-7)
    curvature = hessian(family, posed(past, ridge=jnp.asarray(ridge)), jnp.asarray(MEAN))
    np.testing.assert_allclose(curvature, PRECISION, rtol=1e-9, atol=1e-9)


def test_least_squares_has_the_gaussian_prior_itself():
    """The estimate after rewards is the mean of the posterior, by the textbook's formula."""
    ridge, x, y = 0.5, RNG.normal(size=(6, 3)), RNG.normal(size=6)
    prior = past_of(rewards_of_prior(families.gaussian, ridge, MEAN, PRECISION))
    rows = Grouped(*(jnp.concatenate([a, b]) for a, b in zip(prior, (x, np.ones(6), y), strict=True)))
    posterior = np.linalg.solve(PRECISION + x.T @ x, PRECISION @ MEAN + x.T @ y)
    np.testing.assert_allclose(fit("gaussian", rows, ridge=ridge).theta, posterior, rtol=1e-9)


@pytest.mark.parametrize(
    ("mean", "precision", "words"),
    [
        (
            MEAN,
            0.4 * np.eye(3),
            "precision must be larger than the ridge 0.5 .* got an eigenvalue of 0.4.* smaller ridge",
        ),
        (MEAN, 0.5 * np.eye(3), "precision must be larger than the ridge 0.5"),
        (MEAN, np.eye(2), r"got shape \(2, 2\) with a mean of shape \(3,\)"),
        ([MEAN], np.eye(3), r"got shape \(3, 3\) with a mean of shape \(1, 3\)"),
        (MEAN, np.diag([1.0, 1.0, np.nan]), "mean and precision must be finite, got NaN"),
        (MEAN, np.triu(np.ones((3, 3))) + np.eye(3), "precision must be a symmetric matrix"),
        (1e4 * MEAN, PRECISION, "mean must give scores at which rewards vary, got scores up to"),
    ],
)
def test_priors_that_cannot_be_used(mean, precision, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        rewards_of_prior(families.bernoulli, 0.5, mean, precision)
