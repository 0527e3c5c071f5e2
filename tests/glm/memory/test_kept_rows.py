"""A memory of rewards one by one: against the fit of the same rows, full and forgetful."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax.errors import HistoryFull, InvalidArgument
from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.history import Grouped, Rows
from explorax.glm.memory import constant, kept_rows
from explorax.glm.memory.base import GRAM_RIDGE, Estimator
from explorax.glm.memory.kept_rows import KeptRows, on_filled
from tests.glm.memory.wanted import wanted
from tests.helpers import assert_same
from tests.problems import random_rows

D, ROOM, ROUNDS = 3, 20, 30
X, REWARDS = random_rows(np.random.default_rng(1), "bernoulli", ROUNDS, D)
RIDGE = jnp.asarray(0.7)
ESTIMATOR = Estimator(families.bernoulli)


@jax.jit
def learn(memory, x, reward, really=True):
    return memory.learn(ESTIMATOR, RIDGE, 0, x, reward, really)


def learned(rounds=ROUNDS, **settings):
    memory = KeptRows.of(wanted(D, ridge=float(RIDGE), capacity=ROOM, **settings))
    for x, reward in zip(X[:rounds], REWARDS[:rounds], strict=True):
        memory = learn(memory, x, reward)
    return memory


@pytest.fixture(scope="module")
def forgetful():
    return learned(drops_oldest=True)


def test_the_estimate_is_that_of_the_rows_kept(forgetful):
    for memory, kept in ((learned(), slice(0, ROOM)), (forgetful, slice(ROUNDS - ROOM, ROUNDS))):
        expected = fit("bernoulli", Grouped(X[kept], np.ones(ROOM), REWARDS[kept]), ridge=0.7).theta
        np.testing.assert_allclose(memory.theta_hat, expected, rtol=0, atol=1e-7)
        np.testing.assert_allclose(memory.scores(X), X @ expected, rtol=0, atol=1e-6)
        gram = X[kept].T @ X[kept] + GRAM_RIDGE * np.eye(D)
        widths = np.sqrt(np.sum(X @ np.linalg.inv(gram) * X, axis=1))
        np.testing.assert_allclose(memory.widths(jnp.asarray(X)), widths, rtol=1e-7)


def test_a_discount_weighs_rows():
    memory = learned(rounds=ROOM, discount=0.9)
    weights = 0.9 ** np.arange(ROOM)[::-1]
    expected = fit("bernoulli", Grouped(X[:ROOM], weights, weights * REWARDS[:ROOM]), ridge=0.7).theta
    np.testing.assert_allclose(memory.theta_hat, expected, rtol=0, atol=1e-7)


def test_what_leaves_is_what_the_next_reward_overwrites(forgetful):
    change = forgetful.leaving()
    assert (float(change.comes), float(change.leaves), change.ago) == (1.0, 1.0, ROOM)
    np.testing.assert_array_equal(change.x, X[ROUNDS - ROOM])
    full = learned(rounds=ROOM).leaving()
    assert (float(full.comes), float(full.leaves)) == (0.0, 0.0)


def test_a_full_memory_says_so(forgetful):
    forgetful.check_pulled(0, X[0])
    with pytest.raises(HistoryFull, match=f"All {ROOM} rows are taken"):
        learned(rounds=ROOM).check_pulled(0, X[0])


def test_rewards_that_do_not_count_change_nothing(forgetful):
    for after in (learn(forgetful, X[0], 1.0, False), learn(forgetful, np.full(D, 1e200), 1.0)):
        jax.tree.map(np.testing.assert_array_equal, after, forgetful)


def test_it_learns_rows_at_once():
    rows = Rows(jnp.asarray(X[:5]), jnp.ones(5), jnp.asarray(REWARDS[:5]), jnp.asarray(5), jnp.asarray(False))
    at_once = KeptRows.of(wanted(D, capacity=ROOM)).learn_rows(ESTIMATOR, RIDGE, rows)
    one_by_one = learned(rounds=5)
    np.testing.assert_allclose(at_once.theta_hat, one_by_one.theta_hat, rtol=0, atol=1e-7)
    jax.tree.map(np.testing.assert_array_equal, at_once.past, one_by_one.past)


def test_what_a_summary_forgot_is_not_known_again(forgetful):
    summary = constant(wanted(D)).adopting(ESTIMATOR, RIDGE, forgetful, RIDGE)
    with pytest.raises(
        InvalidArgument, match=r"memory must be .constant., got .* a summary does not know its rewards any more"
    ):
        KeptRows.of(wanted(D)).adopting(ESTIMATOR, RIDGE, summary, RIDGE)
    assert forgetful.extended(ESTIMATOR, RIDGE, jnp.asarray(X)) is forgetful
    assert forgetful.n_arms is None


@pytest.mark.parametrize("filled", [1, 3, 4, 5, 9])
def test_fits_go_over_few_rows_with_the_same_result(filled, monkeypatch):
    """A memory of 10 rows that is cut to 4 or 8 of them while no more are filled."""

    def found():
        memory = KeptRows.of(wanted(D, ridge=float(RIDGE), capacity=10, roots=True))
        for x, reward in zip(X[:filled], REWARDS[:filled], strict=True):
            memory = memory.learn(ESTIMATOR, RIDGE, 0, x, reward)
        tilts = jnp.asarray(X[:4])
        tilted = jax.vmap(lambda tilt: memory.tilted(ESTIMATOR, RIDGE, jnp.asarray(X), tilt))(tilts)
        on_others = memory.scores_on(ESTIMATOR, RIDGE, jnp.asarray(X), memory.past, memory.theta_hat)
        roots = memory.exact_root(ESTIMATOR, RIDGE), memory.kept_root
        return memory.theta_hat, roots, memory.gram(), tilted, on_others

    whole = found()
    monkeypatch.setattr(kept_rows, "SIZES", (4, 8))
    assert_same(found(), whole, rtol=1e-5, atol=1e-5)


def test_what_is_beyond_the_rows_filled_is_not_looked_at(monkeypatch):
    monkeypatch.setattr(kept_rows, "SIZES", (4, 8))
    past = learned(rounds=ROOM).past
    looked_at = [int(on_filled(jnp.asarray(n), lambda rows: jnp.asarray(len(rows.counts)), past)) for n in (0, 4, 5, 9)]
    assert looked_at == [4, 4, 8, ROOM]
    each = jax.vmap(lambda n: on_filled(n, lambda rows: jnp.asarray(len(rows.counts)), past))(jnp.asarray([0, 9]))
    assert each.tolist() == [ROOM, ROOM]  # in a batch with rows of their own
    several = jax.vmap(lambda x: on_filled(jnp.asarray(5), lambda rows, x: x * len(rows.counts), past, x))(jnp.ones(2))
    assert several.tolist() == [8, 8]  # in a batch that shares the rows


def exact_covariance(rows, ridge, theta):
    """The inverse curvature at an estimate, from the rows by NumPy."""
    x, weights = np.asarray(rows.features), np.asarray(rows.counts)
    means = 1 / (1 + np.exp(-x @ np.asarray(theta)))
    return np.linalg.inv((x * (weights * means * (1 - means))[:, None]).T @ x + float(ridge) * np.eye(x.shape[1]))


def assert_rooted(memory, ridge=RIDGE):
    root = np.asarray(memory.kept_root)
    np.testing.assert_allclose(root @ root.T, exact_covariance(memory.past, ridge, memory.theta_hat), rtol=1e-9)
    assert memory.inverse_root(ESTIMATOR, ridge) is memory.kept_root


@pytest.mark.parametrize(
    "settings", [{}, {"drops_oldest": True}, {"discount": 0.9}, {"drops_oldest": True, "window": ROOM}]
)
def test_the_root_is_kept_for_those_who_ask_for_it(settings):
    """After every reward: also when old ones leave, are discounted, or find no room."""
    memory = KeptRows.of(wanted(D, ridge=float(RIDGE), capacity=ROOM, roots=True, **settings))
    assert_rooted(memory)
    for number, (x, reward) in enumerate(zip(X, REWARDS, strict=True)):
        memory = learn(memory, x, reward)
        assert_rooted(memory)
        if number % 7 == 0:
            for same in (learn(memory, x, reward, False), learn(memory, np.full(D, 1e200), 1.0)):
                np.testing.assert_array_equal(same.kept_root, memory.kept_root)
    assert memory.extended(ESTIMATOR, RIDGE, jnp.asarray(X)) is memory


def test_who_asks_for_no_root_pays_for_none(forgetful):
    assert forgetful.kept_root is None
    assert forgetful.completed(ESTIMATOR, RIDGE) is forgetful
    root = np.asarray(forgetful.inverse_root(ESTIMATOR, RIDGE))
    expected = exact_covariance(forgetful.past, RIDGE, forgetful.theta_hat)
    np.testing.assert_allclose(root @ root.T, expected, rtol=1e-9)


def test_a_root_before_any_reward_is_that_of_the_ridge():
    for ridge in (0.0, 0.7):
        memory = KeptRows.of(wanted(D, ridge=ridge, roots=True))
        np.testing.assert_allclose(memory.kept_root, memory.exact_root(ESTIMATOR, jnp.asarray(ridge)), rtol=1e-12)


def test_the_root_is_that_of_the_rows_that_were_taken_over():
    other = jnp.asarray(2.5)
    empty = KeptRows.of(wanted(D, ridge=float(other), capacity=2 * ROOM, roots=True))
    for old in (learned(rounds=5), learned(drops_oldest=True), learned(rounds=5, roots=True)):
        assert_rooted(empty.adopting(ESTIMATOR, other, old, RIDGE), other)
    rows = Rows(jnp.asarray(X[:5]), jnp.ones(5), jnp.asarray(REWARDS[:5]), jnp.asarray(5), jnp.asarray(False))
    assert_rooted(empty.learn_rows(ESTIMATOR, other, rows), other)


def test_a_root_that_was_not_saved_is_computed():
    memory = learned(roots=True, drops_oldest=True)
    lacking = memory._replace(kept_root=jnp.zeros((D, D)))
    np.testing.assert_allclose(lacking.completed(ESTIMATOR, RIDGE).kept_root, memory.kept_root, rtol=1e-12)
