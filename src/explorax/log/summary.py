"""What is in the log of an agent: a summary, its newest decisions, and all that is known of one of them."""

import json
import os
import sqlite3
from typing import Any, NamedTuple

import numpy as np

from explorax.agent.archive import checked_path
from explorax.errors import UnknownDecision
from explorax.log.flat import Offers
from explorax.log.statuses import STATUS, Statuses, opened, read_as_log
from explorax.log.versions import Began, Versions, began

REWARDS = "SELECT count(*), sum(by_default), avg(reward) FROM rewards"
PERIOD = "SELECT min(time), max(time) FROM decisions"
ARMS = """
SELECT d.arm, count(*), count(r.reward), avg(r.reward) FROM decisions d LEFT JOIN rewards r ON r.decision = d.id
GROUP BY d.arm ORDER BY count(*) DESC, d.arm
"""
NEWEST = f"""
SELECT d.id, d.time, d.arm, d.propensity, r.reward, {STATUS} FROM decisions d
LEFT JOIN rewards r ON r.decision = d.id ORDER BY d.id DESC LIMIT :rows
"""
ONE = f"""
SELECT d.*, r.reward, r.time AS reward_time, r.by_default, {STATUS} AS status FROM decisions d
LEFT JOIN rewards r ON r.decision = d.id WHERE d.id = :id
"""
EVENTS = "SELECT kind, time FROM events WHERE decision = ? ORDER BY seq"


class ArmSummary(NamedTuple):
    """What a log says of one arm."""

    arm: Any
    decisions: int
    share: float  # of all decisions
    rewards: int
    mean_reward: float | None


class Row(NamedTuple):
    """A decision in short."""

    id: int
    time: float
    arm: Any
    propensity: float | None
    reward: float | None
    status: str


class Summary(NamedTuple):
    """What is in a log."""

    file: str
    bytes: int
    version: str  # of explorax, by which the log was begun
    policy: str | None
    settings: dict[str, Any] | None
    kind: str
    n_features: int
    dtype: str
    reward_window: float | None
    on_offer: list[Any] | None  # the agent's own arms that are on offer now
    retired: list[Any] | None
    decisions: int
    statuses: dict[str, int]
    rewards: int
    by_default: int
    mean_reward: float | None
    first: float | None  # time of the first decision
    last: float | None
    arms: list[ArmSummary] | None
    newest: list[Row]


def summary(path: str | os.PathLike[str], rows: int) -> Summary:
    """Return what is in a log, with some of its newest decisions."""
    target = checked_path(path)
    with opened(target) as connection, read_as_log(target):
        start = began(connection, target)
        about = dict(connection.execute("SELECT name, value FROM about").fetchall())
        statuses = Statuses(connection, start.window)
        counts = statuses.counts()
        total = sum(counts.values())
        on_offer, retired = own_arms(connection, start)
        first, last = connection.execute(PERIOD).fetchone()
        told, by_default, mean = connection.execute(REWARDS).fetchone()
        arms = None
        if start.source.kind != "set":
            arms = [ArmSummary(arm, n, n / total, *each) for arm, n, *each in connection.execute(ARMS)]
        newest = [Row(*row) for row in connection.execute(NEWEST, {**statuses.told, "rows": rows})]
        return Summary(
            str(target),
            target.stat().st_size,
            str(about.get("version")),
            start.schema["policy"],
            start.schema["settings"],
            start.source.describe(),
            start.source.n_features,
            start.source.dtype,
            start.window,
            on_offer,
            retired,
            total,
            counts,
            told,
            by_default or 0,
            mean,
            first,
            last,
            arms,
            newest[::-1],
        )


def own_arms(connection: sqlite3.Connection, start: Began) -> tuple[list[Any] | None, list[Any] | None]:
    """Return the agent's own arms that are on offer now and those that are not; None if it has no arms of its own."""
    if not start.source.named:
        return None, None
    known = Versions.of(connection, start)
    pairs = list(zip(known.names, known.on_offer[-1].tolist(), strict=True))
    return [name for name, on in pairs if on], [name for name, on in pairs if not on]


def decision(path: str | os.PathLike[str], decision_id: int) -> dict[str, Any]:
    """Return all that a log knows of one decision, as plain values by name."""
    target = checked_path(path)
    with opened(target) as connection, read_as_log(target):
        told = told_of(connection, began(connection, target), decision_id)
    if told is None:
        raise UnknownDecision(
            f"decision must be the id of a decision in {target}, got {decision_id}. `explorax log show` lists some."
        )
    return told


def told_of(connection: sqlite3.Connection, start: Began, decision_id: int) -> dict[str, Any] | None:
    """Return all that a log knows of one decision, or None if it knows nothing."""
    found = connection.execute(ONE, {**Statuses(connection, start.window).told, "id": decision_id})
    names, row = [column[0] for column in found.description], found.fetchone()
    if row is None:
        return None
    told = dict(zip(names, row, strict=True))
    dtype, arms = start.source.dtype, told.pop("arms")
    offers, listed = Offers(start, Versions.of(connection, start)), told.pop("names")
    on_offer = offers.listed(listed, told["version"], None if arms is None else len(arms))
    told["features"] = np.frombuffer(told["features"], dtype).tolist()
    for flag in ("forced", "converged", "deferred", "by_default"):
        told[flag] = None if told[flag] is None else bool(told[flag])
    told["context"] = None if told["context"] is None else json.loads(told["context"])
    told["on_offer"] = None if on_offer is None else json.loads(on_offer)
    told["features_on_offer"] = None
    if arms is not None:
        told["features_on_offer"] = np.frombuffer(arms, dtype).reshape(-1, start.source.n_features).tolist()
    every = told.pop("every")
    ordered = every is not None and offers.ordered(listed, told["version"])
    told["all_propensities"] = np.frombuffer(every).tolist() if ordered else None
    told["events"] = [{"kind": kind, "time": time} for kind, time in connection.execute(EVENTS, (decision_id,))]
    return told
