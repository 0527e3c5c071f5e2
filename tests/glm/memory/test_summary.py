"""An estimate kept up at constant cost: its step against SciPy, its roots against inverses, its refits against `fit`.

Laws are tested with fixed seeds; each test's false-alarm rate is FALSE_ALARM = 1e-6.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special

import explorax
from explorax.environments import logistic
from explorax.errors import HistoryFull, InvalidArgument, UnknownName
from explorax.glm import families
from explorax.glm.history import Grouped, Rows
from explorax.glm.memory.base import GRAM_RIDGE, Estimator
from explorax.glm.memory.summary import Summary
from tests.contract.test_policies import HOSTILE
from tests.glm.memory.wanted import wanted
from tests.helpers import assert_same
from tests.problems import FAMILIES, random_rows
from tests.statistics import assert_standard_normal

ROUNDS, FEATURES, RIDGE = 200, 3, 0.5
CURVED = ("bernoulli", "poisson")  # families whose estimate is not linear in the rewards
DTYPES = ("float64", "float32")
REFITS = (2, 3, 5, 8, 12, 18, 27, 41, 62, 93, 140)  # each the former times 1.5, rounded up
MEANS = {"bernoulli": special.expit, "gaussian": lambda score: score, "poisson": lambda score: np.exp(min(score, 700))}
SLOPES = {
    "bernoulli": lambda score: special.expit(score) * special.expit(-score),
    "gaussian": np.ones_like,
    "poisson": lambda score: np.exp(np.minimum(score, 700)),
}


# One reward after the other


@functools.partial(jax.jit, static_argnames="family")
def play(family, start, x, rewards, really):
    """`learn` in a loop: the memory after the last reward, and after each with the number of rows in their place."""
    estimator, ridge = Estimator(families.get(family)), jnp.asarray(RIDGE, x.dtype)

    def one(kept, now):
        kept = kept.learn(estimator, ridge, 0, *now)
        return kept, kept._replace(rows=kept.rows and kept.rows.seen)

    return jax.lax.scan(one, start, (x, rewards, really))


def nothing(dtype="float64", capacity=None):
    rows = None if capacity is None else Rows.of(capacity, FEATURES, jnp.dtype(dtype), forgets=False)
    # As NumPy arrays, like all states here, so that one program serves both a beginning and a continuation.
    return jax.tree.map(np.asarray, Summary.of(wanted(FEATURES, dtype, ridge=RIDGE), rows))


@functools.cache
def stream(family, seed=0, rounds=ROUNDS):
    """Rows, and rewards that are perturbed in the Bernoulli family: any real number will do there."""
    rng = np.random.default_rng(seed)
    x, rewards = random_rows(rng, family, rounds, FEATURES)
    return x, rewards + 0.5 * rng.normal(size=rounds) * (family == "bernoulli")


BATCH = 12  # more than are served at once, so that nobody gets a refit because a neighbour does


def repeated(tree):
    return jax.tree.map(lambda leaf: np.stack([leaf] * BATCH), tree)


def refit_batch(start, x, rewards, really):
    """A batch of memories that refit, in the Bernoulli family; tests that need one of them take it from here."""
    batched = jax.vmap(functools.partial(play, "bernoulli"))
    return jax.tree.map(np.asarray, batched(start, x, rewards, really))


@functools.cache
def played(family):
    """A memory of constant size."""
    return jax.tree.map(np.asarray, play(family, nothing(), *stream(family), np.ones(ROUNDS, bool)))


@functools.cache
def refitted():
    """One that keeps its rows."""
    given = repeated((*stream("bernoulli"), np.ones(ROUNDS, bool)))
    return jax.tree.map(lambda leaf: leaf[0], refit_batch(repeated(nothing(capacity=ROUNDS)), *given))


def curvatures(family, x, thetas):
    """H before the first reward and after each: every slope is that of the estimate which its reward led to."""
    slopes = SLOPES[family](np.sum(x * thetas, axis=1))
    terms = slopes[:, None, None] * x[:, :, None] * x[:, None, :]
    return RIDGE * np.eye(x.shape[1]) + np.concatenate([np.zeros((1, *terms.shape[1:])), np.cumsum(terms, axis=0)])


def grams(x):
    """G + εI after each reward."""
    return GRAM_RIDGE * np.eye(x.shape[1]) + np.cumsum(x[:, :, None] * x[:, None, :], axis=0)


def squares(roots):
    return roots @ np.swapaxes(roots, -1, -2)


@pytest.mark.parametrize("family", FAMILIES)
def test_roots_are_those_of_the_curvature_and_the_gram_matrix(family):
    _, kept = played(family)
    x, _ = stream(family)
    expected = np.linalg.inv(curvatures(family, x, kept.theta_hat)[1:])
    np.testing.assert_allclose(squares(kept.root), expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(squares(kept.gram_root), grams(x), rtol=1e-12, atol=1e-10)
    # R⁻¹ starts at 1000, so that a product with R is as exact as numbers of that size are.
    product = kept.gram_root @ kept.gram_inverse
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(FEATURES), product.shape), rtol=0, atol=1e-9)
    assert np.min(np.linalg.eigvalsh(squares(kept.root))) > 0
    assert np.all(kept.converged)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_estimate_minimizes_the_proximal_objective(family):
    _, kept = played(family)
    x, rewards = stream(family)
    before = np.concatenate([np.zeros((1, FEATURES)), kept.theta_hat[:-1]])
    pull = np.einsum("tij,tj->ti", curvatures(family, x, kept.theta_hat)[:-1], kept.theta_hat - before)
    misses = np.vectorize(MEANS[family])(np.sum(x * kept.theta_hat, axis=1)) - rewards
    np.testing.assert_allclose(pull + misses[:, None] * x, 0, rtol=0, atol=1e-10)


def exactly(family, x, rewards, count):
    """`explorax.fit` on the first rewards; one program for any number of them."""
    seen = np.arange(ROUNDS) < count
    return explorax.fit(family, Grouped(x, seen * 1.0, seen * rewards), ridge=RIDGE).theta


@pytest.mark.parametrize("family", CURVED)
def test_the_first_reward_leads_to_the_exact_estimate(family):
    x = np.random.default_rng(3).normal(size=(ROUNDS, FEATURES))
    for reward in (0.0, 1.0, 4.5) if family == "bernoulli" else (0.0, 1.0, 30.0, 1e3, 1e6):
        rewards = np.full(ROUNDS, reward)
        last, _ = play(family, nothing(), x, rewards, np.arange(ROUNDS) < 1)
        np.testing.assert_allclose(
            last.theta_hat, exactly(family, x, rewards, 1), rtol=1e-8, err_msg=f"reward {reward}"
        )


def test_gaussian_estimates_are_ridge_regression_at_all_times():
    _, kept = played("gaussian")
    x, rewards = stream("gaussian")
    normal = grams(x) + (RIDGE - GRAM_RIDGE) * np.eye(FEATURES)
    targets = np.cumsum(x * rewards[:, None], axis=0)
    np.testing.assert_allclose(
        kept.theta_hat, np.linalg.solve(normal, targets[:, :, None])[:, :, 0], rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(squares(kept.root), np.linalg.inv(normal), rtol=0, atol=1e-10)


LONG = 5000


@pytest.fixture(scope="module", params=FAMILIES)
def long_runs(request):
    """The same 5000 rewards in both precisions, in pieces that one program plays; the rewards, and what is left."""
    x, rewards = stream(request.param, 1, LONG)
    ends = []
    for dtype in DTYPES:
        carry = nothing(dtype)
        for first in range(0, LONG, ROUNDS):
            piece = slice(first, first + ROUNDS)
            now = jnp.asarray(x[piece], dtype), jnp.asarray(rewards[piece], dtype), np.ones(ROUNDS, bool)
            carry = jax.tree.map(np.asarray, play(request.param, carry, *now)[0])
        assert all(leaf.dtype == dtype for leaf in (carry.theta_hat, carry.root, carry.gram_root))
        ends.append(jax.tree.map(lambda leaf: leaf.astype(float), carry))
    return x, ends


def test_float32_stays_close_after_thousands_of_rewards(long_runs):
    _, (wide, narrow) = long_runs
    # Errors in units of one standard deviation of the posterior, and of the matrices in ratio to what they should be.
    assert np.linalg.norm(np.linalg.solve(wide.root, narrow.theta_hat - wide.theta_hat)) < 1e-3
    for name in ("root", "gram_root", "gram_inverse"):
        exact, found = getattr(wide, name), getattr(narrow, name)
        side = np.linalg.solve(exact, found) if name != "gram_inverse" else found @ np.linalg.inv(exact)
        ratios = np.linalg.svd(side, compute_uv=False)
        assert np.max(np.abs(ratios - 1)) < 1e-4, name
    np.testing.assert_allclose(narrow.gram_root @ narrow.gram_inverse, np.eye(FEATURES), rtol=0, atol=1e-4)


def test_float64_is_exact_after_thousands_of_rewards(long_runs):
    x, (wide, _) = long_runs
    np.testing.assert_allclose(squares(wide.gram_root), grams(x)[-1], rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(wide.gram_root @ wide.gram_inverse, np.eye(FEATURES), rtol=0, atol=1e-9)


# Refits


@functools.cache
def exact_estimates():
    """After 1, 2, … rewards."""
    return np.stack([exactly("bernoulli", *stream("bernoulli"), count) for count in range(1, ROUNDS + 1)])


def test_refits_are_exact_and_happen_when_rewards_have_grown_by_a_half():
    _, kept = refitted()
    seen = np.arange(1, ROUNDS + 1)
    np.testing.assert_array_equal(kept.rows, seen)
    following = np.array([*REFITS, 210])
    np.testing.assert_array_equal(kept.refit_at, following[np.searchsorted(following, seen, side="right")])
    at = np.array(REFITS) - 1
    theta, (x, _) = exact_estimates()[at], stream("bernoulli")
    np.testing.assert_allclose(kept.theta_hat[at], theta, rtol=0, atol=1e-9)
    for i, count in enumerate(REFITS):
        slopes = SLOPES["bernoulli"](x[:count] @ theta[i])
        inverse = np.linalg.inv((x[:count].T * slopes) @ x[:count] + RIDGE * np.eye(FEATURES))
        np.testing.assert_allclose(squares(kept.root[at[i]]), inverse, rtol=0, atol=1e-9)
    np.testing.assert_allclose(squares(kept.gram_root), grams(x), rtol=1e-10, atol=1e-9)
    product = kept.gram_root @ kept.gram_inverse
    np.testing.assert_allclose(product, np.broadcast_to(np.eye(FEATURES), product.shape), rtol=0, atol=1e-7)
    assert np.all(kept.converged)


def drift(kept):
    """‖θ − θ̂‖_H for the exact θ̂ after each reward: about √d for a θ drawn from the posterior."""
    off = kept.theta_hat - exact_estimates()
    return np.linalg.norm(np.linalg.solve(kept.root, off[:, :, None])[:, :, 0], axis=1)


def test_refits_take_the_drift_away():
    now_and_then, never = drift(refitted()[1]), drift(played("bernoulli")[1])
    assert np.max(now_and_then) < 0.5 * FEATURES**0.5
    assert np.mean(now_and_then) < 0.5 * np.mean(never)


# Rewards that do not count


def test_a_reward_that_does_not_count_changes_nothing():
    nobody = *stream("bernoulli", 2), np.zeros(ROUNDS, bool)
    state, _ = played("bernoulli")
    assert_same(play("bernoulli", state, *nobody)[0], state)
    state, _ = refitted()
    state = repeated(state._replace(refit_at=np.asarray(ROUNDS + 1)))  # one that counts would refit
    assert_same(refit_batch(state, *repeated(nobody))[0], state)


def test_each_of_a_batch_has_its_own_rewards_and_refits():
    rng = np.random.default_rng(4)
    start, (x, rewards) = repeated(nothing(capacity=ROUNDS)), repeated(stream("bernoulli"))
    really = rng.random((BATCH, ROUNDS)) < rng.uniform(0.05, 1, (BATCH, 1))
    last, kept = refit_batch(start, x, rewards, really)
    idle = ~really[:, 1:]
    for leaf in jax.tree.leaves(kept):
        np.testing.assert_array_equal(leaf[:, 1:][idle], leaf[:, :-1][idle])
    np.testing.assert_array_equal(kept.rows, np.cumsum(really, axis=1))
    # The same with those that count in front of the others: refits come after as many rewards, and at other times.
    order = np.argsort(~really, axis=1, kind="stable")
    in_front = (np.take_along_axis(each, order, axis=1) for each in (rewards, really))
    expected, _ = refit_batch(start, np.take_along_axis(x, order[:, :, None], axis=1), *in_front)
    for found, want in zip(jax.tree.leaves(last), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-9)


# Adversarial rewards

ADVERSARIAL = [(family, dtype, None) for family in FAMILIES for dtype in DTYPES]
ADVERSARIAL += [("poisson", "float32", ROUNDS)]  # refits where they are hardest; each is a program of its own


@pytest.mark.parametrize(("family", "dtype", "capacity"), ADVERSARIAL)
def test_adversarial_rewards_leave_finite_states(family, dtype, capacity):
    x = np.random.default_rng(0).uniform(-1, 1, (ROUNDS, FEATURES)).astype(dtype)
    rewards = np.array([[stream(t) for t in range(ROUNDS)] for stream in HOSTILE[family]], dtype)
    really = np.ones(ROUNDS, bool)
    found = [play(family, nothing(dtype, capacity), x, y, really) for y in rewards]
    if (family, dtype) == ("bernoulli", "float64"):
        found += [refit_batch(*repeated((nothing(capacity=ROUNDS), x, y, really))) for y in rewards]
    for state, kept in found:
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((state, kept)))
        # Counts of a million next to none at all: rounding leaves scores of float32 less certain than is promised.
        assert np.all(kept.converged) or (family, dtype) == ("poisson", "float32")
        # No direction is lost.
        assert np.all(np.linalg.eigvalsh(squares(np.asarray(kept.root, float))) > 0)


# Policies

DRAWS, ARMS, PULLS, SCALE = 4000, FEATURES, 12, 0.8  # a policy that refits has done so with the twelfth reward
KEYS = jax.random.split(jax.random.key(0), DRAWS)
MEMORIES = ("constant", "refitted")


@functools.cache
def policy(name, memory, **settings):
    return explorax.make(name, memory=memory, ridge=RIDGE, capacity=80, **settings)


@functools.cache
def learned(memory):
    """A GLM policy's state after some rewards, with θ̄, H and G + εI in NumPy."""
    fpl, (x, rewards) = policy("glm_fpl", memory, scale=SCALE), stream("bernoulli")
    state, gram = fpl.init(FEATURES), grams(x[:PULLS])[-1]
    if memory == "refitted":  # by the program that is there already
        kept = jax.tree.map(lambda leaf: leaf[PULLS - 1], refitted()[1])
        state = state._replace(memory=kept)
        thetas = [kept.theta_hat] * PULLS
    else:
        thetas = []
        for t in range(PULLS):
            state = fpl.update(state, 0, x[t], min(max(rewards[t], 0.0), 1.0))
            thetas.append(state.theta_hat)
    # What decisions read of either memory, as NumPy arrays, so that both have one program.
    state = jax.tree.map(np.asarray, state._replace(memory=state.memory._replace(rows=None)))
    return state, state.theta_hat, curvatures("bernoulli", x[:PULLS], np.asarray(thetas))[-1], gram


