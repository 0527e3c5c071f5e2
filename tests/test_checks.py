"""Arguments are looked at before they are used, and not inside compiled code, where they are not known yet."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorax import checks
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidReward


def test_what_is_being_traced_is_not_known():
    known = []
    jax.jit(lambda x: known.append(checks.is_known(1.0, x)) or x)(2.0)
    assert known == [False]
    assert checks.is_known(1.0, jnp.ones(2), "text")
    assert checks.is_known()


@pytest.mark.parametrize("value", [0, -3, 2.5, np.float32(1), np.int64(7), 10**300])
def test_numbers(value):
    assert checks.is_number(value)


@pytest.mark.parametrize("value", [True, math.nan, math.inf, -math.inf, "1", None, [1], 10**400, np.ones(1), 1j])
def test_what_is_no_number(value):
    assert not checks.is_number(value)


def test_positive():
    checks.check_positive("scale", 1e-300)
    for value in (0, -1.0, math.nan, math.inf, "1", True):
        with pytest.raises(InvalidArgument, match=r"^scale must be a finite number above 0, got .*\. Leave it out\.$"):
            checks.check_positive("scale", value, "Leave it out.")


def test_whole_numbers():
    for value in (2, 9, np.int32(9)):
        checks.check_whole("rounds", value, 2, 9)
    checks.check_whole("rounds", 10**30, 2)
    for value in (1, -5, 2.0, True, "3", None):
        with pytest.raises(InvalidArgument, match=rf"^rounds must be a whole number of at least 2, got {value!r}\.$"):
            checks.check_whole("rounds", value, 2)
    with pytest.raises(InvalidArgument, match="rounds must be a whole number from 2 to 9, got 10"):
        checks.check_whole("rounds", 10, 2, 9)


def test_sizes_of_arrays():
    checks.check_size(checks.MOST_NUMBERS, 1)
    with pytest.raises(InvalidArgument, match=f"at most {checks.MOST_NUMBERS}, got {checks.MOST_NUMBERS} times 2"):
        checks.check_size(checks.MOST_NUMBERS, 2)


@pytest.mark.parametrize("value", [0, 4, np.int64(4), jnp.int32(4)])
def test_counts(value):
    checks.check_count("t", value, "the round", 5)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (5, r"^t must be a whole number from 0 to 4, the round, got 5\.$"),
        (jnp.int32(5), "from 0 to 4, the round, got 5"),
        (-1, "from 0 to 4, the round, got -1"),
        (1.0, "t must be a whole number from 0 to 4, the round, got 1.0"),
        (np.array([1]), r"must be a whole number .*, got an array of shape \(1,\)"),
        ("1", "t must be a whole number from 0 to 4, the round, got '1'"),
    ],
)
def test_what_is_no_count(value, said):
    with pytest.raises(InvalidArgument, match=said):
        checks.check_count("t", value, "the round", 5)


def test_counts_without_a_limit_and_in_compiled_code():
    checks.check_count("t", 10**9, "the round")
    with pytest.raises(InvalidArgument, match=r"^t must be a whole number of at least 0, the round, got -1\.$"):
        checks.check_count("t", -1, "the round")

    def looked_at(t):
        checks.check_count("t", t, "the round", 5)
        return t

    assert jax.jit(looked_at)(7) == 7  # its value is not known there
    with pytest.raises(InvalidArgument, match="must be a whole number"):
        jax.jit(looked_at)(7.0)  # its type is


def test_floats():
    assert checks.as_floats("arms", [[1, 2]]).dtype == jnp.asarray(1.0).dtype
    single = np.ones(2, np.float32)
    assert checks.as_floats("arms", single).dtype == np.float32
    assert checks.as_floats("arms", single, np.float64).dtype == np.float64
    for values in ([math.nan], [math.inf, 1.0]):
        with pytest.raises(InvalidFeatures, match="arms must be finite, got NaN or infinity"):
            checks.as_floats("arms", values)
    for values in ([[1.0], [1.0, 2.0]], "text", [None]):
        with pytest.raises(InvalidFeatures, match="arms must be an array of numbers, got "):
            checks.as_floats("arms", values)
    assert np.isnan(jax.jit(lambda x: checks.as_floats("arms", x))(jnp.array([math.nan]))).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_size_can_be_squared_and_summed_by_the_million(dtype):
    most = checks.largest_size(np.dtype(dtype))
    assert 1e6 * most**2 < np.finfo(dtype).max
    limit = np.array([-most], dtype) * dtype(0.999)
    checks.check_magnitude("arms", limit)
    checks.check_magnitude("arms", np.repeat(limit, 1000).reshape(10, 100))
    assert checks.can_be_squared(jnp.asarray(limit), jnp.asarray(limit[0]))
    too_large = limit * dtype(1.01)
    with pytest.raises(InvalidFeatures, match=rf"arms must be at most .* in {np.dtype(dtype)}, .* Scale the features"):
        checks.check_magnitude("arms", too_large)
    assert not checks.can_be_squared(jnp.asarray(too_large), jnp.asarray(limit[0]))
    assert not checks.can_be_squared(jnp.asarray(limit), jnp.asarray(too_large[0]))


def test_magnitudes_that_are_no_numbers():
    checks.check_magnitude("arms", np.zeros((0, 3)))
    for value in (math.nan, math.inf):
        with pytest.raises(InvalidFeatures, match="arms must be finite, got NaN or infinity"):
            checks.check_magnitude("arms", np.array([0.0, value]))
        assert not checks.can_be_squared(jnp.array([0.0, value]), jnp.zeros(()))
    jax.jit(lambda x: checks.check_magnitude("arms", x) or x)(jnp.array([math.inf]))  # not known there


@pytest.mark.parametrize("many", [False, True])
def test_sizes_of_rewards(many):
    most = checks.largest_size(np.dtype(np.float32))
    for value in (0.0, -0.99 * most, 0.99 * most):
        checks.check_reward_size([value] if many else value, np.float32)
    for value in (-1.01 * most, math.inf, math.nan):
        with pytest.raises(InvalidReward, match=r"reward must be at most .* in float32, .* Rescale the rewards"):
            checks.check_reward_size([0.0, value] if many else value, np.float32)
    checks.check_reward_size(1e100, np.float64)
    checks.check_reward_size([], np.float32)
    jax.jit(lambda x: checks.check_reward_size(x, np.float32) or x)(jnp.array(math.inf))


class Given(NamedTuple):
    """A record that is told its rows, and computes a sum."""

    rows: np.ndarray
    total: np.ndarray

    def computed(self):
        return self.total


def test_only_what_updates_compute_is_looked_at_for_nan():
    sound = {"one": Given(np.array([math.nan]), np.ones(2)), "count": np.array(3), "two": np.zeros((2, 2))}
    assert [leaf.shape for leaf in checks.computed(sound)] == [(), (2,), (2, 2)]
    assert checks.all_finite(sound)
    for value in (math.nan, math.inf):
        assert not checks.all_finite(sound | {"two": np.array([[0.0, value]])})
        assert not checks.all_finite(sound | {"one": Given(np.zeros(1), np.array([value]))})
    assert checks.all_finite({"large": np.full(9, 1e300)})  # its squares are not finite, but it is
