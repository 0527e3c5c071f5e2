"""Who goes on, how far, and which settings cannot be halved."""

import pytest

from explorax.errors import InvalidArgument, UnknownName
from explorax.halving import Halving, Race, Rung, best


@pytest.mark.parametrize(
    ("count", "keep", "instances", "rungs", "chosen_on"),
    [
        (1, 3, 60, [(1, 60)], 0),
        (2, 3, 51, [(2, 50), (1, 51)], 50),
        (3, 3, 51, [(3, 50), (1, 51)], 50),
        (4, 3, 151, [(4, 50), (2, 150), (1, 151)], 150),
        (27, 3, 999, [(27, 50), (9, 150), (3, 450), (1, 999)], 450),
        (5, 2, 240, [(5, 50), (3, 100), (2, 200), (1, 240)], 200),
    ],
)
def test_the_rungs_of_a_race(count, keep, instances, rungs, chosen_on):
    curves = tuple(map(str, range(count)))
    race = Halving(50, keep).race("x", curves, instances)
    assert race == Race(curves, tuple(Rung(*rung) for rung in rungs))
    assert race.chosen_on == chosen_on
    if chosen_on:
        with pytest.raises(
            InvalidArgument, match=f"must be more than {chosen_on}, .* got {chosen_on}. .*{2 * chosen_on}"
        ):
            Halving(50, keep).race("x", curves, chosen_on)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (3, InvalidArgument, "halving must be a table, .* got 3"),
        ({"instances": 60}, InvalidArgument, r"halving\.instances must be a multiple of 50, .* got 60\. Give 100\."),
        ({"instances": 0}, InvalidArgument, r"halving\.instances must be a whole number of at least 1, got 0"),
        ({"keep": 1}, InvalidArgument, r"halving\.keep must be a whole number of at least 2, got 1"),
        ({"keep": 2.5}, InvalidArgument, r"halving\.keep must be a whole number of at least 2, got 2.5"),
        ({"kep": 3}, UnknownName, "Did you mean 'keep'"),
    ],
)
def test_settings_that_cannot_be_used(given, error, message):
    with pytest.raises(error, match=message):
        Halving.of(given)


def test_the_best_go_on_and_of_equal_ones_the_first():
    means = {"a": 2.0, "b": 1.0, "c": 1.0, "d": 3.0, "e": 2.0}
    assert best(means, 1, "regret") == ("b",)
    assert best(means, 3, "regret") == ("a", "b", "c")
    assert best(means, 2, "reward") == ("a", "d")
