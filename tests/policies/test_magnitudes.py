"""One huge number must not poison a policy or an agent: it is refused, by name, and everything stays as it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorax
from explorax import Agent, Encoder, errors
from explorax.checks import all_finite, check_magnitude, largest_size
from tests.helpers import assert_same

D = 2
HUGE = {"float64": 1e160, "float32": 1e20}
GOOD = np.array([[1.0, 0.5], [0.2, -1.0]])


def with_huge(dtype):
    arms = GOOD.astype(dtype)
    arms[1, 0] = HUGE[dtype]
    return arms


@pytest.mark.parametrize("dtype", HUGE)
def test_features_that_cannot_be_squared_are_refused(dtype):
    policy = explorax.make("glm_tsl", memory="constant", warmup="none")
    words = rf"must be at most .* in {dtype}, .*, got 1e\+{160 if dtype == 'float64' else 20}\. Scale the features"
    for call in (
        lambda: policy.init(with_huge(dtype)),
        lambda: policy.act(jax.random.key(0), policy.init(GOOD.astype(dtype)), with_huge(dtype), 0),
        lambda: policy.update(policy.init(GOOD.astype(dtype)), 1, with_huge(dtype)[1], 1.0),
        lambda: explorax.fit("gaussian", explorax.glm.history.Grouped(with_huge(dtype), [1, 1], [1, 1])),
    ):
        with pytest.raises(errors.InvalidFeatures, match=words):
            call()


def test_what_can_be_squared_passes():
    for dtype in HUGE:
        most = largest_size(dtype)
        check_magnitude("x", np.array([-most], dtype))
        assert np.isfinite(np.sum(np.full(1000, most, dtype) ** 2))
        with pytest.raises(errors.InvalidFeatures):
            check_magnitude("x", np.array([0, -1.01 * most], dtype))
    with pytest.raises(errors.InvalidFeatures, match="x must be finite, got NaN or infinity"):
        check_magnitude("x", np.array([1.0, np.nan]))


@pytest.mark.parametrize(("family", "reward"), [("gaussian", 1e308), ("gaussian", -1e200), ("poisson", 1e300)])
def test_rewards_that_cannot_be_squared_are_refused(family, reward):
    policy = explorax.make("glm_tsl", family=family, warmup="none")
    with pytest.raises(errors.InvalidReward, match=r"reward must be at most .* got .* Rescale the rewards"):
        policy.update(policy.init(GOOD), 0, GOOD[0], reward)


def agents():
    encoder = Encoder.fit([{"age": float(age), "kind": kind} for age in range(4) for kind in "ab"])
    settings = {"memory": "refitted", "warmup": "none", "capacity": 8}
    changing = Agent(explorax.make("glm_tsl", **settings), n_features=D, draws=0)
    kinds = {kind: {"kind": kind} for kind in "ab"}
    in_context = Agent(explorax.make("glm_tsl", **settings), arms=kinds, encoder=encoder, draws=0)
    return [(changing, GOOD, with_huge("float64")), (in_context, {"age": 1.0}, {"age": 1e160})]


def test_an_agent_refuses_them_and_goes_on():
    for agent, good, bad in agents():
        before = agent.state
        for call in (agent.choose, lambda given, ask=agent: ask.choose_many([given])):
            with pytest.raises(errors.InvalidFeatures, match=r"must be at most .* got"):
                call(bad)
        assert_same(agent.state, before)
        decision = agent.choose(good)
        agent.learn(decision.id, 1.0)
        assert np.all(np.isfinite(agent.state.theta_hat))
    arrays = np.stack([GOOD, with_huge("float64")])
    with pytest.raises(errors.InvalidFeatures, match="arms must be at most"):
        agents()[0][0].choose_many(arrays)


def poisoned(policy):
    """The policy with an update that leaves NaN after a reward of 0."""

    def update(state, arm, x, reward):
        learned = policy.update(state, arm, x, reward)
        theta = jnp.where(reward == 0, jnp.nan, learned.theta_hat)
        return learned._replace(memory=learned.memory._replace(theta_hat=theta))

    return policy._replace(update=update)


def test_an_update_that_would_not_be_finite_changes_nothing():
    policy = explorax.make("glm_tsl", memory="constant", warmup="none")
    agent = Agent(poisoned(policy), n_features=D, draws=0)
    ids = [agent.choose(GOOD).id for _ in range(20)]
    before = agent.state
    for given in (ids[0], ids):  # alone, and in a batch
        rewards = 0.0 if given == ids[0] else [1.0] * 10 + [0.0] + [1.0] * 9
        with pytest.raises(errors.NotFinite, match="The state stays as it was and the decisions still wait"):
            agent.learn(given, rewards)
        assert_same(agent.state, before)
        assert agent.pending == ids
    agent.learn(ids, np.ones(20))
    assert all_finite(agent.state)
    assert agent.pending == []


@pytest.mark.parametrize("name", ["deep_fpl", "deep_ensemble", "neural_ucb"])
def test_a_network_that_would_not_be_finite_changes_nothing(name):
    """In float32 the squares of these gradients overflow, in arrays of any size."""
    policy = explorax.make(name, family="gaussian", hidden=(200,))
    agent = Agent(policy, n_features=D, draws=0, dtype="float32")
    before = jax.tree.map(np.array, agent.state)
    decision = agent.choose(1e12 * GOOD)
    with pytest.raises(errors.NotFinite, match="The state stays as it was and the decisions still wait"):
        agent.learn(decision.id, 1e12)
    jax.tree.map(np.testing.assert_array_equal, agent.state, before)
    with pytest.raises(errors.NotFinite, match="which stays as it was"):
        policy.update(policy.init(np.float32(1e12 * GOOD)), 0, np.float32(1e12 * GOOD[0]), 1e12)


def test_a_plain_update_that_would_not_be_finite_raises():
    policy = explorax.make("deep_fpl", learning_rate=1e300)
    state = policy.init(D)
    before = jax.tree.map(np.array, state)
    with pytest.raises(errors.NotFinite, match="would leave NaN or infinity in the state, which stays as it was"):
        policy.update(policy.update(state, 0, GOOD[0], 1.0), 0, GOOD[1], 1.0)
    jax.tree.map(np.testing.assert_array_equal, state, before)


@pytest.mark.parametrize("settings", [{"memory": "constant"}, {"memory": "refitted"}, {"capacity": 4}])
def test_a_compiled_loop_keeps_its_state(settings):
    policy = explorax.make("glm_tsl", warmup="none", **{"capacity": 4, **settings})
    state = policy.update(policy.init(D), 0, GOOD[0], 1.0)
    huge = jax.jit(policy.update)(state, 0, jnp.asarray([1e160, 1.0]), 1.0)
    jax.tree.map(np.testing.assert_array_equal, huge, state)


def test_gaussian_features_beyond_what_a_fit_can_do_do_not_converge():
    arms = np.array([[1e20, 1e20], [1.0, -1.0], [0.5, 1.0]])
    for start in (arms, D):
        policy = explorax.make("glm_tsl", family="gaussian", warmup="none", capacity=16)
        state = policy.init(start)
        for i in (0, 1, 2, 1):
            state = policy.update(state, i, arms[i], 1.0)
        assert not policy.act(jax.random.key(0), state, arms, 4).converged
