"""Networks for the deep policies.

A network is two pure functions, or three if its last hidden layer serves as features.

    init(key, n_features)  -> params       any pytree of arrays
    apply(params, rows)    -> (n,)         a score η for each of n rows of features; the mean of a reward is μ(η)
    embed(params, rows)    -> (n, h)       the last hidden layer, of which η is a linear function

`mlp` makes fully connected networks.  Networks of other libraries can be wrapped.  With Flax, for example:

    Network(lambda key, d: module.init(key, jnp.zeros((1, d))), lambda params, x: module.apply(params, x)[:, 0])
"""

import reprlib
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
    """A network as pure functions.

    Attributes:
        init: Maps a key and the number d of features to random weights, any pytree of arrays.
        apply: Maps weights and (n, d) rows of features to (n,) scores η.
        embed: Maps weights and (n, d) rows to the (n, h) values of the last hidden layer.  None if the network has no
            such function; `rep_glm_fpl`, `neural_linear`, `neural_ucb` and `neural_ts` need one.

    Example:
        >>> import jax
        >>> from explorax.networks import Network
        >>> linear = Network(lambda key, d: jax.numpy.zeros(d), lambda params, rows: rows @ params)
        >>> linear.apply(linear.init(jax.random.key(0), 2), jax.numpy.ones((3, 2))).shape
        (3,)
    """

    init: Callable[[Array, int], Params]
    apply: Callable[[Params, Array], Array]
    embed: Callable[[Params, Array], Array] | None = None


class Layer(NamedTuple):
    """A layer h ↦ W h + b.

    Attributes:
        weights: The (outputs, inputs) matrix W.
        biases: The (outputs,) vector b.
    """

    weights: Array
    biases: Array


def mlp(hidden: Sequence[int] = (50,), activation: str = "relu") -> Network:
    """Build a fully connected network with biases and a linear output.

    The first weights are uniform (Glorot's), the first biases 0.

    Args:
        hidden: The sizes of the hidden layers, at least one, each at least 1.  Default: (50,).
        activation: The activation function of the hidden layers: "relu", "tanh", "sigmoid", "elu" or "gelu".  Default:
            "relu".

    Returns:
        The network, with `embed`.  Equal arguments give the same object.

    Raises:
        InvalidArgument: If `hidden` is not a sequence of positive whole numbers.
        UnknownName: If there is no such activation function.

    Example:
        >>> import jax
        >>> from explorax.networks import mlp
        >>> layers = mlp((20, 10), "tanh").init(jax.random.key(0), 5)
        >>> [layer.weights.shape for layer in layers]
        [(20, 5), (10, 20), (1, 10)]
    """
    if isinstance(hidden, int) or not len(tuple(hidden)):
        raise InvalidArgument(f"hidden must be a list of layer sizes, got {hidden!r}. Give (50,), for example.")
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
    """Draw a layer with weights uniform on ±√(6 / (inputs + outputs)) and biases 0.

    Args:
        key: The key from which the weights are drawn.
        inputs: The number of inputs.
        outputs: The number of outputs.

    Returns:
        The layer.
    """
    limit = (6 / (inputs + outputs)) ** 0.5
    return Layer(jax.random.uniform(key, (outputs, inputs), minval=-limit, maxval=limit), jnp.zeros(outputs))


def check_network(network: Network, *, embeds: bool = False) -> None:
    """Check that a value is a network.

    Args:
        network: The value.
        embeds: Whether the network must have the function `embed`.  Default: False.

    Raises:
        InvalidArgument: If the value is not a network, or has no `embed` although one is needed.
    """
    if not (isinstance(network, Network) and callable(network.init) and callable(network.apply)):
        raise InvalidArgument(
            f"network must be a Network, got {reprlib.repr(network)}. "
            "Give explorax.networks.Network(init, apply), or leave it out."
        )
    if embeds and network.embed is None:
        raise InvalidArgument(
            "network must have a function embed(params, rows) -> (n, h), got a network without `embed`. "
            "Give Network(init, apply, embed)."
        )
