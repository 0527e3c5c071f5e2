"""The proximal step on one reward, against a bracketing search of SciPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special
from scipy.optimize import brentq

from explorax.glm import families
from explorax.glm.proximal import residual_after
from tests.problems import FAMILIES

DTYPES = ("float64", "float32")
MEANS = {"bernoulli": special.expit, "gaussian": lambda score: score, "poisson": lambda score: np.exp(min(score, 700))}
SLOPES = {
    "bernoulli": lambda score: special.expit(score) * special.expit(-score),
    "gaussian": np.ones_like,
    "poisson": lambda score: np.exp(np.minimum(score, 700)),
}
REWARDS = {
    "bernoulli": (-3.0, 0.0, 0.3, 1.0, 4.5),  # perturbed rewards are any real numbers
    "gaussian": (-1e6, -1.0, 0.0, 2.0, 1e6),
    "poisson": (-2.0, 0.0, 1.0, 50.0, 1e3, 1e6),
}
SCORES = (-200.0, -30.0, -2.0, 0.0, 0.7, 8.0, 40.0, 85.0, 100.0, 250.0, 600.0, 800.0)  # e^100 is infinite in float32
NORMS = (0.0, 1e-8, 1e-3, 0.3, 1.0, 20.0, 1e4)


def root_of(family, score, q, reward):
    """c from a bracketing search in float64."""
    mean = MEANS[family]

    def excess(c):
        return c + mean(score + c * q) - reward

    residual = reward - mean(score)
    if residual == 0:
        return 0.0
    if q == 0:
        return residual
    # Twice the residual is beyond the root even after rounding.
    return brentq(excess, min(2 * residual, 0), max(2 * residual, 0), xtol=1e-300, rtol=1e-15, maxiter=5000)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_step_is_the_root_that_scipy_finds(family, dtype):
    cases = np.stack(np.meshgrid(SCORES, NORMS, REWARDS[family]), axis=-1).reshape(-1, 3).astype(dtype)
    score, q, reward = cases.astype(float).T
    step = jax.jit(jax.vmap(functools.partial(residual_after, families.get(family))))
    found = np.asarray(step(*jnp.asarray(cases).T), float)
    assert np.all(np.isfinite(found))
    # A feature vector of zeros has c = y − μ, which may overflow: then a large number will do.
    infinite = (q == 0) & (score > np.log(np.finfo(dtype).max)) & (family == "poisson")
    assert np.all(found[infinite] < -1e30)
    cases, score, q, reward, found = (part[~infinite] for part in (cases, score, q, reward, found))
    residual = reward - np.vectorize(MEANS[family])(score)
    assert np.all(found * np.sign(residual) >= 0)
    assert np.all(np.abs(found) <= np.abs(residual) * (1 + 4 * np.finfo(dtype).eps) + np.finfo(dtype).eps)
    expected = np.array([root_of(family, *map(float, case)) for case in cases])
    after = score + expected * q
    mean, slope = np.vectorize(MEANS[family])(after), SLOPES[family](after)
    # Rounding of the terms that cancel at the root, over the slope there.
    terms = np.abs(expected) + np.abs(reward) + np.abs(mean) + slope * (np.abs(score) + np.abs(expected * q))
    allowed = 16 * np.finfo(dtype).eps * (terms / (1 + q * slope) + np.abs(expected)) + np.finfo(dtype).tiny
    bad = np.abs(found - expected) > allowed
    assert not bad.any(), f"{cases[bad][0]} and {bad.sum() - 1} more: {found[bad][0]} is not {expected[bad][0]}"