ON_OFFER = np.random.default_rng(6).normal(size=(ARMS, FEATURES))  # invertible, so that scores tell θ̃


@functools.cache
def decisions(name, **settings):
    """Scores of many decisions."""
    chosen = policy(name, "constant", scale=SCALE, **settings)
    return jax.jit(lambda state: jax.vmap(lambda key: chosen.act(key, state, ON_OFFER, PULLS).scores)(KEYS))


def drawn_parameters(name, memory, **settings):
    """θ̃ of many decisions."""
    assert policy(name, memory, scale=SCALE, **settings).act is policy(name, "constant", scale=SCALE, **settings).act
    state, *_ = learned(memory)
    return np.linalg.solve(ON_OFFER, np.asarray(decisions(name, **settings)(state)).T).T


@pytest.mark.parametrize("memory", MEMORIES)
def test_perturbed_parameters_have_covariance_a2_h_g_h(memory):
    _, theta, curvature, gram = learned(memory)
    tilts = (drawn_parameters("glm_fpl", memory) - theta) @ curvature / SCALE
    assert_standard_normal(np.linalg.solve(np.linalg.cholesky(gram), tilts.T).T)


@pytest.mark.parametrize("memory", MEMORIES)
def test_thompson_samples_have_covariance_a2_inverse_curvature(memory):
    _, theta, curvature, _ = learned(memory)
    draws = drawn_parameters("glm_tsl", memory)
    assert_standard_normal((draws - theta) @ np.linalg.cholesky(curvature) / SCALE)


