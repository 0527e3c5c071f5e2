"""Kept curvature: its updates against textbook formulas, and its fits against `glm.fit`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families, warm
from explorax.glm.fit import fit, gradient_error, hessian, posed
from explorax.glm.history import Grouped
from tests.problems import FAMILIES, draw_rewards, random_history

ARMS, FEATURES, ROUNDS, RIDGE = 12, 4, 200, 0.5
TOLERANCE = {dtype: float(jnp.finfo(dtype).eps) ** (2 / 3) for dtype in ("float64", "float32")}
# What the answer's last step leaves: the tolerance, and in float32 the rounding of sums of ROUNDS terms.
SCORE_ERROR = {"float64": 1e-9, "float32": 2e-4}


def fitted(family, history, ridge=RIDGE):
    """The estimate and what is kept at it."""
    theta = fit(family, history, ridge=float(ridge)).theta
    return theta, kept_at(family, history, theta, jnp.asarray(ridge, theta.dtype))


def kept_at(family, history, theta, ridge):
    begin = warm.start(history.features, ridge)
    scores = theta @ begin.columns
    root = warm.build(families.get(family), begin.columns, history.counts, scores, ridge)
    return begin._replace(scores=scores, root=root, built=scores)


@pytest.mark.parametrize("family", FAMILIES)
def test_one_more_reward_is_a_rank_one_update(family):
    rng = np.random.default_rng(0)
    history = random_history(rng, family)
    theta, kept = fitted(family, history)
    curvature = np.linalg.inv(kept.root @ kept.root.T)
    np.testing.assert_allclose(curvature, hessian(families.get(family), posed(history, ridge=RIDGE), theta), rtol=1e-9)
    for arm in rng.integers(0, ARMS, 30):
        x = history.features[arm]
        history = history.record(arm, x, 1.0)
        kept = warm.record(families.get(family), kept, history, jnp.asarray(arm), x)
        curvature += float(families.get(family).slope(x @ theta)) * np.outer(x, x)
    assert kept.age == 30
    np.testing.assert_allclose(kept.root @ kept.root.T, np.linalg.inv(curvature), rtol=1e-10)
    np.testing.assert_allclose(kept.built, kept.scores)


def test_the_first_reward_of_an_arm_counts_from_now_on():
    history = Grouped.of(jnp.eye(3))
    kept = warm.start(history.features, jnp.asarray(2.0))._replace(scores=jnp.asarray([0.3, 0.2, 0.1]))
    np.testing.assert_allclose(kept.root @ kept.root.T, np.eye(3) / 2, rtol=1e-14)
    history = history.record(1, history.features[1], 1.0)
    kept = warm.record(families.bernoulli, kept, history, jnp.asarray(1), history.features[1])
    np.testing.assert_allclose(kept.built, [0, 0.2, 0])
    slope = float(families.bernoulli.slope(jnp.asarray(0.2)))
    np.testing.assert_allclose(kept.root @ kept.root.T, np.diag([1 / 2, 1 / (2 + slope), 1 / 2]), rtol=1e-14)


def test_an_arm_of_zeros_changes_nothing():
    history = Grouped.of(jnp.zeros((2, 3)))
    kept = warm.start(history.features, jnp.asarray(1.0))
    after = warm.record(families.poisson, kept, history.record(0, jnp.zeros(3), 4.0), jnp.asarray(0), jnp.zeros(3))
    np.testing.assert_array_equal(after.root, kept.root)


@pytest.mark.parametrize("seed", range(5))
def test_learning_is_the_bfgs_update(seed):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(5, 5))
    inverse = root @ root.T
    before = rng.normal(size=5)
    step = -0.7 * inverse @ before  # quasi-Newton, possibly cut short
    change = (lambda a: a @ a.T)(rng.normal(size=(5, 5))) @ step
    updated = warm.learn(root, step, before, before @ inverse @ before, before + change)
    found = np.asarray(updated @ updated.T)
    rho = 1 / (step @ change)
    left = np.eye(5) - rho * np.outer(step, change)
    np.testing.assert_allclose(found, left @ inverse @ left.T + rho * np.outer(step, step), rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found @ change, step, rtol=1e-8, atol=1e-10)


def test_a_step_without_curvature_teaches_nothing():
    root, step = jnp.eye(2), jnp.asarray([1.0, 0.0])
    for before, after, energy in ((-step, -2 * step, 1.0), (0 * step, 0 * step, 0.0), (-step, -step, 1.0)):
        np.testing.assert_array_equal(warm.learn(root, step, before, jnp.asarray(energy), after), root)


@partial(jax.jit, static_argnames=("family", "root_error"))
def play(family, arms, order, rewards, ridge, root_error):
    """One reward after the other; the estimate and what is kept after each."""
    glm = families.get(family)

    def one(carry, now):
        history, theta, kept = carry
        arm, reward = now
        history = history.record(arm, arms[arm], reward)
        kept = warm.record(glm, kept, history, arm, arms[arm])
        tolerance = TOLERANCE[arms.dtype.name]
        estimate, kept = warm.refit(glm, kept, history, theta, ridge, tolerance, root_error)
        return (history, estimate.theta, kept), (history, estimate, kept)

    begin = (Grouped.of(arms), jnp.zeros_like(arms[0]), warm.start(arms, ridge))
    return jax.lax.scan(one, begin, (order, rewards))[1]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_run_keeps_estimate_and_curvature(family, dtype):
    rng = np.random.default_rng(1)
    arms = rng.uniform(-1, 1, (ARMS, FEATURES))
    order = rng.integers(0, ARMS, ROUNDS)
    rewards = draw_rewards(rng, family, (arms @ rng.normal(size=FEATURES))[order])
    root_error = 0.1
    run = play(
        family, jnp.asarray(arms, dtype), order, jnp.asarray(rewards, dtype), jnp.asarray(RIDGE, dtype), root_error
    )
    histories, estimates, kept = jax.tree.map(np.asarray, run)
    assert estimates.converged.all()
    assert estimates.theta.dtype == kept.root.dtype == dtype
    exact = Grouped(*(jnp.asarray(part, float) for part in histories))
    expected = jax.vmap(lambda history: fit(family, history, ridge=RIDGE).theta)(exact)
    error = (estimates.theta - expected) @ arms.T
    assert np.max(np.abs(error)) < SCORE_ERROR[dtype]
    np.testing.assert_allclose(estimates.scores, estimates.theta @ arms.T.astype(dtype), atol=SCORE_ERROR[dtype])
    np.testing.assert_array_equal(estimates.scores, kept.scores)
    curvatures = jax.vmap(lambda h, theta: hessian(families.get(family), posed(h, ridge=RIDGE), theta))(exact, expected)
    eigenvalues = np.linalg.eigvalsh(kept.root.transpose(0, 2, 1) @ np.asarray(curvatures) @ kept.root)
    assert np.max(np.abs(np.log(eigenvalues))) < root_error + 10 * SCORE_ERROR[dtype]
    # Neither built anew in every round, nor (but for the Gaussian, whose curvature does not depend on θ) never.
    rebuilt = np.sum(kept.age == 0)
    assert rebuilt == 0 if family == "gaussian" else 0 < rebuilt < ROUNDS / 2


def test_in_a_batch_all_are_rebuilt_once_one_is_stale():
    # Two runs side by side: estimates are those of each alone, curvature is at least as fresh.
    rng = np.random.default_rng(2)
    arms = jnp.asarray(rng.uniform(-1, 1, (2, ARMS, FEATURES)))
    order = rng.integers(0, ARMS, (2, 60))
    rewards = jnp.asarray(rng.integers(0, 2, (2, 60)), float)
    run = partial(play, "bernoulli", ridge=jnp.asarray(RIDGE), root_error=0.1)
    _, estimates, kept = jax.vmap(run)(arms, order, rewards)
    np.testing.assert_array_equal(kept.age[0], kept.age[1])
    for i in range(2):
        _, alone, fresh = run(arms[i], order[i], rewards[i])
        np.testing.assert_allclose(estimates.theta[i], alone.theta, rtol=1e-8, atol=1e-9)
        assert np.all(kept.age[i] <= fresh.age)


def fpl_tilt(rng, history, scale):
    """S ~ N(0, a² G)."""
    noise = np.sqrt(history.counts) * rng.normal(size=history.counts.shape)
    return jnp.asarray(scale * noise @ np.asarray(history.features), history.features.dtype)


@partial(jax.jit, static_argnames="family")
def tilted(family, kept, history, theta, tilt, ridge):
    return warm.descend(families.get(family), kept, history, theta, tilt, ridge, TOLERANCE[theta.dtype.name])


def some_problems(family, dtype):
    """Histories from d single pulls to 400 of each arm, and both scales of GLM-FPL's tilts on each."""
    rng = np.random.default_rng(3)
    problems = []
    for pulls in (1, 20, 400):
        history = random_history(rng, family, ARMS, FEATURES, pulls, dtype)
        if pulls == 1:
            seen = jnp.arange(ARMS) < FEATURES
            history = history._replace(counts=history.counts * seen, sums=history.sums * seen)
        theta, kept = fitted(family, history)
        problems += [(kept, history, theta, fpl_tilt(rng, history, scale)) for scale in (0.5, 7.0)]
    return problems


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_tilted_estimates_are_those_of_the_fit(family, dtype):
    problems = some_problems(family, dtype)
    ridge = jnp.asarray(RIDGE, dtype)
    stacked = jax.tree.map(lambda *parts: jnp.stack(parts), *problems)
    batch = jax.vmap(partial(tilted, family, ridge=ridge))(*stacked)
    for i, (kept, history, theta, tilt) in enumerate(problems):
        alone = tilted(family, kept, history, theta, tilt, ridge=ridge)
        assert alone.converged
        assert batch.converged[i]
        exact = fit(family, Grouped(*(jnp.asarray(part, float) for part in history)), ridge=RIDGE, tilt=tilt)
        seen = np.asarray(history.counts) > 0
        scores = np.asarray(jnp.asarray(history.features, float) @ exact.theta)[seen]
        # A score is known to the precision of the largest one; a flat curvature, as at 1 - 1e-4, blurs it further.
        slack = SCORE_ERROR[dtype] * (1 + np.max(np.abs(scores)))
        np.testing.assert_allclose(alone.scores[seen], scores, rtol=0, atol=slack)
        np.testing.assert_allclose(alone.theta @ kept.columns, alone.scores, rtol=0, atol=10 * slack)
        np.testing.assert_allclose(batch.theta[i], alone.theta, rtol=0, atol=slack)
        problem = posed(history, ridge=ridge, tilt=tilt)
        assert gradient_error(families.get(family), problem, alone.theta) <= TOLERANCE[dtype]


