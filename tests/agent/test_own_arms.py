"""An agent's own arms: named, changed without losing rows, with room for more."""

import numpy as np
import pytest

from explorax import errors
from explorax.agent.arm_tables import Table
from explorax.agent.own_arms import Arms

ROWS = np.arange(6.0).reshape(3, 2)


def own():
    return Arms.of(Table(["a", "b", "c"], ROWS))


def test_arms_are_a_copy_that_is_replaced_and_never_changed():
    rows = ROWS.copy()
    first = Arms.of(Table(["a", "b", "c"], rows))
    rows[:] = np.nan
    second = first.added("d", np.array([9.0, 9.0]), None)
    third = second.switched("a", False)
    assert (first.names, second.names) == (("a", "b", "c"), ("a", "b", "c", "d"))
    np.testing.assert_array_equal(first.rows, ROWS)
    np.testing.assert_array_equal(second.rows[:4], [*ROWS, [9, 9]])
    np.testing.assert_array_equal(second.rows, second.matrix)
    assert first.offered(None) is None
    assert second.mask(None).sum() == 4 < len(second.rows)  # room for more
    assert np.flatnonzero(third.offered(None)).tolist() == [1, 2, 3]


def test_an_updated_arm_gets_a_new_row_and_keeps_its_old_one():
    changed = own().updated("b", np.array([7.0, 7.0]), None)
    assert changed.names == ("a", None, "c", "b")
    assert changed.place("b") == 3
    np.testing.assert_array_equal(changed.rows[1], ROWS[1])
    assert np.flatnonzero(changed.offered(None)).tolist() == [0, 2, 3]
    retired = own().switched("b", False).updated("b", np.array([7.0, 7.0]), None)
    assert np.flatnonzero(retired.offered(None)).tolist() == [0, 2]
    again = retired.added("b", np.array([8.0, 8.0]), None)
    np.testing.assert_array_equal(again.rows[again.place("b")], [8.0, 8.0])


def test_room_is_the_next_power_of_two():
    arms, sizes = own(), []
    for number in range(40):
        arms = arms.added(number, np.zeros(2), None)
        sizes.append(len(arms.rows))
    assert sorted(set(sizes)) == [8, 16, 32, 64]


def test_attributes_are_replaced_in_place():
    arms = Arms.in_context({"x": {"age": 1}, "y": {"age": 2}}, np.array([[1.0], [2.0]]))
    changed = arms.updated("x", np.array([5.0]), {"age": 5}).added("z", np.array([6.0]), {"age": 6})
    assert changed.names == ("x", "y", "z")
    assert changed.attributes == ({"age": 5}, {"age": 2}, {"age": 6})
    assert changed.rows[:3, 0].tolist() == [5.0, 2.0, 6.0]
    assert arms.rows[:, 0].tolist() == [1.0, 2.0]
    retired = changed.switched("y", False)
    assert retired.on_offer.names == ["x", "z"]
    assert retired.on_offer.rows[:, 0].tolist() == [5.0, 6.0]
    back = retired.added("y", np.array([7.0]), {"age": 7})
    assert back.on_offer.attributes == [{"age": 5}, {"age": 7}, {"age": 6}]


def test_who_is_among():
    arms = own().switched("c", False)
    assert np.flatnonzero(arms.mask(["b"])).tolist() == [1]
    for among, error, words in [
        ("ab", errors.InvalidArgument, r"among must be a list of names of arms, got 'ab'\. Give \['ab'\]"),
        (["c"], errors.InvalidArgument, r"got 'c', which is retired\. Leave it out, or call restore_arm\('c'\)"),
        (["e"], errors.UnknownName, "arm must be one of .*, got 'e'"),
        ([], errors.InvalidArgument, "No arm is on offer. Add one, restore one, or name one in among"),
    ]:
        with pytest.raises(error, match=words):
            arms.mask(among)


