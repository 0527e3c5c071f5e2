"""Rare work is skipped where it can be, and one entry of a vector is changed the same way on every device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from explorax import batching


@pytest.fixture(params=["cpu", "gpu"])
def device(request, monkeypatch):
    """What JAX says that it computes on."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return request.param


def roots(needed, values):
    """Square roots of the elements that need them, and −1 for those that do not."""

    def function(value):
        return jnp.sqrt(value)

    return jax.vmap(lambda one, value: batching.where_needed(one, function, (value,), -1.0))(needed, values)


def test_only_what_needs_it_is_computed_on_a_cpu():
    needed = jnp.arange(20) % 3 == 0
    np.testing.assert_allclose(roots(needed, jnp.arange(20.0)), np.where(needed, np.sqrt(np.arange(20.0)), -1))


def test_all_are_computed_elsewhere_as_soon_as_one_needs_it(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    nobody = jnp.zeros(20, bool)
    np.testing.assert_array_equal(roots(nobody, jnp.arange(20.0)), -1)
    np.testing.assert_allclose(roots(nobody.at[3].set(True), jnp.arange(20.0)), np.sqrt(np.arange(20.0)))


def test_work_that_skips_by_itself_is_always_done_on_a_cpu_and_elsewhere_if_one_needs_it(device):
    def double(value):
        return 2 * value

    def doubled(needed, values):
        return jax.vmap(lambda one, value: batching.if_any(one, double, (value,), value))(needed, values)

    values, nobody = jnp.arange(12.0), jnp.zeros(12, bool)
    np.testing.assert_array_equal(doubled(nobody, values), values * (2 if device == "cpu" else 1))
    np.testing.assert_array_equal(doubled(nobody.at[7].set(True), values), 2 * values)
    alone = batching.if_any(jnp.asarray(True), double, (values,), values)
    np.testing.assert_array_equal(alone, 2 * values)


@pytest.mark.parametrize("place", [0, 2, 4])
def test_one_entry_changes(device, place):
    values = np.linspace(0.1, 0.5, 5)
    expected = values.copy()
    expected[place] = 7.0
    np.testing.assert_array_equal(batching.put(jnp.asarray(values), place, 7.0), expected)
    expected[place] = values[place] + 7.0
    np.testing.assert_array_equal(batching.add(jnp.asarray(values), place, 7.0), expected)
    many = jax.vmap(lambda row, at: batching.add(row, at, 7.0))(jnp.asarray([values, values]), jnp.asarray([place, 1]))
    np.testing.assert_array_equal(many[0], expected)


def test_a_gpu_changes_an_entry_without_a_scatter(monkeypatch):
    given = jnp.zeros((3, 5)), jnp.asarray([0, 2, 4])
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    for change in (batching.put, batching.add):
        program = jax.jit(jax.vmap(lambda row, at, change=change: change(row, at, 1.0))).lower(*given).as_text()
        assert "scatter" not in program


def test_one_by_one_is_the_same_as_all_at_once():
    matrices = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3, 3)))
    function = batching.one_by_one(lambda matrix: lax.linalg.qr(matrix)[1])
    np.testing.assert_allclose(jax.vmap(function)(matrices), jnp.linalg.qr(matrices)[1], atol=1e-12)
