"""Stated probabilities are true: exact where they can be, calibrated for every number of draws elsewhere."""

import functools

import jax
import numpy as np
import pytest
from scipy import special, stats

import explorax
from explorax import Agent, make
from explorax.agent.propensity import checked_draws, standard_error
from explorax.policies._template import boltzmann
from tests.statistics import FALSE_ALARM

FEATURES, COUNT = 3, 5
MATRIX = np.random.default_rng(0).uniform(-1, 1, (COUNT, FEATURES))
REWARDS = [1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0]
SMALL = {"hidden": (5,), "batch": 4}
SETTINGS = {
    "deep_fpl": SMALL | {"redraws": True, "activation": "tanh", "learning_rate": 0.3, "scale": 3.0},
    "deep_fl": SMALL,
    "rep_glm_fpl": SMALL | {"percent": 10, "horizon": 40},
    "neural_linear": SMALL | {"refresh": 4, "capacity": 64},
}
RANDOMIZED = [name for name, entry in explorax.policies().items() if entry.randomized == "yes"]


@functools.cache
def policy_of(name):
    return boltzmann(temperature=0.5) if name == "template" else make(name, **SETTINGS.get(name, {}))


def trained(name, rewards=REWARDS, **settings):
    agent = Agent(policy_of(name), **({"arms": MATRIX} | settings))
    decisions = agent.choose_many(len(rewards))
    agent.learn(list(decisions.ids), rewards)
    return agent


@pytest.mark.parametrize("name", [*RANDOMIZED, "template"])
def test_stated_probabilities_are_frequencies(name):
    """Of each arm: how often it is chosen by a state, and what is stated when it is (alarm 1e-6 for each policy)."""
    decided, draws = 1024, 20
    agent = trained(name, draws=draws)
    chosen = agent.choose_many(decided)
    counts = np.bincount(chosen.rows, minlength=COUNT)
    stated = np.array([chosen.propensities[chosen.rows == arm].mean() if counts[arm] else 0 for arm in range(COUNT)])
    if agent.policy.probabilities is None:
        # E[p̂ | the arm is a] = (1 + M p)/(M + 1): solve for p.
        stated = ((draws + 1) * stated - 1) / draws
        spread = np.sqrt(stated.clip(1e-3) * (1 - stated).clip(1e-3) * (1 / decided + 1 / (draws * counts.clip(1))))
    else:
        assert (chosen.propensity_stderrs == 0).all()
        spread = np.sqrt(stated.clip(1e-3) * (1 - stated).clip(1e-3) / decided)
    z = np.where(counts > 20, (counts / decided - stated) / spread, 0)
    assert np.abs(z).max() < stats.norm.isf(FALSE_ALARM / COUNT / 2)


