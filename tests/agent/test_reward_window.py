"""Rewards that are learned when their time is over, in the order of the decisions, also those that did not come."""

import json
from pathlib import Path

import numpy as np
import pytest

import explorax
from explorax import Agent, errors
from explorax.agent.reward_window import Due, Opened, Window

ARMS = {"a": [1.0, 0.2], "b": [0.3, 1.0], "c": [-0.5, 0.4]}
KEPT = Path(__file__).parent / "snapshots"


class Clock:
    """A clock that is set by hand."""

    def __init__(self, time=0.0):
        self.time = time

    def __call__(self):
        return self.time


def windowed(clock, default=0.0, policy=None, **settings):
    return Agent(
        policy or explorax.lin_ts(warmup="none"),
        arms=ARMS,
        reward_window=60,
        default_reward=default,
        clock=clock,
        **settings,
    )


def test_all_rewards_are_learned_in_the_order_of_the_decisions():
    """The state is that of an agent without a window that was told the same rewards in that order, to the bit."""
    clock = Clock()
    agent, plain = windowed(clock), Agent(explorax.lin_ts(warmup="none"), arms=ARMS)
    decisions = []
    for clock.time in (0, 10, 20, 30):
        decisions.append(agent.choose())
        assert plain.choose() == decisions[-1]
    agent.learn(decisions[2].id, 1.0)
    agent.learn(decisions[0].id, 0.5)
    assert np.all(np.asarray(agent.state.theta_hat) == 0)
    assert agent.pending == [0, 1, 2, 3]
    clock.time = 80
    agent.close_windows()
    plain.learn([0, 1, 2], [0.5, 0.0, 1.0])
    np.testing.assert_array_equal(agent.state.theta_hat, plain.state.theta_hat)
    assert agent.pending == [3]
    clock.time = 89.9
    agent.choose()
    assert agent.pending == [3, 4]
    clock.time = 90
    agent.choose()  # looks at the clock, too
    assert agent.pending == [4, 5]
    plain.learn(3, 0.0)
    np.testing.assert_array_equal(agent.state.theta_hat, plain.state.theta_hat)


def test_fast_rewards_are_not_favored():
    """Rewards of 1 come at once and rewards of 0 never: with a window the estimate is that of both."""
    clock, rng = Clock(), np.random.default_rng(0)
    agent = windowed(clock, policy=explorax.greedy(warmup="none"))
    at_once = Agent(explorax.greedy(warmup="none"), arms=ARMS)
    for clock.time in range(0, 40_000, 100):
        decision, other = agent.choose(among=["a"]), at_once.choose(among=["a"])
        if rng.random() < 0.3:
            agent.learn(decision.id, 1.0)
            at_once.learn(other.id, 1.0)
    agent.close_windows()
    means = [1 / (1 + np.exp(-np.dot(ARMS["a"], each.state.theta_hat))) for each in (agent, at_once)]
    assert abs(means[0] - 0.3) < 0.1
    assert means[1] > 0.9


def test_a_decision_without_a_default_teaches_nothing():
    clock = Clock()
    agent = windowed(clock, default=None)
    first, second = agent.choose(), agent.choose()
    agent.learn(second.id, 1.0)
    clock.time = 60
    agent.close_windows()
    assert agent.pending == []
    np.testing.assert_array_equal(agent.state.history.second, np.outer(second.features, second.features))
    with pytest.raises(errors.UnknownDecision, match="does not wait for a reward: it has had one, or was withdrawn"):
        agent.learn(first.id, 1.0)


def test_a_reward_that_is_late_or_comes_twice_is_refused():
    clock = Clock()
    agent = windowed(clock)
    decision = agent.choose()
    agent.learn(decision.id, 1.0)
    with pytest.raises(errors.AlreadyRewarded, match=r"reward of decision 0 is already known\. The first one counts"):
        agent.learn(decision.id, 0.0)
    late = agent.choose()
    clock.time = 60
    with pytest.raises(errors.AlreadyRewarded, match="is already known, or its window of 60 seconds is over"):
        agent.learn(late.id, 1.0)
    np.testing.assert_array_equal(
        agent.state.history.cross, decision.features
    )  # the first reward 1, and 0 by default for the second


def test_a_deferred_decision_counts_if_it_was_shown():
    clock = Clock()
    agent = windowed(clock)
    hidden, shown, rewarded = (agent.choose(deferred=True) for _ in range(3))
    agent.activate(shown.id)
    agent.learn(rewarded.id, 1.0)
    clock.time = 60
    agent.close_windows()
    x = np.stack([shown.features, rewarded.features])
    np.testing.assert_allclose(agent.state.history.second, x.T @ x)
    assert hidden.id not in agent.pending


def test_a_withdrawn_decision_teaches_nothing():
    clock = Clock()
    agent = windowed(clock)
    decisions = agent.choose_many(3)
    agent.withdraw(decisions.ids[1])
    clock.time = 60
    agent.close_windows()
    x = decisions.features[[0, 2]]
    np.testing.assert_allclose(agent.state.history.second, x.T @ x)
    with pytest.raises(errors.UnknownDecision):
        agent.learn(decisions.ids[1], 1.0)


