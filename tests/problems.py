"""Random histories, SciPy's answer to a fit, and a problem to learn, that several tests share."""

import jax
import jax.numpy as jnp
import numpy as np
from scipy import optimize

import explorax
from explorax import environments
from explorax.glm import families, warm
from explorax.glm.history import Grouped
from explorax.glm.problem import gradient, hessian, loss

FAMILIES = ("bernoulli", "gaussian", "poisson")
afresh = jax.jit(warm.afresh, static_argnums=0)  # step by step it would be compiled as a hundred small programs
LOSS, GRADIENT, HESSIAN = (jax.jit(function, static_argnums=0) for function in (loss, gradient, hessian))


def draw_rewards(rng, family, scores):
    if family == "bernoulli":
        return (rng.random(scores.shape) < 1 / (1 + np.exp(-scores))).astype(float)
    if family == "poisson":
        return rng.poisson(np.exp(scores)).astype(float)
    return scores + rng.normal(size=scores.shape)


def random_rows(rng, family, rows=200, features=4):
    """Rows x and rewards y of a well-specified model, with overlap so that the estimate exists."""
    x = rng.uniform(-1, 1, (rows, features))
    return x, draw_rewards(rng, family, x @ rng.normal(size=features))


def random_history(rng, family, arms=12, features=4, pulls=20, dtype=float):
    """Counts and sums of `pulls` rewards of each arm."""
    x = rng.uniform(-1, 1, (arms, features))
    scores = np.repeat((x @ rng.normal(size=features))[:, None], pulls, axis=1)
    sums = draw_rewards(rng, family, scores).sum(axis=1)
    return Grouped(jnp.asarray(x, dtype), jnp.full(arms, pulls, dtype), jnp.asarray(sums, dtype))


def scipys(family, problem, features):
    """The minimum of the loss of a problem, by SciPy."""
    glm = families.get(family)
    functions = [lambda theta, f=f: np.asarray(f(glm, problem, jnp.asarray(theta))) for f in (LOSS, GRADIENT, HESSIAN)]
    rough = optimize.minimize(
        functions[0], np.zeros(features), jac=functions[1], hess=functions[2], method="trust-exact"
    )
    # A minimizer stops where the loss no longer changes; the root of the gradient is known to more digits.
    return optimize.root(functions[1], rough.x, jac=functions[2], tol=1e-14).x


def assert_learns(policy):
    """On a separable toy problem the second half of 200 rounds pays far more than random arms do."""
    labels = np.arange(200) % 2
    rows = np.random.default_rng(0).normal(size=(200, 6)) + 3.0 * labels[:, None]
    world = environments.classification(data=(rows, labels), n_arms=5, target=1)
    reward = explorax.simulate(policy, world, rounds=200, instances=50, checkpoints=2).reward
    late = np.mean(reward[:, 1] - reward[:, 0]) / 100
    assert late > 0.58  # random arms pay 0.5 with a standard error of 0.007, the best ones 0.73
