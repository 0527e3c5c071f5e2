"""The networks of the library against NumPy, and those of other libraries in the place of them."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorax
from explorax.errors import InvalidArgument, UnknownName
from explorax.networks import ACTIVATIONS, Layer, Network, mlp

FEATURES, KEY = 3, jax.random.key(0)
ROWS = np.random.default_rng(0).normal(size=(7, FEATURES))
BEND = {
    "relu": lambda z: np.maximum(z, 0),
    "tanh": np.tanh,
    "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "elu": lambda z: np.where(z > 0, z, np.expm1(np.minimum(z, 0))),
}


def some_layers(*sizes, seed=1):
    """Weights and biases of a network, none of them zero."""
    rng = np.random.default_rng(seed)
    return [
        Layer(rng.normal(size=(outputs, inputs)), rng.normal(size=outputs))
        for inputs, outputs in zip((FEATURES, *sizes), (*sizes, 1), strict=True)
    ]


@pytest.mark.parametrize("activation", BEND)
@pytest.mark.parametrize("hidden", [(5,), (4, 6)])
def test_a_network_computes_what_numpy_does(hidden, activation):
    network, layers = mlp(hidden, activation), some_layers(*hidden)
    expected = ROWS
    for weights, biases in layers[:-1]:
        expected = BEND[activation](expected @ weights.T + biases)
    assert expected.shape == (7, hidden[-1])
    np.testing.assert_allclose(network.embed(layers, ROWS), expected, rtol=1e-12, atol=1e-14)
    weights, biases = layers[-1]
    np.testing.assert_allclose(network.apply(layers, ROWS), expected @ weights[0] + biases[0], rtol=1e-12, atol=1e-14)


def test_scores_are_linear_in_the_embedding():
    network, layers, others = mlp((4, 6), "tanh"), some_layers(4, 6), some_layers(4, 6, seed=2)
    # Another last layer changes scores by the embedding times the change, and by nothing else.
    changed = [*layers[:-1], others[-1]]
    change = others[-1].weights[0] - layers[-1].weights[0], others[-1].biases[0] - layers[-1].biases[0]
    difference = network.apply(changed, ROWS) - network.apply(layers, ROWS)
    np.testing.assert_allclose(difference, network.embed(layers, ROWS) @ change[0] + change[1], rtol=1e-10, atol=1e-13)
    np.testing.assert_array_equal(network.embed(changed, ROWS), network.embed(layers, ROWS))


def test_first_weights_are_uniform_within_glorots_limits_and_biases_zero():
    sizes = (FEATURES, 40, 30, 1)
    init = jax.jit(mlp(sizes[1:-1]).init, static_argnums=1)
    layers, other = init(KEY, FEATURES), init(jax.random.key(1), FEATURES)
    assert len(layers) == 3
    for layer, inputs, outputs in zip(layers, sizes[:-1], sizes[1:], strict=True):
        assert layer.weights.shape == (outputs, inputs)
        np.testing.assert_array_equal(layer.biases, np.zeros(outputs))
        limit = np.sqrt(6 / (inputs + outputs))
        largest = float(np.max(np.abs(layer.weights)))
        assert largest <= limit
        # The largest of n uniform draws is below limit × (1e-6)^(1/n) once in a million.
        assert largest > limit * 1e-6 ** (1 / (inputs * outputs))
    middle = np.asarray(layers[1].weights) / np.sqrt(6 / 70)
    # A uniform law on ±1 has variance 1/3, and its square 4/45; a mean is 5 s.d. off once in a million.
    assert abs(np.mean(middle)) < 5 * np.sqrt(1 / 3 / 1200)
    assert abs(np.mean(middle**2) - 1 / 3) < 5 * np.sqrt(4 / 45 / 1200)
    assert all(not np.any(one.weights == two.weights) for one, two in zip(layers, other, strict=True))


def test_equal_settings_are_one_network():
    assert mlp([50], "relu") is mlp((50,)) is mlp((np.int64(50),))
    assert mlp((50,)) is not mlp((50,), "tanh")
    assert set(BEND) < set(ACTIVATIONS)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"hidden": ()}, InvalidArgument, r"hidden must be a list of layer sizes, got \(\). Give \(50,\), for example"),
        ({"hidden": 50}, InvalidArgument, "hidden must be a list of layer sizes, got 50"),
        ({"hidden": (0,)}, InvalidArgument, "hidden must be a whole number of at least 1, got 0"),
        ({"hidden": (5, 2.5)}, InvalidArgument, "hidden must be a whole number .*, got 2.5"),
        ({"activation": "rleu"}, UnknownName, r"activation must be one of .*, got 'rleu'. Did you mean 'relu'\?"),
    ],
)
def test_bad_settings(settings, error, words):
    with pytest.raises(error, match=words):
        mlp(**settings)
    with pytest.raises(error, match=words):
        explorax.make("deep_fpl", **settings)


# Networks and optimizers of other libraries, which are imported where they are used: collecting tests stays cheap


def of_flax():
    from flax import linen

    module = linen.Sequential([linen.Dense(8), linen.tanh, linen.Dense(1)])
    return Network(
        lambda key, d: module.init(key, jnp.zeros((1, d))), lambda params, rows: module.apply(params, rows)[:, 0]
    )


def of_equinox():
    import equinox

    def build(key):
        return equinox.partition(equinox.nn.MLP(FEATURES, "scalar", 8, 1, jnp.tanh, key=key), equinox.is_array)

    _, rest = build(KEY)
    return Network(lambda key, d: build(key)[0], lambda params, rows: jax.vmap(equinox.combine(params, rest))(rows))


def optimizer(name, learning_rate):
    import optax

    return {"optimizer": getattr(optax, name)(learning_rate)}


WEIGHTS = np.array([2.0, -3.0, 1.0])


@functools.cache
def stream(rounds=300):
    x = np.random.default_rng(3).normal(size=(rounds, FEATURES))
    return x, (x @ WEIGHTS > 0).astype(float)


def mean_loss(network, params):
    """Of all rewards of the stream."""
    x, rewards = stream()
    scores = np.asarray(network.apply(params, x))
    return np.mean(np.logaddexp(0, scores) - rewards * scores)


LIBRARIES = {
    "flax": lambda: (of_flax(), {"learning_rate": 0.03}),
    "equinox": lambda: (of_equinox(), {"learning_rate": 0.03}),
    "sgd": lambda: (mlp((8,), "tanh"), optimizer("sgd", 0.3)),
    "yogi": lambda: (mlp((8,), "tanh"), optimizer("yogi", 0.03)),
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_networks_and_optimizers_of_other_libraries_learn(library):
    network, settings = LIBRARIES[library]()
    policy = explorax.make("deep_fpl", network=network, scale=0.1, batch=64, **settings)
    state = policy.init(FEATURES, KEY)
    before = mean_loss(network, state.params)
    for x, reward in zip(*stream(), strict=True):
        state = policy.update(state, 0, x, reward)
    assert before > 0.5  # that of a constant is log 2 = 0.69 at best
    assert mean_loss(network, state.params) < 0.1
    x, rewards = stream()
    assert np.mean((network.apply(state.params, x) > 0) == rewards) > 0.95
    arms = np.stack([-WEIGHTS, WEIGHTS])
    action = policy.act(KEY, state, arms, 300)
    assert action.arm == 1
    assert action.converged
    np.testing.assert_allclose(action.scores, network.apply(state.params, arms), rtol=1e-9)
    dtypes = {leaf.dtype for leaf in jax.tree.leaves(state.params)}
    assert dtypes == {np.dtype("float64")}  # that of the features, whatever a library starts with


@pytest.mark.parametrize(
    ("apply", "shape"),
    [
        (lambda params, rows: rows @ params[:, None], r"shape \(16, 1\)"),
        (lambda params, rows: jnp.sum(rows @ params), r"shape \(\)"),
        (lambda params, rows: (rows @ params)[:3], r"shape \(3,\)"),
        (lambda params, rows: (rows @ params, rows), r"\(ShapeDtypeStr.*\)"),
    ],
    ids=["column", "number", "too few", "pair"],
)
def test_a_network_with_scores_of_another_shape_is_refused(apply, shape):
    policy = explorax.make("deep_fpl", network=Network(lambda key, d: jnp.zeros(d), apply), batch=16)
    with pytest.raises(
        InvalidArgument, match=rf"network.apply must return one score for each of 16 rows, got {shape}\."
    ):
        policy.init(FEATURES)


@pytest.mark.parametrize("network", ["mlp", 50, mlp, Network(None, None)])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(
        InvalidArgument, match=r"network must be a Network, got .* Give explorax.networks.Network\(init, apply\)"
    ):
        explorax.make("deep_fpl", network=network)


def test_a_network_without_an_embedding_is_refused_where_one_is_needed():
    for name in ("rep_glm_fpl", "neural_linear"):
        with pytest.raises(
            InvalidArgument, match=r"network must have a function embed.*, got a network without `embed`"
        ):
            explorax.make(name, network=of_equinox())


def test_an_optimizer_that_cannot_be_used_is_refused():
    with pytest.raises(InvalidArgument, match=r"learning_rate must be left out with an optimizer, .*, got 0\.1"):
        explorax.make("deep_fpl", learning_rate=0.1, **optimizer("sgd", 0.1))
    with pytest.raises(InvalidArgument, match=r"optimizer must be an optimizer of optax, got 'adam'\. Give optax\.sgd"):
        explorax.make("deep_fpl", optimizer="adam")
