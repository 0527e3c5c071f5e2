"""What every registered policy must do, for fixed and changing arms.

The tests of a policy share what they look at: its rounds one by one in plain calls (`alone`), and the same rounds
beside hostile ones in one compiled batch of scans (`together`).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax.builders import setting_names
from explorax.glm import families
from explorax.glm.fit import fit
from explorax.glm.problem import hessian, posed
from explorax.policies._template import boltzmann
from explorax.policies.base import Action, Policy
from explorax.policies.glm_state import GLMState
from explorax.registry import plays
from tests.helpers import assert_same
from tests.statistics import FALSE_ALARM

ARMS, FEATURES, CAPACITY = 8, 3, 64
ROUNDS = 80  # the memory is full before they end
# What a policy is given of this, if it takes it: small networks, and a memory that is soon full.
SMALL = {"hidden": (5,), "batch": 4, "capacity": CAPACITY, "when_full": "forget", "refresh": 4}
# These explore for as long as the GLM policies then.
LIKE_GLM = {"rep_glm_fpl": {"percent": 10, "horizon": 10 * FEATURES}, "sgd_ts": {"batch": FEATURES}}
# ReLU units that are dead on all arms would make their scores equal.
OWN = LIKE_GLM | {"deep_ensemble": {"activation": "tanh"}}
# Other policies learn as these do, or in a network, whose families differ in their loss alone; what they do with what
# they have learned is the same in every family.
IN_EVERY_FAMILY = ("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm")
FAMILIES = {
    name: entry.families if name in IN_EVERY_FAMILY else entry.families[:1]
    for name, entry in explorax.list_policies().items()
} | {"template": ("bernoulli",)}
CASES = [(name, family, kind) for name in FAMILIES for family in FAMILIES[name] for kind in ("fixed", "changing")]
# What does not depend on the rewards' law is checked in one family: each policy's first.
FIRST = [case for case in CASES if case[1] == FAMILIES[case[0]][0]]
# float32 is where numbers get hard; where arms change, a state has JAX's default, double precision here.
PRECISE = [(*case, "float64") for case in CASES] + [(*case, "float32") for case in CASES if case[2] == "fixed"]


def over(cases, names=("name", "family", "kind")):
    return pytest.mark.parametrize(names, cases)


every_case, first_family = over(CASES), over(FIRST)
each_precision = over(PRECISE, ("name", "family", "kind", "dtype"))


@functools.cache
def build(name, family):
    builder = boltzmann if name == "template" else explorax.list_policies()[name].builder()
    wanted = {"family": family, **SMALL, **OWN.get(name, {})}
    return builder(**{name: wanted[name] for name in setting_names(builder) if name in wanted})


@functools.cache
def arms_at(t, kind, dtype=float):
    seed = t if kind == "changing" else 0
    return jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, (ARMS, FEATURES)), dtype)


def start(policy, kind, dtype=float):
    return policy.init(arms_at(0, kind, dtype) if kind == "fixed" else FEATURES)


@functools.cache
def reward_at(t, family):
    score = jnp.asarray(np.random.default_rng(1000 + t).normal())
    return float(families.get(family).sample(jax.random.key(t), score))


class Alone(NamedTuple):
    """A policy, its states before each round and after the last, and its actions."""

    policy: Policy
    states: list
    actions: list[Action]


@functools.cache
def alone(name, family, kind):
    """Rounds of plain calls."""
    policy = build(name, family)
    states, actions = [start(policy, kind)], []
    for t in range(ROUNDS):
        arms = arms_at(t, kind)
        action = policy.act(jax.random.key(t), states[-1], arms, t)
        states.append(policy.update(states[-1], action.arm, arms[action.arm], reward_at(t, family)))
        actions.append(action)
    return Alone(policy, states, actions)


HOSTILE = {
    "bernoulli": (lambda t: 0.0, lambda t: 1.0, lambda t: t % 2.0, lambda t: (t // 40) % 2.0),
    "poisson": (lambda t: 0.0, lambda t: 1e6, lambda t: 1e6 * (t % 2), lambda t: 10.0 ** (t % 7)),
    "gaussian": (lambda t: -1e6, lambda t: 1e6, lambda t: 1e6 * (-1.0) ** t, lambda t: 10.0 ** (t % 7)),
}
# After the hostile streams of rewards come the ordinary one, of `alone`, and one where few arms are on offer.
ORDINARY, MASKED = 4, 5


@functools.cache
def few_on_offer():
    masks = np.random.default_rng(4).random((ROUNDS, ARMS)) < 0.3
    masks[:, 6] |= ~masks.any(axis=1)
    return masks


@functools.cache
def together(name, family, kind, dtype):
    """Final states and all actions of the streams, in one batch of scans."""
    policy = build(name, family)
    ordinary = [reward_at(t, family) for t in range(ROUNDS)]
    hostile = [[stream(t) for t in range(ROUNDS)] for stream in HOSTILE[family]]
    rewards = jnp.asarray([*hostile, ordinary, ordinary], dtype)
    masks = np.ones((len(rewards), ROUNDS, ARMS), bool)
    masks[MASKED] = few_on_offer()
    arms = jnp.stack([arms_at(t, kind, dtype) for t in range(ROUNDS)])

    def play(rewards, masks):
        def step(state, inputs):
            t, arms, reward, mask = inputs
            action = policy.act(jax.random.key(t), state, arms, t, mask)
            return policy.update(state, action.arm, arms[action.arm], reward), action

        return jax.lax.scan(step, start(policy, kind, dtype), (jnp.arange(ROUNDS), arms, rewards, masks))

    return jax.jit(jax.vmap(play))(rewards, jnp.asarray(masks))


@first_family
def test_pure_and_deterministic(name, family, kind):
    policy, states, actions = alone(name, family, kind)
    state, arms = states[6], arms_at(6, kind)
    before = jax.tree.map(np.array, state)
    again = policy.act(jax.random.key(6), state, arms, 6)
    assert_same(again, actions[6])
    assert_same(policy.update(state, again.arm, arms[again.arm], reward_at(6, family)), states[7])
    assert_same(state, before)


@first_family
def test_randomized_exactly_if_the_registry_says_so(name, family, kind):
    policy, states, _ = alone(name, family, kind)
    randomized = name == "template" or explorax.list_policies()[name].randomized == "yes"
    scores = [policy.act(jax.random.key(seed), states[5], arms_at(9, kind), 9).scores for seed in range(40)]
    assert (len({tuple(np.asarray(s)) for s in scores}) > 1) == randomized


@each_precision
def test_shapes_and_dtypes(name, family, kind, dtype):
    state, actions = together(name, family, kind, dtype)
    streams = len(actions.arm)
    assert jnp.issubdtype(actions.arm.dtype, jnp.integer)
    assert np.all((actions.arm >= 0) & (actions.arm < ARMS))
    assert actions.scores.shape == (streams, ROUNDS, ARMS)
    assert actions.scores.dtype == dtype
    assert actions.forced.dtype == actions.converged.dtype == bool
    fresh = start(build(name, family), kind, dtype)
    for old, new in zip(jax.tree.leaves(fresh), jax.tree.leaves(state), strict=True):
        assert ((streams, *old.shape), old.dtype) == (new.shape, new.dtype)
        assert not jnp.issubdtype(new.dtype, jnp.floating) or new.dtype == dtype


@first_family
def test_arguments_of_another_precision_do_not_change_the_state(name, family, kind):
    policy, states, _ = alone(name, family, kind)
    narrow = jax.ShapeDtypeStruct((FEATURES,), np.float32)
    updated = jax.eval_shape(policy.update, states[4], 2, narrow, jax.ShapeDtypeStruct((), np.float32))
    for old, new in zip(jax.tree.leaves(states[4]), jax.tree.leaves(updated), strict=True):
        assert old.dtype == new.dtype


@every_case
def test_batches_of_scans_are_plain_loops(name, family, kind):
    _, states, expected = alone(name, family, kind)
    state, actions = jax.tree.map(lambda leaf: leaf[ORDINARY], together(name, family, kind, "float64"))
    assert actions.arm.tolist() == [int(action.arm) for action in expected]
    scores = np.stack([action.scores for action in expected])
    np.testing.assert_allclose(actions.scores, scores, rtol=1e-7, atol=1e-9)
    last = states[-1]
    if keeps_curvature(last):
        # A batch builds the curvature for all as soon as one needs it: it may be newer, and must be right in both.
        for found in (state, last):
            assert_kept_curvature(found, family)
        state, last = without_kept_curvature(state), without_kept_curvature(last)
    for got, want in zip(jax.tree.leaves(state), jax.tree.leaves(last), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


def test_glm_policies_keep_the_curvature_of_fixed_arms():
    kept = {
        name for name, family, kind in FIRST if kind == "fixed" and keeps_curvature(start(build(name, family), kind))
    }
    # The others have no such curvature, or one of their own.
    assert kept == {
        *("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm", "evill", "rand_ucb", "log_phe", "pg_ts", "glm_ensemble"),
        *("lin_phe", "greedy", "epsilon_greedy", "template"),
    }


def glm_part(state):
    """The state of the GLM inside, where there is one."""
    return getattr(state, "glm", state)


def keeps_curvature(state):
    """Whether a state is that of a GLM policy whose memory keeps a curvature from round to round."""
    return getattr(getattr(glm_part(state), "memory", None), "warm", None) is not None


def without_kept_curvature(state):
    glm = glm_part(state)
    warm = glm.memory.warm._replace(root=None, built=None, age=None)
    without = glm._replace(memory=glm.memory._replace(warm=warm))
    return without if glm is state else state._replace(glm=without)


def assert_kept_curvature(state, family):
    """W Wᵀ is H⁻¹ up to e^±0.3, the most that a policy lets it be off."""
    glm = glm_part(state)
    root = glm.memory.warm.root
    curvature = hessian(families.get(family), posed(glm.memory.past, ridge=glm.ridge), glm.theta_hat)
    ratios = np.linalg.eigvalsh(root.T @ curvature @ root)
    assert np.exp(-0.3) <= ratios.min() <= ratios.max() <= np.exp(0.3)


@first_family
def test_arms_may_come_in_any_order(name, family, kind):
    """Whoever draws nothing pulls the same arms in any order of them; whoever draws, at least as often."""
    policy = build(name, family)
    order = np.random.default_rng(3).permutation(ARMS)
    if not pulls_the_same_arms(policy, family, kind, order):
        assert name == "template" or explorax.list_policies()[name].randomized == "yes"
        for t in (0, 50):  # forced, and free
            assert_pulls_as_often(policy, kind, order, t)


def pulls_the_same_arms(policy, family, kind, order):
    """Whether a policy has the same scores and pulls the same arms where they come in another order."""
    state = start(policy, kind)
    shuffled = policy.init(arms_at(0, kind)[order]) if kind == "fixed" else state
    for t in range(10):
        arms = arms_at(t, kind)
        action = policy.act(jax.random.key(t), state, arms, t)
        mirrored = policy.act(jax.random.key(t), shuffled, arms[order], t)
        same = np.allclose(mirrored.scores, action.scores[order], rtol=1e-7, atol=1e-9)
        if not (same and order[mirrored.arm] == action.arm):
            return False
        reward = reward_at(t, family)
        state = policy.update(state, action.arm, arms[action.arm], reward)
        shuffled = policy.update(shuffled, jnp.argsort(order)[action.arm], arms[action.arm], reward)
    return True


def assert_pulls_as_often(policy, kind, order, t):
    """Noise may belong to an arm's place: chi-square tests of arm frequencies (alarm 1e-6)."""
    keys = jax.random.split(jax.random.key(5), 4000)
    arms = arms_at(50, kind)
    counts = []
    for offered in (arms, arms[order]):
        state = policy.init(offered if kind == "fixed" else FEATURES)
        for arm in (0, 1, 2, 0, 1, 2):  # the same rewards, so that the estimate prefers one of the arms
            place = arm if offered is arms else int(np.argsort(order)[arm])
            state = policy.update(state, place, arms[arm], float(arm == 1))
        pulled = jax.vmap(policy.act, (0, None, None, None))(keys, state, offered, t).arm
        counts.append(np.bincount(pulled, minlength=ARMS))
    table = np.stack([counts[0][order], counts[1]])
    table = table[:, table.sum(axis=0) > 0]
    if table.shape[1] == 1:  # the same arm every time, in both
        return
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@first_family
def test_only_arms_on_offer_are_pulled(name, family, kind):
    policy, states, _ = alone(name, family, kind)
    pulled = together(name, family, kind, "float64")[1].arm[MASKED]
    assert few_on_offer()[np.arange(ROUNDS), pulled].all()
    for t in (0, 1, 9):  # forced rounds too
        arms, key = arms_at(t, kind), jax.random.key(100 + t)
        for mask in few_on_offer()[:20]:
            assert mask[policy.act(key, states[5], arms, t, mask).arm]
        free, given = (policy.act(key, states[5], arms, t, mask) for mask in (None, np.ones(ARMS, bool)))
        assert_same(free, given)


