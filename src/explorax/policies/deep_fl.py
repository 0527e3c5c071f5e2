"""DeepFL: follow the leader with a neural network, that is, DeepFPL without perturbation (a = 0).

    after each reward a training step on rewards Y_l,    pull argmax_i η(x_i)

The policy explores only because its first weights are random.  It is the baseline with which DeepFPL is compared;
`deep_model.py` has the loss and the training.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from typing import Unpack

from explorax.policies.base import Policy
from explorax.policies.deep_fpl import deep_fpl
from explorax.policies.settings import DeepSettings


def deep_fl(**settings: Unpack[DeepSettings]) -> Policy:
    """Build DeepFL, which trains a neural network on all rewards and pulls the arm with the largest score."""
    return deep_fpl(scale=0.0, **settings)
