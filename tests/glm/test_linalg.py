import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import qr

from explorax.errors import InvalidFeatures, InvalidShape
from explorax.glm import families
from explorax.glm.basis import check_spanning, spanning_arms
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.linalg import (
    LARGEST_ALONE,
    LARGEST_BY_HALVES,
    by_halves,
    eigen,
    factorize,
    grown_inverse,
    jitter,
    shrinkage,
    spans,
    stretch,
)
from explorax.glm.project import project
from tests.problems import FAMILIES, random_history


def random_gram(rng, size, scale=1.0):
    x = rng.normal(size=(3 * size, size)) * scale
    return x.T @ x


@pytest.mark.parametrize("size", [1, 3, 8])
def test_factor_does_what_the_dense_inverse_does(size):
    rng = np.random.default_rng(size)
    matrix = random_gram(rng, size, 10 ** rng.uniform(-3, 3, size))
    factor, inverse = factorize(jnp.asarray(matrix)), np.linalg.inv(matrix)
    vector, rows = rng.normal(size=size), rng.normal(size=(5, size))
    np.testing.assert_allclose(factor.solve(vector), inverse @ vector, rtol=1e-7)
    np.testing.assert_allclose(factor.inverse_norms(rows), np.sqrt(np.sum(rows @ inverse * rows, axis=1)), rtol=1e-7)
    half = np.stack([factor.correlate(unit) for unit in np.eye(size)], axis=1)
    np.testing.assert_allclose(half @ half.T, matrix, rtol=1e-10)
    half = np.stack([factor.decorrelate(unit) for unit in np.eye(size)], axis=1)
    np.testing.assert_allclose(half @ half.T, inverse, rtol=1e-7)


def test_singular_matrices_have_finite_factors():
    for matrix in (np.zeros((3, 3)), np.ones((3, 3)), np.diag([1e6, 0.0, 1e-6])):
        factor = factorize(jnp.asarray(matrix))
        assert np.all(np.isfinite(factor.lower))
        assert np.all(np.isfinite(factor.inverse))
        assert not spans(factor)
        # Drawing from N(0, M) must not leave the range of M.
        np.testing.assert_allclose(factor.correlate(np.ones(3))[np.diagonal(matrix) == 0], 0)


@pytest.mark.parametrize("size", [4, 20, 40])  # by halves, by the library if alone, and always by the library
def test_batches_agree_with_single_matrices(size):
    rng = np.random.default_rng(0)
    matrices = jnp.asarray([random_gram(rng, size) for _ in range(7)])
    single = [factorize(matrix).inverse for matrix in matrices]
    np.testing.assert_allclose(jax.jit(jax.vmap(factorize))(matrices).inverse, single, rtol=1e-12, atol=1e-12)
    values = jax.vmap(lambda matrix: eigen(matrix)[0])(matrices)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrices), rtol=1e-10)


