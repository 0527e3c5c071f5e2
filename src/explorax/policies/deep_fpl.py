"""DeepFPL: follow the perturbed leader with a neural network.

The network is trained on rewards with fresh noise, and the arm with the largest score is pulled:

    after each reward a training step on rewards Y_l + Z_l,  Z_l ~ N(0, a²) fresh in every step,    pull argmax_i η(x_i)

    a   `scale`   default: 1, as in the paper; 0 is DeepFL

GLM-FPL fits its model to a perturbed past anew in every round.  Here the model is a network η, and the fit is a single
step of Adam on the most recent examples: the network never fully forgets the noise of past steps, and moves around the
network that training without noise would give.  `deep_model.py` has the loss and the training.

**More steps, less noise.**  With `steps` above 1 the noise of a round averages out over its steps: the longer the
training, the closer the network is to one without noise that only the last few steps perturb.  Take a linear model with
B examples for which ΣXXᵀ/B = I, trained by gradient descent of rate r until it settles.  The variance of its scores is
r/(2 − r) times that of a fit to rewards which are perturbed once: a third at r = ½, 5 % at r = 0.1.  noise_per="round"
draws Z_l once for all steps of a round, so that training approaches that fit, as GLM-FPL's does.  With a single step,
as in the paper, both have the same law, except for an example that is twice in a mini-batch of uniform replay: it has
the same noise within a round.

**Propensities.**  Given the state, a decision is not random.  The propensity of an arm is its probability over the
noise of the last training.  With `redraws` the state keeps the start of the last training, so that an agent can repeat
the training with other noise and estimate that probability.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from functools import cache
from typing import Annotated, Literal, Unpack

import jax.numpy as jnp
from jax import Array

from explorax.checks import is_number
from explorax.errors import InvalidArgument, UnknownName
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, RoundTrainer, Trainer, expected_arrays
from explorax.policies.exploration import best
from explorax.policies.settings import DeepSettings, Redraws

TRAINERS = {"step": Trainer, "round": RoundTrainer}


def deep_fpl(
    *,
    scale: Annotated[
        float, "How much to explore: the standard deviation a of the noise in a reward, at least 0."
    ] = 1.0,
    noise_per: Annotated[
        Literal["step", "round"],
        'When noise is drawn: anew in every training "step", or once for all steps of a "round".',
    ] = "step",
    redraws: Redraws = False,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build DeepFPL, which trains a neural network on perturbed rewards and pulls the arm with the largest score."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws must be True or False, got {redraws!r}.")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale must be a finite number of at least 0, got {scale!r}.")
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
    """Return the compiled `act` and `update`, which all scales share."""

    def act(key: Array, state: DeepState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        scores = trainer.network.apply(state.params, arms)
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def update(state: DeepState, arm: Array, x: Array, reward: Array) -> DeepState:
        return trainer.learn(state, x, reward)

    return compiled(
        act=act, update=update, expected=expected_arrays, check=trainer.check, families=(trainer.family.name,)
    )
