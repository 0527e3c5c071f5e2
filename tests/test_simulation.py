"""The engine: what it plays does not depend on how the work is split, and is what a plain loop plays."""

import re

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import qr

import explorax
from explorax.checkpoints import check_schedule
from explorax.environments import logistic, poisson
from explorax.errors import HistoryFull, InvalidArgument
from explorax.policies.base import Action, Policy
from explorax.policies.glm_tsl import glm_tsl
from explorax.registry import check_family
from explorax.simulation import BLOCK, Job, compile_ahead, share_program, simulate, simulate_together
from tests.helpers import COMPILED, assert_same, part
from tests.reference import numpy_bandit as reference
from tests.statistics import FALSE_ALARM

ARMS, FEATURES, ROUNDS = 10, 3, 100
WORLD = logistic(n_features=FEATURES, n_arms=ARMS)
CHANGING = logistic(n_features=FEATURES, n_arms=ARMS, arms_change=True)
THEORY = {"design": "theory", "horizon": ROUNDS}


class Scripted:
    """A policy in plain Python whose arm depends on the round only."""

    def __init__(self, arm_of):
        self.arm_of, self.rewards = arm_of, []

    def act(self, arms, t):
        return self.arm_of(t)

    def update(self, arm, x, reward):
        self.rewards.append(reward)


def always(arm):
    return lambda arms, rng: Scripted(lambda t: arm)


def in_turn(t):
    return t % ARMS


@pytest.fixture(scope="module")
def tsl():
    return simulate(explorax.make("glm_tsl"), WORLD, rounds=ROUNDS, instances=30, seed=1)


@pytest.fixture(scope="module")
def uniform():
    return simulate(explorax.make("uniform"), WORLD, rounds=ROUNDS, instances=100, checkpoints=[10, ROUNDS])


def test_records(tsl):
    assert tsl.regret.shape == tsl.reward.shape == (30, ROUNDS)
    assert tsl.regret.dtype == tsl.reward.dtype == np.float64
    np.testing.assert_array_equal(tsl.instances, np.arange(30))
    np.testing.assert_array_equal(tsl.rounds, np.arange(1, ROUNDS + 1))
    assert np.all(np.diff(tsl.regret, axis=1) >= 0)
    assert set(np.unique(np.diff(tsl.reward, axis=1))) == {0, 1}
    assert np.all(tsl.unconverged == 0)
    assert len(set(tsl.digest)) == 30
    # It learns: at most half of the first rounds' regret is left in the last ones.
    late, early = tsl.regret[:, -1] - tsl.regret[:, -21], tsl.regret[:, 19]
    assert late.mean() < early.mean() / 2


