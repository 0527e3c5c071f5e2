"""A log as a bandit: the arms that were on offer, with rewards from a model that is fitted to the log.

    each round offers the arms of a row of the log, drawn at random;    reward of arm x: Ber(μ(xᵀθ̂)) or N(xᵀθ̂, σ²)

The model is the ridge GLM estimate θ̂ of the rewards given the features of the arms that were chosen: Bernoulli if all
rewards are 0 or 1, else Gaussian, where σ is the standard deviation of the rewards around the model.

**What it tells.**  Policies are judged under the model, so that every arm has a known mean and regret is what is lost
against the best arm on offer.  The model is as good as the log: what a score xᵀθ cannot express is not in the problem,
and arms that the log hardly chose have the means that the ridge gives them.  It shows how policies would learn on
contexts and arms like yours; what a policy would have earned is better estimated from the propensities of the log.

All instances share the rows and θ̂.  Each draws rows and rewards of its own, so that instances differ by chance alone.

**Arms on offer.**  A round has K places.  If some arms were not on offer in a row, the others fill its places in turn,
so that a place never shows an arm that could not be chosen.

**Features** are those of the log.  If it has none, an arm is described by a number for each name, 0 or 1, in products
with the numbers of the context if there are any: every arm then has weights of its own.  Arms get one more feature, the
last, that is always 1 (`intercept`), if no weights give all of them the same score: the model could not even express
that rewards are rare.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.checks import check_count, check_positive, check_whole
from explorax.environments.base import Environment, Offer
from explorax.environments.glm import reward_of
from explorax.environments.labelled import spans_constant
from explorax.errors import InvalidArgument, InvalidFeatures, shown
from explorax.evaluation.reward_models import described, suitable_family
from explorax.glm import families
from explorax.glm.families import Family
from explorax.glm.fit import fit
from explorax.glm.history import Grouped
from explorax.log.data import LoggedData
from explorax.log.features import Features

MOST_NUMBERS = 2**28  # features of all arms in all rows: 1 GiB
BLOCK = 1024  # rows that are looked at together


class Instance(NamedTuple):
    """The arms of n rows and their scores, which all instances share."""

    arms: Array  # (n, K, d)
    scores: Array  # (n, K)


class Model(NamedTuple):
    """A model of the rewards of a log."""

    theta: np.ndarray  # (d,)
    noise: float  # the standard deviation of a reward, if it is Gaussian


AXES = Instance._make((None, None))  # of an instance, for `vmap`


def from_log(
    *,
    data: Annotated[Any, "The log: a `LoggedData`, or the path of an agent's log or of its export."] = None,
    ridge: Annotated[float, "The penalty λ of the model's estimate θ̂, above 0."] = 1.0,
    rows: Annotated[
        int | None, "How many rows, evenly spaced, the rounds are drawn from; None for all. The model sees all."
    ] = None,
    intercept: Annotated[
        bool | None, "Whether arms get one more feature that is 1; if None, only if the features need it."
    ] = None,
) -> Environment:
    """Build the bandit of a log, whose rounds offer what its rows offered, and whose rewards come from a model."""
    check_positive("ridge", ridge)
    if not (intercept is None or isinstance(intercept, bool)):
        raise InvalidArgument(
            f"intercept must be True, False or None, got {shown(intercept)}. Leave it out to let the data decide."
        )
    log = read(data)
    count = len(log) if rows is None else rows
    check_whole("rows", count, 1, len(log))
    features, family = described(log), families.get(suitable_family(log.rewards))
    known, size = features.shape
    if count * known * size > MOST_NUMBERS:
        raise InvalidArgument(
            f"rows must be at most {MOST_NUMBERS // (known * size)}, because each has {known} arms with {size} "
            f"features, got {count}. Give rows= to draw from fewer rows."
        )
    places = np.arange(count) * len(log) // count
    arms = offered_arms(log, features, places)
    added = not spans_constant(arms.reshape(-1, size)) if intercept is None else intercept
    if added:
        arms, size = with_last_one(arms), size + 1

    @cache
    def shared() -> tuple[Instance, Model]:
        """Return what instances share, on the device; building an environment does not need one."""
        chosen = features.chosen(np.arange(len(log)), log.arms).astype(float)
        model = fitted(with_last_one(chosen) if added else chosen, log.rewards.astype(float), family, float(ridge))
        scores = np.concatenate([arms[start : start + BLOCK] @ model.theta for start in range(0, count, BLOCK)])
        with jax.ensure_compile_time_eval():
            return Instance(jnp.asarray(arms), jnp.asarray(scores, jnp.float32)), model

    def draw(key: Array, number: ArrayLike = 0) -> Instance:
        return shared()[0]

    def reward(key: Array, offer: Offer, arm: ArrayLike) -> Array:
        drawn: Array = reward_of(family, shared()[1].noise)(key, offer, arm)
        return drawn

    return Environment("from_log", size, True, draw, random_row(family), reward, AXES, family.name)


def read(data: Any) -> LoggedData:
    """Return a log that is given, or read from a file; raise unless it is one and has decisions."""
    if isinstance(data, str | os.PathLike):
        from explorax.log.reading import read_log  # of the agent's modules, which only a file needs

        data = read_log(data)
    if not isinstance(data, LoggedData):
        raise InvalidArgument(f"data must be a log, got {shown(data)}. Give a LoggedData, or the path of a log.")
    if not len(data):
        raise InvalidArgument("data must hold at least one decision, got an empty log. Give a log with decisions.")
    return data


def offered_arms(log: LoggedData, features: Features, places: np.ndarray) -> np.ndarray:
    """Return (m, K, d) the features of the arms on offer in some rows, in float32; they fill all places in turn."""
    arms = np.empty((len(places), *features.shape), np.float32)
    turns = np.arange(log.n_arms)
    for start in range(0, len(places), BLOCK):
        rows = places[start : start + BLOCK]
        table = features.table(rows)
        if log.offered is not None:
            offered = log.offered[rows]
            first = np.argsort(~offered, axis=1, kind="stable")  # those on offer, then the others
            turn = np.take_along_axis(first, turns % offered.sum(axis=1, keepdims=True), axis=1)
            table = np.take_along_axis(table, turn[:, :, None], axis=1)
        with np.errstate(over="ignore"):
            arms[start : start + BLOCK] = table
    if not np.isfinite(arms).all():
        row = int(places[np.argmin(np.isfinite(arms).all(axis=(1, 2)))])
        raise InvalidFeatures(
            f"features of data must be finite in float32, got NaN or infinity in row {row}. Clean or scale them first."
        )
    return arms


def with_last_one(rows: np.ndarray) -> np.ndarray:
    """Return features with one more, the last, that is 1."""
    return np.concatenate([rows, np.ones_like(rows[..., :1])], axis=-1)


def fitted(chosen: np.ndarray, rewards: np.ndarray, family: Family, ridge: float) -> Model:
    """Return the model of rewards given the features of the arms that were chosen."""
    with jax.ensure_compile_time_eval(), jax.enable_x64(True):
        found = fit(family, Grouped(*map(jnp.asarray, (chosen, np.ones(len(rewards)), rewards))), ridge=ridge)
        theta, converged = np.asarray(found.theta), bool(found.converged)
    if not converged:
        raise InvalidArgument(f"ridge must be large enough for the features of data, got {ridge}. Give a larger one.")
    return Model(theta, float(np.sqrt(np.mean((rewards - chosen @ theta) ** 2))))


@cache
def random_row(family: Family) -> Callable[..., Offer]:
    """Return the function `offer` that shows the arms of a random row; logs of one family share the function."""

    def offer(key: Array, instance: Instance, t: ArrayLike) -> Offer:
        check_count("t", t, "the count of rounds before this one")
        row = jax.random.randint(jax.random.fold_in(key, t), (), 0, instance.scores.shape[0])
        scores = instance.scores[row]
        return Offer(instance.arms[row], family.mean(scores), scores)

    return offer
