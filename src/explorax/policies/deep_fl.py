"""DeepFL: follow the leader with a neural network, that is DeepFPL without perturbation (a = 0).

It explores only by the chance of its first weights, and is what DeepFPL is compared with.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from typing import Unpack

from explorax.policies.base import Policy
from explorax.policies.deep_fpl import deep_fpl
from explorax.policies.settings import DeepSettings


def deep_fl(**settings: Unpack[DeepSettings]) -> Policy:
    """Build DeepFL."""
    return deep_fpl(scale=0.0, **settings)
