"""Forgetting, below the policies: histories against recounts in NumPy, kept curvature and summaries against fits to
explicitly weighted rewards, and all of them after many rounds in which a direction is not seen any more."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from explorax.glm import families, warm
from explorax.glm.fit import fit
from explorax.glm.history import Grouped, Moments, Recent, Rows
from explorax.glm.memory.base import GRAM_RIDGE, Estimator
from explorax.glm.memory.summary import Summary
from tests.contract.test_policies import HOSTILE
from tests.glm.memory.wanted import wanted
from tests.problems import FAMILIES, draw_rewards, random_rows

ARMS, FEATURES, RIDGE, ROOT_ERROR = 6, 4, 0.5, 0.3
DISCOUNT, WINDOW = 0.97, 40
FORGETTING = {"discount": (DISCOUNT, None), "window": (None, WINDOW)}
DTYPES = ("float64", "float32")
TOLERANCE = {dtype: float(jnp.finfo(dtype).eps) ** (2 / 3) for dtype in DTYPES}
# What the answer's last step leaves: the tolerance, and in float32 the rounding of a sum of some ten terms.
SCORE_ERROR = {"float64": 1e-9, "float32": 2e-4}


def weights_of(count, discount, window):
    """What each of so many rewards weighs after the last of them."""
    age = np.arange(count)[::-1]
    return (1.0 if discount is None else discount) ** age * (age < (window or count))


def exactly(family, x, rewards, weights):
    """`explorax.fit` to weighted rewards; those without a weight, and padding, do not matter."""
    return np.asarray(fit(family, Grouped(x, weights, weights * rewards), ridge=RIDGE).theta)


def curvature(family, x, weights, theta):
    slopes = np.asarray(families.get(family).slope(jnp.asarray(x @ theta)))
    return (x.T * (weights * slopes)) @ x + RIDGE * np.eye(x.shape[1])


def off(root, matrix):
    """The largest |log| of an eigenvalue of matrix^½ W Wᵀ matrix^½: how far W Wᵀ is from matrix⁻¹, as e^±."""
    root = np.asarray(root, float)
    return np.max(np.abs(np.log(np.linalg.eigvalsh(root.T @ matrix @ root))))


# Histories

LENGTH, SMALL_WINDOW = 30, 7
some_rewards = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(-1e3, 1e3, width=32))
sequences = st.lists(st.tuples(st.integers(0, 3), some_rewards), min_size=LENGTH, max_size=LENGTH)


@jax.jit
def grouped_by_window(arms, rewards):
    def one(carry, now):
        history, recent = carry
        history = recent.forget(history).record(now[0], None, now[1])
        return (history, recent.record(*now)), (history.counts, history.sums)

    begin = Grouped.of(jnp.eye(4)), Recent.of(SMALL_WINDOW, rewards.dtype)
    return jax.lax.scan(one, begin, (arms, rewards))[1]


INSIDE = np.tri(LENGTH) - np.tri(LENGTH, k=-SMALL_WINDOW)  # (after reward t, reward l): whether it is in the window


@given(sequences)
@settings(max_examples=100, deadline=None)
def test_a_window_counts_what_is_in_it(sequence):
    arms, rewards = np.array([arm for arm, _ in sequence]), np.array([reward for _, reward in sequence])
    counts, sums = map(np.asarray, grouped_by_window(arms, rewards))
    pulled = arms[:, None] == np.arange(4)
    np.testing.assert_array_equal(counts, INSIDE @ pulled)
    slack = 1e-12 * INSIDE @ np.abs(rewards)
    assert np.all(np.abs(sums - INSIDE @ (pulled * rewards[:, None])) <= slack[:, None])
    assert np.all(sums[counts == 0] == 0)


@jax.jit
def moments_by_window(x, rewards):
    def one(history, now):
        history = history.record(0, *now)
        return history, (history.gram(), history.cross)

    return jax.lax.scan(one, Moments.of(2, jnp.dtype(float), SMALL_WINDOW), (x, rewards))[1]


@given(st.lists(st.sampled_from([0.0, 1.0, -2.0, 1e3, 1e8]), min_size=2 * LENGTH, max_size=2 * LENGTH), sequences)
@settings(max_examples=100, deadline=None)
def test_moments_in_a_window(entries, sequence):
    """Relative to the diagonal of each time, although far larger features were there and have left."""
    x, rewards = np.reshape(entries, (LENGTH, 2)), np.array([reward for _, reward in sequence])
    grams, crosses = map(np.asarray, moments_by_window(x, rewards))
    squares = INSIDE @ x**2
    slack = 1e-12 / 0.01  # of a feature's squares at least 0.01 stays, or all is summed up anew
    assert np.all(np.abs(grams[:, [0, 1], [0, 1]] - squares) <= slack * squares)
    assert np.all(np.abs(grams[:, 0, 1] - INSIDE @ (x[:, 0] * x[:, 1])) <= slack * np.max(squares, axis=1))
    lately = np.tri(LENGTH) - np.tri(LENGTH, k=-2 * SMALL_WINDOW)  # what may have left rounding behind
    terms = lately @ np.abs(x * rewards[:, None])
    assert np.all(np.abs(crosses - INSIDE @ (x * rewards[:, None])) <= 1e-12 * terms)


def test_rounding_does_not_add_up_in_a_window():
    rows = np.random.default_rng(5).uniform(0.5, 1, (3000 * SMALL_WINDOW, 2)).astype("float32")
    begin = Moments.of(2, jnp.dtype("float32"), SMALL_WINDOW)
    end, _ = jax.lax.scan(lambda history, x: (history.record(0, x, x[0]), None), begin, rows)
    last = rows[-SMALL_WINDOW:].astype(float)
    np.testing.assert_allclose(end.second, last.T @ last, rtol=0, atol=2e-6)
    np.testing.assert_allclose(end.cross, last[:, 0] @ last, rtol=0, atol=2e-6)


@jax.jit
def all_discounted(x, arms, rewards):
    def one(pasts, now):
        grouped, rows, moments = pasts
        arm, reward = now
        each = (
            grouped.record(arm, None, reward, DISCOUNT),
            *(past.record(arm, x[arm], reward, discount=DISCOUNT) for past in (rows, moments)),
        )
        return each, None

    size, dtype = FEATURES, x.dtype
    nothing = Grouped.of(x[:ARMS]), Rows.of(len(arms), size, dtype, forgets=False), Moments.of(size, dtype)
    return jax.lax.scan(one, nothing, (arms, rewards))[0]


def test_a_discount_weighs_all_histories_alike():
    x, rewards = random_rows(np.random.default_rng(0), "gaussian", 50, FEATURES)
    arms = np.arange(50) % ARMS
    grouped, rows, moments = all_discounted(jnp.asarray(x), arms, rewards)
    weights = weights_of(50, DISCOUNT, None)
    np.testing.assert_allclose(grouped.counts, np.bincount(arms, weights), rtol=1e-13)
    np.testing.assert_allclose(grouped.sums, np.bincount(arms, weights * rewards), rtol=1e-12)
    np.testing.assert_allclose(rows.counts, weights, rtol=1e-13)
    np.testing.assert_allclose(rows.sums, weights * rewards, rtol=1e-13)
    gram = (x[arms].T * weights) @ x[arms]
    for past in (grouped, rows, moments):
        np.testing.assert_allclose(past.gram(), gram, rtol=1e-12)
    np.testing.assert_allclose(moments.cross, (weights * rewards) @ x[arms], rtol=1e-12)


def test_rows_that_find_no_room_or_do_not_count_discount_nothing():
    rows = Rows.of(2, 1, jnp.dtype(float), forgets=False)
    for reward in (2.0, 3.0):
        rows = rows.record(0, jnp.ones(1), reward, discount=0.5)
    for late in (rows.record(0, jnp.ones(1), 4.0, discount=0.5), rows.record(0, jnp.ones(1), 4.0, False, 0.5)):
        np.testing.assert_array_equal(late.counts, [0.5, 1.0])
        np.testing.assert_array_equal(late.sums, [1.0, 3.0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_weighs_nothing_is_forgotten(dtype):
    def one(history, _):
        history = history.record(1, None, 0.0, 0.5)
        return history, (history.counts[0], history.sums[0])

    begin = Grouped.of(jnp.eye(2, dtype=dtype)).record(0, None, 1e6)
    counts, sums = map(np.asarray, jax.lax.scan(one, begin, length=200)[1])
    halves = 0.5 ** np.arange(1, 201)
    kept = halves > float(jnp.finfo(dtype).eps) ** 2
    np.testing.assert_array_equal(counts, np.where(kept, halves, 0))
    np.testing.assert_array_equal(sums, np.where(kept, (1e6 * halves).astype(dtype), 0))
    assert 0 < kept.sum() < 200


# Kept curvature

ROUNDS = 150  # of one call of `play`; longer runs are several


@partial(jax.jit, static_argnames="family")
def play(family, begin, order, rewards, discount, ridge):
    """One reward after the other; all that there is after each, and whether the curvature was built anew."""
    glm, arms = families.get(family), begin[0].features
    tolerance = TOLERANCE[arms.dtype.name]

    def one(carry, now):
        history, theta, kept, _, recent = carry
        arm, reward = now
        kept = warm.forget(glm, kept, recent, discount)
        if recent is not None:
            history, recent = recent.forget(history), recent.record(arm, reward)
        history = history.record(arm, arms[arm], reward, discount)
        kept = warm.record(glm, kept, history, arm, arms[arm])
        problem = kept.posed(history, ridge=ridge)
        found, kept = warm.refit(glm, kept, problem, theta, jnp.asarray(True), tolerance, ROOT_ERROR)
        after = history, found.theta, kept, found.converged
        return (*after, recent), (*after, kept.age == 0)

    return jax.lax.scan(one, begin, (order, rewards))


def run(family, how, dtype, arms, order, rewards, discount=DISCOUNT, ridge=RIDGE):
    """All that there is after each reward of a run that may be long."""
    arms, rewards, ridge = (np.asarray(each, dtype) for each in (arms, rewards, ridge))
    window = FORGETTING[how][1]
    discount = None if window else np.asarray(discount, dtype)
    recent = None if window is None else Recent.of(window, arms.dtype)
    begin = Grouped.of(arms), jnp.zeros_like(arms[0]), warm.start(arms, ridge, forgets=True), True, recent
    carry, pieces = jax.tree.map(jnp.asarray, begin), []
    for first in range(0, len(order), ROUNDS):
        piece = slice(first, first + ROUNDS)
        carry, (history, *after) = play(family, carry, order[piece], rewards[piece], discount, ridge)
        pieces.append(jax.tree.map(np.asarray, (history._replace(features=None), *after)))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(pieces))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *pieces)


def problem(family, rounds):
    """Arms, the last of them alone in its direction and pulled once in a window, and rewards of a random order."""
    rng = np.random.default_rng(1)
    arms = rng.uniform(-1, 1, (ARMS, FEATURES))
    arms[:-1, -1], arms[-1] = 0, np.eye(FEATURES)[-1]
    order = np.floor((ARMS - 1) * rng.random(rounds) ** 4).astype(int)[::-1].copy()  # some arms are rare
    order[::WINDOW] = ARMS - 1
    return arms, order, draw_rewards(rng, family, (arms @ rng.normal(size=FEATURES))[order])


KEPT = [*((family, "float64") for family in FAMILIES), ("poisson", "float32")]  # each a program for both ways


@pytest.mark.parametrize("how", FORGETTING)
@pytest.mark.parametrize(("family", "dtype"), KEPT)
def test_a_run_keeps_estimate_and_curvature(family, how, dtype):
    arms, order, rewards = problem(family, ROUNDS)
    history, theta, kept, converged, rebuilt = run(family, how, dtype, arms, order, rewards)
    assert converged.all()
    assert theta.dtype == kept.root.dtype == kept.faded.dtype == dtype
    error, x = SCORE_ERROR[dtype], arms[order]
    for t in [*range(0, ROUNDS, 7), ROUNDS - 1]:
        weights = np.pad(weights_of(t + 1, *FORGETTING[how]), (0, ROUNDS - t - 1))
        expected = exactly(family, x, rewards, weights)
        np.testing.assert_allclose(x @ (theta[t] - expected), 0, atol=error)
        assert off(kept.root[t], curvature(family, x, weights, expected)) < ROOT_ERROR + 10 * error
        if how == "window":  # what is taken out is what was put in
            slopes = np.asarray(families.get(family).slope(jnp.asarray(kept.built[t], float)))
            matrix = (arms.T * (history.counts[t] * slopes)) @ arms + RIDGE * np.eye(FEATURES)
            assert off(kept.root[t], matrix) < error
    # Built anew now and then; with a window and a curvature that does not depend on θ, never.
    assert (np.sum(rebuilt) == 0) == (family == "gaussian" and how == "window")
    assert np.sum(rebuilt) < ROUNDS / 2
    gone = (history.counts[1:] == 0) & (history.counts[:-1] > 0)
    assert np.any(gone) == (how == "window")


@pytest.mark.parametrize("how", FORGETTING)
@pytest.mark.parametrize(("family", "dtype"), KEPT)
def test_adversarial_rewards(family, dtype, how):
    arms, order, _ = problem(family, ROUNDS)
    for adversary in HOSTILE[family]:
        rewards = np.array([adversary(t) for t in range(ROUNDS)])
        _, _, _, converged, _ = run(family, how, dtype, arms, order, rewards)  # which looks at all that is left
        # Counts of a million next to none at all: rounding leaves scores of float32 less certain than is promised.
        assert converged.all() or (family, dtype) == ("poisson", "float32")


LONG = 20_100


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", FORGETTING)
def test_a_direction_not_seen_any_more_falls_back_to_the_prior(how, dtype):
    arms, order, rewards = problem("bernoulli", LONG)
    order[500:] %= ARMS - 1
    history, theta, kept, converged, _ = run("bernoulli", how, dtype, arms, order, rewards)
    assert converged.all()
    np.testing.assert_array_equal(history.counts[-1, -1], 0)
    np.testing.assert_array_equal(history.sums[-1, -1], 0)
    np.testing.assert_allclose(theta[2000:, -1], 0, atol=1e-12)
    x, error = arms[order], SCORE_ERROR[dtype]
    for t in (999, 1999, 9999, LONG - 1):
        recent = slice(max(0, t + 1 - 1000), t + 1)  # 0.97^1000 is nothing
        weights = weights_of(1000, *FORGETTING[how])
        expected = exactly("bernoulli", x[recent], rewards[recent], weights)
        np.testing.assert_allclose(x[recent] @ (theta[t] - expected), 0, atol=error)
        assert off(kept.root[t], curvature("bernoulli", x[recent], weights, expected)) < ROOT_ERROR + 10 * error
    largest = np.linalg.eigvalsh(np.asarray(kept.root @ np.swapaxes(kept.root, 1, 2), float))[:, -1]
    assert np.max(largest) <= np.exp(ROOT_ERROR) / RIDGE
    assert np.min(largest[2000:]) >= np.exp(-ROOT_ERROR) / RIDGE


def test_a_curvature_that_hardly_stays_is_built_anew():
    """With a tiny ridge the only reward of a direction is nearly all that is known of it."""
    ridge = 1e-6
    arms, order, rewards = problem("gaussian", ROUNDS)
    order[1:] %= ARMS - 1
    order[90] = ARMS - 1
    _, theta, kept, converged, rebuilt = run("gaussian", "window", "float64", arms, order, rewards, ridge=ridge)
    assert converged.all()
    assert np.all(rebuilt[[WINDOW, 90 + WINDOW]])
    assert not np.any(rebuilt[WINDOW + 1 : 90 + WINDOW])
    np.testing.assert_array_equal(kept.faded, 0)
    x = arms[order]
    for t in (10, 39, 40, 41, 89, 90, 129, 130, 131):
        recent = slice(max(0, t + 1 - WINDOW), t + 1)
        matrix = x[recent].T @ x[recent] + ridge * np.eye(FEATURES)
        assert off(kept.root[t], matrix) < 1e-6
        np.testing.assert_allclose(x @ (theta[t] - np.linalg.solve(matrix, rewards[recent] @ x[recent])), 0, atol=1e-6)


@pytest.mark.parametrize("discount", [0.5, 1e-3])
def test_a_discount_that_forgets_nearly_all_at_once(discount):
    arms, order, _ = problem("poisson", ROUNDS)
    rewards = np.random.default_rng(3).poisson(3.0, ROUNDS).astype(float)
    _, theta, kept, converged, rebuilt = run("poisson", "discount", "float64", arms, order, rewards, discount)
    assert converged.all()
    assert rebuilt.all()
    for t in (0, 5, 149):
        weights = np.pad(weights_of(t + 1, discount, None), (0, ROUNDS - t - 1))
        expected = exactly("poisson", arms[order], rewards, weights)
        np.testing.assert_allclose(theta[t], expected, atol=1e-9)
        assert off(kept.root[t], curvature("poisson", arms[order], weights, expected)) < 1e-6


# Summaries of constant size


@partial(jax.jit, static_argnames=("family", "every"))
def summarize(family, start, x, rewards, every=1):
    """`learn` in a loop: what is kept after each reward, or each 1000th, say."""

    def one(kept, now):
        return kept.learn(Estimator(families.get(family)), jnp.asarray(RIDGE, x.dtype), 0, *now), None

    def several(kept, now):
        kept, _ = jax.lax.scan(one, kept, now)
        return kept, kept

    return jax.lax.scan(several, start, (x.reshape(-1, every, FEATURES), rewards.reshape(-1, every)))[1]


def empty(dtype="float64", discount=DISCOUNT, rows=None, **more):
    """A summary with nothing seen yet."""
    return Summary.of(wanted(FEATURES, dtype, ridge=RIDGE, discount=discount or 1.0, **more), rows)


def prior_left(rounds, discount):
    """P after each reward, in units of the ridge."""
    left, after = np.ones(FEATURES), []
    for t in range(rounds):
        left = discount * left + FEATURES * (1 - discount) * (np.arange(FEATURES) == t % FEATURES)
        after.append(left)
    return np.array(after)


@cache
def stream(family, rounds=ROUNDS):
    x, rewards = random_rows(np.random.default_rng(4), family, rounds, FEATURES)
    return x, rewards


@pytest.mark.parametrize("discount", [0.999, DISCOUNT, 0.6])
def test_a_gaussian_summary_is_weighted_regression_with_nearly_that_ridge(discount):
    x, rewards = stream("gaussian")
    kept = jax.tree.map(np.asarray, summarize("gaussian", empty(discount=discount), x, rewards))
    left = prior_left(ROUNDS, discount)
    low, high = discount ** (FEATURES - 1), 1 + (FEATURES - 1) * (1 - discount)
    assert low <= np.min(left)
    assert np.max(left) <= high
    for t in range(ROUNDS):
        weights = weights_of(t + 1, discount, None)
        data, cross = (x[: t + 1].T * weights) @ x[: t + 1], (weights * rewards[: t + 1]) @ x[: t + 1]
        # All of it is known in closed form …
        matrix = data + RIDGE * np.diag(left[t])
        assert off(kept.root[t], matrix) < 1e-9
        assert off(kept.gram_inverse[t].T, data + GRAM_RIDGE * np.diag(left[t])) < 1e-6
        np.testing.assert_allclose(kept.theta_hat[t], np.linalg.solve(matrix, cross), atol=1e-10)
        np.testing.assert_allclose(kept.gram_root[t] @ kept.gram_inverse[t], np.eye(FEATURES), atol=1e-7)
        # … and not further from what is wanted than the bound says.
        wanted = data + RIDGE * np.eye(FEATURES)
        ratios = np.linalg.eigvalsh(kept.root[t].T @ wanted @ kept.root[t])
        assert 1 / high - 1e-9 <= ratios[0] <= ratios[-1] <= 1 / low + 1e-9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("floor", [None, RIDGE])
def test_a_summary_stays_well_over_a_long_time(dtype, floor):
    """100 000 rewards; one direction is not seen after the first thousand."""
    rounds, discount = 100_000, 0.99
    x, rewards = stream("bernoulli", rounds)
    x = np.where((np.arange(rounds) < 1000)[:, None] | (np.arange(FEATURES) < FEATURES - 1), x, 0)
    start = empty(dtype, discount, widths=floor is not None)  # which makes the floor the ridge
    kept = summarize("bernoulli", start, jnp.asarray(x, dtype), jnp.asarray(rewards, dtype), every=1000)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(kept))
    kept = jax.tree.map(lambda leaf: np.asarray(leaf, float), kept)
    low, high = discount ** (FEATURES - 1), 1 + (FEATURES - 1) * (1 - discount)
    error = {"float64": 1e-6, "float32": 0.02}[dtype]
    for t in (1, 10, 99):
        recent = slice(max(0, 1000 * (t + 1) - 4000), 1000 * (t + 1))
        weights = weights_of(recent.stop - recent.start, discount, None)
        summary = jax.tree.map(lambda leaf, t=t: leaf[t], kept)
        gram = (x[recent].T * weights) @ x[recent] + (floor or GRAM_RIDGE) * np.diag(prior_left(4000, discount)[-1])
        assert off(np.linalg.inv(summary.gram_root).T, gram) < error
        assert off(summary.gram_inverse.T, gram) < error
        inverse = summary.root @ summary.root.T
        assert 1 / (high * RIDGE) * (1 - error) < inverse[-1, -1] < 1 / (low * RIDGE) * (1 + error)
        assert np.linalg.eigvalsh(inverse)[-1] < 1 / (low * RIDGE) * (1 + error)
        # Each slope was taken when its reward came; today's are near.
        slopes = curvature("bernoulli", x[recent], weights, kept.theta_hat[t])
        assert off(summary.root, slopes) < 0.1


def test_adversarial_rewards_leave_a_finite_summary():
    x = np.random.default_rng(6).uniform(-1, 1, (ROUNDS, FEATURES)).astype("float32")
    start = empty("float32")
    for adversary in HOSTILE["poisson"]:
        rewards = np.array([adversary(t) for t in range(ROUNDS)], "float32")
        kept = summarize("poisson", start, x, rewards)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(kept))
        assert np.all(kept.converged)


@pytest.mark.parametrize("how", FORGETTING)
@pytest.mark.parametrize("family", ["bernoulli", "poisson"])  # the Gaussian needs no refits
def test_refits_are_exact_and_never_far_apart(family, how):
    discount, window = FORGETTING[how]
    x, rewards = stream(family)
    rows = Rows.of(window or ROUNDS, FEATURES, jnp.dtype(float), forgets=window is not None)
    kept = jax.tree.map(np.asarray, summarize(family, empty(discount=discount, rows=rows), x, rewards))
    assert kept.converged.all()
    due = np.flatnonzero(np.diff(kept.refit_at, prepend=2)) + 1  # number of rewards at each refit
    total = [np.sum(weights_of(count, discount, window)) for count in due]
    np.testing.assert_array_equal(np.diff(due), np.ceil(np.array(total[:-1]) / 2))
    assert due[0] == 2
    assert due[-1] > ROUNDS - WINDOW / 2
    for count in due:
        weights = np.pad(weights_of(count, discount, window), (0, ROUNDS - count))
        expected = exactly(family, x, rewards, weights)
        np.testing.assert_allclose(kept.theta_hat[count - 1], expected, atol=1e-8)
        assert off(kept.root[count - 1], curvature(family, x, weights, expected)) < 1e-6
        gram = (x.T * weights) @ x + GRAM_RIDGE * np.eye(FEATURES)
        assert off(np.linalg.inv(kept.gram_root[count - 1]).T, gram) < 1e-6


def test_the_ring_starts_empty_and_goes_round():
    ring = Recent.of(2, jnp.dtype(float))
    for arm, reward, leaving in ((5, 1.0, None), (6, 2.0, None), (7, 3.0, 5), (8, 4.0, 6), (9, 5.0, 7)):
        oldest, really = ring.oldest()
        assert (int(oldest) if really else None) == leaving
        ring = ring.record(arm, reward)
    np.testing.assert_array_equal(ring.arms, [9, 8])
    np.testing.assert_array_equal(ring.rewards, [5.0, 4.0])
