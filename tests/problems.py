"""Random histories that several tests share."""

import jax.numpy as jnp
import numpy as np

from explorax.glm.history import Grouped

FAMILIES = ("bernoulli", "gaussian", "poisson")


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