def test_tilts_with_the_noise_of_a_prior_have_its_covariance_too():
    state, _, _, gram = learned("constant")
    summary = jax.tree.map(lambda leaf: leaf.astype("float32"), state.memory)
    tilts = jax.jit(jax.vmap(lambda key: summary.tilt_noise(key, 20.0)))(KEYS)
    assert tilts.dtype == "float32"
    root = np.linalg.cholesky(gram + 20 * np.eye(FEATURES))
    assert_standard_normal(np.linalg.solve(root, np.asarray(tilts, float).T).T)


@pytest.mark.parametrize("memory", MEMORIES)
def test_bonuses_are_norms_in_the_inverse_gram_matrix(memory):
    state, theta, _, gram = learned(memory)
    scores, width = ON_OFFER @ theta, 0.3
    bonus = width * np.sqrt(np.sum(ON_OFFER @ np.linalg.inv(gram) * ON_OFFER, axis=1))
    for name, expected in (("ucb_glm", scores + bonus), ("glm_ucb", special.expit(scores) + bonus)):
        optimist = policy(name, memory, width=width)
        state = optimist.init(FEATURES)._replace(memory=state.memory)
        action = optimist.act(KEYS[0], state, ON_OFFER, PULLS)
        np.testing.assert_allclose(action.scores, expected, rtol=1e-9)
        assert action.arm == np.argmax(expected)


