"""Going on with other settings: what a state has seen, remembered by the same policy made otherwise."""

import jax
import numpy as np
import pytest

import explorax
from explorax.errors import HistoryFull, InvalidArgument
from explorax.policies.adoption import adopt

D, SEEN = 3, 20
RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(SEEN, D))
REWARDS = (RNG.random(SEEN) < 1 / (1 + np.exp(-ROWS @ [1.0, -1.0, 0.5]))).astype(float)


def learned(policy, rows=ROWS, rewards=REWARDS):
    state = policy.init(D)
    for x, reward in zip(rows, rewards, strict=True):
        state = policy.update(state, 0, x, reward)
    return state


def tsl(**settings):
    return explorax.make("glm_tsl", **{"capacity": SEEN, **settings})


@pytest.fixture(scope="module")
def full():
    """The state of an exact memory that has no room left."""
    return learned(tsl())


def equal(first, second):
    return jax.tree.all(jax.tree.map(lambda one, other: np.array_equal(one, other), first, second))


def test_a_full_memory_goes_on_with_more_room(full):
    larger = tsl(capacity=2 * SEEN)
    with pytest.raises(HistoryFull):
        tsl().update(full, 0, ROWS[0], 1.0)
    state = adopt(larger, full, larger.init(D))
    np.testing.assert_allclose(state.theta_hat, full.theta_hat, rtol=1e-7, atol=1e-8)
    assert state.memory.past.capacity == 2 * SEEN
    # From there on it is as if there had been as much room from the start.
    again, direct = larger.update(state, 0, ROWS[0], 1.0), learned(larger, [*ROWS, ROWS[0]], [*REWARDS, 1.0])
    assert equal(again.memory.past, direct.memory.past)
    np.testing.assert_allclose(again.theta_hat, direct.theta_hat, rtol=1e-7, atol=1e-8)


def test_nothing_changes_where_nothing_differs(full):
    assert adopt(tsl(), full, tsl().init(D)) is full


@pytest.mark.parametrize("memory", ["refitted", "constant"])
def test_rows_become_a_summary_by_an_exact_fit(full, memory):
    other = tsl(memory=memory, capacity=SEEN + 5)
    state = adopt(other, full, other.init(D))
    np.testing.assert_allclose(state.theta_hat, full.theta_hat, rtol=1e-7, atol=1e-8)
    slope = np.exp(-ROWS @ full.theta_hat) / (1 + np.exp(-ROWS @ full.theta_hat)) ** 2
    curvature = (ROWS.T * slope) @ ROWS + np.eye(D)
    np.testing.assert_allclose(state.memory.root @ state.memory.root.T, np.linalg.inv(curvature), rtol=1e-5)
    assert (state.memory.rows is None) == (memory == "constant")
    assert other.update(state, 0, ROWS[0], 1.0).converged


def test_a_refitted_memory_becomes_exact_again(full):
    refitted = tsl(memory="refitted")
    state = adopt(tsl(), learned(refitted), tsl().init(D))
    assert equal(state.memory.past, full.memory.past)
    np.testing.assert_allclose(state.theta_hat, full.theta_hat, rtol=1e-7, atol=1e-8)


def test_the_newest_are_kept_where_the_oldest_may_go(full):
    with pytest.raises(
        HistoryFull, match=f"capacity must be at least {SEEN}, the number of rewards that are kept, got 5"
    ):
        adopt(tsl(capacity=5), full, tsl(capacity=5).init(D))
    forgetful = tsl(capacity=5, when_full="forget")
    state = adopt(forgetful, full, forgetful.init(D))
    np.testing.assert_array_equal(state.memory.past.features, ROWS[-5:].astype(state.memory.past.features.dtype))
    # A ring that has started over is put in order again.
    later = forgetful.update(state, 0, ROWS[0], 1.0)
    wider = adopt(tsl(capacity=8), later, tsl(capacity=8).init(D))
    expected = np.concatenate([ROWS[-4:], ROWS[:1]])
    np.testing.assert_array_equal(wider.memory.past.features[:5], expected.astype(wider.memory.past.features.dtype))
    assert (int(wider.memory.past.seen), float(wider.memory.past.counts.sum())) == (5, 5.0)


def test_numbers_are_those_of_the_policy_that_goes_on(full):
    other = tsl(scale=0.5, ridge=2.0)
    state = adopt(other, full, other.init(D))
    assert (float(state.numbers.scale), float(state.ridge)) == (0.5, 2.0)
    np.testing.assert_allclose(state.theta_hat, learned(other).theta_hat, rtol=1e-6, atol=1e-7)


def test_what_is_not_known_any_more_is_refused(full):
    constant = tsl(memory="constant")
    summary = adopt(constant, full, constant.init(D))
    with pytest.raises(InvalidArgument, match="memory must be 'constant', got one that keeps rows"):
        adopt(tsl(), summary, tsl().init(D))
    with pytest.raises(InvalidArgument, match="ridge must stay 1, got 2"):
        adopt(tsl(memory="constant", ridge=2.0), summary, tsl(memory="constant", ridge=2.0).init(D))
    with pytest.raises(InvalidArgument, match="discount must stay as it was"):
        adopt(tsl(discount=0.9), full, tsl(discount=0.9).init(D))
    with pytest.raises(InvalidArgument, match="Keep the number of features"):
        adopt(tsl(), full, tsl().init(D + 1))
    with pytest.raises(InvalidArgument, match="fixed arms on one side"):
        adopt(tsl(), full, tsl().init(ROWS))


def test_other_policies_may_have_more_room_for_rows():
    small, large = (explorax.make("deep_fpl", replay="uniform", batch=2, capacity=n) for n in (4, 16))
    state = learned(small, ROWS[:3], REWARDS[:3])
    carried = adopt(large, state, large.init(D))
    assert carried.history.capacity == 16
    assert equal(carried.params, state.params)
    np.testing.assert_array_equal(carried.history.sums[:3], REWARDS[:3])
    forgotten = state._replace(history=state.history._replace(seen=state.history.seen + 5))
    with pytest.raises(InvalidArgument, match="capacity must stay 4"):
        adopt(large, forgotten, large.init(D))


def covariance(state):
    """The inverse curvature H(θ̂)⁻¹ of a state, from its rows by NumPy."""
    past, x = state.memory.past, np.asarray(state.memory.past.features, float)
    means = 1 / (1 + np.exp(-x @ np.asarray(state.theta_hat, float)))
    return np.linalg.inv((x.T * (np.asarray(past.counts) * means * (1 - means))) @ x + float(state.ridge) * np.eye(D))


@pytest.mark.parametrize("name", ["glm_tsl", "evill", "pg_ts", "ofuglb_e"])
def test_the_root_is_that_of_the_policy_that_goes_on(name):
    small, large = (explorax.make(name, capacity=SEEN * times) for times in (1, 2))
    state = learned(small)
    carried = adopt(large, state, large.init(D))
    again = large.update(carried, 0, ROWS[0], 1.0)
    for each in (state, carried, again):
        root = np.asarray(each.memory.kept_root, float)
        np.testing.assert_allclose(root @ root.T, covariance(each), rtol=1e-4)


def test_another_ridge_has_another_root(full):
    other = tsl(ridge=5.0)
    state = adopt(other, full, other.init(D))
    root = np.asarray(state.memory.kept_root, float)
    np.testing.assert_allclose(root @ root.T, covariance(state), rtol=1e-4)


def test_policies_that_need_no_root_keep_none():
    for name in ("glm_fpl", "ucb_glm", "greedy"):
        assert explorax.make(name).init(D).memory.kept_root is None
