"""Poisson bandits: a pull of arm x pays a count with mean exp(xᵀθ).

Scores xᵀθ have variance 1 unless settings say otherwise, so that means stay moderate: 1 in the median, 1.6 on average.
`glm.py` says how instances are drawn.
"""

from typing import Unpack

from explorax.environments.base import Environment
from explorax.environments.glm import Settings, environment
from explorax.glm import families


def poisson(**settings: Unpack[Settings]) -> Environment:
    """Build the environment; see `Settings` for what all environments take."""
    return environment("poisson", families.poisson, **settings)
