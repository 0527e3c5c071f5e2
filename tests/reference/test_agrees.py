"""explorax's policies against the NumPy ones of `numpy_bandit.py`: decision by decision, and in mean regret."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import qr

import explorax
from explorax.environments import logistic
from tests.reference import numpy_bandit as reference

ROUNDS, ARMS, FEATURES = 150, 12, 3
PROBES = 8  # further keys with which each state is asked, to find the matrix that it turns normals with
THEORY = {"design": "theory", "horizon": ROUNDS}


def root_of(noise, turned):
    """The matrix R with `turned` = R `noise` in every probe; there is one only if that is linear."""
    root = np.linalg.lstsq(noise, turned, rcond=None)[0].T
    np.testing.assert_allclose(noise @ root.T, turned, rtol=0, atol=1e-6 * np.max(np.abs(turned)))
    return root


def expected_scores(twin, noise, probe_noise, probe_scores):
    """The reference's scores; TSL and FPL get the root that explorax uses, and check that it is one."""
    if isinstance(twin, reference.TSL):
        moves = np.linalg.lstsq(twin.arms, (probe_scores - twin.arms @ twin.theta_hat).T, rcond=None)[0].T
        return twin.scores(noise, root_of(probe_noise, moves / twin.scale))
    if isinstance(twin, reference.FPL):
        tilts = np.stack([twin.tilt_of(scores) for scores in probe_scores])
        return twin.scores(noise, root_of(probe_noise, tilts / twin.scale))
    return twin.scores()


def decisions(policy, arms, means, uniforms):
    """A compiled run of explorax: each round's action and noise, first its own and then the probes', and its reward."""

    def play(state, now):
        t, uniform = now
        keys = jax.random.split(jax.random.key(t), 1 + PROBES)
        actions = jax.vmap(policy.act, (0, None, None, None))(keys, state, arms, t)
        noise = jax.vmap(lambda key: jax.random.normal(key, (FEATURES,), float))(keys)
        arm = actions.arm[0]
        reward = (uniform < means[arm]).astype(float)
        return policy.update(state, arm, arms[arm], reward), (actions, noise, reward)

    run = jax.jit(lambda: jax.lax.scan(play, policy.init(arms), (jnp.arange(len(uniforms)), uniforms))[1])
    return jax.tree.map(np.asarray, run())


@pytest.mark.parametrize(
    ("name", "settings"),
    [*((name, {}) for name in reference.POLICIES), ("glm_tsl", THEORY), ("glm_fpl", THEORY)],
    ids=[*reference.POLICIES, "glm_tsl-theory", "glm_fpl-theory"],
)
def test_every_decision(name, settings):
    rng = np.random.default_rng(3)
    arms = rng.uniform(-1, 1, (ARMS, FEATURES))
    means = reference.sigmoid(arms @ rng.normal(size=FEATURES))
    scale = reference.theory_scale(name, arms, ROUNDS) if settings else reference.INFORMAL[name]
    policy, twin = explorax.make(name, tolerance=1e-9, **settings), reference.POLICIES[name](arms, scale)
    actions, noise, rewards = decisions(policy, jnp.asarray(arms), jnp.asarray(means), rng.random(ROUNDS))
    pulled = actions.arm[:, 0]
    assert actions.converged.all()
    np.testing.assert_array_equal(actions.forced[:, 0], np.arange(ROUNDS) < FEATURES)
    assert np.linalg.matrix_rank(arms[pulled[:FEATURES]]) == FEATURES
    for t in range(ROUNDS):
        if t >= FEATURES:
            expected = expected_scores(twin, noise[t, 0], noise[t, 1:], actions.scores[t, 1:])
            np.testing.assert_allclose(actions.scores[t, 0], expected, rtol=1e-6, atol=1e-6)
            assert pulled[t] == np.argmax(expected)
        twin.update(pulled[t], rewards[t])


@pytest.mark.parametrize("scale", [0.5, 5.0])
def test_perturbed_rewards_are_a_tilt(scale):
    """GLM-FPL both ways: K normals on the sums are a tilt of R ε with R = Xᵀ√N, another root of G."""
    rng = np.random.default_rng(4)
    twin = reference.FPL(rng.uniform(-1, 1, (ARMS, FEATURES)), scale)
    for arm in rng.integers(0, ARMS, 60):
        twin.update(arm, float(rng.integers(2)))
    root = twin.arms.T * np.sqrt(twin.counts)
    for noise in rng.normal(size=(20, ARMS)):
        scores = twin.scores_by_rewards(noise)
        np.testing.assert_allclose(scores, twin.scores(noise, root), rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(twin.tilt_of(scores), scale * root @ noise, rtol=1e-7, atol=1e-7)


def regrets(policy, environment, keys, rounds):
    """explorax's expected regret on the instance of each key."""

    def regret(key):
        draw_key, play_key = jax.random.split(key)
        instance = environment.draw(draw_key)

        def play(state, t):
            act_key, reward_key = jax.random.split(jax.random.fold_in(play_key, t))
            arm = policy.act(act_key, state, instance.arms, t).arm
            reward = environment.reward(reward_key, environment.offer(reward_key, instance, 0), arm)
            return policy.update(state, arm, instance.arms[arm], reward), instance.means.max() - instance.means[arm]

        return instance, jax.lax.scan(play, policy.init(instance.arms), jnp.arange(rounds))[1].sum()

    return jax.tree.map(lambda leaf: np.asarray(leaf, float), jax.jit(jax.vmap(regret))(keys))


@pytest.mark.parametrize("name", ["glm_tsl", "glm_fpl"])
def test_mean_regret(name):
    """A paired t-test on common random instances, false alarm 1e-4.  Here the reference perturbs rewards in GLM-FPL."""
    environment, rounds = logistic(n_features=FEATURES, n_arms=ARMS), 300
    instances, found = regrets(explorax.make(name), environment, jax.random.split(jax.random.key(0), 40), rounds)
    rng = np.random.default_rng(1)
    expected = [
        reference.play(
            reference.POLICIES[name](arms, reference.INFORMAL[name]),
            means,
            forced=qr(arms.T, pivoting=True)[2][:FEATURES],
            rounds=rounds,
            rng=rng,
            by_rewards=name == "glm_fpl",
        )
        for arms, means in zip(instances.arms, instances.means, strict=True)
    ]
    assert stats.ttest_rel(found, expected).pvalue > 1e-4, (np.mean(found), np.mean(expected))
