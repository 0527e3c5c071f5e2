"""Whatever was decided, learned, dropped, refused and killed: a log gives the agent back that wrote it."""

import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from explorax import Agent, Encoder, LoggedData, Prior, errors, make
from explorax.glm.weighted import Weighted
from explorax.log.features import FixedFeatures
from tests.agent.logs import assert_alike, everything, full_disk, killed, rows
from tests.helpers import assert_same

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
ENCODER = Encoder.fit([{"user": user, "price": price} for user in "ab" for price in (1.0, 2.0)])
ROWS = np.random.default_rng(0).uniform(-1, 1, (12, 2))
LIMIT, WINDOW = 5, 10.0
PAID = np.array([1.0, 0.0, 1.0])
PRIOR = Prior([0.5, -0.5], [[3.0, 0.5], [0.5, 2.0]])
KINDS = {  # how agents are made, and what they are given to choose from
    "fixed": ("glm_tsl", {"arms": {f"arm {i}": row for i, row in enumerate(ROWS[:3])}}, [None]),
    "come and go": ("lin_ts", {"arms": dict(enumerate(ROWS[:3])), "explore_floor": 0.25}, [None]),
    "changing": ("lin_ts", {"n_features": 2}, [ROWS[:4], ROWS[4:8]]),
    "context": (
        "lin_ts",
        {"arms": {f"{price}": {"price": price} for price in (1.0, 2.0)}, "encoder": ENCODER, "explore_floor": 0.25},
        [{"user": "a"}, {"user": "b"}],
    ),
}
POLICIES = {name: make(name, warmup="none") for name in ("glm_tsl", "lin_ts")}


@pytest.fixture(autouse=True)
def at_once(turns):
    """Agents make decisions ahead as soon as they may."""
    turns(0)