@pytest.mark.parametrize("chunk", [7, 100])
def test_chunks_change_nothing(tsl, chunk):
    # Chunks of 7 rounds play five too many in the end, which are neither recorded nor hashed.
    told = []
    policy = explorax.make("glm_tsl")
    found = simulate(
        policy, WORLD, rounds=ROUNDS, instances=30, seed=1, checkpoints=ROUNDS, chunk=chunk, progress=told.append
    )
    assert_same(found, tsl)
    assert told[-1] == ROUNDS
    assert len(told) == -(-ROUNDS // chunk)
    assert np.all(np.diff([0, *told]) <= chunk)
    assert np.all(np.diff([0, *told]) > 0)


@pytest.mark.parametrize(("first", "instances"), [(0, 5), (10, 20), (29, 1), (20, 45)])
def test_instances_do_not_depend_on_the_call(tsl, first, instances):
    found = simulate(explorax.make("glm_tsl"), WORLD, rounds=ROUNDS, instances=instances, seed=1, first=first)
    np.testing.assert_array_equal(found.instances, np.arange(first, first + instances))
    shared = np.arange(first, min(first + instances, 30))
    assert_same(part(found, shared), part(tsl, shared))


def test_a_longer_run_begins_with_the_shorter_one(tsl):
    shorter = simulate(explorax.make("glm_tsl"), WORLD, rounds=63, instances=5, seed=1, checkpoints=63, chunk=7)
    np.testing.assert_array_equal(shorter.regret, tsl.regret[:5, :63])
    np.testing.assert_array_equal(shorter.reward, tsl.reward[:5, :63])


def test_another_seed_is_another_run(tsl):
    other = simulate(explorax.make("glm_tsl"), WORLD, rounds=ROUNDS, instances=30, seed=2)
    assert not np.any(other.digest == tsl.digest)


def compiled(arm_of):
    """A compiled policy whose arm depends on the round only."""

    def act(key, state, arms, t):
        return Action(jnp.asarray(arm_of(t)), jnp.zeros(ARMS), jnp.asarray(False), jnp.asarray(True))

    return Policy(lambda arms, key: jnp.zeros(()), act, lambda state, arm, x, reward: state + reward)


@pytest.mark.parametrize("world", [WORLD, CHANGING], ids=["fixed", "changing"])
def test_plain_python_meets_the_same_instances_and_luck(world):
    kwargs = {"rounds": 40, "instances": 4, "seed": 3, "first": 2, "checkpoints": 40}
    assert_same(simulate(always(3), world, **kwargs), simulate(compiled(lambda t: 3), world, **kwargs))


def test_plain_python_hears_of_its_own_arms_and_rewards():
    made = []

    def make(arms, rng):
        made.append((arms, Scripted(lambda t: 0), rng.random()))
        return made[-1][1]

    records = simulate(make, WORLD, rounds=20, instances=2, checkpoints=20)
    for i, (arms, policy, _) in enumerate(made):
        assert arms.shape == (ARMS, FEATURES)
        np.testing.assert_array_equal(np.cumsum(policy.rewards), records.reward[i])
    assert made[0][2] != made[1][2]
    simulate(lambda features, rng: made.append(features) or Scripted(lambda t: 0), CHANGING, rounds=2, instances=1)
    assert made[-1] == FEATURES


class PlainUCBGLM:
    """UCB-GLM from the NumPy reference."""

    def __init__(self, arms, rng):
        self.policy = reference.UCBGLM(arms, reference.INFORMAL["ucb_glm"])
        self.forced = qr(self.policy.arms.T, pivoting=True)[2][:FEATURES]

    def act(self, arms, t):
        return self.forced[t] if t < FEATURES else np.argmax(self.policy.scores())

    def update(self, arm, x, reward):
        self.policy.update(arm, reward)


@pytest.fixture(scope="module")
def ucb():
    return simulate(explorax.make("ucb_glm"), WORLD, rounds=ROUNDS, instances=50)


def test_plain_ucb_glm_is_the_compiled_one(ucb):
    # Scores of the two differ by float32's rounding, which decides between arms once in a hundred thousand rounds.
    plain = simulate(PlainUCBGLM, WORLD, rounds=ROUNDS, instances=8)
    assert_same(plain, part(ucb, range(8)))


def test_uniform_regret_is_what_the_gaps_say(uniform):
    """A z-test on the sum of all regrets; gaps come from a policy that pulls the arms in turn."""
    gaps = np.diff(simulate(compiled(in_turn), WORLD, rounds=ARMS, instances=100, checkpoints=ARMS).regret, prepend=0)
    assert np.min(gaps, axis=1) == pytest.approx(0, abs=1e-6)  # one of the arms is the best
    for checkpoint, rounds in enumerate(uniform.rounds):
        miss = np.sum(uniform.regret[:, checkpoint] - rounds * gaps.mean(axis=1))
        deviation = miss / np.sqrt(rounds * np.sum(gaps.var(axis=1)))
        assert 2 * stats.norm.sf(abs(deviation)) > FALSE_ALARM / 2


def test_policies_that_share_a_program(ucb):
    jobs = [Job(explorax.make("ucb_glm", **settings), WORLD) for settings in ({}, THEORY)]
    schedule = check_schedule(ROUNDS, ROUNDS, "even", None, None)
    together = simulate_together(jobs, schedule, range(50), seed=0)
    assert_same(together[0], ucb)
    assert_same(together[1], simulate(jobs[1].policy, WORLD, rounds=ROUNDS, instances=50))
    assert np.any(together[0].digest != together[1].digest)
    other = Job(explorax.make("glm_tsl"), WORLD)
    assert not share_program(jobs[0], other)
    with pytest.raises(InvalidArgument, match="one by one"):
        simulate_together([*jobs, other], schedule, range(50), seed=0)


@pytest.mark.parametrize("settings", [{}, THEORY], ids=["informal", "theory"])
def test_zero_columns_change_nothing(settings):
    # In float64: in float32 scores err by 3e-5, and one decision in some thousands is closer than that.
    arms = np.random.default_rng(0).uniform(-1, 1, (ARMS, FEATURES))
    found, expected = (
        simulate(
            explorax.make("ucb_glm", n_features=FEATURES, **settings),
            logistic(fixed_arms=jnp.asarray(arms), padded_to=columns),
            rounds=ROUNDS,
            instances=50,
        )
        for columns in (5, None)
    )
    np.testing.assert_array_equal(found.digest, expected.digest)
    np.testing.assert_array_equal(found.regret, expected.regret)
    np.testing.assert_array_equal(found.reward, expected.reward)


def test_changing_arms():
    policy = explorax.make("ucb_glm", capacity=60)
    found = simulate(policy, CHANGING, rounds=60, instances=4)
    assert np.all(found.unconverged == 0)
    assert np.all(np.diff(found.regret, axis=1) >= 0)
    assert_same(part(found, [2, 3]), simulate(policy, CHANGING, rounds=60, instances=2, first=2))


def test_a_memory_too_short_is_refused_before_playing():
    told = []
    with pytest.raises(HistoryFull, match=r"rounds must be at most 60, .*, got 61\. Build the policy with capacity=61"):
        simulate(explorax.make("ucb_glm", capacity=60), CHANGING, rounds=61, instances=1, progress=told.append)
    assert told == []


def test_a_memory_that_forgets_is_not_refused():
    policy = explorax.make("ucb_glm", capacity=60, when_full="forget")
    assert simulate(policy, CHANGING, rounds=120, instances=1, chunk=60).rounds[-1] == 120


def test_checkpoints_are_rounds_of_the_full_record(tsl):
    for checkpoints, spacing in ((7, "log"), ([3, 50, ROUNDS], "even")):
        found = simulate(
            explorax.make("glm_tsl"),
            WORLD,
            rounds=ROUNDS,
            instances=2,
            seed=1,
            checkpoints=checkpoints,
            spacing=spacing,
        )
        np.testing.assert_array_equal(found.regret, tsl.regret[:2, found.rounds - 1])
        np.testing.assert_array_equal(found.reward, tsl.reward[:2, found.rounds - 1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rounds": 0}, "rounds must be a whole number of at least 1, got 0"),
        ({"rounds": 10.0}, "rounds must be a whole number of at least .*, got 10.0"),
        ({"instances": 0}, "instances must be a whole number of at least 1, got 0"),
        ({"instances": True}, "instances must be a whole number of at least .*, got True"),
        ({"rounds": 3_000_000_000}, "rounds must be a whole number from 1 to 2000000000, got 3000000000"),
        ({"instances": 10**17}, "instances must be a whole number from 1 to 1000000, got 10{17}"),
        ({"seed": 2**32}, "seed must be a whole number from 0 to 4294967295, got 4294967296"),
        ({"first": 2**31}, "first must be a whole number from 0 to 2000000000"),
        ({"checkpoints": 10**15}, "checkpoints must be a whole number from 1 to 1000000"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"first": -1}, "first must be a whole number of at least 0, got -1"),
        ({"chunk": 0}, "chunk must be a whole number of at least 1, got 0"),
        ({"checkpoints": 0}, "checkpoints must be a whole number of at least 1, got 0"),
        (
            {"checkpoints": [3, 2, 10]},
            r"checkpoints must be .* numbers that increase .* to rounds=10, got \[3, 2, 10\]",
        ),
        ({"checkpoints": [3, 9]}, r"checkpoints must be .* numbers that increase .* to rounds=10, got \[3, 9\]"),
        ({"checkpoints": [0, 10]}, r"checkpoints must be .* numbers that increase .* to rounds=10, got \[0, 10\]"),
        (
            {"checkpoints": [2.5, 10]},
            r"checkpoints must be .* numbers that increase .* to rounds=10, got \[2\.5, 10\]",
        ),
        ({"checkpoints": []}, r"checkpoints must be .* numbers that increase .* to rounds=10, got \[\]"),
        ({"spacing": "lgo"}, "spacing must be one of .*, got 'lgo'. Did you mean 'log'?"),
        (
            {"environment": "logistic"},
            "environment must be an Environment, got 'logistic'. Build one with ",
        ),
        ({"policy": "glm_tsl"}, r"policy must be a Policy or a callable make\(arms, rng\), got 'glm_tsl'. Build one"),
        ({"policy": always(ARMS)}, "act must return the index of an arm, from 0 to 9, got 10 in round 0"),
        ({"policy": always(-1)}, "act must return the index of an arm, from 0 to 9, got -1 in round 0"),
        ({"policy": always(1.0)}, "act must return the index of an arm, from 0 to 9, got 1.0 in round 0"),
        ({"policy": always(True)}, "act must return the index of an arm, from 0 to 9, got True in round 0"),
    ],
)
def test_bad_input_is_named(changes, words):
    arguments = {"policy": compiled(lambda t: 0), "environment": WORLD, "rounds": 10, "instances": 1, **changes}
    with pytest.raises(InvalidArgument, match=words.replace("?", r"\?")):
        simulate(arguments.pop("policy"), arguments.pop("environment"), **arguments)


