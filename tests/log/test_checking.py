"""What is wrong in a log is found, each kind of it, and nothing in one that is whole."""

import re
import shutil
import sqlite3
import threading

import numpy as np
import pytest

from explorax import Agent, LoggedData, glm_tsl, lin_ts, networks, neural_linear, read_log, uniform
from explorax.agent import recording
from explorax.log.checking import can_fold, problems
from tests.log.played import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_log_has_no_problems(logs, kind):
    assert list(problems(logs[kind].path, fold=True)) == []


@pytest.mark.parametrize("policy", [lin_ts, glm_tsl])
def test_newer_snapshots_are_compared_with_the_first(tmp_path, monkeypatch, policy):
    monkeypatch.setattr(recording, "SNAPSHOT_EVERY", 8)
    path, rng = tmp_path / "log.db", np.random.default_rng(0)
    agent = Agent(policy(), arms={"a": [1.0, 0.5], "b": [0.0, 1.0]}, draws=0, log=path)
    for t in range(21):
        agent.learn(agent.choose().id, float(rng.random() < 0.5))
        if t == 10:
            agent.add_arm("c", [0.5, 0.5])
            agent.update_arm("a", [1.0, 0.25])
    agent.close()
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM snapshots").fetchone() == (2,)
    assert list(problems(path, fold=True)) == []
    connection.execute("UPDATE rewards SET reward = 1 - reward WHERE decision = 3")  # which the newest snapshot knows
    connection.commit()
    connection.close()
    (found,) = problems(path, fold=True)
    assert "The newest snapshot is not what the rewards make of the first one" in found
    assert list(problems(path, fold=False)) == []


def test_a_loaded_agent_has_a_log_with_rewards_of_decisions_before_it(tmp_path):
    """Its arms were updated and retired before, and it learns from the log of another system."""
    agent = Agent(uniform(), arms={"a": [1.0, 0], "b": [0, 1.0]})
    agent.update_arm("a", [2.0, 2.0])
    agent.add_arm("c", [3.0, 3.0])
    agent.retire_arm("b")
    earlier = [agent.choose().id for _ in range(2)]
    agent.save(tmp_path / "agent.npz")
    path = tmp_path / "log.db"
    agent = Agent.load(tmp_path / "agent.npz", log=path)
    agent.learn(earlier[0], 0.5)
    agent.withdraw(earlier[1])
    ids = [agent.choose().id for _ in range(3)]
    agent.restore_arm("b")
    ids += [*agent.choose_many(3).ids, *(each.id for each in agent.choose_slate(2))]
    agent.learn(ids[::2], [1.0] * len(ids[::2]))
    agent.learn_from(LoggedData.of(["a", "b"], [1.0, 0.0]))
    assert list(problems(path, fold=True)) == []
    data = read_log(path)
    assert data.ids.tolist() == ids[::2]  # those of the log
    features = {"a": [2.0, 2.0], "b": [0.0, 1.0], "c": [3.0, 3.0]}
    np.testing.assert_array_equal(data.features.matrix, [features[name] for name in data.names])
    offered = [{name for name, on in zip(data.names, row, strict=True) if on} for row in data.offered]
    assert offered[:2] == [{"a", "c"}] * 2
    assert offered[2:4] == [{"a", "b", "c"}] * 2
    agent.close()


def test_threads_that_change_arms_and_threads_that_choose(tmp_path):
    """The arms on offer and the features of every decision are those of its version."""
    path = tmp_path / "log.db"
    agent = Agent(uniform(), arms={"a": [1.0, 0], "b": [0, 1.0]}, log=path)

    def change():
        for i in range(60):
            agent.update_arm("a", [float(i), 1.0])
            (agent.restore_arm if i % 2 else agent.retire_arm)("b")

    thread = threading.Thread(target=change)
    thread.start()
    for i in range(90):
        decision = agent.choose(all_propensities=i % 2 == 0)
        if i % 3 == 0:
            agent.learn(decision.id, 1.0)
    thread.join()
    assert list(problems(path, fold=True)) == []
    agent.close()


