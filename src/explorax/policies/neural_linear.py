"""NeuralLinear: Thompson sampling in a linear model on the last hidden layer of a network that keeps learning.

In each round a parameter θ̃ is drawn around a ridge regression on the features φ, and the best arm under θ̃ is pulled:

    θ̃ ~ N(θ̂, a² V⁻¹),    V = λI + Σ_l φ(X_l) φ(X_l)ᵀ,    θ̂ = V⁻¹ Σ_l φ(X_l) Y_l,    pull argmax_i φ(x_i)ᵀθ̃

    a   `scale`     default: the standard deviation of a reward, 0.5 for rewards in [0, 1]
    λ   `ridge`     of the regression
        `refresh`   the number of rewards from one representation to the next

The network is trained as in DeepFL.  φ is its last hidden layer (`representation.py`) at the last refresh: after every
`refresh` rewards the current layer replaces φ, and V and θ̂ are computed anew from all examples that are kept, at most
`capacity`.  The reference has an inverse-gamma prior for the noise; here a is fixed.

Reference: Riquelme, Tucker & Snoek, Deep Bayesian Bandits Showdown, ICLR 2018, section 3 (Neural Linear).
"""

from dataclasses import dataclass
from functools import cache
from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.batching import only_where
from explorax.builders import Setting
from explorax.checks import check_positive, check_whole
from explorax.glm import families
from explorax.glm.history import Moments, weighted_gram
from explorax.networks import Params, check_network
from explorax.policies import representation
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, Trainer
from explorax.policies.deep_model import expected_arrays as expected_by_network
from explorax.policies.exploration import best
from explorax.policies.linear_model import ridge_regression
from explorax.policies.representation import Standard, represent, standardize
from explorax.policies.settings import DeepSettings


class NeuralLinearState(NamedTuple):
    """A network in training, and a linear model on the representation of the last refresh.

    Attributes:
        network: The network, whose history holds all examples.
        params: The weights of the representation.
        standard: How the units of the representation are standardized.
        moments: The moments of the examples in the representation.
        scale: The scale a of the draws, of shape ().
    """

    network: DeepState
    params: Params
    standard: Standard
    moments: Moments
    scale: Array


@dataclass(frozen=True)
class Parts:
    """The settings for which a program is compiled.

    Attributes:
        trainer: The training of the network.
        ridge: The ridge λ of the regression.
        refresh: The number of rewards from one representation to the next.
    """

    trainer: Trainer
    ridge: float
    refresh: int


def neural_linear(
    *,
    scale: Annotated[
        float | None,
        Setting(
            None,
            "How much to explore: the scale a of the draws, above 0.",
            "the standard deviation of a reward (0.5 for rewards in [0, 1])",
        ),
    ] = None,
    ridge: Annotated[float, "The ridge λ of the regression, above 0."] = 1.0,
    refresh: Annotated[int, "The number of rewards from one representation to the next, at least 1."] = 50,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build NeuralLinear, Thompson sampling in a linear model on the last hidden layer of a network."""
    if scale is not None:
        check_positive("scale", scale)
    check_positive("ridge", ridge)
    check_whole("refresh", refresh, 1)
    model = DeepModel(**settings)
    trainer = model.trainer()
    check_network(trainer.network, embeds=True)
    deviation = families.get(model.given["family"]).noise_std or 1.0 if scale is None else scale
    parts = Parts(trainer, float(ridge), refresh)

    def init(arms: Array | int, key: Array) -> NeuralLinearState:
        network = trainer.init(arms, key, max(model.given["capacity"], model.given["batch"]), 0.0)
        features, dtype = network.history.features.shape[1], network.history.features.dtype
        size = representation.units(trainer.network, network.params, features, dtype)
        standard, moments = representation.as_they_are(size, dtype), Moments.of(size + 1, dtype)
        return NeuralLinearState(network, network.params, standard, moments, jnp.asarray(deviation, dtype))

    return Policy(checked_init(init), *program(parts))


@cache
def program(parts: Parts) -> Program:
    """Return the compiled `act` and `update`, which all scales share."""
    trainer, network = parts.trainer, parts.trainer.network

    def act(key: Array, state: NeuralLinearState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        center, factor = ridge_regression(state.moments, parts.ridge)
        noise = jax.random.normal(key, center.shape, center.dtype)
        theta = center + state.scale * factor.decorrelate(noise)
        scores = represent(network, state.params, state.standard, arms) @ theta
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def refreshed(stale: tuple[Params, Standard, Moments], trained: DeepState) -> tuple[Params, Standard, Moments]:
        """Return the current representation, and the moments of all examples in it."""
        rows = trained.history
        standard = standardize(network, trained.params, rows)
        features = represent(network, trained.params, standard, rows.features)
        moments = Moments(weighted_gram(features, rows.counts), (rows.counts * rows.sums) @ features)
        return trained.params, standard, moments

    def update(state: NeuralLinearState, arm: Array, x: Array, reward: Array) -> NeuralLinearState:
        trained = trainer.learn(state.network, x, reward)
        features = represent(network, state.params, state.standard, x[None])[0]
        kept = state.params, state.standard, state.moments.record(arm, features, reward)
        due = trained.history.seen % parts.refresh == 0
        params, standard, moments = only_where(due, refreshed, kept, (trained,))
        return NeuralLinearState(trained, params, standard, moments, state.scale)

    def expected(state: NeuralLinearState) -> Expected:
        return expected_by_network(state.network)

    return compiled(act=act, update=update, expected=expected, check=trainer.check, families=(trainer.family.name,))