def test_open_windows_are_in_a_snapshot(tmp_path):
    clock = Clock()
    agent = windowed(clock)
    first, _, third = agent.choose(), agent.choose(), agent.choose(deferred=True)
    agent.learn(first.id, 1.0)
    agent.save(tmp_path / "agent.npz")
    later = Clock(60.0)
    loaded = Agent.load(tmp_path / "agent.npz", same_ids=True, clock=later)
    clock.time = 60.0
    for each in (agent, loaded):
        each.close_windows()
        assert each.pending == []
    np.testing.assert_array_equal(loaded.state.history.second, agent.state.history.second)
    assert third.id == 2


def lived():
    agent = windowed(Clock())
    decisions = [agent.choose(deferred=i == 2) for i in range(4)]
    agent.learn(decisions[1].id, 1.0)
    return agent


def write_kept():
    """Keep a snapshot of this version for all time; called by hand when the format gets a new number."""
    agent = lived()
    agent.save(KEPT / "windowed6.npz")
    agent._live.record.clock.time = 60.0
    agent.close_windows()
    (KEPT / "windowed6.json").write_text(json.dumps(np.asarray(agent.state.history.second).tolist()))


def test_a_snapshot_of_an_earlier_version_has_its_windows():
    for path in KEPT.glob("windowed*.npz"):
        clock = Clock()
        agent = Agent.load(path, clock=clock)
        assert agent.pending == [0, 1, 2, 3]
        clock.time = 60.0
        agent.close_windows()
        expected = json.loads(path.with_suffix(".json").read_text())
        np.testing.assert_allclose(agent.state.history.second, expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"default_reward": 0.0},
            "default_reward must be left out without a reward_window, got 0.0. Give reward_window",
        ),
        ({"reward_window": 0}, "reward_window must be a .*number above 0, got 0"),
        ({"reward_window": "1h"}, "reward_window must be .* got '1h'"),
        ({"reward_window": 60, "default_reward": np.nan}, "default_reward must be a finite number, got nan"),
        ({"reward_window": 60, "default_reward": "none"}, "default_reward must be a finite number, got 'none'"),
        ({"reward_window": 60, "default_reward": 7.0}, "reward"),
    ],
)
def test_windows_that_cannot_be(settings, words):
    with pytest.raises(errors.InvalidArgument, match=words):
        Agent(explorax.glm_tsl(), arms=ARMS, **settings)


def test_what_only_an_agent_with_a_window_does():
    agent = Agent(explorax.lin_ts(), arms=ARMS)
    decision = agent.choose()
    for act in (agent.close_windows, lambda: agent.activate(decision.id), lambda: agent.choose(deferred=True)):
        with pytest.raises(errors.InvalidArgument, match="without a reward_window"):
            act()


def test_settings_of_a_window_that_cannot_be():
    assert Window.of(None, None) is None
    assert Window.of(60, 1) == Window(60.0, 1.0)
    for seconds, default, words in [
        (None, 0.0, "default_reward must be left out without a reward_window, got 0.0"),
        (0, None, "reward_window must be a finite number above 0, got 0"),
        (float("inf"), None, "reward_window must be a finite number above 0, got inf"),
        (1.0, float("nan"), "default_reward must be a finite number, got nan"),
        (1.0, "0", "default_reward must be a finite number, got '0'"),
    ]:
        with pytest.raises(errors.InvalidArgument, match=words):
            Window.of(seconds, default)


def opened(default):
    """Windows of 10 seconds: 3 and 1 of time 0, a deferred 4 of time 5, 2 of time 2, by a clock that was set back."""
    found = Opened(Window(10.0, default))
    found.add([3, 1], 0.0, False)
    found.add([4], 5.0, True)
    found.add([2], 2.0, False)
    found.rewards[1] = 1.0
    return found


@pytest.mark.parametrize(("time", "over"), [(9.9, []), (10.0, [3, 1]), (14.0, [3, 1]), (15.0, [3, 1, 4, 2])])
def test_a_window_behind_a_younger_one_waits_for_it(time, over):
    windows = opened(0.5)
    assert windows.over(time) == over
    assert windows.is_due(time) is bool(over)


def test_what_becomes_of_decisions():
    assert opened(0.5).due([3, 1, 4, 2]) == Due([3, 1, 2], [0.5, 1.0, 0.5], [3, 2], [4], 0.5, 2)
    assert opened(None).due([3, 1, 4]) == Due([1], [1.0], [], [3, 4], None, 4)
    assert opened(None).due([]) == Due([], [], [], [], None, None)
    windows = opened(0.5)
    windows.deferred.discard(4)
    assert windows.due([4]).defaulted == [4]


def test_decisions_up_to_one():
    windows = opened(0.5)
    assert windows.through(3) == [3]
    assert windows.through(4) == [3, 1, 4]
    windows.remove([3, 1, 7])
    assert windows.through(2) == [4, 2]
    assert not windows.rewards
    with pytest.raises(errors.UnknownDecision, match="whose window is open, got 1"):
        windows.through(1)
