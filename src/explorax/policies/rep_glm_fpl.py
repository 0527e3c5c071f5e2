"""repGLM-FPL: learn a representation from random exploration, then play GLM-FPL on it.

    m % of the n rounds      arms at random; the network of DeepFL is trained on them
    then                     its last hidden layer φ is frozen, and GLM-FPL plays with the features φ(x)

    m   `percent`          n   `horizon`
    a   `scale`            of GLM-FPL; default: its informal design, 0.5 for rewards in [0, 1]
    λ   `ridge`            of its fits
        `head`             "constant" (cost) or "exact"
        `head_capacity`    the number of rewards that GLM-FPL keeps for its fits
        `reuse`            whether GLM-FPL starts from the rewards of the exploration

`representation.py` defines φ, which is standardized, since dead units would otherwise make the curvature singular.
GLM-FPL updates its estimate at constant cost with refits (`glm.memory.summary`), or exactly, for short runs.

The exploration ends after a number of decisions, and the training after the same number of rewards.  If rewards are
late, the network itself makes the decisions in between.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Literal, NamedTuple, Unpack

import jax
import jax.numpy as jnp
from jax import Array

from explorax.batching import only_where
from explorax.builders import Setting
from explorax.checks import check_positive, check_whole, is_number
from explorax.errors import InvalidArgument, UnknownName
from explorax.glm.memory.base import Estimator
from explorax.glm.memory.kept_rows import KeptRows
from explorax.glm.memory.summary import Summary
from explorax.networks import check_network
from explorax.policies import representation
from explorax.policies.base import Action, Policy
from explorax.policies.checked import Expected, Program, checked_init, compiled
from explorax.policies.deep_model import DeepModel, DeepState, Trainer
from explorax.policies.deep_model import expected_arrays as expected_by_network
from explorax.policies.exploration import best, counted
from explorax.policies.glm_fpl import Numbers, perturbed_scores
from explorax.policies.glm_model import GLMModel
from explorax.policies.glm_state import GLMState
from explorax.policies.representation import Standard, represent, standardize
from explorax.policies.settings import DeepSettings, MemoryName, RewardNoise

MEMORIES: dict[str, MemoryName] = {"constant": "refitted", "exact": "exact"}  # head -> memory of GLM-FPL

Head = GLMState[KeptRows | Summary, Numbers]


class RepresentationState(NamedTuple):
    """A network, the standardization of its last layer, and GLM-FPL on top of it.

    Attributes:
        network: The network, whose history holds the examples of the exploration.
        standard: How the units of the last layer are standardized.
        head: The state of GLM-FPL.
    """

    network: DeepState
    standard: Standard
    head: Head


@dataclass(frozen=True)
class Parts:
    """The settings for which a program is compiled.

    Attributes:
        trainer: The training of the network.
        estimator: The estimator of GLM-FPL.
        exploring: The number τ of rounds with random arms.
        reuse: Whether GLM-FPL starts from the rewards of these rounds.
    """

    trainer: Trainer
    estimator: Estimator
    exploring: int
    reuse: bool


def rep_glm_fpl(
    *,
    percent: Annotated[float, "The percentage m of rounds with random arms, between 0 and 100."] = 5.0,
    horizon: Annotated[int, "The number n of rounds, at least 1."] = 10_000,
    scale: RewardNoise = None,
    ridge: Annotated[float, "The ridge λ of the fits of GLM-FPL, above 0."] = 1.0,
    head: Annotated[
        Literal["constant", "exact"],
        'What GLM-FPL keeps of the past: a summary of "constant" size with refits, or all rewards, for "exact" fits.',
    ] = "constant",
    head_capacity: Annotated[
        int | None, Setting(None, "The number of rewards that GLM-FPL keeps for its fits.", "`horizon`")
    ] = None,
    reuse: Annotated[bool, "Whether GLM-FPL starts from the rewards of the exploration."] = True,
    **settings: Unpack[DeepSettings],
) -> Policy:
    """Build repGLM-FPL, which learns a representation from random exploration and plays GLM-FPL on it."""
    check_whole("horizon", horizon, 1)
    if not (is_number(percent) and 0 < percent < 100):
        raise InvalidArgument(
            f"percent must be a percentage of rounds between 0 and 100, got {percent!r}. Give 5.0, for example."
        )
    if head not in MEMORIES:
        raise UnknownName("head", head, MEMORIES)
    exploring = math.ceil(percent * horizon / 100)
    capacity = horizon if head_capacity is None else head_capacity
    check_whole("head_capacity", capacity, exploring if reuse else 1)
    if not isinstance(reuse, bool):
        raise InvalidArgument(f"reuse must be True or False, got {reuse!r}.")
    if scale is not None:
        check_positive("scale", scale)
    model = DeepModel(**settings)
    kept = max(exploring, model.given["batch"])
    trainer = model.trainer()
    check_network(trainer.network, embeds=True)
    glm = GLMModel(
        family=model.given["family"],
        ridge=ridge,
        warmup="none",
        memory=MEMORIES[head],
        capacity=max(capacity, kept),  # it must hold the examples of the network
        when_full="forget",
    )
    numbers = Numbers(glm.informal if scale is None else scale)
    parts = Parts(trainer, Estimator(glm.glm), exploring, reuse)

    def init(arms: Array | int, key: Array) -> RepresentationState:
        network = trainer.init(arms, key, kept, 0.0)
        features, dtype = network.history.features.shape[1], network.history.features.dtype
        size = representation.units(trainer.network, network.params, features, dtype)
        head = glm.init(size + 1, numbers, dtype)
        return RepresentationState(network, representation.as_they_are(size, dtype), head)

    return Policy(checked_init(init), *program(parts))


@cache
def program(parts: Parts) -> Program:
    """Return the compiled `act` and `update`, which all scales and ridges share."""
    trainer, estimator, network = parts.trainer, parts.estimator, parts.trainer.network

    def is_ready(state: DeepState) -> Array:
        return state.history.seen >= parts.exploring

    def act(key: Array, state: RepresentationState, arms: Array, t: Array, mask: Array | None = None) -> Action:
        at_random, perturbation = jax.random.split(key)
        features = represent(network, state.network.params, state.standard, arms)
        perturbed, converged = perturbed_scores(estimator, perturbation, state.head, features)
        scores = jnp.where(is_ready(state.network), perturbed, network.apply(state.network.params, arms))
        forced = t < parts.exploring
        count = arms.shape[0] if mask is None else jnp.sum(mask)
        any_arm = jax.random.randint(at_random, (), 0, count)
        any_arm = any_arm if mask is None else counted(any_arm, mask)
        arm = jnp.where(forced, any_arm, best(scores, mask))
        return Action(arm, scores, forced, converged & jnp.isfinite(jnp.sum(scores)))

    def prepare(unready: tuple[Standard, Head], trained: DeepState) -> tuple[Standard, Head]:
        """Freeze the representation, and let GLM-FPL learn from the rewards of the exploration."""
        standard = standardize(network, trained.params, trained.history)
        if not parts.reuse:
            return standard, unready[1]
        features = represent(network, trained.params, standard, trained.history.features)
        head, rows = unready[1], trained.history._replace(features=features)
        return standard, head._replace(memory=head.memory.learn_rows(estimator, head.ridge, rows))

    def update(state: RepresentationState, arm: Array, x: Array, reward: Array) -> RepresentationState:
        ready = is_ready(state.network)
        trained = trainer.learn_if(~ready, state.network, x, reward)
        begins = is_ready(trained) & ~ready
        standard, head = only_where(begins, prepare, (state.standard, state.head), (trained,))
        features = represent(network, trained.params, standard, x[None])[0]
        memory = head.memory.learn(estimator, head.ridge, arm, features, reward, ready)
        return RepresentationState(trained, standard, head._replace(memory=memory))

    def expected(state: RepresentationState) -> Expected:
        return expected_by_network(state.network)

    return compiled(act=act, update=update, expected=expected, check=trainer.check, families=(trainer.family.name,))
