"""Neural perturbed reward (NPR): a network trained on a past that is perturbed anew in every round.

    with each reward:   Z_1, …, Z_t ~ N(0, ν²) for all t rewards so far, then J training steps of
                            Σ_l loss(f(X_l; θ), Y_l + Z_l) + ½ λ ‖θ − θ_0‖²
    pull argmax_i f(x_i; θ)

DeepFPL is its near relative, and differs in three things: there the noise of an example is drawn anew in every training
*step* unless noise_per="round", here once for each *round* and held over that round's J steps; there are steps on the
most recent examples, here on mini-batches from all that are kept; and here is a penalty that pulls the weights to the
first ones, θ_0.  With λ → 0 this is DeepFPL with noise_per="round" and uniform replay.

The steps are those of `deep_model.py`, on the mean loss of a mini-batch plus (λ/2t) ‖θ − θ_0‖² for t examples kept,
from the weights of the last round.  In the paper, as far as we know, each round descends by the gradient of the whole
squared loss; the penalty is ½ mλ ‖θ − θ_0‖² for a network whose output has a factor √m, which ours has not; and the
first K rounds pull each arm once, which is left out here, as arms may change.  A program of its first author goes on
from the last weights, for 100 steps with one draw of the noise.

    ν   `scale`     1, as DeepFPL's
    λ   `ridge`     1
    J   `steps`     10 unless given
        `replay`    "uniform" unless given, over the `capacity` latest examples
        `redraws`   as in DeepFPL: keep what the last training started from, so that an agent can tell propensities

Reference: Jia, Zhang, Zhou, Gu & Wang, Learning Neural Contextual Bandits through Perturbed Rewards, ICLR 2022.
"""

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive, is_number
from explorax.errors import InvalidArgument
from explorax.networks import Params
from explorax.policies.base import Policy
from explorax.policies.checked import checked_init
from explorax.policies.deep_fpl import program
from explorax.policies.deep_model import DeepModel, DeepState, RoundTrainer
from explorax.policies.settings import DeepSettings


class Tied(NamedTuple):
    """State of an optimizer whose loss has the penalty (λ/2t) ‖θ − θ_0‖²."""

    inner: Any
    start: Params  # θ_0
    ridge: Array  # () λ
    examples: Array  # () t


class Optimizer(NamedTuple):
    """An optimizer by its two functions, as in optax."""

    init: Any
    update: Any


@cache
def tied(optimizer: Any) -> Optimizer:
    """The same optimizer with a penalty in the loss."""

    def init(params: Params) -> Tied:
        return Tied(optimizer.init(params), params, jnp.zeros(()), jnp.ones((), int))

    def update(gradients: Params, state: Tied, params: Params) -> tuple[Params, Tied]:
        pull = state.ridge / state.examples
        total = jax.tree.map(lambda g, now, first: g + pull * (now - first), gradients, params, state.start)
        moves, inner = optimizer.update(total, state.inner, params)
        return moves, state._replace(inner=inner)

    return Optimizer(init, update)


class TiedTrainer(RoundTrainer):
    """The same training where the optimizer is `tied`, and has to know how many examples there are."""

    def step(self, state: DeepState, key: Array) -> DeepState:
        """One training step on a mini-batch, with the noise that its examples have in this round."""
        examples = jnp.minimum(state.history.seen, state.history.capacity)
        return super().step(state._replace(optimizer=state.optimizer._replace(examples=examples)), key)


def neural_pr(
    *, scale: float = 1.0, ridge: float = 1.0, redraws: bool = False, **settings: Unpack[DeepSettings]
) -> Policy:
    """Build neural perturbed reward."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws={redraws!r} must be True or False")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale={scale!r} must be a finite number of at least 0")
    check_positive("ridge", ridge)
    defaults: DeepSettings = {"replay": "uniform", "steps": 10}
    model = DeepModel(**(defaults | settings))
    plain = model.trainer(TiedTrainer)
    trainer = replace(plain, optimizer=tied(plain.optimizer))

    def init(arms: Array | int, key: Array) -> DeepState:
        state = trainer.init(arms, key, model.kept, scale, redraws)
        return state._replace(optimizer=state.optimizer._replace(ridge=jnp.asarray(ridge, state.scale.dtype)))

    return Policy(checked_init(init), *program(trainer), redraw=trainer.redraw if redraws else None)
