"""Agents of all kinds, played with a log, and a diary of it that is kept beside the agent."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from explorax import Agent, Encoder, arm_sets, lin_ts, uniform

NAMES = ("red hot", "a:b|c", 'quo"te, and\nline', "ünï, %20")


@dataclass
class Entry:
    """What is known of a decision without its log."""

    arm: Any
    propensity: float | None
    time: float
    on_offer: list[Any]
    features: dict[Any, np.ndarray]  # of the arms on offer
    chosen: np.ndarray
    context: dict[str, Any] | None = None
    every: dict[Any, float] | None = None
    reward: float | None = None
    gone: bool = False  # withdrawn


@dataclass
class Played:
    """An agent, its log, and the diary."""

    path: Any
    agent: Agent = None
    now: float = 100.0
    diary: dict[int, Entry] = field(default_factory=dict)

    def clock(self):
        """Return the time, which passes by itself."""
        self.now += 0.25
        return self.now

    def note(self, decision, on_offer, features, context=None):
        """Write a decision into the diary."""
        told = decision.all_propensities
        every = told and dict(zip(told.arms, told.probabilities.tolist(), strict=True))
        self.diary[decision.id] = Entry(
            decision.arm, decision.propensity, self.now, on_offer, features, decision.features.copy(), context, every
        )
        return decision.id

    def learn(self, ids, rewards):
        """Learn rewards, and write them into the diary."""
        self.agent.learn(ids, rewards)
        for each, reward in zip(ids, rewards, strict=True):
            self.diary[each].reward = float(reward)

    def withdraw(self, each):
        """Withdraw a decision."""
        self.agent.withdraw(each)
        self.diary[each].gone = True

    @property
    def known(self):
        """The entries with a reward."""
        return {each: entry for each, entry in self.diary.items() if entry.reward is not None}


def fixed(path, every=False):
    """Arms that are added, updated, retired and restored, among and exclude, late rewards, a withdrawal."""
    rng = np.random.default_rng(1)
    features = {name: rng.uniform(-1, 1, 3) for name in NAMES}
    played = Played(path)
    agent = played.agent = Agent(uniform(), arms=features, log=path, clock=played.clock)
    on, waiting = list(NAMES), []
    for t in range(36):
        if t == 8:
            agent.retire_arm(NAMES[1])
            on.remove(NAMES[1])
        if t == 12:
            features["new one"] = rng.uniform(-1, 1, 3)
            agent.add_arm("new one", features["new one"])
            on.append("new one")
        if t in (16, 24):
            features[NAMES[0]] = rng.uniform(-1, 1, 3)
            agent.update_arm(NAMES[0], features[NAMES[0]])
        if t == 20:
            agent.restore_arm(NAMES[1])
            on.append(NAMES[1])
        offered, given = list(on), {}
        if t % 5 == 1:
            offered, given = on[:2], {"among": on[:2]}
        elif t % 5 == 2:
            offered, given = on[1:], {"exclude": on[:1]}
        decision = agent.choose(**given, all_propensities=every)
        waiting.append(played.note(decision, offered, {name: features[name] for name in offered}))
        if t % 4 == 3:
            late = waiting[:1:-1]
            played.learn(late, rng.normal(size=len(late)).tolist())
            waiting = waiting[:2] if t < 30 else []
    played.withdraw(
        waiting.pop() if waiting else min(each for each, entry in played.diary.items() if entry.reward is None)
    )
    return played


def changing(path):
    """Tables of two to four arms, with and without names."""
    rng = np.random.default_rng(2)
    played = Played(path)
    agent = played.agent = Agent(lin_ts(), n_features=2, draws=20, log=path, clock=played.clock)
    ids = []
    for t in range(20):
        table = rng.uniform(-1, 1, (2 + t % 3, 2))
        names = [f"arm {t} {i}" for i in range(len(table))] if t % 2 else list(range(len(table)))
        exclude = [names[0]] if t % 5 == 1 else None
        given = dict(zip(names, table, strict=True)) if t % 2 else table
        decision = agent.choose(given, exclude=exclude, all_propensities=True)
        left = [name for name in names if name not in (exclude or ())]
        ids.append(played.note(decision, left, {name: table[names.index(name)] for name in left}))
    played.learn(ids[::-2], rng.normal(size=len(ids[::-2])).tolist())
    return played


def context(path):
    """Arms with attributes, one of which changes, in contexts of text, numbers and bools."""
    rng = np.random.default_rng(3)
    sample = [
        {"topic": topic, "user": user, "age": age, "new": age > 3}
        for topic in "ab"
        for user in ("7", "NA", "")
        for age in (1, 4.5)
    ]
    encoder = Encoder.fit(sample, interactions=[("topic", "user")])
    attributes = {"one": {"topic": "a"}, "t wo": {"topic": "b"}}
    played = Played(path)
    agent = played.agent = Agent(uniform(), arms=attributes, encoder=encoder, log=path, clock=played.clock)
    for t in range(24):
        if t == 10:
            attributes["one"] = {"topic": "b"}
            agent.update_arm("one", attributes["one"])
        if t == 16:
            attributes["three"] = {"topic": "a"}
            agent.add_arm("three", attributes["three"])
        given = {"user": ("7", "NA", "")[t % 3], "age": float(rng.integers(1, 9)), "new": bool(t % 2)}
        decision = agent.choose(given, all_propensities=True)
        features = {name: encoder.transform({**each, **given})[0] for name, each in attributes.items()}
        each = played.note(decision, list(attributes), features, given)
        if t % 6:
            played.learn([each], [float(rng.normal())])
    return played


def windowed(path):
    """Decisions with a reward window of 10 seconds, some of them deferred; after it they have a reward of 0."""
    played = Played(path)
    agent = played.agent = Agent(
        uniform(), arms={"a": [1.0], "b": [1.0]}, log=path, clock=played.clock, reward_window=10.0, default_reward=0.0
    )
    ids = [played.note(agent.choose(), list("ab"), {}) for _ in range(6)]
    _, shown = [played.note(agent.choose(deferred=True), list("ab"), {}) for _ in range(2)]
    agent.activate(shown)
    agent.learn(ids[1], 2.0)
    played.withdraw(ids[2])
    played.now += 11.0
    late = [played.note(agent.choose(), list("ab"), {}) for _ in range(3)]
    agent.learn(late[0], 5.0)
    for each in (*ids[:2], *ids[3:], shown):
        played.diary[each].reward = 2.0 if each == ids[1] else 0.0
    return played


def infinite(path):
    """Points of a ball."""
    played = Played(path)
    played.agent = Agent(lin_ts(), arms=arm_sets.ball([0.0, 0.0], 1.0), draws=0, log=path, clock=played.clock)
    ids = [played.note(played.agent.choose(), [], {}) for _ in range(4)]
    played.learn(ids[:3], [1.0, 0.0, 0.5])
    return played


KINDS = {each.__name__: each for each in (fixed, changing, context, windowed, infinite)}
EVALUATED = ("fixed", "changing", "context", "windowed")  # with arms that can be listed
