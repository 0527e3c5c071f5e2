"""Snapshots that tests of the file and of what is in it share, and how soon agents decide ahead."""

import numpy as np
import pytest

from explorax import Agent, Encoder, arm_sets, make
from explorax.agent import ahead
from explorax.agent.ahead import Turns

ROWS = np.random.default_rng(0).uniform(-1, 1, (4, 2))


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    """Snapshots of one agent of each kind: six decisions, of which four have had rewards."""
    folder = tmp_path_factory.mktemp("snapshots")
    encoder = Encoder.fit([{"user": user, "price": price} for user in "ab" for price in (1.0, 2.0)])
    prices = {f"{price:g} euros": {"price": price} for price in (1.0, 2.0)}
    named = {f"arm {i}": row for i, row in enumerate(ROWS)}
    agents = {
        "fixed": (Agent(make("lin_ts"), arms=named, draws=0),),
        "changing": (Agent(make("lin_ts"), n_features=2, draws=0), ROWS),
        "windowed": (Agent(make("lin_ts", window=3), n_features=2, draws=0), ROWS),
        "context": (Agent(make("lin_ts"), arms=prices, encoder=encoder, draws=0), {"user": "a"}),
        "set": (Agent(make("lin_ts"), arms=arm_sets.ball([0.0, 0.0], 1.0), draws=0),),
    }
    for kind, (agent, *given) in agents.items():
        decisions = [agent.choose(*given) for _ in range(6)]
        agent.learn([decision.id for decision in decisions[:4]], [1.0, 0.0, 1.0, 1.0])
        agent.save(folder / f"{kind}.npz")
    return folder


@pytest.fixture
def turns(monkeypatch):
    """A function that says after how many turns agents decide ahead, by a program for which they wait."""
    monkeypatch.setattr(Turns, "start", lambda self, work: work())
    return lambda count: monkeypatch.setattr(ahead, "PATIENCE", count)
