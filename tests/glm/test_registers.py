"""Cholesky factors as a GPU kernel, run by its interpreter: right where a factor exists, finite where it does not."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import linalg, registers
from tests.lowering import lowered_for_a_gpu

EPS = float(np.finfo(np.float32).eps)


def factors(matrix):
    least = linalg.jitter(matrix.shape[-1], matrix.dtype)
    return registers.factors(matrix, least, interpret=True)


def correlations(size, count, seed, spread=1.0):
    """Positive definite matrices with a unit diagonal, in float32."""
    root = np.random.default_rng(seed).normal(size=(count, size, size)) * spread ** np.arange(size)
    matrix = root @ root.transpose(0, 2, 1) + 1e-2 * np.eye(size)
    lengths = np.sqrt(np.einsum("nii->ni", matrix))
    return jnp.asarray(matrix / lengths[:, :, None] / lengths[:, None, :], jnp.float32)


@pytest.mark.parametrize("size", [1, 2, 15, 16, 20, 32])
def test_a_batch_of_factors_and_their_inverses_is_that_of_numpy(size):
    matrices = correlations(size, 3, seed=size)
    lower, inverse = jax.vmap(factors)(matrices)
    expected = np.linalg.cholesky(np.asarray(matrices, float))
    condition = np.linalg.cond(np.asarray(matrices, float)).max()
    np.testing.assert_allclose(lower, expected, atol=EPS * condition)
    np.testing.assert_allclose(inverse @ expected, np.broadcast_to(np.eye(size), expected.shape), atol=EPS * condition)
    for factor in (lower, inverse):
        np.testing.assert_array_equal(factor, np.tril(factor))


@pytest.mark.parametrize("rank", [1, 3, 10])
def test_singular_matrices_have_finite_factors(rank):
    """Rounding decides what the pivots of missing directions are: rows stay as long as those of the matrix."""
    root = np.random.default_rng(rank).normal(size=(12, rank))
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    matrix = jnp.asarray(root @ root.T, jnp.float32)
    lower, inverse = factors(matrix)
    assert np.isfinite(inverse).all()
    np.testing.assert_allclose(lower @ lower.T, matrix, atol=1e-3)
    assert (np.sum(np.asarray(lower) ** 2, axis=1) <= 1 + 1e-4).all()


def test_factors_agree_with_those_of_a_cpu():
    """The same draws on both devices, up to rounding: the factor of a positive definite matrix is unique."""
    matrix = correlations(20, 1, seed=0)[0]
    by_halves = linalg.cholesky_and_inverse(matrix)
    for found, expected in zip(factors(matrix), by_halves, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


def test_nan_stays_nan():
    matrix = correlations(5, 1, seed=1)[0].at[3, 1].set(jnp.nan).at[1, 3].set(jnp.nan)
    lower, inverse = factors(matrix)
    assert np.isnan(lower).any()
    assert np.isnan(inverse).any()


def test_a_gpu_factors_by_the_kernel_and_a_cpu_beside_it_does_not(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    matrices = correlations(20, 2, seed=2)
    batch = jax.vmap(lambda matrix: linalg.factorize(matrix, rarely=True).inverse_root())
    assert "xla.gpu.triton" in lowered_for_a_gpu(batch, matrices)
    assert "xla.gpu.triton" not in jax.jit(batch).trace(matrices).lower(lowering_platforms=("cpu",)).as_text()
    for others in (matrices.astype(float), correlations(33, 2, seed=2)):  # float64, and more rows
        assert "xla.gpu.triton" not in lowered_for_a_gpu(batch, others)


@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
def test_it_lowers_for_a_gpu_where_there_is_none(wide):
    with jax.enable_x64(wide):  # whole numbers are as wide as that
        for size in (3, 20, 32):
            kernel = jax.vmap(partial(registers.factors, least=EPS))
            assert "xla.gpu.triton" in lowered_for_a_gpu(kernel, correlations(size, 2, seed=3))
