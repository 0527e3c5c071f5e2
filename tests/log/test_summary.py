"""What is in a log, against the diary."""

import json

import numpy as np
import pytest

from explorax import Agent, errors, uniform
from explorax.log.summary import decision, summary
from tests.log.played import KINDS, NAMES


@pytest.mark.parametrize("kind", KINDS)
def test_the_summary_counts_what_happened(logs, kind):
    diary, found = logs[kind].diary, summary(logs[kind].path, 3)
    assert found.decisions == len(diary) == sum(found.statuses.values())
    assert found.statuses["withdrawn"] == sum(entry.gone for entry in diary.values())
    assert (found.first, found.last) == (min(e.time for e in diary.values()), max(e.time for e in diary.values()))
    assert [row.id for row in found.newest] == sorted(diary)[-3:]
    if kind == "windowed":
        assert (found.rewards, found.by_default, found.mean_reward) == (7, 5, 1.0)
        return
    rewards = [entry.reward for entry in diary.values() if entry.reward is not None]
    assert (found.rewards, found.by_default) == (len(rewards), 0)
    assert found.mean_reward == pytest.approx(np.mean(rewards), abs=1e-12)
    for each in found.arms or []:
        entries = [entry for entry in diary.values() if entry.arm == each.arm]
        assert (each.decisions, each.share) == (len(entries), len(entries) / len(diary))
        told = [entry.reward for entry in entries if entry.reward is not None]
        assert each.rewards == len(told)
        assert each.mean_reward is None if not told else each.mean_reward == pytest.approx(np.mean(told), abs=1e-12)
    assert (found.arms is None) == (kind == "infinite")


def test_the_agent_and_its_arms(logs, tmp_path):
    found = summary(logs["fixed"].path, 0)
    assert (found.policy, found.kind, found.n_features, found.newest) == ("uniform", "fixed", 3, [])
    assert (sorted(found.on_offer), found.retired) == (sorted([*NAMES, "new one"]), [])
    agent = Agent(uniform(), arms={"a": [1.0], "b": [1.0]}, log=tmp_path / "log.db")
    agent.retire_arm("a")
    empty = summary(tmp_path / "log.db", 5)
    assert (empty.on_offer, empty.retired, empty.decisions, empty.mean_reward, empty.first) == (
        ["b"],
        ["a"],
        0,
        None,
        None,
    )
    agent.close()


@pytest.mark.parametrize("kind", KINDS)
def test_one_decision(logs, kind):
    for each, entry in logs[kind].diary.items():
        told = json.loads(json.dumps(decision(logs[kind].path, each)))
        assert told["arm"] == (None if kind == "infinite" else entry.arm)
        assert (told["propensity"], told["time"], told["context"]) == (entry.propensity, entry.time, entry.context)
        assert told["features"] == entry.chosen.tolist()
        assert set(told["on_offer"] or []) == set(entry.on_offer)
        if kind == "changing":
            assert told["features_on_offer"] == [entry.features[name].tolist() for name in told["on_offer"]]
        assert [event["kind"] for event in told["events"]] == (
            ["withdrawn"] if entry.gone else []
        ) or kind == "windowed"
    with pytest.raises(errors.UnknownDecision, match=r"must be the id of a decision in .*, got 999"):
        decision(logs[kind].path, 999)
