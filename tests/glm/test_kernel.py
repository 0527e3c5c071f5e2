"""The GPU kernel, run by its interpreter: the same answers as `glm.fit`, whatever the sizes, alone or in a batch."""

from functools import partial
from itertools import starmap

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families, kernel, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.problem import ByColumn, hessian, posed
from tests.lowering import lowered_for_a_gpu
from tests.problems import FAMILIES, afresh

RIDGE, TOLERANCE = 0.5, 1e-3
SIZES = [(1, 1), (2, 7), (5, 16), (15, 100), (16, 40), (31, 130)]  # features, arms: on both sides of a power of two


def problem(family, features, arms, seed=0, tilt=1.0):
    """Arms, a history that leaves some of them out, a tilt, and the curvature kept at θ = 0; in float32."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(arms, features)) / features**0.5
    counts = rng.integers(0, 30, arms) * (rng.random(arms) < 0.7)
    means = np.asarray(families.get(family).mean(jnp.asarray(rows @ rng.normal(size=features))))
    sums = np.clip(np.round(counts * means), 0, None if family != "bernoulli" else counts)
    history = Grouped(*(jnp.asarray(part, jnp.float32) for part in (rows, counts, sums)))
    push = tilt * rng.normal(size=features) @ np.linalg.cholesky(rows.T @ (counts[:, None] * rows) + np.eye(features)).T
    kept = afresh(families.get(family), history, jnp.zeros(features, jnp.float32), jnp.float32(RIDGE))
    return history, kept, jnp.asarray(push, jnp.float32)


def run(family, history, kept, tilt, interpret=True):
    given = kept.posed(history, ridge=jnp.float32(RIDGE), tilt=tilt)
    start = kernel.Start(jnp.zeros_like(tilt), kept.scores, kept.root, jnp.zeros(()))
    return kernel.descend(families.get(family), given, start, TOLERANCE, interpret=interpret)


def exactly(family, history, tilt):
    rows = Grouped(*(jnp.asarray(part, float) for part in history))
    return fit(family, rows, ridge=RIDGE, tilt=np.asarray(tilt, float)).theta


@pytest.mark.parametrize(
    ("family", "features", "arms"),
    [("bernoulli", *size) for size in SIZES] + [(family, 5, 16) for family in FAMILIES if family != "bernoulli"],
)
def test_it_finds_the_estimate(family, features, arms):
    history, kept, tilt = problem(family, features, arms)
    end = jax.jit(partial(run, family))(history, kept, tilt)
    expected = history.features @ exactly(family, history, tilt)
    assert end.converged
    seen = np.asarray(history.counts) > 0
    np.testing.assert_allclose(end.scores[seen], expected[seen], atol=2 * TOLERANCE)
    np.testing.assert_allclose(end.scores, history.features @ end.theta, atol=1e-4)


@pytest.mark.parametrize("tilt", [0.0, 10.0])
def test_each_of_a_batch_ends_at_its_own_answer(tilt):
    problems = [problem("bernoulli", 6, 20, seed, tilt * seed) for seed in range(5)]
    batch = jax.tree.map(lambda *parts: jnp.stack(parts), *problems)
    together = jax.jit(jax.vmap(partial(run, "bernoulli")))(*batch)
    assert np.all(together.converged)
    alone = list(starmap(jax.jit(partial(run, "bernoulli")), problems))
    np.testing.assert_array_equal(together.steps, [each.steps for each in alone])
    np.testing.assert_allclose(together.scores, np.stack([each.scores for each in alone]), atol=1e-3)
    for each, (history, _, push) in zip(alone, problems, strict=True):
        seen = np.asarray(history.counts) > 0
        expected = history.features @ exactly("bernoulli", history, push)
        np.testing.assert_allclose(each.scores[seen], expected[seen], atol=2 * TOLERANCE * (1 + tilt))


def test_the_newton_direction_solves_the_system():
    history, kept, tilt = problem("bernoulli", 15, 60)
    theta = np.linspace(-1, 1, 15)
    curvature = np.asarray(hessian(families.bernoulli, posed(history, ridge=RIDGE), jnp.asarray(theta, jnp.float32)))
    columns, slope = jnp.pad(kept.columns, ((0, 1), (0, 4))), jnp.pad(tilt, (0, 1))
    weights = jnp.pad(history.counts * families.bernoulli.slope(history.features @ jnp.asarray(theta)), (0, 4))
    for layout in (kernel.InRegisters, ByColumn):
        gram = layout(columns).gram(weights.astype(jnp.float32))
        found = kernel.newton_direction(gram, jnp.float32(RIDGE), slope, 15)
        np.testing.assert_allclose(found[:15], -np.linalg.solve(curvature.astype(float), tilt), rtol=1e-3, atol=1e-5)
        assert found[15] == 0


def test_nothing_seen_and_nothing_to_do():
    history, _, tilt = problem("bernoulli", 3, 8)
    nothing = history._replace(counts=jnp.zeros(8, jnp.float32), sums=jnp.zeros(8, jnp.float32))
    end = run("bernoulli", nothing, warm.start(history.features, jnp.float32(RIDGE)), tilt)
    np.testing.assert_allclose(end.theta, tilt / RIDGE, rtol=1e-5)
    assert end.converged


def test_numbers_that_are_none_move_nothing_and_do_not_converge():
    history, kept, tilt = problem("bernoulli", 3, 8)
    end = run("bernoulli", history, kept, tilt.at[1].set(jnp.nan))
    assert not end.converged
    np.testing.assert_array_equal(end.theta, 0)
    np.testing.assert_array_equal(end.scores, 0)


@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("family", FAMILIES)
def test_it_lowers_for_a_gpu_where_there_is_none(family, wide):
    with jax.enable_x64(wide):  # whole numbers are as wide as that
        assert_lowers(family)


def assert_lowers(family):
    history, kept, tilt = problem(family, 20, 100)
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), (history, kept, tilt))
    assert "xla.gpu.triton" in lowered_for_a_gpu(jax.vmap(partial(run, family, interpret=False)), *batch)


def descend(history, kept, tilt):
    given = kept.posed(history, ridge=jnp.float32(RIDGE), tilt=tilt)
    return warm.descend(families.bernoulli, kept, given, jnp.zeros_like(tilt), TOLERANCE)


def test_the_device_decides_not_the_default(monkeypatch):
    """With a GPU as JAX's first choice, what is placed on a CPU takes plain steps there, and only there."""
    given = problem("bernoulli", 6, 20)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    with monkeypatch.context() as without:
        without.setattr(kernel, "suits", lambda columns: False)
        plain = descend(*given)
    traced = jax.jit(lambda *arrays: descend(*arrays)).trace(*given)
    assert "xla.gpu.triton" not in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "xla.gpu.triton" in lowered_for_a_gpu(lambda *arrays: descend(*arrays), *given)
    np.testing.assert_array_equal(jax.jit(lambda *arrays: descend(*arrays))(*given).theta, plain.theta)


def test_plain_steps_finish_what_the_kernel_leaves(monkeypatch):
    """With a kernel that may make but two steps, a descent still ends at the answer."""
    history, kept, tilt = problem("bernoulli", 6, 20, tilt=10.0)
    monkeypatch.setattr(kernel, "MOST_STEPS", 2)
    left = run("bernoulli", history, kept, tilt)
    assert not left.converged
    given = kept.posed(history, ridge=jnp.float32(RIDGE), tilt=tilt)
    found = warm.newton_steps(families.bernoulli, TOLERANCE, False, given, left)
    seen = np.asarray(history.counts) > 0
    expected = history.features @ exactly("bernoulli", history, tilt)
    assert found.converged
    np.testing.assert_allclose(found.scores[seen], expected[seen], atol=2e-2)


@pytest.mark.parametrize(("features", "arms"), [(40, 130), (200, 100)])
def test_large_problems_and_double_precision_do_without(features, arms):
    assert not kernel.suits(jnp.zeros((features, arms), jnp.float32))
    assert kernel.suits(jnp.zeros((5, 100), jnp.float32))
    assert not kernel.suits(jnp.zeros((5, 100), jnp.float64))
