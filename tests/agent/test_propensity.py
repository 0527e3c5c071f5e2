"""Stated probabilities are true: exact where they can be, calibrated for every number of draws elsewhere."""

import functools
import itertools

import jax
import numpy as np
import pytest
from scipy import special, stats

import explorax
from explorax import Agent, make
from explorax.agent.decider import Decider
from explorax.agent.propensity import Knowledge, checked_draws, standard_error
from explorax.agent.sources import Fixed
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
RANDOMIZED = [name for name, entry in explorax.list_policies().items() if entry.randomized == "yes"]


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
    pooled = policy_of(name).stationary and policy_of(name).probabilities is None
    decided, draws = 1024, 1024 if pooled else 20
    agent = trained(name, draws=draws)
    chosen = agent.choose_many(decided)
    counts = np.bincount(chosen.rows, minlength=COUNT)
    stated = np.array([chosen.propensities[chosen.rows == arm].mean() if counts[arm] else 0 for arm in range(COUNT)])
    if pooled:
        assert all(len(set(chosen.propensities[chosen.rows == arm])) <= 1 for arm in range(COUNT))
        # The decisions are among the draws: what is left of these are the repetitions.
        stated = ((decided + draws) * stated - counts) / draws
        spread = np.sqrt(stated.clip(1e-3) * (1 - stated).clip(1e-3) * (1 / decided + 1 / draws))
    elif agent.policy.probabilities is None:
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
        decider = Decider(agent.policy, Fixed(FEATURES, "float64"), seed, draws, 0.0)
        keys, state = decider.keys, agent.state
        times = np.arange(100, 700)
        rule = decider.rule

        @jax.jit
        def everything(t, rule=rule, keys=keys, state=state):
            arm = rule.decide(keys, state, MATRIX, t, None)[0][0]
            return arm, rule.repeated(keys, state, MATRIX, t, None)

        arms, counts = jax.vmap(everything)(times)
        shares = (np.asarray(counts) + np.eye(COUNT)[arms]) / (draws + 1)
        weight = shares[:, 0] > 0.3
        expected += (weight * shares[:, 0]).sum()
        observed += (weight * (np.asarray(arms) == 0)).sum()
        variance += (weight * shares[:, 0] * (1 - shares[:, 0])).sum()
    assert abs(observed - expected) < stats.norm.isf(FALSE_ALARM / 2) * np.sqrt(variance)
    assert variance > 20


# By draws, by a formula, not random.
@pytest.mark.parametrize(("name", "floor"), [("glm_tsl", 0.0), ("epsilon_greedy", 0.3), ("lin_ucb", 0.3)])
def test_propensities_of_all_arms_are_those_of_the_next_decision(name, floor):
    agent = trained(name, draws=4, explore_floor=floor)
    for among in [None] * 12 + [[0, 2, 4]] * 4:
        stated = agent.propensities(among=among)
        decision = agent.choose(among=among)
        place = stated.arms.index(decision.arm)
        assert (decision.propensity, decision.propensity_stderr) == (stated.probabilities[place], stated.stderrs[place])
        assert decision.propensity > 0
        assert stated.probabilities.min() >= floor / len(stated.arms)
        assert stated.probabilities.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("floor", [0.0, 0.3])
def test_propensities_of_all_arms_are_calibrated(floor):
    """Of each arm: the sum of 1{it is chosen} − p̂, whose variance is that of p̂ (1 − p̂) (alarm 1e-6)."""
    agent = trained("glm_tsl", draws=3, explore_floor=floor)
    surplus, variance = np.zeros(COUNT), np.zeros(COUNT)
    for _ in range(600):
        stated = agent.propensities().probabilities
        surplus -= stated
        surplus[agent.choose().row] += 1
        variance += stated * (1 - stated)
    assert (variance > 20).sum() >= 3
    assert (np.abs(surplus) < stats.norm.isf(FALSE_ALARM / COUNT / 2) * np.sqrt(variance) + 1).all()


