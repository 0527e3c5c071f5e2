"""Neural perturbed reward (NPR): a network trained on a past that is perturbed anew in every round.

    with each reward:   Z_1, …, Z_t ~ N(0, ν²) for all t rewards so far, then J training steps of
                            Σ_l loss(f(X_l; θ), Y_l + Z_l) + ½ λ ‖θ − θ_0‖²
    pull argmax_i f(x_i; θ)

DeepFPL is its near relative, and differs in three things: there the noise of an example is drawn anew in every training
*step*, here once for each *round* and held over that round's J steps; there are steps on the most recent examples, here
on mini-batches from all that are kept; and here is a penalty that pulls the weights to the first ones, θ_0.  With a
single step and λ → 0 this is DeepFPL with uniform replay (but for examples that are twice in a mini-batch).

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

from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive, is_number
from explorax.errors import InvalidArgument
from explorax.glm.history import Rows
from explorax.networks import Params
from explorax.policies.base import Policy, checked_init
from explorax.policies.deep_fpl import program
from explorax.policies.deep_model import DeepModel, DeepSettings, DeepState, Trainer


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


@dataclass(frozen=True)
class RoundTrainer(Trainer):
    """Training with noise that an example keeps for all of a round's steps."""

    def step(self, state: DeepState, key: Array) -> DeepState:
        """One training step on a mini-batch, with the noise that its examples have in this round."""
        history, (_, choice) = state.history, jax.random.split(key)
        numbered = history._replace(sums=jnp.arange(history.capacity))
        rows, places, weights = super().mini_batch(numbered, choice)
        keys = jax.vmap(jax.random.fold_in, (None, 0))(self.noise_key(state), places)
        noise = jax.vmap(lambda key: jax.random.normal(key, (), state.scale.dtype))(keys)
        rewards = history.sums[places] + state.scale * noise
        perturbed = state._replace(
            history=Rows(rows, weights, rewards, history.seen, history.forgets),
            optimizer=state.optimizer._replace(examples=jnp.minimum(history.seen, history.capacity)),
            scale=jnp.zeros_like(state.scale),
        )
        return super().step(perturbed, key)._replace(history=history, scale=state.scale)

    def noise_key(self, state: DeepState) -> Array:
        """What the noise of a round is drawn from, example by example."""
        of_round = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.history.seen)
        return jax.random.fold_in(of_round, self.steps + 1)  # the steps have taken those of smaller numbers

    def mini_batch(self, history: Rows, key: Array) -> tuple[Array, Array, Array]:
        """All of what is given: the mini-batch is made by then."""
        return history.features, history.sums, history.counts


def neural_pr(
    *, scale: float = 1.0, ridge: float = 1.0, redraws: bool = False, **settings: Unpack[DeepSettings]
) -> Policy:
    """Build neural perturbed reward; see `DeepSettings` for what all deep policies take."""
    if not isinstance(redraws, bool):
        raise InvalidArgument(f"redraws={redraws!r} must be True or False")
    if not (is_number(scale) and scale >= 0):
        raise InvalidArgument(f"scale={scale!r} must be a finite number of at least 0")
    check_positive("ridge", ridge)
    defaults: DeepSettings = {"replay": "uniform", "steps": 10}
    model = DeepModel(**(defaults | settings))
    plain = model.trainer()
    parts = {field.name: getattr(plain, field.name) for field in fields(plain)}
    trainer = RoundTrainer(**(parts | {"optimizer": tied(plain.optimizer)}))

    def init(arms: Array | int, key: Array) -> DeepState:
        state = trainer.init(arms, key, model.kept, scale, redraws)
        return state._replace(optimizer=state.optimizer._replace(ridge=jnp.asarray(ridge, state.scale.dtype)))

    return Policy(checked_init(init), *program(trainer), redraw=trainer.redraw if redraws else None)