@over([case for case in FIRST if case[2] == "changing"])
def test_arms_not_on_offer_do_not_matter(name, family, kind):
    """Where arms change, rows after those on offer are padding: the same arms are pulled with and without."""
    policy, states, _ = alone(name, family, kind)
    count = 2  # fewer than the arms that are forced
    for t in (0, 1, 2, 9):
        arms = arms_at(7, kind)[:count]
        padded = jnp.zeros((ARMS, FEATURES)).at[:count].set(arms)
        for key in jax.random.split(jax.random.key(t), 5):
            plain = policy.act(key, states[5], arms, t)
            assert policy.act(key, states[5], padded, t, np.arange(ARMS) < count).arm == plain.arm


@each_precision
def test_hostile_rewards_leave_finite_states(name, family, kind, dtype):
    state, actions = together(name, family, kind, dtype)
    for leaf in jax.tree.leaves((state, actions)):
        assert np.all(np.isfinite(leaf))
    # Of hostile rewards float32 need not be sure.
    assert np.all(actions.converged[0 if dtype == "float64" else ORDINARY :])


@every_case
def test_one_round_costs_the_same_at_any_time(name, family, kind):
    # A state has the same form early and late, so the compiled program, and every operation outside data-dependent
    # loops, is the same …
    _, states, _ = alone(name, family, kind)
    early, late = states[3], states[CAPACITY]
    assert jax.tree.map(jax.typeof, early) == jax.tree.map(jax.typeof, late)
    # … and the only such loop, the Newton iteration, takes no more steps late than early.
    early, late = glm_part(early), glm_part(late)
    if isinstance(early, GLMState) and early.memory.past is not None:
        assert newton_steps(late, family) <= newton_steps(early, family)


