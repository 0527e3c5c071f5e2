"""An agent's own arms over the time of its log, against a slow walk through the changes."""

import json

import numpy as np

from explorax.agent.arm_tables import Table
from explorax.agent.own_arms import Arms
from explorax.log.versions import Change, Versions

BEGAN = Arms.of(Table(["a", "b", "c"], np.array([[1.0], [2.0], [3.0]])))
CHANGES = [
    Change(3, "retired", "b", None),
    Change(5, "added", "d", json.dumps([4.0])),
    Change(7, "updated", "a", json.dumps([10.0])),
    Change(8, "retired", "d", None),
    Change(9, "updated", "d", json.dumps([40.0])),
    Change(11, "restored", "b", None),
    Change(12, "added", "d", json.dumps([400.0])),
]


def walked(version):
    """What each arm is in a version: whether it is on offer, and its features."""
    found = {"a": [True, 1.0], "b": [True, 2.0], "c": [True, 3.0]}
    for change in CHANGES:
        if change.seq <= version:
            on, value = found.get(change.name, [False, None])
            value = json.loads(change.content)[0] if change.content else value
            on = {"retired": False, "added": True, "restored": True}.get(change.kind, on)
            found[change.name] = [on, value]
    return found


def test_every_version_has_its_arms():
    versions = np.arange(15)
    known = Versions.after(BEGAN, "float64", CHANGES)
    assert known.names == ("a", "b", "c", "d")
    offered, eras = known.offered(versions), known.eras(versions)
    for version in versions:
        for place, name in enumerate(known.names):
            on, value = walked(version).get(name, (False, 4.0))  # before it comes, an arm is what it will be
            assert offered[version, place] == on
            assert known.told[known.which[eras[version], place]] == value


def test_arms_that_were_never_on_offer_are_no_arms():
    retired = BEGAN.switched("c", False)
    assert Versions.after(retired, "float64", CHANGES[:1]).names == ("a", "b")
    back = [*CHANGES[:1], Change(4, "restored", "c", None)]
    assert Versions.after(retired, "float64", back).names == ("a", "b", "c")


def test_the_order_of_rows_is_sure_until_rows_move():
    assert Versions.after(BEGAN, "float64", CHANGES[:1]).sure_below == np.inf
    assert Versions.after(BEGAN, "float64", CHANGES).sure_below == 5
