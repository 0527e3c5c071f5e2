"""ECOLog-OFU: optimism around an online estimate, at a cost that does not grow with time.

The score of an arm is its estimate plus a bonus for uncertainty:

    pull argmax_i x_iᵀθ_t + β ‖x_i‖_{W_t⁻¹},    θ_t and W_t those of ECOLog-TS (`ecolog_ts.py`)

    β   `width`    default: 1, which is not derived from a confidence level
    Θ   `radius`   the ball ‖θ‖ ≤ S if a radius S is given, otherwise all of R^d

The remarks of `ecolog_ts.py` on the constants of the paper hold here, too.

Reference: Faury, Abeille, Jun & Calauzènes, Jointly Efficient and Optimal Algorithms for Logistic Bandits,
AISTATS 2022.
"""

from typing import Annotated, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator
from explorax.policies.base import Policy
from explorax.policies.ecolog_ts import Radius, State, implicit
from explorax.policies.settings import OnlineSettings


def ecolog_ofu(
    *,
    width: Annotated[float, "How much to explore: the width β of the bonus, above 0."] = 1.0,
    radius: Radius = None,
    **settings: Unpack[OnlineSettings],
) -> Policy:
    """Build ECOLog-OFU, which is optimistic around an online estimate at a cost that does not grow with time."""
    check_positive("width", width, "Use 'greedy' for a policy that does not explore.")
    return implicit(optimistic_scores, width, radius, settings)


def optimistic_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return the scores x_iᵀθ + β ‖x_i‖_{W⁻¹}, and whether the fit converged."""
    norms = jnp.linalg.norm(arms @ state.memory.root, axis=1)
    return state.memory.scores(arms) + state.numbers.amount * norms, state.converged