WRONG = [
    ("UPDATE decisions SET seq = seq + 1000 WHERE id = 3", r"missing before: \d+"),
    ("UPDATE rewards SET seq = 1", "there twice: 1"),
    ("DELETE FROM decisions WHERE id = (SELECT min(decision) FROM rewards)", "Rewards belong to no decision"),
    ("UPDATE rewards SET seq = 0 WHERE decision = 3", "written before their decisions: 3"),
    ("UPDATE rewards SET reward = 'much' WHERE decision = 3", "no finite numbers: 3"),
    ("UPDATE rewards SET reward = -9e999 WHERE decision = 3", "no finite numbers: 3"),
    ("UPDATE decisions SET propensity = 0 WHERE id IN (3, 4, 5, 6)", "at most 1: 3, 4, 5 and 1 more"),
    ("UPDATE decisions SET propensity = 1.5 WHERE id = 3", "at most 1: 3"),
    ("UPDATE decisions SET stderr = -1 WHERE id = 3", "below 0: 3"),
    ("UPDATE decisions SET version = seq WHERE id = 3", "ahead of their decisions: 3"),
    ("UPDATE decisions SET version = 1 WHERE id = 3", "numbers of decisions: 3"),
    (
        "UPDATE decisions SET id = 9007199254740992 WHERE id = 30",
        "Ids are not from 0 to 9007199254740991: 9007199254740992",
    ),
    ("UPDATE decisions SET arm = 'nobody' WHERE id = 3", "arms of decisions were not on offer: 3"),
    ("UPDATE decisions SET features = x'00' WHERE id = 3", "features of decisions are not those of their arms: 3"),
    ("UPDATE decisions SET every = zeroblob(32) WHERE id = 3", "do not add up to 1.*: 3"),
    ("UPDATE events SET kind = 'unheard' WHERE kind = 'restored'", "kind that nobody knows"),
    ("UPDATE events SET decision = 77 WHERE kind = 'withdrawn'", "Events belong to no decision"),
    (
        "UPDATE events SET decision = (SELECT min(decision) FROM rewards) WHERE kind = 'withdrawn'",
        "withdrawn, but have",
    ),
    ("UPDATE snapshots SET content = x'00'", "first snapshot cannot be read: .*not a snapshot"),
    ("UPDATE events SET content = '[1]' WHERE kind = 'updated'", "features of decisions are not those of their arms"),
    ("UPDATE events SET content = 'x' WHERE kind = 'updated'", "do not fit the arms"),
    ("DELETE FROM snapshots", "has no snapshot"),
]


@pytest.mark.parametrize(("change", "said"), WRONG)
def test_what_is_wrong_is_found(logs, tmp_path, change, said):
    path = tmp_path / "log.db"
    source = sqlite3.connect(logs["fixed"].path)
    connection = sqlite3.connect(path)
    source.backup(connection)
    source.close()
    connection.execute("PRAGMA journal_mode = DELETE")
    if "rewards SET seq = 1" in change:
        change += " WHERE decision = (SELECT min(decision) FROM rewards)"
    if "decision = 3" in change:
        change = change.replace("decision = 3", "decision = (SELECT min(decision) FROM rewards)")
        said = said.replace(": 3", ": [0-9]+")
    connection.execute(change)
    connection.commit()
    connection.close()
    before = path.read_bytes()
    found = list(problems(path, fold="content" in change))
    assert found

    assert any(re.search(said, each) for each in found), found
    assert path.read_bytes() == before


def test_a_damaged_page_is_found(logs, tmp_path):
    path = tmp_path / "log.db"
    source, connection = sqlite3.connect(logs["fixed"].path), sqlite3.connect(path)
    source.backup(connection)
    source.close()
    connection.execute("PRAGMA journal_mode = DELETE")
    (root,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'rewards'").fetchone()
    (page,) = connection.execute("PRAGMA page_size").fetchone()
    connection.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * page + 8 : (root - 1) * page + 16] = b"\xff" * 8
    path.write_bytes(content)
    assert shutil.copy(path, tmp_path / "before.db")
    (found,) = problems(path, fold=True)
    assert found.startswith("The file is damaged: ")
    assert path.read_bytes() == (tmp_path / "before.db").read_bytes()


def test_a_policy_that_cannot_be_made_from_text(tmp_path):
    policy = neural_linear(network=networks.mlp([2]))
    agent = Agent(policy, arms=np.eye(2), draws=0, log=tmp_path / "log.db")
    agent.close()
    assert not can_fold(tmp_path / "log.db")
    assert list(problems(tmp_path / "log.db", fold=False)) == []
