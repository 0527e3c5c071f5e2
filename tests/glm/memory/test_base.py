"""What memories share: how they forget, what a policy wants of them, and fits around an estimate."""

import jax.numpy as jnp
import pytest

from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.glm.fit import default_tolerance
from explorax.glm.memory import constant, exact
from explorax.glm.memory.base import GRAM_RIDGE, Estimator, check_adoptable, same_numbers
from tests.glm.memory.wanted import wanted

RIDGE = jnp.asarray(0.5)


def test_last_steps_are_the_tolerance_or_what_the_dtype_can_do():
    assert Estimator(families.bernoulli, 1e-3).last_step(jnp.dtype("float32")) == 1e-3
    assert Estimator(families.bernoulli).last_step(jnp.dtype("float32")) == default_tolerance(jnp.dtype("float32"))


def test_optimists_that_forget_add_the_ridge_to_their_gram_matrix():
    def added(**settings):
        return float(wanted(3, ridge=0.7, **settings).forgetting().gram_ridge)

    assert added() == added(widths=True) == added(discount=0.9) == GRAM_RIDGE
    assert added(widths=True, discount=0.9) == added(widths=True, window=4) == pytest.approx(0.7)
    assert (wanted(3, discount=0.9).forgets, wanted(3, window=4).forgets, wanted(3).forgets) == (True, True, False)


def test_pasts_of_another_kind_are_not_adopted():
    check_adoptable(constant(wanted(3)), exact(wanted(3)))
    for other, message in (
        (wanted(4), "Keep the number of features and the dtype"),
        (wanted(3, "float32"), "Keep the number of features and the dtype"),
        (wanted(3, discount=0.9), "discount must stay as it was"),
    ):
        with pytest.raises(InvalidArgument, match=message):
            check_adoptable(exact(other), exact(wanted(3)))
    assert same_numbers(None, None)
    assert same_numbers(RIDGE, jnp.asarray(0.5))
    assert not same_numbers(RIDGE, None)
    assert not same_numbers(RIDGE, jnp.asarray(0.6))
