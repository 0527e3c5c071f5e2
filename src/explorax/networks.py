"""Networks for the deep policies: a network is two pure functions, three where its last layer serves as features.

    init(key, n_features)  -> params       any pytree of arrays
    apply(params, rows)    -> (n,)         a score η for each of n rows of features; the reward's mean is μ(η)
    embed(params, rows)    -> (n, h)       the last hidden layer, of which η is a linear function

Networks of other libraries fit in.  With Flax, for example,

    Network(lambda key, d: module.init(key, jnp.zeros((1, d))), lambda params, x: module.apply(params, x)[:, 0])
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_whole
from explorax.errors import InvalidArgument, UnknownName

Params = Any  # a pytree of arrays

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "sigmoid": jax.nn.sigmoid,
    "elu": jax.nn.elu,
    "gelu": jax.nn.gelu,
}


class Network(NamedTuple):
    """`init`, `apply` and perhaps `embed`; see the module's docstring."""

    init: Callable[[Array, int], Params]
    apply: Callable[[Params, Array], Array]
    embed: Callable[[Params, Array], Array] | None = None


class Layer(NamedTuple):
    """h ↦ W h + b."""

    weights: Array  # (outputs, inputs)
    biases: Array  # (outputs,)


def mlp(hidden: Sequence[int] = (50,), activation: str = "relu") -> Network:
    """Fully connected hidden layers with biases, and a linear output; Glorot's uniform weights, biases 0."""
    if isinstance(hidden, int) or not len(tuple(hidden)):
        raise InvalidArgument(f"hidden={hidden!r} must be a list of layer sizes, for example (50,)")
    for size in hidden:
        check_whole("hidden", size, 1)
    if activation not in ACTIVATIONS:
        raise UnknownName("activation", activation, ACTIVATIONS)
    return _mlp(tuple(map(int, hidden)), activation)


@cache  # one object for equal settings, so that a policy is compiled once
def _mlp(hidden: tuple[int, ...], activation: str) -> Network:
    bend = ACTIVATIONS[activation]

    def init(key: Array, n_features: int) -> list[Layer]:
        sizes = (n_features, *hidden, 1)
        keys = jax.random.split(key, len(sizes) - 1)
        return [glorot(*each) for each in zip(keys, sizes[:-1], sizes[1:], strict=True)]

    def last_hidden(layers: list[Layer], rows: Array) -> Array:
        # As columns: W h runs along the memory of W, and so does its gradient, the largest product of a training step.
        columns = rows.T
        for layer in layers[:-1]:
            columns = bend(layer.weights @ columns + layer.biases[:, None])
        return columns

    def apply(layers: list[Layer], rows: Array) -> Array:
        return layers[-1].weights[0] @ last_hidden(layers, rows) + layers[-1].biases[0]

    def embed(layers: list[Layer], rows: Array) -> Array:
        return last_hidden(layers, rows).T

    return Network(init, apply, embed)


def glorot(key: Array, inputs: int, outputs: int) -> Layer:
    """A layer with weights uniform on ±√(6 / (inputs + outputs))."""
    limit = (6 / (inputs + outputs)) ** 0.5
    return Layer(jax.random.uniform(key, (outputs, inputs), minval=-limit, maxval=limit), jnp.zeros(outputs))


def check_network(network: Network, *, embeds: bool = False) -> None:
    """Raise unless this is a network, with an `embed` where one is needed."""
    if not (isinstance(network, Network) and callable(network.init) and callable(network.apply)):
        raise InvalidArgument(
            f"network={network!r} is none: give explorax.networks.Network(init, apply), or leave it out"
        )
    if embeds and network.embed is None:
        raise InvalidArgument("network has no `embed`: give Network(init, apply, embed), embed(params, rows) -> (n, h)")
