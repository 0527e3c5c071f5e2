"""Rare work is skipped where it can be, and one entry of a vector is changed the same way on every device."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from explorax import batching
from explorax.batching import GROUP, alone_or_in_batch, only_where, where_needed


@pytest.fixture(params=["cpu", "gpu"])
def device(request, monkeypatch):
    """What JAX says that it computes on."""
    monkeypatch.setattr(jax, "default_backend", lambda: request.param)
    return request.param


def counting():
    """A function that squares, and the list of values it was computed for."""
    seen = []

    def square(value):
        jax.debug.callback(lambda v: seen.extend(np.ravel(v)), value)
        return value**2

    return square, seen


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (30,), (4, 5)])
def test_rare_work_is_done_only_where_it_is_needed(shape):
    values = jnp.asarray(np.random.default_rng(0).normal(size=shape))
    square, seen = counting()

    def one(needed, value):
        return where_needed(needed, square, (value,), -value)

    batched = one
    for _ in shape:
        batched = jax.vmap(batched)
    batched = jax.jit(batched)
    needed = np.zeros(shape, bool)
    np.testing.assert_array_equal(batched(needed, values), -values)
    jax.effects_barrier()
    assert seen == []
    for place in [(-1,) * len(shape), (0,) * len(shape)]:
        needed[place] = True
    found = np.asarray(batched(needed, values))
    np.testing.assert_array_equal(found[needed], np.asarray(values)[needed] ** 2)
    jax.effects_barrier()
    if values.size <= GROUP:  # as cheap for all
        np.testing.assert_array_equal(found, values**2)
        assert sorted(seen) == sorted(np.ravel(values))
    else:
        np.testing.assert_array_equal(found[~needed], -np.asarray(values)[~needed])
        assert len(seen) == GROUP
    needed[...] = True
    np.testing.assert_array_equal(batched(needed, values), values**2)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3)])
def test_numbers_may_depend_on_whether_an_element_is_alone(shape):
    number = partial(alone_or_in_batch, alone=7, in_batch=3)
    for _ in shape:
        number = jax.vmap(number)
    np.testing.assert_array_equal(jax.jit(number)(jnp.zeros((*shape, 4))), np.full(shape, 3 if shape else 7))


def test_rare_work_may_share_arguments_and_have_several_results():
    def both(value, shared):
        return value + shared, {"product": value * shared}

    needed = np.arange(20) % 3 == 0
    values = jnp.arange(20.0)
    start = jnp.zeros(()), {"product": -jnp.ones(())}
    total, rest = jax.jit(jax.vmap(lambda n, v: where_needed(n, both, (v, jnp.asarray(2.0)), start)))(needed, values)
    np.testing.assert_array_equal(total, np.where(needed, np.arange(20) + 2, 0))
    np.testing.assert_array_equal(rest["product"], np.where(needed, 2 * np.arange(20), -1))


@pytest.mark.parametrize("shape", [(), (5,), (30,), (4, 5)])
def test_work_done_all_at_once_changes_only_those_that_need_it(shape):
    values = 1 + jnp.arange(np.prod(shape, dtype=int)).reshape(shape)
    square, seen = counting()

    def one(needed, state, value):
        return only_where(needed, lambda state, value: state + square(value), state, (value,))

    batched = one
    for _ in shape:
        batched = jax.vmap(batched)
    batched = jax.jit(batched)
    nobody = np.zeros(shape, bool)
    np.testing.assert_array_equal(batched(nobody, -values, values), -values)
    jax.effects_barrier()
    assert seen == []
    for needed in (np.random.default_rng(2).random(shape) < 0.4, ~nobody):
        needed.flat[0] = True
        seen.clear()
        found = batched(needed, -values, values)
        np.testing.assert_array_equal(found, np.where(needed, values**2 - values, -values))
        jax.effects_barrier()
        assert sorted(seen) == sorted(np.ravel(values))  # once for each, and not in groups


def test_work_done_all_at_once_may_fail_where_it_is_not_needed():
    # It finds no number there; the state has several parts, and all of the batch share one argument.
    needed = np.arange(20) % 3 == 0
    values = jnp.where(needed, jnp.arange(20.0), jnp.nan)
    start = jnp.zeros((20, 2)), {"product": -jnp.arange(20)}

    def work(state, value, shared):
        return state[0] + value + shared, {"product": state[1]["product"] + (value * shared).astype(int)}

    both = jax.vmap(lambda needed, state, value: only_where(needed, work, state, (value, jnp.asarray(2.0))))
    total, rest = jax.jit(both)(needed, start, values)
    np.testing.assert_array_equal(total, np.repeat(np.where(needed, np.arange(20) + 2.0, 0)[:, None], 2, axis=1))
    np.testing.assert_array_equal(rest["product"], np.where(needed, np.arange(20), -np.arange(20)))


def test_elsewhere_all_get_rare_work_as_soon_as_one_needs_it(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    square, seen = counting()
    values, nobody = jnp.arange(30.0), jnp.zeros(30, bool)
    together = jax.jit(jax.vmap(lambda needed, value: where_needed(needed, square, (value,), -value)))
    np.testing.assert_array_equal(together(nobody, values), -values)
    jax.effects_barrier()
    assert seen == []
    np.testing.assert_array_equal(together(nobody.at[3].set(True), values), values**2)
    jax.effects_barrier()
    assert sorted(seen) == sorted(np.ravel(values))


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
