"""DeepFPL: follow the perturbed leader with a neural network.

    after each reward a training step on rewards Y_l + Z_l,  Z_l ~ N(0, a²) fresh in every step,    pull argmax_i η(x_i)

GLM-FPL fits its model anew to a perturbed past in every round.  Here the model is a network η and the fit a single step
of Adam on the most recent examples: the network never forgets the noise of past steps altogether, and wanders around
what it would be without noise.  `deep_model.py` has the loss and the training.

**More steps, less noise.**  With `steps` above 1 the noise of a round averages out over its steps: the longer training
goes on, the closer it comes to a network without noise that is shaken by the last few steps alone.  A linear model with
B examples for which ΣXXᵀ/B = I, trained by gradient descent of rate r until it settles, has scores with r/(2 − r) times
the variance that a fit to once-perturbed rewards has: a third at r = ½, 5 % at r = 0.1.  noise_per="round" draws
Z_l once for all steps of a round, so that training goes towards that fit, as GLM-FPL's does.

    a   `scale`     1, as in the paper; 0 is DeepFL
        `noise_per` "step", fresh noise in every step; or "round", which the examples keep for all steps that a reward
                    brings.  With a single step, as in the paper, both have the same law (but for examples that are
                    twice in a mini-batch of uniform replay, and have the same noise in a round)
        `redraws`   keep what the last training started from, so that it can be repeated with other noise.  Given its
                    state a decision is not random; its propensity is the chance of the arm over the noise of the last
                    training, and an agent needs this to tell it

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from functools import cache
from typing import Literal, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument, UnknownName
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, RoundTrainer, Trainer, expected_arrays
from explorax.policies.exploration import best
from explorax.policies.settings import DeepSettings

TRAINERS = {"step": Trainer, "round": RoundTrainer}


def deep_fpl(
    *,
    scale: float = 1.0,
    noise_per: Literal["step", "round"] = "step",
    redraws: bool = False,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build DeepFPL."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws={redraws!r} must be True or False")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale={scale!r} must be a finite number of at least 0")
    if noise_per not in TRAINERS:
        raise UnknownName("noise_per", noise_per, TRAINERS)
    model = DeepModel(**settings)
    trainer = model.trainer(TRAINERS[noise_per])
    return Policy(
        checked_init(lambda arms, key: trainer.init(arms, key, model.kept, scale, redraws)),
        *program(trainer),
        redraw=trainer.redraw if redraws else None,
    )


@cache
def program(trainer: Trainer) -> Program:
    """`act` and `update`; one for all scales."""

    def act(key: Array, state: DeepState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        scores = trainer.network.apply(state.params, arms)
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def update(state: DeepState, arm: Array, x: Array, reward: Array) -> DeepState:
        return trainer.learn(state, x, reward)

    return compiled(
        act=act, update=update, expected=expected_arrays, check=trainer.check, families=(trainer.family.name,)
    )