def test_an_agent_without_arms_of_its_own_has_none_to_change():
    assert own().changeable().names == ("a", "b", "c")
    with pytest.raises(errors.InvalidArgument, match=r"This agent has no arms of its own to change. Make it with"):
        Arms.none().changeable()


def test_a_full_room_has_a_mask_but_a_table_that_never_grew_has_none():
    arms = own()
    assert arms.offered(None) is None
    assert arms.switched("a", False).switched("a", True).offered(None) is None
    for number in range(5):
        arms = arms.added(number, np.zeros(2), None)
    assert len(arms.names) == len(arms.rows) == 8
    assert arms.offered(None).all()  # of the same program as before the room was full


def test_names_are_found_after_any_changes():
    arms, expected = own(), {"a": 0, "b": 1, "c": 2}
    for number in range(20):
        arms, expected[number] = arms.added(number, np.full(2, number), None), len(arms.names)
        if number % 3 == 0:
            arms, expected["b"] = arms.updated("b", np.full(2, -number), None), len(arms.names)
    assert {name: arms.place(name) for name in expected} == expected == dict(arms.places)
    assert [name for name in arms.names if name is not None] == sorted(expected, key=expected.get)


def test_a_vacant_row_goes_to_another_arm():
    before = own().switched("b", False)
    arms = before.added("d", np.array([9.0, 9.0]), None, 1)
    assert (arms.names, arms.place("d"), arms.reused) == (("a", "d", "c"), 1, True)
    assert arms.by_name() == {"a": True, "d": True, "c": True, "b": False}
    np.testing.assert_array_equal(arms.rows, [ROWS[0], [9, 9], ROWS[2]])
    np.testing.assert_array_equal(arms.rows, arms.matrix)
    np.testing.assert_array_equal(arms.rowless["b"], ROWS[1])
    assert arms.offered(None) is None  # no row is room for more
    assert (before.names, before.reused) == (("a", "b", "c"), False)  # it was replaced, and not changed
    np.testing.assert_array_equal(before.rows, ROWS)


def test_an_arm_without_a_row_is_retired_until_it_gets_one():
    arms = own().switched("b", False).added("d", np.array([9.0, 9.0]), None, 1)
    with pytest.raises(errors.InvalidArgument, match=r"Arm 'b' is retired already. restore_arm puts it back on offer"):
        arms.switched("b", False)
    with pytest.raises(errors.InvalidArgument, match=r"among must name arms on offer, got 'b', which is retired"):
        arms.mask(["b"])
    back = arms.switched("b", True)
    assert (back.names, back.rowless, back.place("b")) == (("a", "d", "c", "b"), {}, 3)
    np.testing.assert_array_equal(back.rows[3], ROWS[1])
    other = arms.updated("b", np.array([5.0, 5.0]), None)
    assert (other.names, other.by_name()["b"]) == (arms.names, False)
    np.testing.assert_array_equal(other.switched("d", False).switched("b", True, 1).rows[1], [5.0, 5.0])
    again = arms.added("b", np.array([6.0, 6.0]), None)
    assert (again.rowless, again.rows[again.place("b")].tolist()) == ({}, [6.0, 6.0])


def test_former_features_have_a_row_without_a_name():
    arms = own().appended(None, np.array([7.0, 7.0]), None, False)
    assert (arms.names, dict(arms.places)) == (("a", "b", "c", None), {"a": 0, "b": 1, "c": 2})
    assert not arms.active[3]
    taken = arms.added("d", np.array([8.0, 8.0]), None, 3)
    assert (taken.names, taken.rowless) == (("a", "b", "c", "d"), {})
    moved = own().switched("b", False).updated("b", np.array([7.0, 7.0]), None, 1)  # into its own row
    assert (moved.names, moved.rowless, moved.active[1]) == (("a", "b", "c"), {}, False)
    np.testing.assert_array_equal(moved.rows[1], [7.0, 7.0])
