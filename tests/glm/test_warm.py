"""Kept curvature: its updates against textbook formulas, and its fits against `glm.fit`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.glm import families, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.glm.problem import hessian, posed
from tests.problems import FAMILIES, draw_rewards, random_history

ARMS, FEATURES, ROUNDS, RIDGE, ROOT_ERROR = 12, 4, 200, 0.5, 0.1
TOLERANCE = {dtype: float(jnp.finfo(dtype).eps) ** (2 / 3) for dtype in ("float64", "float32")}
# What the answer's last step leaves: the tolerance, and in float32 the rounding of sums of ROUNDS terms.
SCORE_ERROR = {"float64": 1e-9, "float32": 2e-4}


def exactly(family, history, tilt=None):
    """The estimate of `glm.fit` in float64; one compiled program for each family."""
    rows = Grouped(*(jnp.asarray(part, float) for part in history))
    tilt = np.zeros(FEATURES) if tilt is None else np.asarray(tilt, float)
    return fit(family, rows, ridge=RIDGE, tilt=tilt).theta


@partial(jax.jit, static_argnames="family")
def kept_at(family, history, theta):
    return warm.afresh(families.get(family), history, theta, jnp.asarray(RIDGE))


def fitted(family, history):
    """The estimate and what is kept at it."""
    theta = exactly(family, history)
    return theta, kept_at(family, history, theta)


def cast(tree, dtype):
    """Floats in another dtype."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf, tree)


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
def play(family, arms, order, rewards, root_error):
    """One reward after the other; the estimate and what is kept after each."""
    glm, ridge = families.get(family), jnp.asarray(RIDGE, arms.dtype)

    def one(carry, now):
        history, theta, kept = carry
        arm, reward = now
        history = history.record(arm, arms[arm], reward)
        kept = warm.record(glm, kept, history, arm, arms[arm])
        tolerance = TOLERANCE[arms.dtype.name]
        problem = kept.posed(history, ridge=ridge)
        estimate, kept = warm.refit(glm, kept, problem, theta, jnp.asarray(True), tolerance, root_error)
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
    run = play(family, jnp.asarray(arms, dtype), order, jnp.asarray(rewards, dtype), ROOT_ERROR)
    histories, estimates, kept = jax.tree.map(np.asarray, run)
    assert estimates.converged.all()
    assert estimates.theta.dtype == kept.root.dtype == dtype
    exact = [Grouped(*parts) for parts in zip(*histories, strict=True)]
    expected = np.stack([exactly(family, history) for history in exact])
    error = (estimates.theta - expected) @ arms.T
    assert np.max(np.abs(error)) < SCORE_ERROR[dtype]
    np.testing.assert_allclose(estimates.scores, estimates.theta @ arms.T.astype(dtype), atol=SCORE_ERROR[dtype])
    np.testing.assert_array_equal(estimates.scores, kept.scores)
    weights = histories.counts * np.asarray(families.get(family).slope(jnp.asarray(expected @ arms.T)))
    curvatures = np.einsum("tk,ki,kj->tij", weights, arms, arms) + RIDGE * np.eye(FEATURES)
    eigenvalues = np.linalg.eigvalsh(kept.root.transpose(0, 2, 1) @ curvatures @ kept.root)
    assert np.max(np.abs(np.log(eigenvalues))) < ROOT_ERROR + 10 * SCORE_ERROR[dtype]
    # Neither built anew in every round, nor (but for the Gaussian, whose curvature does not depend on θ) never.
    rebuilt = np.sum(kept.age == 0)
    assert rebuilt == 0 if family == "gaussian" else 0 < rebuilt < ROUNDS / 2


@pytest.mark.parametrize("size", [2, 12])
def test_in_a_batch_estimates_are_those_of_each_alone(size):
    # A small batch is built anew once one is stale, of a large one only who is stale: curvature is good in both.
    rng = np.random.default_rng(2)
    arms = jnp.asarray(rng.uniform(-1, 1, (size, ARMS, FEATURES)))
    order = rng.integers(0, ARMS, (size, ROUNDS))
    rewards = jnp.asarray(rng.integers(0, 2, (size, ROUNDS)), float)
    run = partial(play, "bernoulli", root_error=ROOT_ERROR)
    histories, estimates, kept = jax.vmap(run)(arms, order, rewards)
    assert np.all(kept.age == kept.age[0]) == (size == 2)
    moved = np.where(histories.counts > 0, np.abs(kept.scores - kept.built), 0)
    assert np.max(moved) <= ROOT_ERROR
    for i in range(2):
        _, alone, _ = run(arms[i], order[i], rewards[i])
        np.testing.assert_allclose(estimates.theta[i], alone.theta, rtol=1e-8, atol=1e-9)


