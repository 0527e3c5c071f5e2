"""What memories compute from their rows."""

import jax.numpy as jnp
import numpy as np

from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.memory.base import Estimator
from explorax.glm.memory.fits import exact_root, exact_widths, tilted_fit
from explorax.glm.problem import hessian, posed

RNG = np.random.default_rng(8)
PAST = Grouped(jnp.asarray(RNG.normal(size=(7, 3))), jnp.full(7, 5.0), jnp.asarray(RNG.integers(0, 6, 7).astype(float)))
RIDGE = jnp.asarray(0.5)


def test_a_tilted_fit_is_that_of_tilted_rewards():
    estimator, tilt = Estimator(families.bernoulli), jnp.asarray([1.0, -2.0, 0.3])
    plain = fit("bernoulli", PAST, ridge=0.5)
    found = tilted_fit(estimator, PAST, RIDGE, plain.theta, plain.converged, tilt)
    assert found.converged
    np.testing.assert_allclose(found.theta, fit("bernoulli", PAST, ridge=0.5, tilt=tilt).theta, rtol=1e-7)


def test_roots_and_widths_from_rows():
    theta = jnp.asarray([0.2, -0.4, 1.0])
    root = exact_root(Estimator(families.poisson), PAST, RIDGE, theta)
    curvature = hessian(families.poisson, posed(PAST, ridge=0.5), theta)
    np.testing.assert_allclose(root.T @ curvature @ root, np.eye(3), atol=1e-9)
    gram = np.asarray(PAST.gram())
    norms = np.sqrt(np.sum(PAST.features @ np.linalg.inv(gram + 0.1 * np.eye(3)) * PAST.features, axis=1))
    np.testing.assert_allclose(exact_widths(PAST.features, PAST.gram(), 0.1), norms, rtol=1e-9)
