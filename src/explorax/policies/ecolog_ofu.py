"""ECOLog-OFU: optimism around an implicit online estimate, at a cost that never grows.

    pull argmax_i x_iᵀθ_t + β ‖x_i‖_{W_t⁻¹},    θ_t and W_t those of ECOLog-TS (`ecolog_ts.py`)

    β   `width`    1 unless given, which is no confidence level
    Θ   `radius`   the ball ‖θ‖ ≤ S if a radius S is given, else all of R^d

What `ecolog_ts.py` says of the paper's constants holds here too.

Reference: Faury, Abeille, Jun & Calauzènes, Jointly Efficient and Optimal Algorithms for Logistic Bandits,
AISTATS 2022.
"""

from typing import Unpack

import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.glm.memory.base import Estimator
from explorax.policies.base import Policy
from explorax.policies.ecolog_ts import State, implicit
from explorax.policies.settings import OnlineSettings


def ecolog_ofu(*, width: float = 1.0, radius: float | None = None, **settings: Unpack[OnlineSettings]) -> Policy:
    """Build ECOLog-OFU."""
    check_positive("width", width, "Use 'greedy' for a policy that does not explore.")
    return implicit(optimistic_scores, width, radius, settings)


def optimistic_scores(estimator: Estimator, key: Array, state: State, arms: Array) -> tuple[Array, Array]:
    """Return x_iᵀθ + β ‖x_i‖_{W⁻¹}."""
    norms = jnp.linalg.norm(arms @ state.memory.root, axis=1)
    return state.memory.scores(arms) + state.numbers.amount * norms, state.converged