def test_means_that_are_not_finite_are_refused():
    def offer(key, instance, t):
        return WORLD.offer(key, instance, t)._replace(means=jnp.full(ARMS, jnp.nan))

    broken = WORLD._replace(offer=offer)
    with pytest.raises(InvalidArgument, match=r"not finite\. Scale down"):
        simulate(always(0), broken, rounds=3, instances=1)


def test_digest_is_fnv_of_the_arms():
    records = simulate(lambda arms, rng: Scripted(in_turn), WORLD, rounds=3, instances=1)
    expected = np.uint64(2166136261)
    for arm in range(3):
        expected = (expected ^ np.uint64(arm)) * np.uint64(16777619) & np.uint64(0xFFFFFFFF)
    assert records.digest.dtype == np.uint32
    assert records.digest[0] == expected


COUNTS = poisson(n_features=2, n_arms=ARMS)


@pytest.mark.parametrize(
    ("policy", "world", "words"),
    [
        (explorax.make("glm_tsl"), COUNTS, "got glm_tsl for bernoulli rewards. Build it with family='poisson'."),
        (glm_tsl(), COUNTS, "got one for bernoulli rewards. Build it with family='poisson' if it takes that"),
        (explorax.make("log_phe"), COUNTS, "got log_phe for bernoulli rewards. Choose another, such as glm_tsl: "),
        (explorax.make("lin_ts"), COUNTS, "got lin_ts for gaussian rewards. Choose another, such as glm_tsl: "),
        (explorax.make("glm_tsl", family="gaussian"), WORLD, "got glm_tsl for gaussian rewards. Build it with family="),
    ],
)
def test_a_policy_that_does_not_model_the_rewards_is_refused(policy, world, words):
    with pytest.raises(InvalidArgument, match=f"policy must model {world.family} rewards, .* {re.escape(words)}"):
        simulate(policy, world, rounds=10, instances=1)