@pytest.mark.parametrize("size", [LARGEST_ALONE, LARGEST_ALONE + 1, 20, LARGEST_BY_HALVES + 1])
def test_alone_and_in_batches_of_batches_the_factors_are_those_of_numpy(size):
    matrices = np.stack([random_gram(np.random.default_rng(seed), size) for seed in range(6)])
    alone = [jax.jit(factorize)(jnp.asarray(matrix)) for matrix in matrices]
    batch = jax.jit(jax.vmap(jax.vmap(factorize)))(jnp.asarray(matrices).reshape(2, 3, size, size))
    for i, (matrix, factor) in enumerate(zip(matrices, alone, strict=True)):
        np.testing.assert_allclose(factor.root[:, None] * factor.lower, np.linalg.cholesky(matrix), atol=1e-10)
        np.testing.assert_allclose(batch.lower.reshape(6, size, size)[i], factor.lower, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(batch.inverse.reshape(6, size, size)[i], factor.inverse, rtol=1e-8, atol=1e-11)


def test_independent_batches_in_one_program_do_not_hang():
    # With plain batched LAPACK calls this program stopped for good in each of three trials on two cores: every
    # thread of XLA's pool waited inside one call for a thread that would finish the others.
    rows = jnp.asarray(np.random.default_rng(0).normal(size=(1000, 60, 20)))

    def three_at_once(x, slope):
        first = (x * jax.nn.sigmoid(slope * x[:, :1])).T @ x
        second = (x * jax.nn.sigmoid(slope * x[:, 1:2])).T @ x
        return eigen(first)[0].sum() - jnp.trace(first), factorize(first).lower, factorize(second).lower

    program = jax.jit(jax.vmap(three_at_once, (0, None)))
    for results in [program(rows, float(slope)) for slope in range(4) for _ in range(5)]:
        np.testing.assert_allclose(results[0], 0, atol=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_basis_is_that_of_pivoted_qr(seed):
    arms = np.random.default_rng(seed).uniform(-1, 1, (30, 6))
    basis = spanning_arms(jnp.asarray(arms))
    _, triangle, order = qr(arms.T, pivoting=True)
    assert list(basis.arms) == list(order[:6])
    np.testing.assert_allclose(basis.pivots, np.abs(np.diagonal(triangle)), rtol=1e-10)


def test_basis_of_few_or_dependent_arms():
    with pytest.raises(InvalidShape, match=r"arms must span the feature space, got 2 arms for 3 features\. Help\.$"):
        check_spanning((2, 3), spanning_arms(jnp.ones((2, 3))), "Help")
    flat = jnp.asarray(np.random.default_rng(0).normal(size=(9, 2)) @ np.ones((2, 3)))
    with pytest.raises(
        InvalidFeatures,
        match=r"arms must span .* got arms that span only 1 of 3 dimensions\. Help, or drop collinear features\.$",
    ):
        check_spanning((9, 3), spanning_arms(flat), "Help")


def distances(family, history, thetas, target):
    """That of each of some parameters from a target."""
    x, n, _ = (np.asarray(part) for part in history)
    misses = (n * (np.asarray(family.mean(thetas @ x.T)) - np.asarray(family.mean(x @ target)))) @ x
    return np.sum(misses * np.linalg.solve((x.T * n) @ x, misses.T).T, axis=1)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("seed", range(4))
def test_projection_beats_a_dense_search_on_the_sphere(name, seed):
    rng = np.random.default_rng(seed)
    family, history = families.get(name), random_history(rng, name, features=2)
    theta = fit(name, history, ridge=1e-3).theta
    radius = 0.6 * float(jnp.linalg.norm(theta))
    found = project(family, history, theta, radius)
    assert float(jnp.linalg.norm(found)) <= radius * (1 + 1e-9)
    angles = np.linspace(0, 2 * np.pi, 4001)
    circle = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    own, *others = distances(family, history, np.stack([found, *circle[::4]]), theta)
    assert own <= min(others) * (1 + 1e-9)
    inside = project(family, history, theta, 2 * radius)
    np.testing.assert_array_equal(inside, theta)


def test_projection_before_any_reward_is_finite():
    history = Grouped.of(jnp.eye(3))
    assert np.all(np.isfinite(project(families.bernoulli, history, jnp.ones(3), 0.5)))


@pytest.mark.parametrize("size", range(1, 34))
def test_factors_by_halves_are_those_of_numpy(size):
    matrix = random_gram(np.random.default_rng(size), size)
    lower, inverse = jax.jit(by_halves)(matrix)
    expected = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(lower, expected, rtol=0, atol=1e-12 * np.max(expected))
    np.testing.assert_allclose(inverse @ expected, np.eye(size), rtol=0, atol=1e-12 * np.linalg.cond(expected))
    assert np.all(np.triu(lower, 1) == 0)
    assert np.all(np.triu(inverse, 1) == 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nearly_singular_matrices_have_factors(dtype):
    # Few heavy rows, a tiny ridge and a column twice: what a GLM with large tilts meets early in a run.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20000, 2, 20))
    rows[:, :, -1] = rows[:, :, 0]
    weights = 10 ** rng.uniform(0, 6, (20000, 2, 1))
    matrices = np.swapaxes(rows * weights, 1, 2) @ rows + 1e-4 * np.eye(20)
    factors = jax.jit(jax.vmap(factorize))(jnp.asarray(matrices, dtype))
    # No inverse is larger than pivots at the level of the jitter make it, and factors are as exact as that allows.
    largest = np.max(np.abs(factors.inverse), axis=(1, 2))
    assert np.max(largest) < 10 / np.sqrt(jitter(20, dtype))
    scaled = matrices / (np.asarray(factors.root)[:, :, None] * np.asarray(factors.root)[:, None])
    product = np.asarray(factors.lower, float) @ np.swapaxes(np.asarray(factors.lower, float), 1, 2)
    assert np.all(np.max(np.abs(product - scaled), axis=(1, 2)) < 20 * np.finfo(dtype).eps * largest)


@pytest.mark.parametrize("least", [-1e-3, -1e-5, 0.0])
def test_large_matrices_that_rounding_left_indefinite_have_finite_factors(least):
    size = 51  # too large for factors by halves: the library's Cholesky alone would give up
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    matrix = ((basis * np.r_[least, np.ones(size - 1)]) @ basis.T).astype(np.float32)
    sound = np.eye(size, dtype=np.float32)
    alone, batch = factorize(jnp.asarray(matrix)), jax.vmap(factorize)(jnp.stack([matrix, sound]))
    for factor in (alone, jax.tree.map(lambda leaf: leaf[0], batch)):
        back = factor.root[:, None] * (factor.lower @ factor.lower.T) * factor.root
        assert np.max(np.abs(back - matrix)) <= 10 * abs(least) + 1e-4
        assert np.all(np.isfinite(factor.inverse))
        assert factor.inverse.dtype == np.float32
    np.testing.assert_allclose(batch.lower[1], sound, atol=1e-4)  # the neighbour is left alone


@pytest.mark.parametrize("size", [1, 4, 40])
def test_inverse_root(size):
    rng = np.random.default_rng(size)
    matrix = random_gram(rng, size, 10 ** rng.uniform(-2, 2, size))
    root = factorize(jnp.asarray(matrix)).inverse_root()
    np.testing.assert_allclose(root.T @ matrix @ root, np.eye(size), rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3, 1e8])
def test_rank_one_updates_of_roots(size, dtype):
    v = np.random.default_rng(0).normal(size=3)
    v = jnp.asarray(size * v / np.linalg.norm(v), dtype)
    updated = np.eye(3) + np.outer(v, v).astype(float)
    root = np.eye(3) + float(stretch(v)) * np.outer(v, v).astype(float)
    inverse = np.eye(3) - float(shrinkage(v)) * np.outer(v, v).astype(float)
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(root @ root, updated, rtol=0, atol=8 * eps * (1 + size**2))
    np.testing.assert_allclose(inverse @ root, np.eye(3), rtol=0, atol=8 * eps * (1 + size))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("size", [0.0, 1e-3, 1.0, 1e3])
def test_the_inverse_of_a_cholesky_factor_grows_by_one_row(size, dtype):
    """It is that of the matrix with x xᵀ added, triangular, by NumPy."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(12, 6))
    matrix, x = rows.T @ rows + np.eye(6), size * rng.normal(size=6)
    inverse = np.linalg.inv(np.linalg.cholesky(matrix))
    grown = np.asarray(grown_inverse(jnp.asarray(inverse, dtype), jnp.asarray(x, dtype)), float)
    expected = np.linalg.inv(np.linalg.cholesky(matrix + np.outer(x, x)))
    eps = float(jnp.finfo(dtype).eps)
    np.testing.assert_allclose(grown, expected, rtol=0, atol=100 * eps * (1 + size))
    np.testing.assert_array_equal(np.triu(grown, 1), 0)


def test_an_inverse_factor_stays_finite_for_rows_of_any_size():
    for dtype, size in (("float32", 2e15), ("float64", 1e123)):
        inverse = jnp.eye(3, dtype=dtype)
        for x in np.eye(3) + 0.5:
            inverse = grown_inverse(inverse, jnp.asarray(size * x, dtype))
            assert np.isfinite(inverse).all()
