"""Rewards that count with weights, as warm starts and priors have them."""

from typing import NamedTuple

from jax import Array


class Weighted(NamedTuple):
    """Rewards that count with weights, as if each had come that often.

    Attributes:
        arms: The index of the arm that was pulled, of shape (n,); 0 if arms change.
        features: The features of the arms, of shape (n, d).
        weights: How often each reward counts, above 0, of shape (n,).
        rewards: The rewards, of shape (n,).
    """

    arms: Array
    features: Array
    weights: Array
    rewards: Array