@pytest.mark.parametrize("floor", [0.0, 0.2])
def test_inverse_propensities_are_unbiased(floor):
    """The mean weight of every arm is 1 with a floor, and 1 − (1 − p)^{M+1} without, though p̂ is an estimate."""
    draws, decided = 5, 6000
    agent = trained("glm_tsl", draws=draws, explore_floor=floor)
    chosen = [agent.choose() for _ in range(decided)]
    rows, propensities = (np.array(column) for column in zip(*((d.row, d.propensity) for d in chosen), strict=True))
    p = trained("glm_tsl", draws=40_000).propensities().probabilities
    for arm in range(COUNT):
        weights = np.where(rows == arm, 1 / propensities, 0.0)
        expected = 1 if floor else 1 - (1 - p[arm]) ** (draws + 1)
        spread = weights.std() / np.sqrt(decided) + 1e-9
        assert abs(weights.mean() - expected) < stats.norm.isf(FALSE_ALARM) * spread + 2e-3


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_propensities_of_a_batch_are_calibrated_by_enumeration(floor):
    """Over all that can happen in two decisions of one law with two repetitions, among three arms."""
    p, draws, number = np.array([0.7, 0.25, 0.05]), 2, 2
    known = Knowledge(draws, True, floor)
    chances, weights = {}, np.zeros(3)
    for drawn in itertools.product(range(3), repeat=draws + number):
        counts = np.bincount(drawn, minlength=3)
        stated, stderrs = known.stated(counts, counts, 3, pooled=number)
        assert (stderrs > 0).all()
        for arm in range(3):  # the first decision, of which the first draw is the policy's
            chance = np.prod(p[list(drawn)]) * ((1 - floor) * (arm == drawn[0]) + floor / 3)
            chances.setdefault(tuple(counts), np.zeros(3))[arm] += chance
            weights[arm] += chance / stated[arm] if chance else 0
    for counts, found in chances.items():  # P(the arm is a | how often each came up) is what is stated
        stated, _ = known.stated(np.array(counts), np.array(counts), 3, pooled=number)
        np.testing.assert_allclose(found / found.sum(), stated, rtol=1e-12)
    np.testing.assert_allclose(weights, 1 if floor else 1 - (1 - p) ** (draws + number), rtol=1e-12)


def test_all_propensities_come_with_decisions():
    for settings, one, many in (
        ({"arms": MATRIX}, None, 7),
        ({"n_features": FEATURES}, MATRIX, np.stack([MATRIX] * 7)),
        ({"n_features": FEATURES}, MATRIX, [MATRIX[:3], MATRIX]),
    ):
        agent = Agent(make("glm_tsl"), **settings, draws=9, explore_floor=0.1)
        agent.learn(agent.choose_many(many).ids[:2], [0.0, 1.0])
        stated = agent.propensities(one)
        decision = agent.choose(one, all_propensities=True)
        assert decision.all_propensities.to_dict() == stated.to_dict()
        assert decision.to_dict()["all_propensities"] == stated.to_dict()
        decisions = agent.choose_many(many, all_propensities=True)
        for each in decisions:
            own = each.all_propensities
            assert own.arms == list(range(len(own.arms)))
            assert own.probabilities.sum() == pytest.approx(1, abs=1e-12)
            assert own.probabilities[each.row] == each.propensity
            assert own.stderrs[each.row] == each.propensity_stderr
        assert decisions[0] == decisions[0]
        assert decisions[0] != decisions[1]
        assert agent.choose(one).all_propensities is None
    exact = Agent(make("uniform"), arms=MATRIX).choose_many(3, all_propensities=True)[2].all_propensities
    np.testing.assert_array_equal(exact.probabilities, np.full(COUNT, 1 / COUNT))
    for ask in (
        lambda agent: agent.choose(all_propensities=True),
        lambda agent: agent.choose_many(2, all_propensities=True),
    ):
        with pytest.raises(explorax.errors.InvalidArgument, match="made with draws=0, so it estimates no propensities"):
            ask(Agent(make("glm_tsl"), arms=MATRIX, draws=0))


