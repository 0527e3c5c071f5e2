"""LinTS: Thompson sampling in a linear model.

In each round a parameter θ̃ is drawn around the ridge regression θ̂, and the best arm under θ̃ is pulled:

    V = λI + Σ_l X_l X_lᵀ,  θ̂ = V⁻¹ Σ_l X_l Y_l,    θ̃ ~ N(θ̂, v² V⁻¹),    pull argmax_i x_iᵀθ̃

    v   `scale`   σ in the informal design, σ √(9 d log(t/δ)) with t counted from 1 in the theory's

Reference: Agrawal & Goyal, Thompson Sampling for Contextual Bandits with Linear Payoffs, ICML 2013.
"""

from typing import Annotated, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.builders import Setting
from explorax.policies.base import Policy
from explorax.policies.linear_model import LinearModel, LinearState
from explorax.policies.settings import Design, LinearSettings


def lin_ts(
    *,
    design: Design = "informal",
    scale: Annotated[
        float | None, Setting(None, "How much to explore: the scale v of the draws, above 0.", "chosen by `design`")
    ] = None,
    **settings: Unpack[LinearSettings],
) -> Policy:
    """Build LinTS, Thompson sampling in a linear model."""
    model = LinearModel(**settings)
    by_theory = model.is_theory(design, "scale", scale)

    def scale_at(features: int, t: Array) -> Array | float:
        if by_theory:
            return model.given["noise_std"] * jnp.sqrt(9 * features * jnp.log((t + 1) / model.failure))
        return model.given["noise_std"] if scale is None else scale

    def act(key: Array, state: LinearState, arms: Array, t: Array) -> Array:
        center = state.theta_hat
        noise = jax.random.normal(key, center.shape, center.dtype)
        return arms @ (center + scale_at(arms.shape[1], t) * state.regression.draw(noise)).astype(arms.dtype)

    return model.policy(act, stationary=not by_theory)