def test_probabilities_over_the_noise_of_training():
    """DeepFPL: the stated probability is that of the arm over the noise of the last training."""
    agent = trained("deep_fpl", REWARDS[:3], draws=2000)
    keys = jax.random.split(jax.random.key(1), 2000)

    def arm_after(key):
        state = agent.policy.redraw(key, agent.state)
        return agent.policy.act(key, state, MATRIX, 99).arm

    frequencies = np.bincount(jax.jit(jax.vmap(arm_after))(keys), minlength=COUNT) / 2000
    stated = agent.propensities()
    assert stated.probabilities.max() < 0.9  # it is random
    spread = np.sqrt(frequencies * (1 - frequencies) / 2000 + stated.stderrs**2)
    assert (np.abs(stated.probabilities - frequencies) < stats.norm.isf(FALSE_ALARM / 10) * spread.clip(1e-3)).all()
    # The noise that was drawn, drawn again, gives the state that there is.
    state = agent.policy.redraw(jax.random.wrap_key_data(agent.state.key), agent.state)
    for got, want in zip(jax.tree.leaves(state.params), jax.tree.leaves(agent.state.params), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


def test_calibration_is_exact_at_few_draws():
    """P(the arm is a | p̂ of all arms) = p̂_a, at whatever p̂ one looks: here where that of the first is above 0.3."""
    draws, expected, observed, variance = 3, 0.0, 0.0, 0.0
    for seed in range(6):
        agent = trained("glm_tsl", draws=draws, seed=seed)
        keys, state = agent._keys, agent.state
        times = np.arange(100, 700)
        rule = agent._rule

        @jax.jit
        def everything(t, rule=rule, keys=keys, state=state):
            arm = rule.decide(keys, state, MATRIX, t, None)[0][0]
            return arm, jax.numpy.bincount(rule.drawn(keys[1], state, MATRIX, t, None), length=COUNT)

        arms, counts = jax.vmap(everything)(times)
        shares = (np.asarray(counts) + np.eye(COUNT)[arms]) / (draws + 1)
        weight = shares[:, 0] > 0.3
        expected += (weight * shares[:, 0]).sum()
        observed += (weight * (np.asarray(arms) == 0)).sum()
        variance += (weight * shares[:, 0] * (1 - shares[:, 0])).sum()
    assert abs(observed - expected) < stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(variance)
    assert variance > 20


def test_inverse_propensities_are_unbiased():
    """E[1{a_t = a} / p̂_t] = 1 − (1 − p)^{M+1} for every arm, though p̂ is an estimate with M = 5."""
    draws, decided = 5, 6000
    agent = trained("glm_tsl", draws=draws)
    chosen = agent.choose_many(decided)
    p = trained("glm_tsl", draws=40_000).propensities().probabilities
    for arm in range(COUNT):
        weights = np.where(chosen.rows == arm, 1 / chosen.propensities, 0.0)
        spread = weights.std() / np.sqrt(decided) + 1e-9
        assert abs(weights.mean() - (1 - (1 - p[arm]) ** (draws + 1))) < stats.norm.isf(FALSE_ALARM) * spread + 2e-3


def test_thompson_sampling_between_two_arms_has_a_formula():
    """P(x₀ᵀθ̃ > x₁ᵀθ̃) = Φ((x₀ − x₁)ᵀθ̄ / (a ‖x₀ − x₁‖_{H⁻¹}))."""
    agent = Agent(make("lin_ts"), arms=MATRIX[:2], draws=10_000)
    agent.learn(list(agent.choose_many(6).ids), [1.0, -0.5, 0.3, 0.4, 0.1, 0.2])
    moments = agent.state.history
    precision = np.eye(FEATURES) + np.asarray(moments.second)
    center = np.linalg.solve(precision, moments.cross)
    gap = MATRIX[0] - MATRIX[1]
    exact = special.ndtr(gap @ center / np.sqrt(gap @ np.linalg.solve(precision, gap)))
    stated = agent.propensities()
    assert abs(stated.probabilities[0] - exact) < 6 * stated.stderrs[0]
    assert 0.05 < exact < 0.95


@pytest.mark.parametrize("name", [name for name, entry in explorax.policies().items() if entry.randomized == "no"])
def test_decisions_that_are_not_random_have_probability_one(name):
    agent = trained(name)
    decision = agent.choose()
    assert (decision.propensity, decision.propensity_stderr) == (1.0, 0.0)
    stated = agent.propensities()
    assert stated.probabilities[decision.row] == 1.0
    assert stated.probabilities.sum() == 1.0
    assert (stated.stderrs == 0).all()


def test_exact_formulas():
    agent = trained("epsilon_greedy")
    best = int(np.argmax(MATRIX @ agent.state.theta_mle))
    expected = np.full(COUNT, 0.1 / COUNT)
    expected[best] += 0.9
    np.testing.assert_allclose(agent.propensities().probabilities, expected, rtol=1e-12)
    some = [0, 2, 4]
    np.testing.assert_allclose(trained("uniform").propensities(among=some).probabilities, np.full(3, 1 / 3))
    template = trained("template")
    softmax = special.softmax(MATRIX[some] @ template.state.theta_mle / 0.5)
    np.testing.assert_allclose(template.propensities(among=some).probabilities, softmax, rtol=1e-10)


def test_precision_of_propensities():
    assert checked_draws(None, 0.05) == 100
    assert checked_draws(None, 0.01) == 2500
    assert max(standard_error(p / 100, 2500) for p in range(101)) <= 0.01
    assert standard_error(1.0, 100) > 0  # nothing is certain after finitely many draws
    without = Agent(policy_of("lin_ts"), arms=MATRIX, draws=0)
    decision = without.choose()
    assert decision.propensity is decision.propensity_stderr is None
    assert without.choose_many(3).propensities is None
    with pytest.raises(explorax.errors.InvalidArgument, match="draws=0"):
        without.propensities()