def newton_steps(state, family):
    """Steps of the refit after one more reward of the arm seen most."""
    past = state.memory.past
    arm = int(jnp.argmax(past.counts))
    more = past._replace(counts=past.counts.at[arm].add(1), sums=past.sums.at[arm].add(1))
    return int(fit(family, more, start=state.theta_hat).iterations)


@first_family
def test_the_law_of_stationary_policies_does_not_change_with_time(name, family, kind):
    """With the same key, state and arms; time then has no other way into the law of an arm."""
    policy, states, _ = alone(name, family, kind)
    if name in ("lin_ts", "lin_ucb", "glm_tsl", "glm_fpl"):
        assert policy.stationary
    if policy.stationary:
        assert policy.redraw is None
        later = [policy.act(jax.random.key(5), states[5], arms_at(9, kind), t) for t in (9, 10, 1000)]
        assert not any(bool(action.forced) for action in later)
        for action in later[1:]:
            assert_same(action, later[0])


def test_the_theory_of_lin_ts_explores_more_with_time():
    policy = explorax.lin_ts(design="theory", delta=0.1)
    state, arms = policy.init(FEATURES), arms_at(0, "fixed")
    early, late = (policy.act(jax.random.key(5), state, arms, t).scores for t in (9, 1000))
    assert not policy.stationary
    assert not np.array_equal(early, late)


