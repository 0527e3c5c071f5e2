"""Replay: the law of the rows that are kept is that of the policy by itself; what it learns; bad input."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax import LoggedData
from explorax.errors import HistoryFull, InvalidArgument, InvalidReward
from explorax.evaluation.replay import least, replay, replay_note
from tests.statistics import FALSE_ALARM

ARMS, MEANS = np.eye(2), np.array([0.4, 0.7])


def small_log(seed, rows=30):
    """Return a log whose propensities differ from row to row, and depend on nothing."""
    rng = np.random.default_rng(seed)
    first = np.where(rng.random(rows) < 0.5, 0.7, 0.3)
    arms = (rng.random(rows) >= first).astype(int)
    rewards = (rng.random(rows) < MEANS[arms]).astype(float)
    every = np.stack([first, 1 - first], axis=1)
    return LoggedData.of(arms, rewards, names=[0, 1], features=ARMS, all_propensities=every)


def exact_law(policy):
    """Return the probability of each history of two rounds of the policy playing by itself, by enumeration."""
    chance, found = np.stack([1 - MEANS, MEANS], axis=1), {}
    start = policy.init(ARMS)
    for a, r in itertools.product((0, 1), repeat=2):
        here = policy.probabilities(start, jnp.asarray(ARMS), 0, None)[a] * chance[a, r]
        state = policy.update(start, a, ARMS[a], float(r))
        for b, s in itertools.product((0, 1), repeat=2):
            there = policy.probabilities(state, jnp.asarray(ARMS), 1, None)[b] * chance[b, s]
            found[a, r, b, s] = float(here * there)
    return found


def test_histories_that_are_kept_have_the_law_of_the_policy_by_itself():
    """Chi-square of 1 000 replays on 16 histories of two rounds; false alarms below FALSE_ALARM."""
    policy = explorax.epsilon_greedy(epsilon=0.6, warmup="none")
    law, counts, lengths = exact_law(policy), {}, []
    assert sum(law.values()) == pytest.approx(1)
    for seed in range(1000):
        log = small_log(seed)
        kept = np.flatnonzero(replay(policy, log, seed=seed))
        lengths.append(len(kept))
        if len(kept) >= 2:
            history = tuple(int(each) for row in kept[:2] for each in (log.arms[row], log.rewards[row]))
            counts[history] = counts.get(history, 0) + 1
    seen = np.array([counts.get(history, 0) for history in law])
    assert stats.chisquare(seen, seen.sum() * np.array(list(law.values()))).pvalue > FALSE_ALARM
    # Every row is kept with probability c = 0.3, whatever happened before.
    expected = stats.binom.pmf(np.arange(31), 30, 0.3) * len(lengths)
    middle = slice(4, 15)
    observed = np.bincount(lengths, minlength=31)
    both = [np.append(each[middle], each.sum() - each[middle].sum()) for each in (observed, expected)]
    assert stats.chisquare(*both).pvalue > FALSE_ALARM


def slow(policy, log, start, tables, seed, size):
    """Return what `replay` keeps, as a loop written from the definition."""
    state, kept, count = policy.init(start), [], 0
    bound = log.propensities.min()
    key = jax.random.key(seed)
    for row in range(len(log)):
        here = jax.random.fold_in(jax.random.fold_in(key, row // size * size), row % size)
        drawing, thinning = jax.random.split(here)
        mask = None if log.offered is None else jnp.asarray(log.offered[row])
        arm = int(policy.act(drawing, state, tables[row], count, mask).arm)
        keep = arm == log.arms[row] and float(jax.random.uniform(thinning)) < bound / log.propensities[row]
        if keep:
            state, count = policy.update(state, arm, tables[row][arm], log.rewards[row]), count + 1
        kept.append(keep)
    return np.array(kept)


@pytest.mark.parametrize("kind", ["fixed", "changing"])
def test_replay_is_its_definition(kind):
    rng, rows = np.random.default_rng(3), 100
    features = rng.normal(size=(3, 2)) if kind == "fixed" else rng.normal(size=(rows, 3, 2))
    offered = np.ones((rows, 3), bool)
    offered[::3, 2] = False
    every = offered / offered.sum(axis=1, keepdims=True)
    arms = (rng.random((rows, 1)) > np.cumsum(every, axis=1)).sum(axis=1)
    rewards = rng.integers(0, 2, rows).astype(float)
    log = LoggedData.of(arms, rewards, names=[0, 1, 2], features=features, all_propensities=every, offered=offered)
    policy = explorax.lin_ts()
    tables = log.features.table(np.arange(rows))
    start = features if kind == "fixed" else 2
    wanted = slow(policy, log, start, tables, 4, 128)
    np.testing.assert_array_equal(replay(policy, log, seed=4), wanted)
    assert 10 < wanted.sum() < 60


def test_later_rows_change_nothing_before():
    log = small_log(0, 300)
    kept = replay(explorax.lin_ts(), log)
    changed = LoggedData.of(
        log.arms, np.where(np.arange(300) < 200, log.rewards, 1 - log.rewards), names=[0, 1], features=ARMS,
        all_propensities=log.all_propensities,
    )  # fmt: skip
    np.testing.assert_array_equal(replay(explorax.lin_ts(), changed)[:200], kept[:200])


def test_a_smaller_bound_keeps_fewer_rows():
    log = small_log(1, 3000)
    assert least(log, None) == pytest.approx(0.3)
    policy = explorax.uniform()
    assert 0.25 < replay(policy, log).mean() < 0.35
    assert 0.07 < replay(policy, log, 0.1).mean() < 0.13


def test_rows_in_which_an_arm_had_no_chance_are_counted():
    log = small_log(0, 200)
    assert replay_note("it", 60, log, None).endswith("the arms chosen before.")
    every = log.all_propensities.copy()
    every[:50] = np.eye(2)[log.arms[:50]]
    forced = LoggedData.of(log.arms, log.rewards, names=[0, 1], features=ARMS, all_propensities=every)
    note = replay_note("it", 60, forced, None)
    assert "60 of 200 rows were kept, with c = 0.3." in note
    assert note.endswith("In 25.0% of the rows an arm on offer had less.")


def test_bad_input():
    log, policy = small_log(0), explorax.glm_tsl()
    with pytest.raises(InvalidArgument, match="log must have propensities to replay a policy"):
        replay(policy, LoggedData.of(log.arms, log.rewards, names=[0, 1], features=ARMS))
    with pytest.raises(InvalidArgument, match="log must have features of the arms"):
        replay(policy, LoggedData(log.arms, log.rewards, None, [0, 1], log.propensities))
    with pytest.raises(InvalidArgument, match=r"least_propensity must be above 0 and at most 0.3, .* got 0.5"):
        replay(policy, log, 0.5)
    with pytest.raises(InvalidReward):
        replay(
            policy, LoggedData.of(log.arms, 2 * log.rewards, names=[0, 1], features=ARMS, propensities=log.propensities)
        )
    tables = np.broadcast_to(ARMS, (30, 2, 2))
    given = LoggedData.of(log.arms, log.rewards, names=[0, 1], features=tables, propensities=log.propensities)
    with pytest.raises(HistoryFull, match="capacity"):
        replay(explorax.glm_tsl(memory="exact", capacity=3), given)
