import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.errors import HistoryFull
from explorax.glm.history import Grouped, Moments, Rows, check_room

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (25, 3))
Y = RNG.integers(0, 2, 25).astype(float)


def filled(history, rows=25):
    for i in range(rows):
        history = history.record(0, jnp.asarray(X[i]), Y[i])
    return history


def test_grouped_counts_and_sums():
    arms = jnp.asarray(X[:4])
    history = Grouped.of(arms)
    for arm, reward in ((0, 1.0), (2, 0.5), (0, 0.0), (3, 1.0)):
        history = history.record(arm, arms[arm], reward)
    np.testing.assert_array_equal(history.counts, [2, 0, 1, 1])
    np.testing.assert_array_equal(history.sums, [1, 0, 0.5, 1])
    pulled = X[[0, 2, 0, 3]]
    np.testing.assert_allclose(history.gram(), pulled.T @ pulled)


def test_rows_keep_what_came_first_and_count_what_did_not_fit():
    history = filled(Rows.of(20, 3, float, forgets=False))
    np.testing.assert_array_equal(history.features, X[:20])
    np.testing.assert_array_equal(history.sums, Y[:20])
    assert history.dropped == 5
    with pytest.raises(HistoryFull, match="All 20 rows are taken"):
        check_room(history)


def test_rows_that_forget_keep_the_newest():
    history = filled(Rows.of(20, 3, float, forgets=True))
    check_room(history)
    assert history.dropped == 0
    assert sorted(map(tuple, history.features.tolist())) == sorted(map(tuple, X[5:].tolist()))
    np.testing.assert_allclose(history.gram(), X[5:].T @ X[5:], rtol=1e-12)


def test_rows_in_a_compiled_loop():
    def step(history, row):
        return history.record(0, *row), None

    for forgets in (False, True):
        start = Rows.of(20, 3, jnp.dtype(float), forgets=forgets)
        looped, _ = jax.lax.scan(step, start, (jnp.asarray(X), jnp.asarray(Y)))
        jax.tree.map(np.testing.assert_array_equal, looped, filled(start))


def test_moments():
    history = filled(Moments.of(3, float))
    np.testing.assert_allclose(history.gram(), X.T @ X, rtol=1e-12)
    np.testing.assert_allclose(history.cross, Y @ X, rtol=1e-12)