class Life(RuleBasedStateMachine):
    """An agent that logs, and a model of it in Python, which knows windows, defaults, withdrawals and drops."""

    @initialize(
        kind=st.sampled_from(sorted(KINDS)),
        window=st.sampled_from([None, "lost", "default"]),
        prior=st.booleans(),
        keeping=st.sampled_from([3, 10_000]),
    )
    def begin(self, kind, window, prior, keeping):
        self.patched = pytest.MonkeyPatch()
        self.patched.setattr("explorax.agent.recording.SNAPSHOT_EVERY", keeping)
        self.folder = tempfile.TemporaryDirectory()
        self.files = (Path(self.folder.name) / str(i) for i in itertools.count())
        policy, made, self.given = KINDS[kind]
        self.policy, self.kind, self.time = POLICIES[policy], kind, 0.0
        self.window, self.default = window and WINDOW, 0.25 if window == "default" else None
        self.path = next(self.files) / "decisions.db"
        self.path.parent.mkdir()
        self.agent = Agent(
            self.policy,
            **made,
            draws=3,
            max_pending=LIMIT,
            reward_window=self.window,
            default_reward=self.default,
            prior=PRIOR if prior and kind != "context" else None,
            log=self.path,
            clock=self.clock,
        )
        self.state = self.agent.state  # by hand, until an arm takes a row that rewards are counted by
        self.waiting = {}  # id -> (time, row, features, deferred), the oldest first
        self.told, self.dropped, self.count = {}, 0, 0
        self.returned, self.paid = [], {}  # in this file
        self.new = (f"new {i}" for i in itertools.count())

    def clock(self):
        return self.time

    def teardown(self):
        if hasattr(self, "agent"):
            self.kill()
            self.agent.close()
            self.folder.cleanup()
            self.patched.undo()

    # The model

    def learned(self, decision, reward):
        if self.state is not None:
            _, row, x, _ = decision
            self.state = self.policy.update(self.state, row, x, reward)

    def close_windows(self):
        while self.window and self.waiting:
            oldest = next(iter(self.waiting))
            if self.waiting[oldest][0] + self.window > self.time:
                return
            decision = self.waiting.pop(oldest)
            reward = self.told.pop(oldest, None if decision[3] else self.default)
            if reward is not None:
                self.learned(decision, reward)

    def decided(self, decisions, deferred):
        self.close_windows()
        for each in decisions:
            self.waiting[each.id] = (self.time, each.row, each.features, deferred)
            self.returned.append(each.id)
        self.count += len(decisions)
        while len(self.waiting) > LIMIT:
            oldest = next(iter(self.waiting))
            del self.waiting[oldest]
            self.told.pop(oldest, None)
            self.dropped += 1

    def untold(self):
        return [each for each in self.waiting if each not in self.told]

    def names(self):
        return [name for name, on in self.agent.arms.items() if on]

    # What happens

    @rule(given=st.integers(0, 1), every=st.booleans(), deferred=st.booleans(), leave_out=st.booleans())
    def choose(self, given, every, deferred, leave_out):
        deferred, names = deferred and self.window is not None, self.names()
        exclude = names[:1] if leave_out and len(names) > 1 else None
        asked = {"all_propensities": every, "deferred": deferred, "exclude": exclude}
        decision = self.agent.choose(self.given[given % len(self.given)], **asked)
        self.decided([decision], deferred)

    @rule(count=st.integers(1, 7), deferred=st.booleans())
    def choose_many(self, count, deferred):
        deferred = deferred and self.window is not None
        many = count if self.given == [None] else (self.given * count)[:count]
        self.decided(list(self.agent.choose_many(many, deferred=deferred)), deferred)

    @precondition(lambda self: self.kind == "changing" or len(self.names()) > 1)
    @rule(given=st.integers(0, 1))
    def choose_slate(self, given):
        self.decided(list(self.agent.choose_slate(2, self.given[given % len(self.given)])), False)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), rewards=st.lists(st.sampled_from([0.0, 0.25, 1.0]), min_size=1, max_size=3))
    def learn(self, data, rewards):
        self.agent.close_windows() if self.window else None
        self.close_windows()
        ids = data.draw(st.permutations(self.untold()))[: len(rewards)]
        rewards = rewards[: len(ids)]
        self.agent.learn(ids[0] if len(ids) == 1 else ids, rewards[0] if len(ids) == 1 else rewards)
        for each, reward in zip(ids, rewards, strict=True):
            self.paid[each] = reward
            if self.window:
                self.told[each] = reward
                self.waiting[each] = (*self.waiting[each][:3], False)
            else:
                self.learned(self.waiting.pop(each), reward)

    @precondition(lambda self: self.window)
    @rule(seconds=st.sampled_from([-4.0, 0.5, 3.0, 6.0, 11.0]))
    def wait(self, seconds):
        self.time += seconds

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def withdraw(self, data):
        self.agent.close_windows() if self.window else None
        self.close_windows()
        ids = self.untold()[:2]
        self.agent.withdraw(ids)
        for each in ids:
            del self.waiting[each]

    @precondition(lambda self: self.window)
    @rule()
    def activate(self):
        self.agent.close_windows()
        self.close_windows()
        ids = list(self.waiting)[:3:2]
        self.agent.activate(ids)
        for each in ids:
            self.waiting[each] = (*self.waiting[each][:3], False)

    @precondition(lambda self: self.kind != "context")
    @rule()
    def learn_from(self):
        names, places, x = [0, 1, 2], np.array([0, 2, 1]), ROWS
        if self.kind != "changing":
            own = self.agent._live.now.arms
            names = [name for name in own.names if name is not None]
            places, x = np.array([0, len(names) - 1, 0]), own.rows
        rows_of = places if self.kind == "changing" else np.array([own.places[names[i]] for i in places])
        features = FixedFeatures(ROWS[:3]) if self.kind == "changing" else None
        self.agent.learn_from(LoggedData(places, PAID, features, names))
        for row, reward in zip(rows_of, PAID, strict=True):
            self.learned((0.0, row, x[row], False), float(reward))

    @precondition(lambda self: self.kind == "changing")
    @rule()
    def learn_with_weights(self):
        places, weights = np.array([0, 2, 1]), np.array([0.5, 2.0, 0.25])
        self.agent.learn_from(LoggedData(places, PAID, FixedFeatures(ROWS[:3]), [0, 1, 2]), weights)
        given = (np.zeros(3, int), ROWS[places], weights, PAID)
        self.state = self.policy.absorb(self.state, Weighted(*map(jax.numpy.asarray, given)))

    def features_of(self, name):
        number = sum(map(ord, str(name))) + self.count
        return {"price": float(number % 3)} if self.kind == "context" else ROWS[number % 12]

    def arms_change(self):
        if self.kind == "fixed":  # whose rewards are counted by the rows of arms
            self.state = None

    @precondition(lambda self: self.kind != "changing" and len(self.agent.arms) < 8)
    @rule(again=st.booleans())
    def add(self, again):
        retired = [name for name, on in self.agent.arms.items() if not on]
        name = retired[0] if again and retired else next(self.new)
        self.agent.add_arm(name, self.features_of(name))
        self.arms_change()

    @precondition(lambda self: self.kind != "changing" and len(self.agent.arms) < 8)
    @rule(data=st.data())
    def update(self, data):
        name = data.draw(st.sampled_from(list(self.agent.arms)))
        self.agent.update_arm(name, self.features_of(name))
        self.arms_change()

    @precondition(lambda self: len(self.names()) > 1)
    @rule(data=st.data())
    def retire(self, data):
        self.agent.retire_arm(data.draw(st.sampled_from(self.names())))

    @precondition(lambda self: not all(self.agent.arms.values()))
    @rule(data=st.data())
    def restore(self, data):
        self.agent.restore_arm(data.draw(st.sampled_from([n for n, on in self.agent.arms.items() if not on])))
        self.arms_change()

    # What is refused changes nothing

    @rule()
    def nonsense(self):
        self.agent.close_windows() if self.window else None
        self.close_windows()
        before, good = everything(self.agent), self.untold()[:1]
        wrong = [(good, [float("nan")]), ([*good, 2**53], [1.0] * (len(good) + 1))]
        wrong += [([each], [1.0]) for each in list(self.paid)[:1]]
        for ids, rewards in wrong if good else wrong[1:]:
            with pytest.raises(errors.InvalidArgument):
                self.agent.learn(ids, rewards)
        with pytest.raises(errors.InvalidArgument):
            self.agent.withdraw([*good, 2**53])
        with pytest.raises(errors.InvalidArgument):
            self.agent.choose(3)
        assert_same_values(everything(self.agent), before)

    @rule()
    def nothing_fits(self):
        before, given = everything(self.agent), self.given[0]
        many = 6 if given is None else [given] * 6
        with full_disk(self.agent):
            calls = [lambda: self.agent.choose(given), lambda: self.agent.choose_many(many)]
            calls += [lambda: self.agent.choose_slate(1, given)]
            calls += [lambda each=each: self.agent.learn(each, 1.0) for each in self.untold()[:1]]
            calls += [lambda each=each: self.agent.withdraw(each) for each in self.untold()[:1]]
            if self.kind != "changing":
                calls.append(lambda: self.agent.add_arm("too many", self.features_of("too many")))
            for call in calls:
                with pytest.raises(errors.CannotWrite, match="disk is full"):
                    call()
        assert_same_values(everything(self.agent), before)

    # And all of it again

    @rule()
    def kill(self):
        lost, self.path = self.agent, killed(self.path, next(self.files))
        self.agent = Agent.recover(self.path, clock=self.clock)
        assert_alike(self.agent, lost)
        assert [each for (each,) in rows(self.path, "SELECT id FROM decisions ORDER BY seq")] == self.returned
        paid = rows(self.path, "SELECT decision, reward FROM rewards WHERE NOT by_default")
        assert len(paid) == len(self.paid)
        assert dict(paid) == self.paid
        numbers = [
            each for table in ("decisions", "rewards", "events") for each in rows(self.path, f"SELECT seq FROM {table}")
        ]
        assert sorted(numbers) == [(1 + i,) for i in range(len(numbers))]
        if self.state is not None:
            assert_same(self.agent.state, self.state, rtol=1e-9, atol=1e-12)
        given = self.given[0]  # what each would decide now
        other = Agent.recover(killed(self.path, next(self.files)), clock=self.clock)
        for one, two in zip(
            [lost.choose(given), *lost.choose_slate(1, given)],
            [other.choose(given), *other.choose_slate(1, given)],
            strict=True,
        ):
            assert one == two
        lost.close()
        other.close()

    @rule()
    def save_and_load(self):
        path = next(self.files)
        path.mkdir()
        self.agent.save(path / "agent.npz")
        self.agent.close()
        self.path, self.returned, self.paid = path / "decisions.db", [], {}
        loaded = {"same_ids": True, "log": self.path, "clock": self.clock}
        self.agent = Agent.load(path / "agent.npz", **loaded)

    @invariant()
    def agrees_with_the_model(self):
        if hasattr(self, "agent"):
            assert self.agent.pending == list(self.waiting)
            assert self.agent.dropped == self.dropped
            assert self.agent.decisions == self.count


def assert_same_values(found, wanted):
    for name in ("described", "arms", "names", "attributes", "version"):
        assert found.pop(name) == wanted.pop(name), name
    assert_same(found, wanted)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=15, stateful_step_count=20, deadline=None, derandomize=True)


def test_processes_that_are_killed():
    """In the middle of whatever they do, with three threads; the file of the benchmark says what is checked."""
    command = [sys.executable, BENCHMARKS / "log_kills.py", "--kills", "3", "--lives", "2", "--most", "60"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.match(r"3 kills, 2 logs, \d+ decisions, \d+ rewards, .*; 0 wrong", done.stdout)
