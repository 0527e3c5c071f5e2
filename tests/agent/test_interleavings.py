"""Whatever the order of choosing, learning, saving, loading, adding and retiring: the agent is what its log says."""

import tempfile

import jax
import numpy as np
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


def row_of(number):
    return np.random.default_rng(number).uniform(-1, 1, FEATURES)


class Interleaving(RuleBasedStateMachine):
    """Two agents are told the same, but one of them is saved and loaded in between; and a model of both in Python."""

    @initialize(name=st.sampled_from(sorted(POLICIES)), seed=st.integers(0, 3))
    def begin(self, name, seed):
        policy = make(name, explore="none", **POLICIES[name])
        arms = {i: row_of(i) for i in range(4)}
        self.agents = [Agent(policy, arms=arms, seed=seed, draws=3) for _ in range(2)]
        self.offered, self.retired = set(arms), set()
        self.waiting, self.rewarded, self.decisions = {}, set(), 0

    def both(self, act):
        first, second = [act(agent) for agent in self.agents]
        assert first == second
        return first

    @precondition(lambda self: self.offered)
    @rule()
    def choose(self):
        decision = self.both(lambda agent: agent.choose())
        assert decision.id == self.decisions
        assert decision.arm in self.offered
        np.testing.assert_array_equal(decision.features, row_of(decision.arm))
        assert 0 < decision.propensity <= 1
        self.waiting[decision.id] = decision
        self.decisions += 1

    @precondition(lambda self: self.offered)
    @rule(count=st.integers(1, 9))
    def choose_many(self, count):
        for decision in self.both(lambda agent: list(agent.choose_many(count))):
            assert decision.arm in self.offered
            self.waiting[decision.id] = decision
        self.decisions += count

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=5))
    def learn(self, data, rewards):
        ids = data.draw(st.permutations(sorted(self.waiting)))[: len(rewards)]
        rewards = rewards[: len(ids)]
        self.both(lambda agent: agent.learn(ids, rewards))
        for each in ids:
            del self.waiting[each]
            self.rewarded.add(each)

    @rule(data=st.data())
    def nonsense(self, data):
        """Is refused, and changes nothing: the agents must still agree with the model."""
        wrong = data.draw(st.sampled_from([self.decisions, -1, *sorted(self.rewarded)[:3]]))
        good = sorted(self.waiting)[:1]
        for ids, rewards in (([*good, wrong], [1.0] * (len(good) + 1)), (good, [float("nan")] * len(good))):
            if not ids:
                continue
            for agent in self.agents:
                try:
                    agent.learn(ids, rewards)
                except explorax.errors.ExploraxError:
                    continue
                raise AssertionError("nonsense was learned")

    @rule()
    def add(self):
        name = len(self.offered) + len(self.retired)
        self.both(lambda agent: agent.add_arm(name, row_of(name)))
        self.offered.add(name)

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
        self.both(lambda agent: agent.return_arm(name))
        self.retired.remove(name)
        self.offered.add(name)

    @rule()
    def save_and_load(self):
        with tempfile.TemporaryDirectory() as folder:
            self.agents[1].save(f"{folder}/agent.npz")
            self.agents[1] = Agent.load(f"{folder}/agent.npz")

    @invariant()
    def agrees_with_the_model(self):
        if not hasattr(self, "agents"):
            return
        for agent in self.agents:
            assert agent.decisions == self.decisions
            assert set(agent.pending) == set(self.waiting)
            assert {name for name, on in agent.arms.items() if on} == self.offered
            assert all(np.isfinite(leaf).all() for leaf in np_leaves(agent.state))


def np_leaves(state):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(state)]


TestInterleaving = Interleaving.TestCase
TestInterleaving.settings = settings(max_examples=12, stateful_step_count=20, deadline=None, derandomize=True)
