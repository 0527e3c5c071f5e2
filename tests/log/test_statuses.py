"""What became of decisions, each in one word."""

import numpy as np
import pytest

from explorax import Agent, uniform
from explorax.log.statuses import STATUS, Statuses, opened


def statuses_of(path, window=None):
    with opened(path) as connection:
        found = Statuses(connection, window)
        rows = [row for rows in found.rows(f"d.id, {STATUS}") for row in rows]
        assert [each for each, _ in rows] == list(range(len(rows)))
        words = [word for _, word in rows]
        assert {word: words.count(word) for word in found.counts()} == found.counts()
        return words


def test_without_a_window(tmp_path):
    agent = Agent(uniform(), arms=np.eye(2), max_pending=2, log=tmp_path / "log.db")
    ids = [agent.choose().id for _ in range(2)]
    agent.withdraw(ids[0])
    agent.learn(ids[1], 1.0)
    for _ in range(3):
        agent.choose()  # the third drops the first
    assert statuses_of(tmp_path / "log.db") == ["withdrawn", "known", "dropped", "waiting", "waiting"]
    agent.close()


@pytest.mark.parametrize("default", [None, 0.0])
def test_with_a_window(tmp_path, default):
    now = [0.0]
    agent = Agent(
        uniform(),
        arms=np.eye(2),
        reward_window=10.0,
        default_reward=default,
        clock=lambda: now[0],
        log=tmp_path / "log.db",
    )
    rewarded, silent = agent.choose().id, agent.choose().id
    hidden, shown = (agent.choose(deferred=True).id for _ in range(2))
    agent.activate(shown)
    agent.learn(rewarded, 1.0)
    assert statuses_of(tmp_path / "log.db", 10.0) == ["open", "waiting", "not shown", "waiting"]
    now[0] = 10.0  # the very end of the windows
    agent.learn(agent.choose().id, 1.0)
    agent.choose()
    missed = "lost" if default is None else "known"
    found = statuses_of(tmp_path / "log.db", 10.0)
    assert found == ["known", missed, "not shown", missed, "open", "waiting"]
    assert (silent, hidden) == (1, 2)
    agent.close()