def fpl_tilt(rng, history, scale):
    """S ~ N(0, a² G)."""
    noise = np.sqrt(history.counts) * rng.normal(size=history.counts.shape)
    return jnp.asarray(scale * noise @ np.asarray(history.features))


@partial(jax.jit, static_argnames="family")
def tilted(family, kept, history, theta, tilt):
    problem = kept.posed(history, ridge=jnp.asarray(RIDGE, theta.dtype), tilt=tilt)
    return warm.descend(families.get(family), kept, problem, theta, TOLERANCE[theta.dtype.name])


def some_problems(family):
    """Histories from d single pulls to 400 of each arm, and both scales of GLM-FPL's tilts on each."""
    rng = np.random.default_rng(3)
    problems = []
    for pulls in (1, 20, 400):
        history = random_history(rng, family, ARMS, FEATURES, pulls)
        if pulls == 1:
            seen = jnp.arange(ARMS) < FEATURES
            history = history._replace(counts=history.counts * seen, sums=history.sums * seen)
        theta, kept = fitted(family, history)
        problems += [(kept, history, theta, fpl_tilt(rng, history, scale)) for scale in (0.5, 7.0)]
    return problems


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("family", FAMILIES)
def test_tilted_estimates_are_those_of_the_fit(family, dtype):
    problems = some_problems(family)
    batch = cast(jax.tree.map(lambda *parts: jnp.stack(parts), *problems), dtype)
    found = jax.vmap(partial(tilted, family))(*batch)
    assert found.theta.dtype == found.scores.dtype == dtype
    near = np.abs(found.scores).max(axis=1) < 100  # beyond, float32 need not be sure of a score to 0.005
    assert np.all(found.converged | ((dtype == "float32") & ~near))
    assert np.sum(near) >= 4
    for i, (kept, history, _, tilt) in enumerate(problems):
        seen = np.asarray(history.counts) > 0
        scores = np.asarray(exactly(family, history, tilt) @ kept.columns)
        slack = SCORE_ERROR[dtype] * (1 + np.max(np.abs(scores)))
        np.testing.assert_allclose(found.scores[i][seen], scores[seen], rtol=0, atol=slack)
        np.testing.assert_allclose(found.theta[i] @ kept.columns, found.scores[i], rtol=0, atol=slack)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_member_of_a_batch_gets_what_it_gets_alone(family):
    # The first history is the hardest of `some_problems`, and goes on after the others have converged.
    problems = some_problems(family)
    batch = jax.vmap(partial(tilted, family))(*jax.tree.map(lambda *parts: jnp.stack(parts), *problems))
    for i, problem in enumerate(problems):
        alone = tilted(family, *problem)
        assert alone.converged
        np.testing.assert_allclose(batch.theta[i], alone.theta, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", ["bernoulli", "poisson"])
def test_a_start_that_is_far_off_still_converges(family):
    # What is kept belongs to another history altogether: cheap steps lead astray, Newton steps find the way.
    rng = np.random.default_rng(4)
    history, other = random_history(rng, family), random_history(rng, family, pulls=400)
    theta, kept = fitted(family, other)
    moved = 3 * theta
    kept = kept._replace(columns=history.features.T, scores=moved @ history.features.T)
    found = tilted(family, kept, history, moved, jnp.zeros(FEATURES))
    assert found.converged
    np.testing.assert_allclose(found.theta, exactly(family, history), rtol=1e-8)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_unseen_arms_cannot_overflow(dtype):
    # e^{xᵀθ} of an arm that is never pulled is infinite; it must not matter.
    rng = np.random.default_rng(5)
    small = rng.uniform(-1, 1, (ARMS, FEATURES))
    huge = np.where(np.arange(ARMS)[:, None] < ARMS - 3, small, 1e6 * small)
    order = rng.integers(0, ARMS - 3, ROUNDS)
    rewards = jnp.asarray(rng.poisson(np.exp(small @ rng.normal(size=FEATURES))[order]), dtype)
    runs = [play("poisson", jnp.asarray(arms, dtype), order, rewards, ROOT_ERROR) for arms in (small, huge)]
    (_, expected, plain), (histories, found, kept) = runs
    assert np.max(found.scores) > 1e4
    assert np.all(found.converged)
    assert np.all(np.isfinite(found.scores))
    np.testing.assert_allclose(found.theta, expected.theta, rtol=0, atol=SCORE_ERROR[dtype])
    np.testing.assert_allclose(kept.root, plain.root, rtol=0, atol=SCORE_ERROR[dtype])
    last_history, last = (jax.tree.map(lambda leaf: leaf[-1], part) for part in (histories, kept))
    for scale in (0.5, 7.0):
        tilt = fpl_tilt(rng, last_history, scale)
        batch = jax.tree.map(lambda leaf: jnp.stack([leaf] * 6), (last, last_history, found.theta[-1], tilt))
        answer = jax.vmap(partial(tilted, "poisson"))(*cast(batch, dtype))
        assert np.all(answer.converged)
        assert np.all(np.isfinite(answer.scores))
        theta = exactly("poisson", last_history, tilt)
        np.testing.assert_allclose(answer.theta[0], theta, rtol=0, atol=SCORE_ERROR[dtype] * (1 + np.max(abs(theta))))


def test_a_step_that_is_not_finite_is_not_taken(monkeypatch):
    # Were a curvature ever beyond repair, the last estimate stays, and is not called converged.
    history = random_history(np.random.default_rng(6), "poisson")
    theta, kept = fitted("poisson", history)
    monkeypatch.setattr(warm, "build", lambda *given: jnp.full((FEATURES, FEATURES), jnp.nan))
    monkeypatch.setattr(warm, "CHEAP_STEPS_ALONE", 8)
    far = jnp.asarray([300.0, -300.0, 300.0, 0.0])  # more than so few cheap steps can do
    problem = kept.posed(history, ridge=jnp.asarray(RIDGE), tilt=far)
    found = warm.descend(families.poisson, kept, problem, theta, 1e-9)
    assert np.all(np.isfinite(found.theta))
    assert np.all(np.isfinite(found.scores))
    assert not found.converged


@pytest.mark.parametrize("discount", [None, 0.97])
def test_other_devices_skip_rare_work_together_and_find_the_same(discount, monkeypatch):
    """A GPU leaves rebuilding and checking out in rounds in which nobody needs them; estimates are the same."""
    rng = np.random.default_rng(3)
    family, batch = families.bernoulli, 12
    arms = jnp.asarray(rng.normal(size=(batch, ARMS, FEATURES)))
    pulls = rng.integers(0, ARMS, (60, batch))
    rewards = rng.integers(0, 2, (60, batch)).astype(float)

    def played():
        def one(kept, history, theta, converged, arm, reward):
            x = history.features[arm]
            history = history.record(arm, x, reward, discount)
            kept = warm.forget(family, kept, None, None if discount is None else jnp.asarray(discount))
            kept = warm.record(family, kept, history, arm, x)
            problem = kept.posed(history, ridge=jnp.asarray(RIDGE))
            found, kept = warm.refit(family, kept, problem, theta, converged, 1e-6, 5 * ROOT_ERROR)
            return kept, history, found.theta, found.converged

        step = jax.jit(jax.vmap(one))
        history = jax.vmap(Grouped.of)(arms)
        kept = jax.vmap(lambda rows: warm.start(rows, jnp.asarray(RIDGE), discount is not None))(arms)
        theta, converged, ages = jnp.zeros((batch, FEATURES)), jnp.ones(batch, bool), []
        for arm, reward in zip(pulls, rewards, strict=True):
            kept, history, theta, converged = step(kept, history, theta, converged, arm, reward)
            ages.append(np.asarray(kept.age))
        return theta, converged, np.stack(ages)

    theta, converged, ages = played()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(warm.kernel, "suits", lambda columns: False)
    elsewhere, found, ages_elsewhere = played()
    assert converged.all()
    assert found.all()
    np.testing.assert_allclose(elsewhere, theta, atol=1e-5)
    assert (np.ptp(ages, axis=1) > 0).any()  # on a CPU each builds its curvature when it must
    assert (np.ptp(ages_elsewhere, axis=1) == 0).all()  # elsewhere all do when one must
    assert 0 < np.count_nonzero(ages_elsewhere[:, 0]) < 60
