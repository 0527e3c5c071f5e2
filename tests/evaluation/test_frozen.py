"""Probabilities of frozen policies: formulas, rules that are not random, repeated decisions, floors and masks."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax.errors import InvalidArgument
from explorax.evaluation.frozen import Chances, frozen
from tests.statistics import FALSE_ALARM

ARMS = np.random.default_rng(5).normal(size=(4, 2))


def learned(policy, start, rounds=12):
    """Return the state of a policy after a few rewards."""
    state, rng = policy.init(start), np.random.default_rng(0)
    for _ in range(rounds):
        arm = int(rng.integers(4))
        state = policy.update(state, arm, ARMS[arm], float(rng.integers(2)))
    return state


def rows(count=20, seed=1):
    rng = np.random.default_rng(seed)
    offered = rng.random((count, 4)) < 0.7
    offered[np.arange(count), rng.integers(0, 4, count)] = True
    return rng.normal(size=(count, 4, 2)), offered


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_a_formula_is_used_as_it_is(floor):
    policy = explorax.epsilon_greedy(epsilon=0.2, warmup="none")
    state, (tables, offered) = learned(policy, 2), rows()
    found = Chances(frozen(policy, state, explore_floor=floor), 0).of_each(0, tables, offered)
    for table, mask, chances in zip(tables, offered, found, strict=True):
        wanted = policy.probabilities(state, jnp.asarray(table), 0, jnp.asarray(mask))
        np.testing.assert_allclose(chances, (1 - floor) * wanted + floor * mask / mask.sum(), atol=1e-12)


def test_a_rule_that_is_not_random_has_one_arm():
    policy = explorax.lin_ucb(warmup="none")
    state, (tables, offered) = learned(policy, 2), rows(1100)  # more than one call of the program
    found = Chances(frozen(policy, state), 0).of_each(0, tables, offered)
    for place in (0, 1, 511, 512, 1099):
        arm = int(policy.act(jax.random.key(9), state, tables[place], 0, jnp.asarray(offered[place])).arm)
        np.testing.assert_array_equal(found[place], np.eye(4)[arm])


def test_fixed_arms_with_masks_are_those_of_each_row():
    policy = explorax.lin_ucb(warmup="none")
    state, (_, offered) = learned(policy, ARMS), rows()
    found = Chances(frozen(policy, state), 0).of_alike(0, ARMS, offered)
    for mask, chances in zip(offered, found, strict=True):
        arm = int(policy.act(jax.random.key(9), state, ARMS, 0, jnp.asarray(mask)).arm)
        np.testing.assert_array_equal(chances, np.eye(4)[arm])


def direct(policy, state, table, mask, count=20_000):
    """Return how often each arm is drawn by `act` with independent keys."""
    act = jax.vmap(lambda key: policy.act(key, state, jnp.asarray(table), 0, jnp.asarray(mask)).arm)
    return np.bincount(np.asarray(act(jax.random.split(jax.random.key(77), count))), minlength=4)


def check_law(counts, others):
    """Compare two tables of counts; false alarms below FALSE_ALARM."""
    seen = (counts + others) > 0
    table = np.stack([counts[seen], others[seen]])
    assert seen.sum() > 1
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


def test_repeated_decisions_have_the_law_of_act():
    policy = explorax.lin_ts(warmup="none", scale=2.0)
    mask = np.array([True, True, False, True])
    state = learned(policy, 2)
    rest = rows(1)[0]
    found = Chances(frozen(policy, state, draws=400), 3).of_each(0, np.repeat(rest, 64, axis=0), np.tile(mask, (64, 1)))
    counts = np.round(found[::8].sum(axis=0) * 400).astype(int)  # one of each group, which shares its noise
    check_law(counts, direct(policy, state, rest[0], mask))
    assert len(np.unique(found[:8], axis=0)) == 1
    assert len(np.unique(found[::8], axis=0)) > 1


def test_alike_rows_share_all_their_repetitions():
    policy = explorax.lin_ts(warmup="none", scale=2.0)
    state, offered = learned(policy, ARMS), np.ones((200, 4), bool)
    found = Chances(frozen(policy, state), 3).of_alike(0, ARMS, offered)
    assert len(np.unique(found, axis=0)) == 1
    check_law(np.round(found[0] * 200 * 100).astype(int), direct(policy, state, ARMS, offered[0]))


def test_seeds_and_places_change_the_noise():
    policy = explorax.lin_ts(warmup="none", scale=2.0)
    state, (tables, offered) = learned(policy, 2), rows()
    first = Chances(frozen(policy, state), 0).of_each(0, tables, offered)
    np.testing.assert_array_equal(Chances(frozen(policy, state), 0).of_each(0, tables, offered), first)
    assert not np.array_equal(Chances(frozen(policy, state), 1).of_each(0, tables, offered), first)
    assert not np.array_equal(Chances(frozen(policy, state), 0).of_each(20, tables, offered), first)


def test_forced_rounds_count_only_with_a_number_of_decisions():
    policy = explorax.lin_ucb(warmup="basis")
    state, offered = learned(policy, ARMS), np.ones((1, 4), bool)
    free = Chances(frozen(policy, state), 0).of_alike(0, ARMS, offered)
    late = Chances(frozen(policy, state, decisions=50), 0).of_alike(0, ARMS, offered)
    np.testing.assert_array_equal(free, late)
    for t in range(2):
        forced = Chances(frozen(policy, state, decisions=t), 0).of_alike(0, ARMS, offered)
        arm = int(policy.act(jax.random.key(0), state, ARMS, t).arm)
        np.testing.assert_array_equal(forced[0], np.eye(4)[arm])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"explore_floor": 1.0}, "explore_floor must be a number from 0 up to"),
        ({"draws": 0}, "draws must be a whole number of at least 1"),
        ({"decisions": -1}, "decisions must be a whole number of at least 0"),
    ],
)
def test_bad_input(given, said):
    with pytest.raises(InvalidArgument, match=said):
        frozen(explorax.glm_tsl(), None, **given)
    with pytest.raises(InvalidArgument, match="policy must be a Policy, got 3"):
        frozen(3, None)
