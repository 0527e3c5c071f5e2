"""Policies that forget: their estimates against SciPy on the explicitly weighted loss, their scores against formulas in
NumPy, and their regret where the parameter changes.

Laws and regrets are tested with fixed seeds; each test's false-alarm rate is FALSE_ALARM = 1e-6.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, special, stats

import explorax
from explorax.environments.base import Environment, Offer
from explorax.glm.memory.base import GRAM_RIDGE
from tests.problems import FAMILIES, draw_rewards
from tests.statistics import FALSE_ALARM, assert_standard_normal

ARMS, FEATURES, ROUNDS, RIDGE, WIDTH = 6, 3, 60, 0.5, 0.7
FORGETTING = {"discount": {"discount": 0.95}, "window": {"window": 20}}
BOTH = pytest.mark.parametrize("how", FORGETTING)
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
FIXED = RNG.uniform(-1, 1, (ARMS, FEATURES))
ORDER = RNG.integers(0, ARMS, ROUNDS)
ROWS = {"fixed": FIXED[ORDER], "changing": RNG.uniform(-1, 1, (ROUNDS, FEATURES))}
MEANS = {"bernoulli": special.expit, "gaussian": lambda s: s, "poisson": np.exp}
SLOPES = {
    "bernoulli": lambda s: special.expit(s) * special.expit(-s),
    "gaussian": np.ones_like,
    "poisson": np.exp,
}


def weights_after(count, discount=1.0, window=None):
    """What each of so many rewards weighs after the last of them."""
    age = np.arange(count)[::-1]
    return discount**age * (age < (window or count))


def estimate(family, x, rewards, weights):
    """argmin Σ w [b(xᵀθ) − y xᵀθ] + ½ λ ‖θ‖², the root of its gradient, by SciPy."""

    def gradient(theta):
        return (weights * (MEANS[family](x @ theta) - rewards)) @ x + RIDGE * theta

    def hessian(theta):
        return (x.T * (weights * SLOPES[family](x @ theta))) @ x + RIDGE * np.eye(FEATURES)

    theta = optimize.root(gradient, np.zeros(FEATURES), jac=hessian, tol=1e-13).x
    assert np.max(np.abs(gradient(theta))) < 1e-10
    return theta


def rewards_of(family, kind):
    rng = np.random.default_rng(1)
    return draw_rewards(rng, family, ROWS[kind] @ rng.normal(size=FEATURES))


@functools.cache
def policy(name, **settings):
    kinds = {} if name.startswith("lin") else {"capacity": ROUNDS}
    return explorax.make(name, ridge=RIDGE, warmup="none", **kinds, **settings)


def start(chosen, kind):
    return chosen.init(FIXED if kind == "fixed" else FEATURES)


def learned(chosen, kind, rewards, state=None, first=0, last=ROUNDS):
    """The state after rewards number `first` up to `last`."""
    state = start(chosen, kind) if state is None else state
    for t in range(first, last):
        state = chosen.update(state, ORDER[t], ROWS[kind][t], rewards[t])
    return state


CASES = [("bernoulli", "fixed"), *((family, "changing") for family in FAMILIES)]  # tests/glm has the other fixed ones


@BOTH
@pytest.mark.parametrize(("family", "kind"), CASES)
def test_the_estimate_minimizes_the_weighted_loss_and_the_bonus_has_its_floor(family, kind, how):
    chosen = policy("ucb_glm", family=family, width=WIDTH, **FORGETTING[how])
    rewards, x = rewards_of(family, kind), ROWS[kind]
    state = start(chosen, kind)
    for first, last in ((0, 1), (1, 2), (2, 19), (19, 20), (20, 21), (21, 40), (40, 41), (41, ROUNDS)):
        state = learned(chosen, kind, rewards, state, first, last)
        weights = weights_after(last, **FORGETTING[how])
        theta = estimate(family, x[:last], rewards[:last], weights)
        np.testing.assert_allclose(state.theta_hat, theta, rtol=0, atol=1e-8)
        assert state.converged
    gram = (x.T * weights) @ x
    norms = np.sqrt(np.sum(FIXED @ np.linalg.inv(gram + RIDGE * np.eye(FEATURES)) * FIXED, axis=1))
    found = chosen.act(KEY, state, FIXED, ROUNDS).scores
    np.testing.assert_allclose(found, FIXED @ theta + WIDTH * norms, rtol=0, atol=1e-7)


@BOTH
def test_linear_policies_have_weighted_moments(how):
    chosen, rewards = policy("lin_ucb", width=WIDTH, **FORGETTING[how]), rewards_of("gaussian", "changing")
    state = start(chosen, "changing")
    for first, last in ((0, 5), (5, 21), (21, 33), (33, ROUNDS)):
        state = learned(chosen, "changing", rewards, state, first, last)
        x, weights = ROWS["changing"][:last], weights_after(last, **FORGETTING[how])
        inverse = np.linalg.inv((x.T * weights) @ x + RIDGE * np.eye(FEATURES))
        expected = FIXED @ inverse @ ((weights * rewards[:last]) @ x)
        expected += WIDTH * np.sqrt(np.sum(FIXED @ inverse * FIXED, axis=1))
        found = chosen.act(KEY, state, FIXED, last).scores
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl", "ucb_glm", "greedy", "lin_ts"])
def test_a_discount_of_one_is_no_discount(name):
    memories = [{}] if name == "lin_ts" else [{}, {"memory": "constant"}, {"memory": "refitted"}]
    for settings in memories:
        plain, given = policy(name, **settings), policy(name, discount=1, window=None, **settings)
        for kind in ("fixed", "changing"):
            states = [start(each, kind) for each in (plain, given)]
            assert jax.tree.structure(states[0]) == jax.tree.structure(states[1])
            jax.tree.map(np.testing.assert_array_equal, *states)
        if name != "lin_ts":
            assert (given.act, given.update) == (plain.act, plain.update)


@pytest.mark.parametrize(("kind", "window"), [("fixed", 20), ("changing", ROUNDS)])
def test_a_window_as_long_as_the_past_changes_nothing(kind, window):
    rewards = rewards_of("bernoulli", kind)
    settings = {"family": "bernoulli", "width": WIDTH}
    plain, windowed = (
        learned(policy("ucb_glm", **settings, **how), kind, rewards, last=window) for how in ({}, {"window": window})
    )
    np.testing.assert_allclose(windowed.theta_hat, plain.theta_hat, rtol=0, atol=1e-12)
    for name in ("counts", "sums"):
        np.testing.assert_array_equal(getattr(windowed.memory.past, name), getattr(plain.memory.past, name))
    if kind == "fixed":
        np.testing.assert_allclose(windowed.memory.warm.root, plain.memory.warm.root, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(windowed.memory.warm.age, plain.memory.warm.age)


def test_a_linear_window_as_long_as_the_past_changes_nothing():
    rewards = rewards_of("gaussian", "changing")
    plain, windowed = (learned(policy("lin_ts", **how), "changing", rewards) for how in ({}, {"window": ROUNDS}))
    for name in ("second", "cross"):
        np.testing.assert_allclose(getattr(windowed.history, name), getattr(plain.history, name), rtol=1e-12)


@BOTH
def test_further_arms_keep_what_is_left_of_the_past(how):
    chosen = policy("ucb_glm", family="bernoulli", width=WIDTH, **FORGETTING[how])
    arms, rewards = ORDER % 4, rewards_of("bernoulli", "fixed")
    state = start(chosen, "fixed")
    for t in range(ROUNDS):
        if t == 30:  # as if there had been only four arms so far, which would need a program of its own
            few = state.memory.past
            few = few._replace(features=few.features[:4], counts=few.counts[:4], sums=few.sums[:4])
            memory = state.memory._replace(past=few)
            state = chosen.extend(state._replace(memory=memory), jnp.asarray(FIXED))
            assert state.memory.whitened is None
            assert state.memory.warm.faded == 0
            arms = ORDER
        state = chosen.update(state, arms[t], FIXED[arms[t]], rewards[t])
    arms, weights = np.concatenate([ORDER[:30] % 4, ORDER[30:]]), weights_after(ROUNDS, **FORGETTING[how])
    theta = estimate("bernoulli", FIXED[arms], rewards, weights)
    np.testing.assert_allclose(state.theta_hat, theta, rtol=0, atol=1e-8)
    np.testing.assert_allclose(state.memory.past.counts, np.bincount(arms, weights, minlength=ARMS), rtol=1e-12)


@BOTH
@pytest.mark.parametrize("kind", ["fixed", "changing"])
def test_tilts_have_the_covariance_of_weighted_rewards(kind, how):
    rewards = rewards_of("bernoulli", kind)
    state = learned(policy("ucb_glm", family="bernoulli", width=WIDTH, **FORGETTING[how]), kind, rewards)
    x, weights = ROWS[kind], weights_after(ROUNDS, **FORGETTING[how])
    keys = jax.random.split(KEY, 4000)
    for prior in (0.0, RIDGE):
        tilts = jax.vmap(lambda key, prior=prior: state.memory.tilt_noise(key, prior))(keys)
        root = np.linalg.cholesky((x.T * weights) @ x + prior * np.eye(FEATURES))
        assert_standard_normal(np.linalg.solve(root, np.asarray(tilts).T).T)


@pytest.mark.parametrize(
    ("memory", "how"), [("constant", "discount"), ("refitted", "discount"), ("refitted", "window")]
)
def test_summaries_forget_too(memory, how):
    rewards, x = rewards_of("bernoulli", "changing"), ROWS["changing"]
    chosen = policy("ucb_glm", memory=memory, width=WIDTH, **FORGETTING[how])
    state = learned(chosen, "changing", rewards)
    weights = weights_after(ROUNDS, **FORGETTING[how])
    if how == "window":  # what came since the last refit was added, and nothing taken out
        since = ROUNDS - (int(state.memory.refit_at) - 10)
        assert 0 < since < 10
        weights = weights_after(ROUNDS, window=20 + since)
    theta = estimate("bernoulli", x, rewards, weights)
    root = np.linalg.cholesky((x.T * (weights * SLOPES["bernoulli"](x @ theta))) @ x + RIDGE * np.eye(FEATURES))
    # In units of the posterior's deviation, of which there are √3 for a θ drawn from it.
    assert np.linalg.norm(root.T @ (state.theta_hat - theta)) < 0.5
    norms = np.sqrt(np.sum(FIXED @ np.linalg.inv((x.T * weights) @ x + RIDGE * np.eye(FEATURES)) * FIXED, axis=1))
    ratios = np.asarray(state.memory.widths(jnp.asarray(FIXED))) / norms
    # A discount's ridge is off by what `glm.memory.summary` says.
    gamma = FORGETTING[how].get("discount", 1.0)
    low, high = gamma ** (FEATURES - 1), 1 + (FEATURES - 1) * (1 - gamma)
    assert np.all((high**-0.5 - 1e-9 <= ratios) & (ratios <= low**-0.5 + 1e-9))
    # Other policies keep G itself, so that GLM-FPL's tilts have no noise where nothing was seen.
    tilting = policy("glm_fpl", memory=memory, **FORGETTING[how]).init(FEATURES)
    np.testing.assert_allclose(tilting.memory.gram_root, GRAM_RIDGE**0.5 * np.eye(FEATURES), rtol=1e-6)


# Long runs: the last direction is not on offer after a while

LONG = 10_000
LONG_RUNS = [
    ("glm_tsl", {"discount": 0.99}, "float32"),
    ("glm_fpl", {"window": 200, "prior_noise": True}, "float64"),
    ("ucb_glm", {"discount": 0.99}, "float32"),
    ("glm_fpl", {"discount": 0.99, "memory": "constant", "family": "poisson"}, "float32"),
    ("lin_ucb", {"window": 200}, "float32"),
]


@pytest.mark.parametrize(("name", "settings", "dtype"), LONG_RUNS)
def test_decisions_stay_finite_while_a_direction_is_forgotten(name, settings, dtype):
    chosen = policy(name, **settings)
    arms = np.asarray(FIXED * ([1] * (FEATURES - 1) + [0]), dtype)
    arms[-1] = np.eye(FEATURES)[-1]
    arms = jnp.asarray(arms)

    def one(carry, t):
        state, sound = carry
        key = jax.random.fold_in(KEY, t)
        mask = (jnp.arange(ARMS) < ARMS - 1) | (t < 300)
        action = chosen.act(key, state, arms, t, mask)
        reward = jax.random.bernoulli(key, 0.3 + 0.4 * (action.arm % 2)).astype(arms.dtype)
        state = chosen.update(state, action.arm, arms[action.arm], reward)
        sound &= jnp.all(jnp.isfinite(action.scores)) & action.converged
        return (state, sound), None

    begin = chosen.init(arms), jnp.asarray(True)
    (state, sound), _ = jax.jit(lambda: jax.lax.scan(one, begin, jnp.arange(LONG)))()
    assert sound
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(state))
    scores = [chosen.act(key, state, arms, LONG).scores[-1] for key in jax.random.split(KEY, 300)]
    # The prior is back in the last direction: mean 0, deviation a/√λ, and a bonus of that size.
    if name == "glm_tsl":
        assert stats.kstest(np.array(scores) * RIDGE**0.5, "norm").pvalue > FALSE_ALARM
    elif name == "ucb_glm":
        np.testing.assert_allclose(scores, 0.5 / RIDGE**0.5, rtol=1e-5)
    elif name == "lin_ucb":
        np.testing.assert_allclose(scores, 1 / RIDGE**0.5, rtol=1e-5)
    elif settings.get("prior_noise"):
        assert stats.kstest(np.array(scores) / 0.5 * RIDGE**0.5, "norm").pvalue > FALSE_ALARM
    else:  # GLM-FPL without the prior's noise
        np.testing.assert_allclose(scores, 0, atol=0.05)


# Where the parameter changes

CHANGE, END, INSTANCES = 300, 600, 40


def changing_environment():
    """A logistic bandit whose parameter turns around."""
    plain = explorax.environments.logistic(n_features=FEATURES, n_arms=8)

    def offer(key, instance, t):
        before = plain.offer(key, instance, t)
        scores = jnp.where(t < CHANGE, before.scores, -before.scores)
        return Offer(before.arms, jax.nn.sigmoid(scores), scores)

    return Environment("turning", plain.n_features, False, plain.draw, offer, plain.reward)


@functools.cache
def regret_after(name, **forgetting):
    """Of each instance, after the change."""
    chosen = explorax.make(name, **({} if name.startswith("lin") else {"tolerance": 1e-3}), **forgetting)
    played = explorax.simulate(
        chosen, changing_environment(), rounds=END, instances=INSTANCES, checkpoints=[CHANGE, END]
    )
    assert np.all(played.unconverged == 0)
    return played.regret[:, 1] - played.regret[:, 0]


@pytest.mark.parametrize(("name", "forgetting"), [("glm_tsl", {"window": 80}), ("lin_ts", {"discount": 0.98})])
def test_forgetting_pays_where_the_parameter_changes(name, forgetting):
    saved = regret_after(name) - regret_after(name, **forgetting)
    assert stats.ttest_1samp(saved, 0, alternative="greater").pvalue < FALSE_ALARM
