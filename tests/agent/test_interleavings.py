"""Whatever the order of choosing, learning, saving, loading, adding and retiring: the agent is what its log says."""

import tempfile

import jax
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import explorax
from explorax import Agent, make

FEATURES = 2
POLICIES = {
    "glm_tsl": {},
    "lin_ts": {},
    "ucb_glm": {},
    "glm_fpl": {"memory": "refitted", "capacity": 50, "when_full": "forget"},
}


@pytest.fixture(autouse=True)
def at_once(turns):
    """Agents make decisions ahead as soon as they may."""
    turns(0)


def row_of(number):
    return np.random.default_rng(number).uniform(-1, 1, FEATURES)


class Interleaving(RuleBasedStateMachine):
    """Two agents are told the same, but one of them is saved and loaded in between; and a model of both in Python.

    A decision has the same number in both and in the model, but not the same id.
    """

    @initialize(name=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 3))
    def begin(self, name, seed):
        policy = make(name, warmup="none", **POLICIES[name])
        arms = {i: row_of(i) for i in range(4)}
        self.agents = [Agent(policy, arms=arms, seed=seed, draws=3) for _ in range(2)]
        self.offered, self.retired = set(arms), set()
        self.versions = dict.fromkeys(arms, 0)  # of each arm's features
        self.pulled, self.paid = [], []  # features by number of the decision, and of each reward
        self.waiting, self.rewarded, self.decisions = set(), set(), 0
        self.ids = [[], []]  # of each agent's decisions, by number

    def row_of(self, name):
        return row_of(1000 * self.versions[name] + name)

    def both(self, act):
        first, second = [act(agent) for agent in self.agents]
        assert first == second
        return first

    def decided(self, decisions):
        """Both have made decisions, the same ones but for their ids."""
        first, second = ([each._replace(id=None) for each in made] for made in decisions)
        assert first == second
        for known, made in zip(self.ids, decisions, strict=True):
            known.extend(decision.id for decision in made)
            assert len(set(known)) == len(known)  # not even an agent that was loaded gives an id out twice
            assert all(0 <= decision.id < 2**53 for decision in made)
        self.pulled += [decision.features for decision in decisions[0]]
        self.waiting.update(range(self.decisions, self.decisions + len(first)))
        self.decisions += len(first)
        return first

    @precondition(lambda self: self.offered)
    @rule()
    def choose(self):
        (decision,) = self.decided([[agent.choose()] for agent in self.agents])
        assert decision.arm in self.offered
        np.testing.assert_array_equal(decision.features, self.row_of(decision.arm))
        assert 0 < decision.propensity <= 1

    @precondition(lambda self: self.offered)
    @rule(count=st.integers(1, 9))
    def choose_many(self, count):
        for decision in self.decided([list(agent.choose_many(count)) for agent in self.agents]):
            assert decision.arm in self.offered
            np.testing.assert_array_equal(decision.features, self.row_of(decision.arm))

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=5))
    def learn(self, data, rewards):
        numbers = data.draw(st.permutations(sorted(self.waiting)))[: len(rewards)]
        for agent, ids in zip(self.agents, self.ids, strict=True):
            agent.learn([ids[number] for number in numbers], rewards[: len(numbers)])
        self.paid += [(self.pulled[number], reward) for number, reward in zip(numbers, rewards, strict=False)]
        self.waiting.difference_update(numbers)
        self.rewarded.update(numbers)

    @rule(data=st.data())
    def nonsense(self, data):
        """Is refused, and changes nothing: the agents must still agree with the model."""
        wrong = data.draw(st.sampled_from([2**53, -1, *sorted(self.rewarded)[:3]]))
        for agent, known in zip(self.agents, self.ids, strict=True):
            good = [known[number] for number in sorted(self.waiting)[:1]]
            bad, error = wrong, explorax.errors.UnknownDecision
            if wrong in self.rewarded:
                bad, error = known[wrong], explorax.errors.AlreadyRewarded
            with pytest.raises(error):
                agent.learn([*good, bad], [1.0] * (len(good) + 1))
            if good:
                with pytest.raises(explorax.errors.InvalidReward):
                    agent.learn(good, [float("nan")])

    @rule()
    def add(self):
        name = len(self.offered) + len(self.retired)
        self.versions[name] = 0
        self.both(lambda agent: agent.add_arm(name, self.row_of(name)))
        self.offered.add(name)

    @precondition(lambda self: self.retired)
    @rule(data=st.data())
    def add_again(self, data):
        name = data.draw(st.sampled_from(sorted(self.retired)))
        self.versions[name] += 1
        self.both(lambda agent: agent.add_arm(name, self.row_of(name)))
        self.retired.remove(name)
        self.offered.add(name)

    @rule(data=st.data())
    def update(self, data):
        name = data.draw(st.sampled_from(sorted(self.versions)))
        self.versions[name] += 1
        self.both(lambda agent: agent.update_arm(name, self.row_of(name)))

    @precondition(lambda self: self.offered)
    @rule(data=st.data())
    def retire(self, data):
        name = data.draw(st.sampled_from(sorted(self.offered)))
        self.both(lambda agent: agent.retire_arm(name))
        self.offered.remove(name)
        self.retired.add(name)

    @precondition(lambda self: self.retired)
    @rule(data=st.data())
    def bring_back(self, data):
        name = data.draw(st.sampled_from(sorted(self.retired)))
        self.both(lambda agent: agent.restore_arm(name))
        self.retired.remove(name)
        self.offered.add(name)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.agents[1].save(f"{folder}/agent.npz")
            ended, self.agents[1] = self.agents[1], Agent.load(f"{folder}/agent.npz")
        if self.offered:  # decided after it was saved, and lost: the new agent must not give out these ids
            for decision in ended.choose_many(2):
                assert decision.id not in self.ids[1]
                with pytest.raises(explorax.errors.UnknownDecision, match="that this agent knows"):
                    self.agents[1].learn(decision.id, 1.0)

    @invariant()
    def agrees_with_the_model(self):
        if not hasattr(self, "agents"):
            return
        for agent, ids in zip(self.agents, self.ids, strict=True):
            assert agent.decisions == self.decisions
            assert agent.dropped == 0
            assert set(agent.pending) == {ids[number] for number in self.waiting}
            assert {name for name, on in agent.arms.items() if on} == self.offered
            assert {name for name, on in agent.arms.items() if not on} == self.retired
            self.has_learned_what_was_paid(agent)
            assert all(np.isfinite(leaf).all() for leaf in np_leaves(agent.state))

    def has_learned_what_was_paid(self, agent):
        """Each reward counts for the features that were pulled, whoever has their row now."""
        past = getattr(getattr(agent.state, "memory", None), "past", None)
        if past is None:
            return
        own = agent._live.now.arms
        np.testing.assert_array_equal(past.features[: len(own.names)], own.rows[: len(own.names)])
        x, rewards = np.reshape([x for x, _ in self.paid], (-1, FEATURES)), np.array([r for _, r in self.paid])
        counts, sums, features = (np.asarray(each) for each in (past.counts, past.sums, past.features))
        np.testing.assert_allclose((features.T * counts) @ features, x.T @ x, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(sums @ features, rewards @ x, rtol=1e-12, atol=1e-12)


def np_leaves(state):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


TestInterleaving = Interleaving.TestCase
TestInterleaving.settings = settings(max_examples=12, stateful_step_count=20, deadline=None, derandomize=True)
