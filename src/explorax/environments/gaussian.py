"""Linear bandits: a pull of arm x pays N(xᵀθ, σ²).

    σ   `noise_std`   1 unless given

`glm.py` says how instances are drawn.
"""

from typing import Unpack

from explorax.checks import check_positive
from explorax.environments.base import Environment
from explorax.environments.glm import Settings, environment
from explorax.glm import families


def gaussian(*, noise_std: float = 1.0, **settings: Unpack[Settings]) -> Environment:
    """Build the environment; see `Settings` for what all environments take."""
    check_positive("noise_std", noise_std)
    return environment("gaussian", families.gaussian, noise_std=float(noise_std), **settings)
