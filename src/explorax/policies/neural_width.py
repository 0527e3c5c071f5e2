"""What NeuralUCB and NeuralTS share: the uncertainty of a network's score, measured by its gradient.

Let f be the score of the network and g(x) = ∇_θ f(x; θ) its gradient with respect to all weights.  A network near its
first weights is nearly linear in the weights, with g(x)/√m as features, where m is the number of units in the last
hidden layer.  Ridge regression on these features has

    U = λI + Σ_l g(X_l) g(X_l)ᵀ / m,    σ²(x) = λ g(x)ᵀ U⁻¹ g(x) / m,

of which the diagonal of U is kept, as in the experiments of both papers: one number for each weight.  The state holds
mU, so that m enters once, in mλ.  In a network with weights of the usual size ‖g‖² grows with m, and ‖g‖²/m does not.

There are four differences from the papers.

*The factor √m.*  The papers' f has a factor √m after the last layer, and g/√m is the gradient without it.  Our f has no
such factor.  The authors' programs have neither the factor nor the division, so that their λ is mλ here.

*The time of the gradient.*  U grows by the gradient of a pulled arm at the weights that the network has when the reward
comes, before it is trained on the reward.  Those are the weights of the decision if no other reward came in between.

*The training* is that of the other deep policies (`deep_model.py`): steps of Adam on mini-batches with the loss of the
family, from the last weights.  The papers take the squared loss with a penalty ½ mλ ‖θ − θ_0‖² and descend from θ_0 in
each round.  f is the score η of the family, so in the Bernoulli family a width is measured in log-odds.

*The numbers.*  The papers search for λ, γ and ν on grids, which we could not check.  The authors' programs start from
ν = 1 and λ = 0.001, with ν under the root.  Our defaults did well among powers of ten if arms are pictures of digits
(the data set "digits" of the library); any γ from 0.01 to 1 did as well there.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive
from explorax.networks import Params, check_network
from explorax.policies import representation
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, Trainer
from explorax.policies.deep_model import expected_arrays as expected_by_network
from explorax.policies.exploration import best
from explorax.policies.settings import DeepSettings

Rule = Callable[[Array, "NeuralWidthState", Array, Array], Array]  # (key, state, f, ‖g/√m‖ in U⁻¹) -> scores


class NeuralWidthState(NamedTuple):
    """A network in training, and the squared gradients of the arms on which it was trained.

    Attributes:
        network: The network and its examples.
        precision: The diagonal of mU, in the shapes of the weights.
        numbers: The numbers of the rule, which say how much it explores.
        ridge: The ridge λ, of shape ().
    """

    network: DeepState
    precision: Params
    numbers: Any
    ridge: Array


def neural_policy(rule: Rule, numbers: Any, ridge: float, settings: DeepSettings) -> Policy:
    """Return the policy that maximizes the scores of a rule, which reads its numbers from the state."""
    check_positive("ridge", ridge)
    model = DeepModel(**settings)
    trainer = model.trainer()
    check_network(trainer.network, embeds=True)

    def init(arms: Array | int, key: Array) -> NeuralWidthState:
        network = trainer.init(arms, key, model.kept, 0.0)
        features, dtype = network.history.features.shape[1], network.history.features.dtype
        units = representation.units(trainer.network, network.params, features, dtype)
        precision = jax.tree.map(lambda leaf: jnp.full_like(leaf, units * ridge), network.params)
        as_arrays = jax.tree.map(lambda number: jnp.asarray(number, dtype), numbers)
        return NeuralWidthState(network, precision, as_arrays, jnp.asarray(ridge, dtype))

    return Policy(checked_init(init), *program(rule, trainer))


@cache
def program(rule: Rule, trainer: Trainer) -> Program:
    """Return the compiled `act` and `update`, which all policies share that differ in numbers only."""

    def score_and_gradient(params: Params, x: Array) -> tuple[Array, Params]:
        """Return the score f(x) and its gradient g(x)."""
        return jax.value_and_grad(lambda params: trainer.network.apply(params, x[None])[0])(params)

    def act(key: Array, state: NeuralWidthState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        values, gradients = jax.vmap(score_and_gradient, (None, 0))(state.network.params, arms)
        relative = jax.tree.map(
            lambda g, u: jnp.sum((g**2 / u).reshape(len(arms), -1), axis=1), gradients, state.precision
        )
        scores = rule(key, state, values, jnp.sqrt(sum(jax.tree.leaves(relative))))
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def update(state: NeuralWidthState, arm: Array, x: Array, reward: Array) -> NeuralWidthState:
        _, gradient = score_and_gradient(state.network.params, x)
        precision = jax.tree.map(lambda u, g: u + g**2, state.precision, gradient)
        return state._replace(network=trainer.learn(state.network, x, reward), precision=precision)

    def expected(state: NeuralWidthState) -> Expected:
        return expected_by_network(state.network)

    return compiled(act=act, update=update, expected=expected, check=trainer.check, families=(trainer.family.name,))