def shapes(state):
    return [leaf.shape for leaf in jax.tree.leaves(state)]


def test_only_a_memory_that_refits_grows_with_its_capacity():
    for memory, grows in (("constant", False), ("refitted", True)):
        small, large = (explorax.make("glm_fpl", memory=memory, capacity=n).init(FEATURES) for n in (10, 10_000))
        assert (shapes(small) != shapes(large)) == grows
    assert all(np.prod(shape) <= FEATURES**2 for shape in shapes(policy("glm_fpl", "constant").init(FEATURES)))


@pytest.mark.parametrize(
    ("name", "settings", "error", "words"),
    [
        (
            "glm_fpl",
            {"memory": "konstant"},
            UnknownName,
            "memory must be one of .*, got 'konstant'. Did you mean 'constant'",
        ),
        ("glm_fpl", {"memory": None}, UnknownName, "memory must be one of .*, got None"),
        ("glm_tsl", {"memory": "constant", "ridge": 0.0}, InvalidArgument, "ridge must be above 0 .*, got 0"),
        ("glm_fpl", {"memory": "constant", "ridge": 0.0, "family": "gaussian"}, InvalidArgument, "a summary starts"),
        ("glm_fpl", {"memory": "refitted", "ridge": 0.0, "family": "gaussian"}, InvalidArgument, "a summary starts"),
        (
            "glm_ucb",
            {"memory": "constant", "radius": 2.0},
            InvalidArgument,
            "projection .radius=2.0., got 'constant'",
        ),
        (
            "glm_ucb",
            {"memory": "refitted", "radius": 2.0},
            InvalidArgument,
            "projection .radius=2.0., got 'refitted'",
        ),
    ],
)
def test_settings_that_cannot_be_used(name, settings, error, words):
    with pytest.raises(error, match=words.replace("?", r"\?")):
        explorax.make(name, **settings)


def test_a_memory_that_refits_may_be_full():
    refits = policy("glm_fpl", "refitted")
    state = refits.init(FEATURES)
    full = state.memory.rows._replace(seen=jnp.asarray(80))
    with pytest.raises(HistoryFull, match="All 80 rows are taken"):
        refits.update(state._replace(memory=state.memory._replace(rows=full)), 0, np.ones(FEATURES), 1.0)


def test_a_run_longer_than_the_rows_kept_is_refused_before_playing():
    told = []
    world = logistic(n_features=FEATURES, n_arms=ARMS, arms_change=True)
    with pytest.raises(HistoryFull, match=r"rounds must be at most 80, .*, got 81\. Build the policy with capacity=81"):
        explorax.simulate(policy("glm_fpl", "refitted"), world, rounds=81, instances=1, progress=told.append)
    assert told == []
