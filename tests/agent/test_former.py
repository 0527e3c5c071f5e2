"""What snapshots of former formats call things, in the names of today; test_snapshot.py loads kept ones."""

import numpy as np
import pytest

from explorax.agent.former import arrays_today, former_name, schema_today


def test_settings_have_the_names_of_today():
    settings = {"explore": "none", "features": 3, "scale": 2.0}  # former names
    schema = {"format": 2, "settings": settings, "decisions": 4}
    assert schema_today(schema)["settings"] == {"warmup": "none", "n_features": 3, "scale": 2.0}
    assert schema["settings"] is settings
    assert schema_today({"format": 2, "settings": None})["settings"] is None
    now = {"format": 3, "settings": {"features": 3}}  # former, and no setting today: it is for the policy to refuse
    assert schema_today(now) == {**now, "rowless": [], "reward_window": None, "default_reward": None}
    assert schema_today({"format": 6, "settings": {}}) == {"format": 6, "settings": {}}


def test_the_first_format_knew_no_ids():
    schema = schema_today({"format": 1, "settings": {}, "decisions": 4})
    assert (schema["offset"], schema["spans"], schema["unsure"], schema["explore_floor"]) == (0, [[0, 0, 4]], 4, 0.0)
    assert schema_today({"format": 1, "settings": {}, "decisions": 0})["spans"] == []


@pytest.mark.parametrize(
    ("today", "then"),  # former names
    [
        (".memory.past.counts", ".history.counts"),
        (".memory.theta_hat", ".theta_mle"),  # former
        (".memory.warm.root", ".warm.root"),
        (".memory.forgetting.recent.arms", ".recent.arms"),
        (".glm.memory.rows.seen", ".glm.history.rows.seen"),
        (".head.memory.gram_root", ".head.history.gram_root"),
        (".path.theta_hat", ".path.theta_mle"),  # former
        (".numbers.scale", ".strength"),
        (".exploration.rounds", ".exploration.rounds"),
        (".history.second", ".history.second"),
    ],
)
def test_arrays_have_other_names(today, then):
    assert former_name(today) == then


def described(**arrays):
    return [[name, list(np.shape(value)), str(value.dtype)] for name, value in arrays.items()]


def test_a_record_of_numbers_was_one_array():
    then = {".strength": np.array([2.0, 7.0]), ".ridge": np.array(1.0)}
    expected = described(**{".ridge": np.array(0.0), ".numbers.scale": np.array(0.0), ".numbers.bound": np.array(0.0)})
    arrays = {"state_0": then[".strength"], "state_1": then[".ridge"], "arms": np.ones(3)}
    names, values = arrays_today(expected, {}, described(**then), arrays, 2)
    assert names == expected
    assert [float(values[f"state_{i}"]) for i in range(3)] == [1.0, 2.0, 7.0]
    np.testing.assert_array_equal(values["arms"], np.ones(3))


def test_what_cannot_be_matched_stays_as_it_was():
    then, arrays = described(**{".strength": np.ones(1)}), {"state_0": np.ones(1)}
    for expected in (
        described(**{".numbers.one": np.ones(()), ".numbers.two": np.ones(())}),
        described(**{".memory.root": np.ones((2, 2))}),
    ):
        assert arrays_today(expected, {}, then, arrays, 2) == (then, arrays)


def test_what_a_former_state_lacks_is_taken_from_a_fresh_one():
    second, ridge = np.eye(2), np.array(3.0)
    expected = described(**{".history.second": np.zeros((2, 2)), ".ridge": ridge})
    fresh = {"state_0": np.zeros((2, 2)), "state_1": ridge}
    then = described(**{".history.second": second})
    names, values = arrays_today(expected, fresh, then, {"state_0": second}, 3)
    assert names == expected
    np.testing.assert_array_equal(values["state_0"], second)
    assert values["state_1"] == 3.0
