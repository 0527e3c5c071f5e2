"""What was pulled and paid goes into a compiled program as one vector, and comes out of it exactly."""

import jax
import numpy as np
import pytest

from explorax.agent.pulled import Pulled, apart


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_programs_get_exactly_what_was_pulled(dtype):
    """Rows are whole numbers that no float32 holds."""
    rng = np.random.default_rng(0)
    rows = np.array([0, 1, 2**24 + 1, 2**31 - 1])
    features, rewards = rng.normal(size=(4, 3)).astype(dtype), rng.normal(size=4).astype(dtype)
    pulled = Pulled.of(rows, features).paid(rewards)
    for each in (pulled.rows, rows), (pulled.features, features), (pulled.rewards, rewards):
        np.testing.assert_array_equal(*each)
    with jax.enable_x64(dtype == "float64"):
        for i, numbers in enumerate(pulled.numbers):
            row, x, reward = jax.jit(apart)(numbers)
            assert int(row) == rows[i]
            np.testing.assert_array_equal(x, features[i])
            assert reward == rewards[i]


def test_what_waits_is_read_without_a_copy():
    pulled = Pulled.nothing(2, 3, "float32")
    pulled.rows[1], pulled.features[0] = 7, 1.0
    assert (pulled.rows.tolist(), pulled.features.tolist()) == ([0, 7], [[1.0] * 3, [0.0] * 3])
