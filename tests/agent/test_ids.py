"""Numbers and ids of decisions: given out once, and given back if nothing came of them."""

from explorax.agent import ids
from explorax.agent.ids import Ids, Span


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
