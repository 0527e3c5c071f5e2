"""Deep ensemble: ensemble sampling with M neural networks, each trained on rewards with frozen noise of its own.

In each round one of the networks is drawn, and its best arm is pulled:

    network m learns from rewards Y_l + Z_{m,l},    Z_{m,l} ~ N(0, a²) drawn once, when reward l comes
    m uniform in every round,    pull argmax_i η_m(x_i)

    a   `scale`     default: the standard deviation of a reward, 0.5 for rewards in [0, 1]
    M   `members`   default: 10; training costs M times as much as that of one network

DeepFPL has one network and draws the noise of an example anew in every training step, or in every round, so that its
network keeps moving.  Here an example keeps its noise forever: each network settles on an answer of its own, and the
networks come to agree on arms with many examples.  The networks also differ by their first weights, which take the
place of draws from a prior.

Examples are kept once for all networks, and their perturbed rewards once for each network.  After every reward all
networks make the training steps of `deep_model.py`; with uniform replay each network draws its own mini-batches.

The probability of an arm has a formula: the share of the networks whose best arm it is.

The reference adds a penalty that pulls each network back to its first weights, as strong as the prior from which these
are drawn.  Here there is no penalty, as in the other deep policies.  We could not check the number of networks in the
experiments of the reference; 10 is the default in the program of its authors' tutorial on Thompson sampling.

Reference: Lu & Van Roy, Ensemble Sampling, NeurIPS 2017 (which has neural networks among its examples).
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.checks import check_positive, check_whole
from explorax.glm import families
from explorax.glm.history import Rows
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, Trainer, expected_arrays
from explorax.policies.exploration import best
from explorax.policies.glm_ensemble import shares
from explorax.policies.settings import DeepSettings, RewardNoise

# The parts that each network has for itself (0): weights, optimizer, perturbed rewards, and the key of mini-batches.
EACH = DeepState._make((0, 0, Rows._make((None, None, 0, None, None)), 0, None, None))


class DeepEnsembleState(NamedTuple):
    """Networks in training, and the examples that they share.

    Attributes:
        members: The networks, with a leading axis M in the parts that `EACH` marks.  Their scale is 0, since the noise
            is in the rewards.
        key: The (2,) key data from which the noise of rewards is drawn.
        scale: The scale a of the noise, of shape ().
    """

    members: DeepState
    key: Array
    scale: Array


def deep_ensemble(
    *,
    members: Annotated[int, "The number M of networks, at least 1."] = 10,
    scale: RewardNoise = None,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build a deep ensemble: ensemble sampling with neural networks that are trained on perturbed rewards."""
    check_whole("members", members, 1)
    if scale is not None:
        check_positive("scale", scale)
    model = DeepModel(**settings)
    trainer = model.trainer()
    deviation = families.get(model.given["family"]).noise_std or 1.0 if scale is None else scale

    def init(arms: Array | int, key: Array) -> DeepEnsembleState:
        keys = jax.random.split(key, members + 1)
        start = jax.vmap(lambda key: trainer.init(arms, key, model.kept, 0.0), out_axes=EACH)(keys[1:])
        return DeepEnsembleState(start, jax.random.key_data(keys[0]), jnp.asarray(deviation, start.scale.dtype))

    return Policy(checked_init(init), *program(trainer), probabilities=probabilities(trainer))


@cache
def program(trainer: Trainer) -> Program:
    """Return the compiled `act` and `update`, which all scales share."""

    def act(key: Array, state: DeepEnsembleState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        members = state.members.key.shape[0]
        chosen = jax.random.randint(key, (), 0, members)
        scores = trainer.network.apply(jax.tree.map(lambda leaf: leaf[chosen], state.members.params), arms)
        return Action(best(scores, mask), scores, jnp.asarray(False), jnp.isfinite(jnp.sum(scores)))

    def update(state: DeepEnsembleState, arm: Array, x: Array, reward: Array) -> DeepEnsembleState:
        members = state.members
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), members.history.seen)
        noisy = reward + state.scale * jax.random.normal(key, members.key.shape[:1], x.dtype)
        return state._replace(members=jax.vmap(trainer.learn, (EACH, None, 0), EACH)(members, x, noisy))

    def expected(state: DeepEnsembleState) -> Expected:
        return expected_arrays(state.members)

    return compiled(act=act, update=update, expected=expected, check=trainer.check, families=(trainer.family.name,))


@cache
def probabilities(trainer: Trainer) -> Callable[[DeepEnsembleState, Array, Array, Array | None], Array]:
    """Return the function that computes the probability of each arm: the share of networks that would pull it."""

    @jax.jit
    @jax.default_matmul_precision("highest")
    def of_arms(state: DeepEnsembleState, arms: Array, t: Array, mask: Array | None = None) -> Array:
        return shares(jax.vmap(trainer.network.apply, (0, None))(state.members.params, arms), mask)

    return of_arms
