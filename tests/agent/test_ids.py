"""Ids are given out once, over all restarts; test_pending.py loses and loads agents."""

from explorax.agent import ids
from explorax.agent.ids import Ids, Span


def test_offsets_are_far_from_earlier_ids(monkeypatch):
    drawn = iter([5 + ids.ROOM, 7 * ids.ROOM, 2**40, 2**41])
    monkeypatch.setattr("secrets.randbelow", lambda most: next(drawn))
    earlier = [Span(0, 0, 10), Span(2 * ids.ROOM, 10, 20), Span(8 * ids.ROOM, 20, 30)]
    offset = ids.fresh_offset(earlier, 30, 2**40 + ids.ROOM - 30)  # all but the last are too near to one of them
    assert offset + 30 == 2**41 + ids.ROOM


def test_numbers_of_ids():
    known = Ids([Span(100, 0, 5), Span(1000, 7, 9)], 9, 10_000)
    assert known.take(3) == 9
    assert known.made(9) == 10_009
    assert (known.take(1), known.take(1)) == (12, 13)
    assert known.made(13) == 10_013
    assert [known.number(each) for each in (104, 105, 1006, 1007, 10_008, 10_009, 10_013, 10_014, -1)] == [
        *(4, None, None, 7, None, 9, 13, None, None)
    ]
    assert known.is_under_way(12)
    assert not known.is_under_way(13)
    assert known.spans() == [Span(100, 0, 5), Span(1000, 7, 9), Span(10_000, 9, 12), Span(10_000, 13, 14)]


def test_decisions_that_fail_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(ids, "UNDER_WAY", 2)
    known = Ids()
    for _ in range(5):
        known.take(1)
    assert known.under_way == {3: 4, 4: 5}


def test_the_same_ids_go_on_after_a_restart():
    """As they do for an agent that is recovered, also where a decision was under way when its snapshot was taken."""
    known = Ids([Span(0, 0, 9)], 10)  # the last one was under way
    known.note(9)
    assert [known.number(each) for each in (8, 9, 10)] == [8, 9, None]
    known.note(12)  # two were refused
    assert known.take(1) == 13
    assert known.made(13) == 13
    again = Ids([Span(0, 0, 10)], 10)
    assert (again.first, again.earlier) == (0, [])
    assert not again.loaded
    assert Ids([Span(0, 0, 10)], 10, 2**40).loaded


def test_numbers_that_were_given_back_are_given_out_again():
    known = Ids()
    assert known.take(3) == 0
    known.give_back(0)
    assert known.take(2) == 0
    known.made(0)
    known.give_back(0)  # which were made
    assert known.count == 2


def test_numbers_that_were_given_back_in_any_order():
    known = Ids()
    assert [known.take(2), known.take(1), known.take(3)] == [0, 2, 3]
    known.give_back(2)
    assert known.count == 6  # later ones are under way
    assert not known.is_under_way(2)
    known.give_back(3)
    assert known.count == 2
    known.give_back(0)
    assert (known.count, known.unused, known.under_way) == (0, {}, {})


def test_numbers_below_one_that_was_made_stay_unused():
    known = Ids()
    known.take(1)
    known.take(1)
    known.made(1)
    known.give_back(0)
    assert known.take(1) == 2
    assert known.number(1) == 1


def test_unused_numbers_are_forgotten_in_the_end(monkeypatch):
    monkeypatch.setattr(ids, "UNDER_WAY", 2)
    known = Ids()
    for _ in range(5):
        known.take(2)
        known.take(1)
        known.give_back(known.count - 3)
        known.made(known.count - 1)
    assert known.unused == {14: 12, 11: 9}


def test_decisions_that_a_log_tells():
    known = Ids([Span(100, 0, 3), Span(100, 5, 6)], 6, 100)
    for number in (3, 6, 8):  # 4 and 7 were refused
        known.note(number)
    assert known.count == 9
    assert [known.number(100 + each) for each in (2, 3, 4, 5, 6, 8, 9)] == [2, 3, None, 5, 6, 8, None]
