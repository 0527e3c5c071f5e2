"""What every registered policy must do, for fixed and changing arms, in every family it models."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax.glm import families
from explorax.glm.fit import fit, hessian, posed
from explorax.glm.history import Grouped, Rows
from explorax.policies._template import boltzmann
from explorax.policies.glm_learner import GLMState
from explorax.registry import setting_names
from tests.statistics import FALSE_ALARM

ARMS, FEATURES, CAPACITY = 8, 3, 64
# What a policy is given of this, if it takes it: small networks, and a memory that is soon full.
SMALL = {"hidden": (5,), "batch": 4, "capacity": CAPACITY, "when_full": "forget", "refresh": 4}
# These explore for as long as the GLM policies then.
LIKE_GLM = {"rep_glm_fpl": {"percent": 10, "horizon": 10 * FEATURES}, "sgd_ts": {"batch": FEATURES}}
# ReLU units that are dead on all arms would make their scores equal.
OWN = LIKE_GLM | {"deep_ensemble": {"activation": "tanh"}}
# Other policies learn as these do, or in a network, whose families differ in their loss alone; what they do with what
# they have learned is the same in every family.
IN_EVERY_FAMILY = ("glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm")
# These are rules on the memory and the estimate of those: they add a decision, and only that is checked of them.
RULES = ("evill", "rand_ucb", "log_phe", "lin_phe", "pg_ts", "ecolog_ts", "ecolog_ofu", "greedy", "epsilon_greedy")
RULES += ("template",)
NOISE_BELONGS_TO_PLACES = ("uniform", "epsilon_greedy", "template", "log_phe", "lin_phe", "pg_ts", "neural_ts")


def kinds(name, family, entry):
    """Arms fixed or changing; where the state does not know the arms, or the family is not the first, fixed only."""
    knows_no_arms = name in ("lin_ts", "lin_ucb", "uniform") or "hidden" in setting_names(entry.builder())
    return ("fixed",) if knows_no_arms or family != entry.families[0] else ("fixed", "changing")


CASES = [
    (name, family, kind)
    for name, entry in explorax.policies().items()
    for family in (entry.families if name in IN_EVERY_FAMILY else entry.families[:1])
    for kind in kinds(name, family, entry)
] + [("template", "bernoulli", "fixed"), ("template", "bernoulli", "changing")]


def over(cases):
    """Parametrize; the tests of one policy go to one process, which then compiles it once."""
    grouped = [pytest.param(*case, marks=pytest.mark.xdist_group("-".join(case))) for case in cases]
    return pytest.mark.parametrize(("name", "family", "kind"), grouped)


# What does not depend on the rewards' law is checked in one family: each policy's first.
FIRST = [case for case in CASES if case[0] == "template" or case[1] == explorax.policies()[case[0]].families[0]]
first_family = over(FIRST)
# What masks do to a memory of changing arms is checked in the paper's policies, of others with fixed arms.
in_one_kind = over([case for case in FIRST if case[2] == "fixed" or case[0] in IN_EVERY_FAMILY])
# What batches and precisions do to a memory is checked for each memory.
each_memory = over(
    [case for case in FIRST if case[0] not in RULES and (case[2] == "fixed" or case[0] in IN_EVERY_FAMILY)]
)


def precisions(name, family, kind):
    """float32 is where numbers get hard; where arms change, a state has JAX's default, double precision here."""
    if kind == "changing":
        return ("float64",)
    both = name in IN_EVERY_FAMILY and family == "bernoulli"
    return ("float32", "float64") if both else ("float32",)


each_precision = pytest.mark.parametrize(
    ("name", "family", "kind", "dtype"),
    [
        pytest.param(*case, dtype, marks=pytest.mark.xdist_group("-".join(case)))
        for case in CASES
        if case[0] not in RULES or case[2] == "fixed"
        for dtype in precisions(*case)
    ],
)


@functools.cache
def build(name, family, **settings):
    builder = boltzmann if name == "template" else explorax.policies()[name].builder()
    wanted = {"family": family, **SMALL, **OWN.get(name, {})}
    return builder(**{name: wanted[name] for name in setting_names(builder) if name in wanted}, **settings)


