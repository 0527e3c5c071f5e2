"""Logistic bandits: a pull of arm x pays 1 with probability μ(xᵀθ) = 1 / (1 + exp(−xᵀθ)), else 0.

`logistic(n_features=d)` is the paper's experiment; `glm.py` says how instances are drawn.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.1.
"""

from typing import Unpack

from explorax.environments.base import Environment
from explorax.environments.glm import Settings, environment
from explorax.glm import families


def logistic(**settings: Unpack[Settings]) -> Environment:
    """Build the environment; see `Settings` for what all environments take."""
    return environment("logistic", families.bernoulli, **settings)
