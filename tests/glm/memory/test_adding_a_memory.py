"""The memory that `docs/adding-a-memory.md` adds: its sample, its estimate, and who plays with it."""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import explorax
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.memory.base import Estimator
from explorax.policies.adoption import adopt
from tests.glm.memory.wanted import wanted
from tests.problems import random_rows
from tests.statistics import FALSE_ALARM

PAGE = Path(__file__).parents[3] / "docs/adding-a-memory.md"
CODE: dict = {}
exec(re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1), CODE)
D, SIZE, ROUNDS = 3, 8, 40


@pytest.fixture(scope="module")
def learned():
    """A reservoir after forty rewards, whose first feature is their number."""
    x, rewards = random_rows(np.random.default_rng(0), "bernoulli", ROUNDS, D)
    x[:, 0] = np.arange(ROUNDS) / ROUNDS
    memory, estimator = CODE["reservoir"](wanted(D, capacity=SIZE)), Estimator(families.bernoulli)
    learn = jax.jit(lambda memory, x, reward: memory.learn(estimator, jnp.ones(()), 0, x, reward))
    for row, reward in zip(x, rewards, strict=True):
        memory = learn(memory, row, reward)
    return memory, x, rewards


def numbers_of(past):
    return np.round(np.asarray(past.features)[:, 0] * ROUNDS).astype(int)


def test_it_keeps_rewards_as_they_were_and_each_once(learned):
    memory, x, rewards = learned
    kept = numbers_of(memory.past)
    assert len(set(kept)) == SIZE
    np.testing.assert_array_equal(memory.past.features, x[kept])
    np.testing.assert_array_equal(memory.past.sums, rewards[kept])
    assert int(memory.past.seen) == ROUNDS


def test_the_estimate_is_the_fit_to_the_sample(learned):
    memory, _, _ = learned
    assert memory.converged
    np.testing.assert_allclose(memory.theta_hat, explorax.fit("bernoulli", memory.past).theta, rtol=0, atol=1e-7)


def test_every_reward_is_as_likely_to_be_kept(monkeypatch):
    """How often each place of a stream is in the sample, over many seeds (alarm 1e-6)."""
    empty, estimator, streams = CODE["reservoir"](wanted(1, capacity=SIZE)), Estimator(families.gaussian), 4000

    def sample(seed):
        monkeypatch.setitem(CODE, "SEED", seed)

        def one(memory, number):
            return memory.learn(estimator, jnp.ones(()), 0, number[None], 0.0), None

        return jax.lax.scan(one, empty, jnp.arange(float(ROUNDS)))[0].past.features[:, 0]

    kept = np.asarray(jax.jit(jax.vmap(sample))(jnp.arange(streams)), int)
    expected = streams * SIZE / ROUNDS
    statistic = np.sum((np.bincount(kept.ravel(), minlength=ROUNDS) - expected) ** 2) / expected
    # Samples without replacement: the counts vary less, by (N − n)/(N − 1), than those of independent draws.
    assert stats.chi2(ROUNDS - 1).sf(statistic * (ROUNDS - 1) / (ROUNDS - SIZE)) > FALSE_ALARM


@pytest.mark.parametrize("name", ["glm_fpl", "log_phe"])
def test_policies_play_with_it(name):
    policy = explorax.make(name, memory=CODE["reservoir"], capacity=SIZE)
    state = policy.init(D)
    x, rewards = random_rows(np.random.default_rng(1), "bernoulli", 12, D)
    for t, (row, reward) in enumerate(zip(x, rewards, strict=True)):
        action = policy.act(jax.random.key(t), state, x, t)
        assert action.converged
        assert np.all(np.isfinite(action.scores))
        state = policy.update(state, action.arm, row, reward)
    assert int(state.memory.past.seen) == 12


def test_an_agent_goes_on_after_a_restart(tmp_path):
    policy = explorax.make("glm_tsl", memory=CODE["reservoir"], capacity=SIZE)
    agent = explorax.Agent(policy, n_features=D, draws=0)
    x, rewards = random_rows(np.random.default_rng(2), "bernoulli", 12, D)
    for reward in rewards:
        agent.learn(agent.choose(x).id, reward)
    agent.save(tmp_path / "agent.npz")
    again = explorax.Agent.load(tmp_path / "agent.npz", policy)
    assert [agent.choose(x).arm for _ in range(5)] == [again.choose(x).arm for _ in range(5)]


def test_what_it_cannot_do_is_refused(learned):
    def make(name="glm_tsl", **settings):
        return explorax.make(name, **{"memory": CODE["reservoir"], "capacity": SIZE, **settings})

    with pytest.raises(InvalidArgument, match="must not forget by time"):
        make(discount=0.9)
    with pytest.raises(InvalidArgument, match="memory must be 'exact' for fixed arms, got a reservoir"):
        make().init(np.eye(D))
    ensemble = make("glm_ensemble")
    with pytest.raises(InvalidArgument, match="must drive out its oldest"):
        ensemble.update(ensemble.init(D), 0, np.ones(D), 1.0)
    exact = make(memory="exact", capacity=20)
    state = exact.init(D)
    for _ in range(SIZE):
        state = exact.update(state, 0, np.ones(D), 1.0)
    assert int(adopt(make(), state, make().init(D)).memory.past.seen) == SIZE
    with pytest.raises(InvalidArgument, match=f"got one that has seen {SIZE + 1}"):
        adopt(make(), exact.update(state, 0, np.ones(D), 1.0), make().init(D))