def arms_at(t, kind, dtype=float):
    seed = t if kind == "changing" else 0
    return jnp.asarray(np.random.default_rng(seed).uniform(-1, 1, (ARMS, FEATURES)), dtype)


def start(policy, kind, dtype=float):
    return policy.init(arms_at(0, kind, dtype) if kind == "fixed" else FEATURES)


def reward_at(t, family):
    score = jnp.asarray(np.random.default_rng(1000 + t).normal())
    return float(families.get(family).sample(jax.random.key(t), score))


def played(name, family, kind, rounds, dtype=float, **settings):
    """A policy and its state after some rounds of plain calls."""
    policy = build(name, family, **settings)
    state = start(policy, kind, dtype)
    for t in range(rounds):
        arms = arms_at(t, kind, dtype)
        arm = policy.act(jax.random.key(t), state, arms, t).arm
        state = policy.update(state, arm, arms[arm], reward_at(t, family))
    return policy, state


def assert_same(first, second):
    assert jax.tree.structure(first) == jax.tree.structure(second)
    jax.tree.map(np.testing.assert_array_equal, first, second)


@first_family
def test_pure_and_deterministic(name, family, kind):
    policy, state = played(name, family, kind, 6)
    before = jax.tree.map(np.array, state)
    arms = arms_at(6, kind)
    first, second = (policy.act(jax.random.key(6), state, arms, 6) for _ in range(2))
    assert_same(first, second)
    after = [policy.update(state, first.arm, arms[first.arm], 1.0) for _ in range(2)]
    assert_same(*after)
    assert_same(state, before)


@first_family
def test_randomized_exactly_if_the_registry_says_so(name, family, kind):
    policy, state = played(name, family, kind, 5)
    randomized = name == "template" or explorax.policies()[name].randomized == "yes"
    scores = [policy.act(jax.random.key(seed), state, arms_at(9, kind), 9).scores for seed in range(40)]
    assert (len({tuple(np.asarray(s)) for s in scores}) > 1) == randomized


@each_precision
def test_shapes_and_dtypes(name, family, kind, dtype):
    policy, state = played(name, family, kind, 4, dtype)
    action = policy.act(jax.random.key(0), state, arms_at(4, kind, dtype), 4)
    assert action.arm.shape == ()
    assert jnp.issubdtype(action.arm.dtype, jnp.integer)
    assert 0 <= int(action.arm) < ARMS
    assert action.scores.shape == (ARMS,)
    assert action.scores.dtype == dtype
    assert action.forced.dtype == action.converged.dtype == bool
    assert action.converged
    fresh = start(policy, kind, dtype)
    for old, new in zip(jax.tree.leaves(fresh), jax.tree.leaves(state), strict=True):
        assert (old.shape, old.dtype) == (new.shape, new.dtype)
        assert not jnp.issubdtype(new.dtype, jnp.floating) or new.dtype == dtype


@each_memory
def test_arguments_of_another_precision_do_not_change_the_state(name, family, kind):
    policy, state = played(name, family, kind, 4)
    narrow = np.asarray(arms_at(4, "fixed"), np.float32)
    if kind == "fixed":
        state = policy.init(jnp.asarray(narrow, float))
    updated = policy.update(state, 2, narrow[2], np.float32(1))
    for old, new in zip(jax.tree.leaves(state), jax.tree.leaves(updated), strict=True):
        assert old.dtype == new.dtype


