"""LinUCB: optimism in a linear model (OFUL).

The score of an arm is its estimate by ridge regression plus a bonus for uncertainty:

    V = λI + Σ_l X_l X_lᵀ,  θ̂ = V⁻¹ Σ_l X_l Y_l,    pull argmax_i x_iᵀθ̂ + √β ‖x_i‖_{V⁻¹}

    √β   `width`       σ in the informal design, σ √(2 log(det(V)^½ det(λI)^−½ / δ)) + √λ S in the theory's
    S    `norm_bound`  a bound on ‖θ*‖, used in the theory's design only

Reference: Abbasi-Yadkori, Pál & Szepesvári, Improved Algorithms for Linear Stochastic Bandits, NeurIPS 2011.
"""

import math
from typing import Annotated, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.builders import Setting
from explorax.checks import check_positive
from explorax.policies.base import Policy
from explorax.policies.linear_model import LinearModel, LinearState, Regression
from explorax.policies.settings import Design, LinearSettings


def lin_ucb(
    *,
    design: Design = "informal",
    width: Annotated[
        float | None, Setting(None, "How much to explore: the width √β of the bonus, above 0.", "chosen by `design`")
    ] = None,
    norm_bound: Annotated[float, 'A bound S on the norm of θ* in the design "theory", above 0.'] = 1.0,
    **settings: Unpack[LinearSettings],
) -> Policy:
    """Build LinUCB, which adds a bonus for uncertainty to the score of an arm in a linear model."""
    model = LinearModel(**settings)
    by_theory = model.is_theory(design, "width", width)
    check_positive("norm_bound", norm_bound)

    def width_at(regression: Regression) -> Array | float:
        if not by_theory:
            return model.given["noise_std"] if width is None else width
        size = regression.theta_hat.shape[0]
        growth = jnp.maximum(regression.half_log_det() - size / 2 * math.log(model.given["ridge"]), 0)
        confidence = jnp.sqrt(2 * (growth - math.log(model.failure)))
        return model.given["noise_std"] * confidence + math.sqrt(model.given["ridge"]) * norm_bound

    def act(key: Array, state: LinearState, arms: Array, t: Array) -> Array:
        regression = state.regression
        return arms @ regression.theta_hat + width_at(regression) * regression.widths(arms)

    return model.policy(act, stationary=True)