def test_policies_and_environments_that_do_not_say_of_which_rewards_they_are_meet_all():
    kwargs = {"rounds": 3, "instances": 2, "checkpoints": 1}
    assert_same(simulate(compiled(lambda t: 0), COUNTS, **kwargs), simulate(always(0), COUNTS, **kwargs))
    check_family(explorax.make("uniform"), COUNTS.family)
    check_family(explorax.make("glm_tsl"), COUNTS._replace(family=None).family)
    check_family(explorax.make("lin_ts"), WORLD.family)


def test_a_program_that_is_compiled_ahead_is_not_compiled_again():
    def compiled_by(call):
        before = len(COMPILED)
        call()
        return len(COMPILED) - before

    schedule, instances = check_schedule(20, 5, "even", None, None), range(BLOCK)

    def job(arms):
        return Job(glm_tsl(), logistic(n_features=3, n_arms=arms))

    def play(one):
        return simulate_together([one], schedule, instances, 0)[0]

    cold, ready = job(7), job(9)
    usual = compiled_by(lambda: play(cold))
    ahead = compiled_by(lambda: compile_ahead([ready], schedule, instances, 0))
    assert ahead >= 1
    assert compiled_by(lambda: play(ready)) <= usual - 1
    assert compiled_by(lambda: compile_ahead([ready], schedule, instances, 0)) == 0
    assert_same(play(ready), simulate(ready.policy, ready.environment, rounds=20, instances=BLOCK, checkpoints=5))


def test_jobs_whose_memories_differ_are_compiled_ahead_one_by_one():
    environment = logistic(n_features=2, n_arms=4)
    jobs = [Job(glm_tsl(window=window), environment) for window in (5, 9)]
    schedule, instances = check_schedule(10, 5, "even", None, None), range(BLOCK)
    assert share_program(*jobs)
    compile_ahead(jobs, schedule, instances, 0)
    before = len(COMPILED)
    compile_ahead(jobs, schedule, instances, 0)
    assert len(COMPILED) == before