def test_a_start_that_is_far_off_still_converges():
    # What is kept belongs to another history altogether: cheap steps lead astray, Newton steps find the way.
    rng = np.random.default_rng(4)
    for family in ("bernoulli", "poisson"):
        history, other = random_history(rng, family), random_history(rng, family, pulls=400)
        theta, kept = fitted(family, other)
        moved = 3 * theta
        kept = kept._replace(columns=history.features.T, scores=moved @ history.features.T)
        found = tilted(family, kept, history, moved, jnp.zeros(FEATURES), jnp.asarray(RIDGE))
        assert found.converged
        np.testing.assert_allclose(found.theta, fit(family, history, ridge=RIDGE).theta, rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_unseen_arms_cannot_overflow(dtype):
    # e^{xᵀθ} of an arm that was never pulled is infinite; it must not matter.
    rng = np.random.default_rng(5)
    history = random_history(rng, "poisson", dtype=dtype)
    unseen = jnp.asarray(1e6 * rng.uniform(-1, 1, (3, FEATURES)), dtype)
    zeros = jnp.zeros(3, dtype)
    wide = Grouped(*(jnp.concatenate(parts) for parts in zip(history, (unseen, zeros, zeros), strict=True)))
    (theta, kept), (_, plain) = fitted("poisson", wide), fitted("poisson", history)
    assert np.any(~np.isfinite(np.exp(np.asarray(kept.scores))))
    ridge = jnp.asarray(RIDGE, dtype)
    np.testing.assert_allclose(kept.root, plain.root, rtol=1e-12 if dtype == "float64" else 1e-4)
    for scale in (0.0, 0.5, 7.0):
        tilt = fpl_tilt(rng, history, scale)
        found = tilted("poisson", kept, wide, theta, tilt, ridge)
        assert found.converged
        assert np.all(np.isfinite(found.scores))
        expected = tilted("poisson", plain, history, theta, tilt, ridge)
        np.testing.assert_allclose(found.scores[:ARMS], expected.scores, rtol=0, atol=SCORE_ERROR[dtype])
    after = wide.record(0, wide.features[0], 2.0)
    kept = warm.record(families.poisson, kept, after, jnp.asarray(0), wide.features[0])
    estimate, kept = warm.refit(families.poisson, kept, after, theta, ridge, TOLERANCE[dtype], 0.1)
    assert estimate.converged
    assert np.all(np.isfinite(kept.root))
    assert np.all(np.isfinite(estimate.scores))
