"""DeepFPL: follow the perturbed leader with a neural network.

    after each reward a training step on rewards Y_l + Z_l,  Z_l ~ N(0, a²) fresh in every step,    pull argmax_i η(x_i)

GLM-FPL fits its model anew to a perturbed past in every round.  Here the model is a network η and the fit a single step
of Adam on the most recent examples: the network never forgets the noise of past steps altogether, and wanders around
what it would be without noise.  `deep_model.py` has the loss and the training.

    a   `scale`     1, as in the paper; 0 is DeepFL
        `redraws`   keep what the last training started from, so that it can be repeated with other noise.  Given its
                    state a decision is not random; its propensity is the chance of the arm over the noise of the last
                    training, and an agent needs this to tell it

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from functools import cache
from typing import Unpack

import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument
from explorax.policies.base import Action, Policy, Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepSettings, DeepState, Trainer, expected_arrays
from explorax.policies.exploration import best


def deep_fpl(*, scale: float = 1.0, redraws: bool = False, **settings: Unpack[DeepSettings]) -> Policy:
    """Build DeepFPL; see `DeepSettings` for what all deep policies take."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws={redraws!r} must be True or False")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale={scale!r} must be a finite number of at least 0")
    model = DeepModel(**settings)
    trainer = model.trainer()
    return Policy(
        checked_init(lambda arms, key: trainer.init(arms, key, model.kept, scale, redraws)),
        *program(trainer),
        redraw=trainer.redraw if redraws else None,
    )


@cache
def program(trainer: Trainer) -> Program:
    """`act` and `update`; one for all scales."""

    def act(key: Array, state: DeepState, arms: Array, t: Array, offered: Array | None = None) -> Action:
        scores = trainer.network.apply(state.params, arms)
        return Action(best(scores, offered), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def update(state: DeepState, arm: Array, x: Array, reward: Array) -> DeepState:
        return trainer.learn(state, x, reward)

    return compiled(
        act=act, update=update, expected=expected_arrays, check=trainer.check, families=(trainer.family.name,)
    )
