"""What tests ask of a memory."""

import jax.numpy as jnp

from explorax.glm.memory.base import Wanted


def wanted(arms, dtype="float64", **settings):
    """What a policy with default settings wants, for these arms or so many features."""
    size = arms if isinstance(arms, int) else arms.shape[1]
    usual = {"ridge": 1.0, "capacity": 100, "drops_oldest": False, "discount": 1.0, "window": None, "buffer": 0}
    needs = {"widths": False, "roots": False, "keeps_curvature": True}
    return Wanted(arms, size, jnp.dtype(dtype), **usual | needs | settings)
