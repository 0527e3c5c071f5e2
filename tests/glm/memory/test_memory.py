"""Memories by name: which one serves which arms, and what each refuses."""

import jax.numpy as jnp
import numpy as np
import pytest

from explorax.errors import InvalidArgument, UnknownName
from explorax.glm.memory import BUILDERS, builder_of
from explorax.glm.memory.fixed_arms import FixedArms
from explorax.glm.memory.kept_rows import KeptRows
from explorax.glm.memory.summary import Summary
from tests.glm.memory.wanted import wanted

ARMS = jnp.asarray(np.random.default_rng(0).normal(size=(5, 3)))


@pytest.mark.parametrize(
    ("name", "arms", "kind", "rewards"),
    [
        ("exact", ARMS, FixedArms, True),
        ("exact", 3, KeptRows, True),
        ("constant", ARMS, Summary, False),
        ("constant", 3, Summary, False),
        ("refitted", 3, Summary, True),
    ],
)
def test_each_name_has_a_memory(name, arms, kind, rewards):
    memory = builder_of(name)(wanted(arms))
    assert type(memory) is kind
    assert (memory.known_rewards() is not None) == rewards
    assert (memory.past is not None) == (kind is not Summary)
    assert memory.n_arms == (5 if kind is FixedArms else None)
    np.testing.assert_array_equal(memory.theta_hat, np.zeros(3))
    assert memory.converged


def test_a_builder_of_ones_own_is_taken_as_it_is():
    assert builder_of(KeptRows.of) == KeptRows.of
    with pytest.raises(UnknownName, match=r"memory must be one of .*, got 'exat'. Did you mean 'exact'"):
        builder_of("exat")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("constant", {"ridge": 0.0}, "ridge must be above 0 with memory='constant', .* got 0"),
        ("refitted", {"ridge": 0.0}, "ridge must be above 0 with memory='refitted', .* got 0"),
        ("constant", {"window": 5}, "window must be None .* cannot take a reward out again, got 5"),
        (
            "constant",
            {"buffer": 5, "discount": 0.9},
            "buffer must be 0 with memory='constant' and discount=0.9, got 5. .* belongs to memory='constant' without",
        ),
        ("exact", {"buffer": 5}, "buffer must be 0 with memory='exact' .* got 5. .* belongs to memory='constant'"),
        (
            "refitted",
            {"buffer": 5},
            "buffer must be 0 with memory='refitted' .* got 5. .* belongs to memory='constant'",
        ),
    ],
)
def test_settings_that_do_not_fit_are_refused(name, settings, message):
    with pytest.raises(InvalidArgument, match=message):
        BUILDERS[name](wanted(3, **settings))
