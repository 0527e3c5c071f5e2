"""Each policy's scores against the formula of its paper, written out in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import qr
from scipy.stats import chisquare

import explorax
from explorax import theory
from explorax.errors import InvalidArgument
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.policies import exploration
from explorax.policies.linear_model import REBUILD_EVERY

RNG = np.random.default_rng(11)
ARMS = RNG.uniform(-1, 1, (10, 4))
PULLS = RNG.integers(0, 10, 60)
REWARDS = RNG.integers(0, 2, 60).astype(float)
GRAM = ARMS[PULLS].T @ ARMS[PULLS]
WIDTHS = np.sqrt(np.sum(ARMS @ np.linalg.inv(GRAM) * ARMS, axis=1))
HISTORY = Grouped(
    jnp.asarray(ARMS),
    jnp.asarray(np.bincount(PULLS, minlength=10), float),
    jnp.asarray(np.bincount(PULLS, REWARDS, minlength=10)),
)
THETA = np.asarray(fit("bernoulli", HISTORY).theta)
KEY = jax.random.key(5)


def scores(name, arms=ARMS, **settings):
    policy = explorax.make(name, **settings)
    state = policy.init(arms)
    for arm, reward in zip(PULLS, REWARDS, strict=True):
        state = policy.update(state, arm, ARMS[arm], reward)
    action = policy.act(KEY, state, ARMS, len(PULLS))
    assert action.arm == np.argmax(action.scores)
    return np.asarray(action.scores)


def normal():
    return np.asarray(jax.random.normal(KEY, (4,), float))


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


@pytest.mark.parametrize("arms", [ARMS, 4], ids=["fixed", "changing"])
def test_greedy(arms):
    np.testing.assert_allclose(scores("greedy", arms), ARMS @ THETA, rtol=1e-7)


@pytest.mark.parametrize("arms", [ARMS, 4], ids=["fixed", "changing"])
def test_ucb_glm_adds_its_bonus_to_the_score(arms):
    np.testing.assert_allclose(scores("ucb_glm", arms), ARMS @ THETA + 0.5 * WIDTHS, rtol=1e-5)
    alpha = theory.width("ucb_glm", theory.problem(n_features=4, rounds=1000))
    found = scores("ucb_glm", arms, design="theory", horizon=1000)
    np.testing.assert_allclose(found, ARMS @ THETA + alpha * WIDTHS, rtol=1e-5)


def test_glm_ucb_adds_its_bonus_to_the_mean():
    np.testing.assert_allclose(scores("glm_ucb"), sigmoid(ARMS @ THETA) + 0.5 * WIDTHS, rtol=1e-5)
    longest = np.max(np.linalg.norm(ARMS, axis=1))
    rho = theory.width("glm_ucb", theory.problem(n_features=4, rounds=1000), max_norm=longest)
    found = scores("glm_ucb", design="theory", horizon=1000)
    np.testing.assert_allclose(found, sigmoid(ARMS @ THETA) + rho * WIDTHS, rtol=1e-5)
    wider = scores("glm_ucb", design="theory", horizon=1000, max_norm=2 * longest, max_reward=3.0)
    rho = theory.width("glm_ucb", theory.problem(n_features=4, rounds=1000), max_norm=2 * longest, max_reward=3.0)
    np.testing.assert_allclose(wider, sigmoid(ARMS @ THETA) + rho * WIDTHS, rtol=1e-5)


def test_glm_ucb_projects_only_what_lies_outside():
    norm = np.linalg.norm(THETA)
    # Two programs: the scores are the same up to the order of their sums.
    np.testing.assert_allclose(scores("glm_ucb", radius=2 * norm), scores("glm_ucb"), rtol=1e-15 * len(ARMS))
    assert np.max(np.abs(scores("glm_ucb", radius=0.3 * norm) - scores("glm_ucb"))) > 1e-3


@pytest.mark.parametrize("arms", [ARMS, 4], ids=["fixed", "changing"])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_glm_tsl_samples_with_the_inverse_hessian(arms, scale):
    means = sigmoid(ARMS @ THETA)
    hessian = (ARMS.T * np.asarray(HISTORY.counts) * means * (1 - means)) @ ARMS + np.eye(4)
    # A lower factor of H turns normals into N(0, H⁻¹) by its transposed inverse.
    theta = THETA + scale * np.linalg.solve(np.linalg.cholesky(hessian).T, normal())
    np.testing.assert_allclose(scores("glm_tsl", arms, scale=scale), ARMS @ theta, rtol=1e-6)


@pytest.mark.parametrize("arms", [ARMS, 4], ids=["fixed", "changing"])
@pytest.mark.parametrize(("settings", "scale"), [({}, 0.5), ({"scale": 3.0}, 3.0)])
def test_glm_fpl_fits_the_tilted_loss(arms, settings, scale):
    tilt = scale * np.linalg.cholesky(GRAM) @ normal()
    theta = fit("bernoulli", HISTORY, tilt=jnp.asarray(tilt)).theta
    np.testing.assert_allclose(scores("glm_fpl", arms, **settings), ARMS @ theta, rtol=1e-6)


def test_glm_fpl_can_perturb_the_prior_too():
    tilt = 0.5 * np.linalg.cholesky(GRAM + 2.0 * np.eye(4)) @ normal()
    theta = fit("bernoulli", HISTORY, tilt=jnp.asarray(tilt), ridge=2.0).theta
    np.testing.assert_allclose(scores("glm_fpl", ridge=2.0, prior_noise=True), ARMS @ theta, rtol=1e-6)


def linear(ridge):
    precision = ridge * np.eye(4) + GRAM
    return precision, np.linalg.solve(precision, REWARDS @ ARMS[PULLS])


@pytest.mark.parametrize(
    ("settings", "scale"),
    [({}, 1.0), ({"noise_std": 0.5}, 0.5), ({"scale": 0.2}, 0.2), ({"design": "theory", "horizon": 100}, None)],
)
def test_lin_ts(settings, scale):
    precision, center = linear(1.0)
    scale = np.sqrt(9 * 4 * np.log((len(PULLS) + 1) * 100)) if scale is None else scale
    theta = center + scale * np.linalg.solve(np.linalg.cholesky(precision).T, normal())
    np.testing.assert_allclose(scores("lin_ts", **settings), ARMS @ theta, rtol=1e-7)


@pytest.mark.parametrize("ridge", [1.0, 0.3])
def test_lin_ucb(ridge):
    precision, center = linear(ridge)
    widths = np.sqrt(np.sum(ARMS @ np.linalg.inv(precision) * ARMS, axis=1))
    np.testing.assert_allclose(scores("lin_ucb", ridge=ridge, width=0.7), ARMS @ center + 0.7 * widths, rtol=1e-7)
    growth = 0.5 * np.linalg.slogdet(precision)[1] - 2 * np.log(ridge)
    beta = 0.5 * np.sqrt(2 * (growth + np.log(100))) + np.sqrt(ridge) * 3.0
    found = scores("lin_ucb", ridge=ridge, design="theory", delta=0.01, noise_std=0.5, norm_bound=3.0)
    np.testing.assert_allclose(found, ARMS @ center + beta * widths, rtol=1e-7)


def test_uniform_pulls_every_arm_alike():
    # Chi-square of 8000 pulls, false alarm 1e-6.
    policy = explorax.make("uniform")
    state = policy.init(ARMS)
    keys = jax.random.split(jax.random.key(0), 8000)
    pulled = jax.vmap(policy.act, (0, None, None, None))(keys, state, ARMS, 0).arm
    assert chisquare(np.bincount(pulled, minlength=10)).pvalue > 1e-6


@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl"])
def test_theory_designs_take_their_scale_from_the_theorem(name):
    scale = theory.scale(name, theory.problem(n_features=4, rounds=500))
    np.testing.assert_array_equal(scores(name, design="theory", horizon=500), scores(name, scale=scale))


def test_informal_scales_follow_the_noise_in_the_gaussian_family():
    gaussian = {"family": "gaussian", "noise_std": 0.3}
    for name in ("glm_tsl", "glm_fpl"):
        np.testing.assert_array_equal(scores(name, **gaussian), scores(name, family="gaussian", scale=0.3))


def test_lin_ts_is_gaussian_glm_tsl():
    # The same law: scores are x(θ̂ + W z) with the same θ̂ and, although W differs, the same W Wᵀ = V⁻¹.
    precision, center = linear(1.0)
    policy = explorax.make("glm_tsl", family="gaussian")
    state = policy.init(ARMS)
    for arm, reward in zip(PULLS, REWARDS, strict=True):
        state = policy.update(state, arm, ARMS[arm], reward)
    found = np.asarray(policy.act(KEY, state, ARMS, len(PULLS)).scores)
    root = np.asarray(state.memory.warm.root)
    np.testing.assert_allclose(root @ root.T, np.linalg.inv(precision), rtol=1e-9)
    np.testing.assert_allclose(found, ARMS @ (center + root @ normal()), rtol=1e-9)


def test_gaussian_policies_work_without_a_ridge():
    squares = np.linalg.solve(GRAM, REWARDS @ ARMS[PULLS])
    np.testing.assert_allclose(scores("greedy", family="gaussian", ridge=0.0), ARMS @ squares, rtol=1e-9)
    policy = explorax.make("glm_tsl", family="gaussian", ridge=0.0)
    state = policy.init(ARMS)
    for t in range(6):  # the first estimates rest on fewer rewards than features
        action = policy.act(jax.random.key(t), state, ARMS, t)
        assert np.all(np.isfinite(action.scores))
        state = policy.update(state, action.arm, ARMS[action.arm], float(t))


def forced_arms(**settings):
    policy = explorax.make("glm_tsl", **settings)
    state = policy.init(ARMS)
    actions = [policy.act(KEY, state, ARMS, t) for t in range(30)]
    return [int(a.arm) for a in actions if a.forced]


def test_exploration_kinds():
    assert forced_arms() == list(qr(ARMS.T, pivoting=True)[2][:4])
    assert forced_arms(warmup="first") == [0, 1, 2, 3]
    assert forced_arms(warmup="none") == []


def test_repetitions_of_a_forced_decision_share_the_search_for_a_basis():
    """Each with a search of its own, the first decision among many arms would take as long as all of them."""
    plan, repetitions = exploration.plan("basis", 4), 7

    def repeated(scores):
        return jax.vmap(lambda own: exploration.choose(plan, own, jnp.asarray(ARMS), 2, jnp.ones(10, bool)))(scores)

    several = jnp.asarray(RNG.normal(size=(repetitions, 10)))
    arms, forced = repeated(several)
    assert forced.all()
    assert arms.tolist() == [qr(ARMS.T, pivoting=True)[2][2]] * repetitions
    program = str(jax.make_jaxpr(repeated)(several))
    assert "[10,4]" in program  # where the search goes over all arms
    assert f"[{repetitions},10,4]" not in program


@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl", "glm_ucb", "ucb_glm"])
def test_theory_exploration_reaches_the_required_eigenvalue(name):
    # A horizon and noise small enough for an exploration that ends.
    policy = explorax.make(name, warmup="theory", horizon=50, noise_std=0.05)
    state = policy.init(ARMS)
    tau = int(state.exploration.rounds)
    required = theory.required_eigenvalue(name, theory.problem(n_features=4, rounds=50, noise_std=0.05))
    assert tau == theory.schedule(ARMS, required).rounds
    forced = jax.vmap(lambda t: policy.act(KEY, state, ARMS, t).arm)(jnp.arange(tau))
    assert np.linalg.eigvalsh(ARMS[forced].T @ ARMS[forced])[0] >= required * (1 - 1e-9)
    assert not policy.act(KEY, state, ARMS, tau).forced


def test_theory_exploration_needs_fixed_arms():
    with pytest.raises(
        InvalidArgument, match=r"warmup must be .* if arms change, got 'theory', whose length depends on fixed arms"
    ):
        explorax.make("glm_tsl", warmup="theory", horizon=100).init(4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_kept_regression_is_that_of_all_rewards(dtype):
    """After more rewards than pass between two computations from the moments, against NumPy."""
    rng, count = np.random.default_rng(3), 2 * REBUILD_EVERY + 77
    rows, rewards = rng.uniform(-1, 1, (count, 4)), rng.normal(size=count)
    policy = explorax.lin_ts(ridge=0.5)

    def play(state, pulled):
        return policy.update(state, 0, *pulled), state.regression.age

    start = policy.init(jnp.zeros((1, 4), dtype))
    state, ages = jax.lax.scan(play, start, (jnp.asarray(rows, dtype), jnp.asarray(rewards, dtype)))
    assert ages.max() == REBUILD_EVERY - 1
    gram = rows.T @ rows + 0.5 * np.eye(4)
    tolerance = {"float64": 1e-12, "float32": 2e-5}[dtype]
    np.testing.assert_allclose(state.theta_hat, np.linalg.solve(gram, rows.T @ rewards), rtol=0, atol=tolerance)
    inverse = np.linalg.inv(np.linalg.cholesky(gram))
    np.testing.assert_allclose(state.regression.inverse, inverse, rtol=0, atol=tolerance)
    widths = np.sqrt(np.sum(ARMS @ np.linalg.inv(gram) * ARMS, axis=1))
    np.testing.assert_allclose(state.regression.widths(jnp.asarray(ARMS, dtype)), widths, rtol=10 * tolerance)
    half_log_det = np.linalg.slogdet(gram)[1] / 2
    np.testing.assert_allclose(state.regression.half_log_det(), half_log_det, rtol=10 * tolerance)