@each_memory
def test_batched_and_plain_calls_agree(name, family, kind):
    policy, state = played(name, family, kind, 7)
    arms = arms_at(7, kind)
    keys = jax.random.split(jax.random.key(1), 5)
    plain = [policy.act(key, state, arms, 7) for key in keys]
    batched = jax.vmap(policy.act, (0, None, None, None))(keys, state, arms, 7)
    for i in range(5):
        np.testing.assert_allclose(batched.scores[i], plain[i].scores, rtol=1e-8, atol=1e-10)
        assert plain[i].arm == batched.arm[i]
    pulled = jnp.arange(ARMS)
    updated = jax.vmap(policy.update, (None, 0, 0, None))(state, pulled, arms, 1.0)
    for arm in range(ARMS):
        alone, in_batch = (
            policy.update(state, arm, arms[arm], 1.0),
            jax.tree.map(lambda leaf, arm=arm: leaf[arm], updated),
        )
        # A batch builds the kept curvature for all as soon as one needs it: it may be newer, and must be right in both.
        for found in (alone, in_batch):
            assert_kept_curvature(found, family)
        expected = jax.tree.leaves(without_kept_curvature(alone))
        for got, want in zip(jax.tree.leaves(without_kept_curvature(in_batch)), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def glm_part(state):
    """The state of the GLM inside, where there is one."""
    return getattr(state, "glm", state)


def without_kept_curvature(state):
    glm = glm_part(state)
    if getattr(glm, "warm", None) is None:
        return state
    without = glm._replace(warm=glm.warm._replace(root=None, built=None, age=None))
    return without if glm is state else state._replace(glm=without)


def assert_kept_curvature(state, family):
    """W Wᵀ is H⁻¹ up to e^±0.3, the most that a policy lets it be off."""
    state = glm_part(state)
    if getattr(state, "warm", None) is None:
        return
    curvature = hessian(families.get(family), posed(state.history, ridge=state.ridge), state.theta_mle)
    ratios = np.linalg.eigvalsh(state.warm.root.T @ curvature @ state.warm.root)
    assert np.exp(-0.3) <= ratios.min() <= ratios.max() <= np.exp(0.3)


@over([case for case in FIRST if case[0] not in RULES])
def test_a_scan_is_a_loop(name, family, kind):
    rounds = 12
    policy, expected = played(name, family, kind, rounds)
    arms = jnp.stack([arms_at(t, kind) for t in range(rounds)])
    keys = jnp.stack([jax.random.key(t) for t in range(rounds)])
    rewards = jnp.asarray([reward_at(t, family) for t in range(rounds)])

    def step(state, inputs):
        t, key, offered, reward = inputs
        arm = policy.act(key, state, offered, t).arm
        return policy.update(state, arm, offered[arm], reward), arm

    state, _ = jax.jit(lambda s: jax.lax.scan(step, s, (jnp.arange(rounds), keys, arms, rewards)))(start(policy, kind))
    for got, want in zip(jax.tree.leaves(state), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@first_family
def test_arms_may_come_in_any_order(name, family, kind):
    policy = build(name, family)
    order = np.random.default_rng(3).permutation(ARMS)
    if name in NOISE_BELONGS_TO_PLACES:
        return equivariant_in_law(policy, kind, order)
    state = start(policy, kind)
    shuffled = policy.init(arms_at(0, kind)[order]) if kind == "fixed" else state
    for t in range(10):
        arms = arms_at(t, kind)
        action = policy.act(jax.random.key(t), state, arms, t)
        mirrored = policy.act(jax.random.key(t), shuffled, arms[order], t)
        if not (action.forced and name == "rep_glm_fpl"):  # whose exploration is uniform over places
            assert order[mirrored.arm] == action.arm
        np.testing.assert_allclose(mirrored.scores, action.scores[order], rtol=1e-7, atol=1e-9)
        reward = reward_at(t, family)
        state = policy.update(state, action.arm, arms[action.arm], reward)
        shuffled = policy.update(shuffled, jnp.argsort(order)[action.arm], arms[action.arm], reward)
    return None


def equivariant_in_law(policy, kind, order):
    """Noise of these policies belongs to an arm's place: chi-square tests of arm frequencies (alarm 1e-6)."""
    keys = jax.random.split(jax.random.key(5), 4000)
    arms = arms_at(50, kind)
    counts = []
    for offered in (arms, arms[order]):
        state = policy.init(offered if kind == "fixed" else FEATURES)
        for arm in (0, 1, 2, 0, 1, 2):  # the same rewards, so that the estimate prefers one of the arms
            place = arm if offered is arms else int(np.argsort(order)[arm])
            state = policy.update(state, place, arms[arm], float(arm == 1))
        pulled = jax.vmap(policy.act, (0, None, None, None))(keys, state, offered, 50).arm
        counts.append(np.bincount(pulled, minlength=ARMS))
    table = np.stack([counts[0][order], counts[1]])
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > FALSE_ALARM


@in_one_kind
def test_only_arms_on_offer_are_pulled(name, family, kind):
    policy, state = played(name, family, kind, 5)
    arms, keys = arms_at(5, kind), jax.random.split(jax.random.key(2), 20)
    masks = np.random.default_rng(4).random((20, ARMS)) < 0.3
    masks[:, 6] |= ~masks.any(axis=1)
    for t in (0, 1, 9):  # forced rounds too
        pulled = jax.vmap(policy.act, (0, None, None, None, 0))(keys, state, arms, t, jnp.asarray(masks))
        assert masks[np.arange(20), pulled.arm].all()
        free, given = (policy.act(keys[0], state, arms, t, offered) for offered in (None, np.ones(ARMS, bool)))
        assert_same(free, given)


@over((name, family, "changing") for name, family, kind in FIRST if kind == "fixed")
def test_arms_not_on_offer_do_not_matter(name, family, kind):
    """Where arms change, rows after those on offer are padding: the same arms are pulled with and without."""
    policy, state = played(name, family, kind, 5)
    count = 2  # fewer than the arms that are forced
    for t in (0, 1, 2, 9):
        arms = arms_at(7, kind)[:count]
        padded = jnp.zeros((ARMS, FEATURES)).at[:count].set(arms)
        for key in jax.random.split(jax.random.key(t), 5):
            plain = policy.act(key, state, arms, t)
            assert policy.act(key, state, padded, t, np.arange(ARMS) < count).arm == plain.arm


STREAMS = {
    "bernoulli": (lambda t: 0.0, lambda t: 1.0, lambda t: t % 2.0, lambda t: (t // 40) % 2.0),
    "poisson": (lambda t: 0.0, lambda t: 1e6, lambda t: 1e6 * (t % 2), lambda t: 10.0 ** (t % 7)),
    "gaussian": (lambda t: -1e6, lambda t: 1e6, lambda t: 1e6 * (-1.0) ** t, lambda t: 10.0 ** (t % 7)),
}


@each_precision
def test_adversarial_rewards_leave_finite_states(name, family, kind, dtype):
    policy, rounds = build(name, family), 80
    arms = jnp.stack([arms_at(t, kind, dtype) for t in range(rounds)])
    streams = jnp.asarray([[stream(t) for t in range(rounds)] for stream in STREAMS[family]], dtype)

    def play(rewards):
        def step(state, inputs):
            t, offered, reward = inputs
            action = policy.act(jax.random.key(t), state, offered, t)
            return policy.update(state, action.arm, offered[action.arm], reward), action

        return jax.lax.scan(step, start(policy, kind, dtype), (jnp.arange(rounds), arms, rewards))

    state, actions = jax.jit(jax.vmap(play))(streams)
    for leaf in jax.tree.leaves((state, actions)):
        assert np.all(np.isfinite(leaf))
    assert np.all(actions.converged)


@each_memory
def test_one_round_costs_the_same_at_any_time(name, family, kind):
    # The compiled program, and so every operation outside data-dependent loops, is the same early and late …
    policy, early = played(name, family, kind, 3)
    _, late = played(name, family, kind, CAPACITY)
    arms = arms_at(0, kind)

    def programs(state, t):
        act = jax.jit(policy.act).lower(jax.random.key(0), state, arms, t).as_text()
        return act, jax.jit(policy.update).lower(state, 0, arms[0], 1.0).as_text()

    assert programs(early, 3) == programs(late, CAPACITY)
    # … and the only such loop, the Newton iteration, takes no more steps late than early.
    early, late = glm_part(early), glm_part(late)
    if isinstance(early, GLMState) and isinstance(early.history, Grouped | Rows):
        assert newton_steps(late, family) <= newton_steps(early, family)


def newton_steps(state, family):
    """Steps of the refit after one more reward of the arm seen most."""
    history = state.history
    arm = int(jnp.argmax(history.counts))
    more = history._replace(counts=history.counts.at[arm].add(1), sums=history.sums.at[arm].add(1))
    return int(fit(family, more, start=state.theta_mle).iterations)


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
