"""A summary with a buffer of the last rewards: exact while all are in it, and nearer to the exact fit from then on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorax
from benchmarks import memory_errors
from explorax.errors import InvalidArgument
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.policies.adoption import adopt
from tests.problems import FAMILIES, random_rows

D = 4


def learned(policy, x, y):
    step = jax.jit(
        lambda state, x, y: jax.lax.scan(lambda now, each: (policy.update(now, 0, *each), None), state, (x, y))
    )
    return step(policy.init(D), jnp.asarray(x), jnp.asarray(y))[0]


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_exact_while_all_rewards_are_in_it(family):
    x, y = random_rows(np.random.default_rng(0), family)
    policy = explorax.make("glm_tsl", family=family, memory="constant", buffer=len(y), warmup="none")
    state = learned(policy, x, y)
    exact = fit(family, Grouped(x, np.ones(len(y)), y)).theta
    np.testing.assert_allclose(state.theta_hat, exact, rtol=0, atol=1e-5)
    assert state.converged


def test_rewards_that_leave_it_are_remembered():
    # In the Gaussian family a parabola is the loss itself, whatever the size of the buffer.
    x, y = random_rows(np.random.default_rng(1), "gaussian")
    state = learned(explorax.make("glm_tsl", family="gaussian", memory="constant", buffer=3, warmup="none"), x, y)
    np.testing.assert_allclose(state.theta_hat, np.linalg.solve(x.T @ x + np.eye(D), y @ x), rtol=1e-8)
    inverse = np.linalg.inv(x.T @ x + np.eye(D))
    np.testing.assert_allclose(state.history.root @ state.history.root.T, inverse, rtol=1e-8, atol=1e-12)


def test_it_is_nearer_to_the_exact_fit_than_a_summary_alone():
    found = {name: off for *_, name, off in memory_errors.table([3], [300], [4.0], 3)}
    median = {name: np.median(off[:, 0]) for name, off in found.items()}
    assert median["constant, buffer 256"] < 0.5 * median["constant, buffer 64"] < 0.5 * median["constant"]
    assert median["refitted"] < 0.2 * median["constant"]
    # Its variances are nearer to the exact ones, too.
    assert found["constant"][:, 1].min() < found["constant, buffer 64"][:, 1].min()


def test_it_can_be_had_later():
    x, y = random_rows(np.random.default_rng(2), "bernoulli")
    plain = explorax.make("glm_tsl", memory="constant", warmup="none")
    state = learned(plain, x, y)
    policy = explorax.make("glm_tsl", memory="constant", buffer=5, warmup="none")
    adopted = adopt(policy, state, policy.init(D))
    np.testing.assert_array_equal(adopted.theta_hat, state.theta_hat)
    # Nothing pulls it away: a row of zeros says nothing.
    again = policy.update(adopted, 0, np.zeros(D), 1.0)
    np.testing.assert_allclose(again.theta_hat, state.theta_hat, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(again.history.root @ again.history.root.T, state.history.root @ state.history.root.T)


@pytest.mark.parametrize(
    "settings", [{"memory": "exact"}, {"memory": "refitted"}, {"memory": "constant", "discount": 0.9}]
)
def test_where_it_does_not_belong(settings):
    with pytest.raises(InvalidArgument, match="a buffer belongs to memory='constant'"):
        explorax.make("glm_tsl", buffer=8, **settings)