@pytest.mark.parametrize("floor", [0.0, 0.1])
def test_weights_are_exact_by_enumeration(floor):
    """Over everything that can happen in a decision with two repetitions among three arms."""
    p, draws = np.array([0.7, 0.25, 0.05]), 2
    known = Knowledge(draws, True, floor)
    weights, chances = np.zeros(3), np.zeros(3)
    for drawn in itertools.product(range(3), repeat=draws + 1):
        counts = np.bincount(drawn, minlength=3)
        for arm in range(3):  # the decision, of which the first draw is the policy's
            chance = np.prod(p[list(drawn)]) * ((1 - floor) * (arm == drawn[0]) + floor / 3)
            if chance > 0:
                weights[arm] += chance / known.stated_one(counts[arm], 1.0, 3)[0]
                chances[arm] += chance
    np.testing.assert_allclose(chances, (1 - floor) * p + floor / 3, rtol=1e-12)
    np.testing.assert_allclose(weights, 1.0 if floor else 1 - (1 - p) ** (draws + 1), rtol=1e-12)


def test_a_floor_takes_the_place_of_some_decisions():
    """They are the policy's but for a share of ε (1 − 1/K), and the same one by one (alarm 1e-6)."""
    floor, decided = 0.25, 2000
    plain, floored = (trained("epsilon_greedy", explore_floor=each).choose_many(decided) for each in (0.0, floor))
    other = plain.rows != floored.rows
    share = floor * (1 - 1 / COUNT)
    assert FALSE_ALARM < stats.binom.cdf(other.sum(), decided, share) < 1 - FALSE_ALARM
    drawn = np.bincount(floored.rows[other], minlength=COUNT)
    assert (drawn > 20).sum() >= COUNT - 1  # also arms that the policy does not like
    single = trained("epsilon_greedy", explore_floor=floor)
    assert [single.choose() for _ in range(5)] == list(floored[:5])


def test_forced_decisions_have_a_floor_too():
    forced, found = Agent(policy_of("glm_tsl"), arms=MATRIX).choose_many(FEATURES), set()
    for seed in range(6):
        agent = Agent(policy_of("glm_tsl"), arms=MATRIX, explore_floor=0.5, seed=seed)
        for decision, plain in zip(agent.choose_many(FEATURES), forced, strict=True):
            assert decision.forced  # in a round of forced exploration, whatever came of it
            assert decision.propensity == pytest.approx(0.6 if decision.arm == plain.arm else 0.1)
            found.add(decision.arm == plain.arm)
    assert found == {True, False}


def test_a_floor_works_with_every_kind_of_arms_and_is_saved(tmp_path):
    tables = [MATRIX[:3], MATRIX]
    changing = Agent(make("lin_ucb"), n_features=FEATURES, explore_floor=0.5)
    decisions = changing.choose_many(tables * 10)
    assert set(decisions.propensities[::2]) == {0.5 / 3, 0.5 + 0.5 / 3}
    assert set(decisions.propensities[1::2]) == {0.5 / COUNT, 0.5 + 0.5 / COUNT}
    changing.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz", same_ids=True)
    assert [loaded.choose(MATRIX) for _ in range(5)] == [changing.choose(MATRIX) for _ in range(5)]
    encoder = explorax.Encoder.fit([{"user": user, "item": item} for user in "ab" for item in "xy"])
    items = {item: {"item": item} for item in "xy"}
    named = Agent(make("lin_ucb"), arms=items, encoder=encoder, explore_floor=0.5)
    stated = {decision.propensity for decision in named.choose_many([{"user": "a"}] * 30)}
    assert stated == {0.75, 0.25}


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


@pytest.mark.parametrize("name", [name for name, entry in explorax.list_policies().items() if entry.randomized == "no"])
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
    best = int(np.argmax(MATRIX @ agent.state.theta_hat))
    expected = np.full(COUNT, 0.1 / COUNT)
    expected[best] += 0.9
    np.testing.assert_allclose(agent.propensities().probabilities, expected, rtol=1e-12)
    some = [0, 2, 4]
    np.testing.assert_allclose(trained("uniform").propensities(among=some).probabilities, np.full(3, 1 / 3))
    template = trained("template")
    softmax = special.softmax(MATRIX[some] @ template.state.theta_hat / 0.5)
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