@first_family
def test_forced_exploration_ends_though_no_reward_comes(name, family, kind):
    policy = build(name, family)
    state = start(policy, kind)
    actions = [policy.act(jax.random.key(t), state, arms_at(t, kind), t) for t in range(FEATURES + 3)]
    explores = isinstance(glm_part(state), GLMState) or name in LIKE_GLM
    assert [bool(a.forced) for a in actions] == [explores and t < FEATURES for t in range(FEATURES + 3)]
    assert all(np.all(np.isfinite(a.scores)) for a in actions)
    if explores and kind == "fixed" and name != "rep_glm_fpl":
        forced = np.stack([arms_at(0, kind)[a.arm] for a in actions[:FEATURES]])
        assert np.linalg.matrix_rank(forced) == FEATURES


BASELINES = ("lin_ts", "lin_ucb", "lin_phe")  # which are played on rewards of 0 and 1 though they do not model these


def test_policies_play_the_families_that_they_model_and_linear_ones_rewards_of_0_and_1_too():
    for name, entry in explorax.list_policies().items():
        for family in families.FAMILIES:
            policy = explorax.make(name, **entry.for_family(family))
            expected = family in entry.families or (family == "bernoulli" and name in BASELINES)
            assert plays(policy, family) == expected, (name, family)
            assert (policy.families is None) == (name == "uniform")


@pytest.mark.parametrize("name", ["glm_tsl", "log_phe", "ofuglb_e"])
def test_room_for_rewards_that_do_not_come_makes_no_difference(name):
    """Rows are cut where there is room for more than 256 rewards, and a batch of states has numbers of its own."""
    environment = explorax.environments.logistic(n_features=3, n_arms=5, arms_change=True)
    played = [
        explorax.simulate(explorax.make(name, capacity=capacity), environment, rounds=40, instances=3, seed=0)
        for capacity in (40, 300)
    ]
    np.testing.assert_array_equal(played[0].digest, played[1].digest)
