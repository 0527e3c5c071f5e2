"""NPR: neural perturbed reward, a network trained on a past that is perturbed anew in every round.

    with each reward:   Z_1, …, Z_t ~ N(0, ν²) for all t rewards so far, then J training steps of
                            Σ_l loss(f(X_l; θ), Y_l + Z_l) + ½ λ ‖θ − θ_0‖²
    pull argmax_i f(x_i; θ)

    ν   `scale`     default: 1, as in DeepFPL
    λ   `ridge`     default: 1
    J   `steps`     default: 10
        `replay`    default: "uniform", over the `capacity` latest examples
        `redraws`   as in DeepFPL: keep the start of the last training, so that an agent can estimate propensities

DeepFPL is similar, and differs in three ways.  In DeepFPL the noise of an example is drawn anew in every training
*step* (unless noise_per="round"); here it is drawn once in each *round* and stays the same for the J steps of the
round.  DeepFPL trains on the most recent examples; here mini-batches come from all examples that are kept.  DeepFPL has
no penalty; here a penalty pulls the weights to the first weights θ_0.  With λ → 0 the policy is DeepFPL with
noise_per="round" and uniform replay.

The training steps are those of `deep_model.py`, on the mean loss of a mini-batch plus (λ/2t) ‖θ − θ_0‖² for t examples
kept, and start from the weights of the last round.  In the paper, as far as we know, each round descends along the
gradient of the whole squared loss.  Its penalty is ½ mλ ‖θ − θ_0‖² for a network whose output has a factor √m, which
our networks do not have.  Its first K rounds pull each arm once, which is left out here, since arms may change.  A
program of the first author starts from the last weights and makes 100 steps with one draw of the noise.

Reference: Jia, Zhang, Zhou, Gu & Wang, Learning Neural Contextual Bandits through Perturbed Rewards, ICLR 2022.
"""

from dataclasses import replace
from functools import cache
from typing import Annotated, Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.builders import defaults
from explorax.checks import check_positive, is_number
from explorax.errors import InvalidArgument
from explorax.networks import Params
from explorax.policies.base import Policy
from explorax.policies.checked import checked_init
from explorax.policies.deep_fpl import program
from explorax.policies.deep_model import DeepModel, DeepState, RoundTrainer
from explorax.policies.settings import DeepSettings, Redraws


class Tied(NamedTuple):
    """The state of an optimizer whose loss has the penalty (λ/2t) ‖θ − θ_0‖².

    Attributes:
        inner: The state of the optimizer itself.
        start: The first weights θ_0.
        ridge: The strength λ of the penalty, of shape ().
        examples: The number t of examples, of shape ().
    """

    inner: Any
    start: Params
    ridge: Array
    examples: Array


class Optimizer(NamedTuple):
    """An optimizer as two functions, as in optax.

    Attributes:
        init: Maps weights to the state of the optimizer.
        update: Maps gradients, the state and weights to moves and the new state.
    """

    init: Any
    update: Any


@cache
def tied(optimizer: Any) -> Optimizer:
    """Return an optimizer whose loss has an additional penalty that pulls the weights to the first ones."""

    def init(params: Params) -> Tied:
        return Tied(optimizer.init(params), params, jnp.zeros(()), jnp.ones((), int))

    def update(gradients: Params, state: Tied, params: Params) -> tuple[Params, Tied]:
        pull = state.ridge / state.examples
        total = jax.tree.map(lambda g, now, first: g + pull * (now - first), gradients, params, state.start)
        moves, inner = optimizer.update(total, state.inner, params)
        return moves, state._replace(inner=inner)

    return Optimizer(init, update)


class TiedTrainer(RoundTrainer):
    """A trainer for an optimizer that is `tied`, which must know the number of examples."""

    def step(self, state: DeepState, key: Array) -> DeepState:
        """Make one training step on a mini-batch, with the noise that its examples have in this round."""
        examples = jnp.minimum(state.history.seen, state.history.capacity)
        return super().step(state._replace(optimizer=state.optimizer._replace(examples=examples)), key)


@defaults(replay="uniform", steps=10)
def neural_pr(
    *,
    scale: Annotated[
        float, "How much to explore: the standard deviation ν of the noise in a reward, at least 0."
    ] = 1.0,
    ridge: Annotated[float, "The strength λ of the penalty that pulls weights to the first ones, above 0."] = 1.0,
    redraws: Redraws = False,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build NPR (neural perturbed reward), which trains a network on a past that is perturbed anew in every round."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws must be True or False, got {redraws!r}.")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale must be a finite number of at least 0, got {scale!r}.")
    check_positive("ridge", ridge)
    model = DeepModel(**settings)
    plain = model.trainer(TiedTrainer)
    trainer = replace(plain, optimizer=tied(plain.optimizer))

    def init(arms: Array | int, key: Array) -> DeepState:
        state = trainer.init(arms, key, model.kept, scale, redraws)
        return state._replace(optimizer=state.optimizer._replace(ridge=jnp.asarray(ridge, state.scale.dtype)))

    return Policy(checked_init(init), *program(trainer), redraw=trainer.redraw if redraws else None)
