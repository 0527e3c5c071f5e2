"""A labelled data set as a bandit: a policy looks for the examples of one label among those on offer.

    each round offers K examples drawn at random;    reward of an example: Ber(`high`) if it has the target label,
                                                                           Ber(`low`) otherwise

An instance is a target label, which the policy is not told.  Labels take turns: instance i has label i mod C, so that
500 instances of ten labels have 50 of each.  A policy sees the features of the examples and nothing else.

    K   `n_arms`   10 in the paper;    `high`, `low`   0.75 and 0.25;    `target`   a label for all instances

**Intercept.**  The means of a GLM are μ(xᵀθ).  If no weights give all examples the same score, for example because all
columns are standardized numbers, a GLM cannot even express that the mean is not ½ on average.  Examples then get one
more feature, the last, that is always 1 (`intercept`).  They get none if some weights give a constant score already, as
in tables with a column of text, whose zeros and ones add up to 1.  Images stay as they are: the paper's experiments
have no such feature, and networks have biases.

The data is on the device once, whatever the number of instances; rounds pick examples by index.  If p is the share of
the target label, the best possible reward per round is high − (high − low) (1 − p)^K: 0.576 for ten equal labels.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.2.
"""

from functools import cache
from typing import Annotated, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax import datasets
from explorax.checks import check_count, check_size, check_whole, is_number
from explorax.environments.base import Environment, Offer
from explorax.environments.glm import reward_of
from explorax.errors import InvalidArgument, UnknownName, shown
from explorax.glm import families


class Instance(NamedTuple):
    """A target label, and the data set that all instances share."""

    target: Array  # () index of the label that pays
    scores: Array  # (2,) log-odds of the reward of other examples, and of those with the target label
    features: Array  # (n, d) shared
    labels: Array  # (n,) shared
    scale: Array  # () shared: what features are to be multiplied by


ROWS = 4096  # looked at together
NEGLIGIBLE = 1e-10  # share of a column that others do not explain
AXES = Instance._make((0, 0, None, None, None))  # of an instance, for `vmap`


def classification(
    *,
    data: Annotated[Any, "The name of a data set, a file, a pair (features, labels), or a `datasets.Dataset`."],
    label: Annotated[str | None, "The column of a file that holds the labels."] = None,
    n_arms: Annotated[int, "K, the number of examples that each round shows."] = 10,
    high: Annotated[float, "The chance that an example of the target label pays."] = 0.75,
    low: Annotated[float, "The chance that another example pays."] = 0.25,
    target: Annotated[Any, "The label that pays; if None, all labels in turn."] = None,
    intercept: Annotated[
        bool | None, "Whether examples get one more feature that is 1; if None, only if a table of numbers needs it."
    ] = None,
) -> Environment:
    """Build the bandit of a labelled data set, in which examples of a target label pay more often."""
    check_whole("n_arms", n_arms, 1)
    for name, value in (("high", high), ("low", low)):
        if not (is_number(value) and 0 < value < 1):
            raise InvalidArgument(f"{name} must be a probability between 0 and 1, both excluded, got {shown(value)}.")
    if not low < high:
        raise InvalidArgument(f"low must be less than high={high!r}, so that the target label pays more, got {low!r}.")
    if not (intercept is None or isinstance(intercept, bool)):
        raise InvalidArgument(
            f"intercept must be True, False or None, got {shown(intercept)}. Leave it out to let the data decide."
        )
    dataset = datasets.load(data, label=label)
    check_size(n_arms, dataset.features.shape[1])
    added = lacks_constant(dataset) if intercept is None else intercept
    if target is not None and str(target) not in dataset.classes:
        raise UnknownName(f"target in the data set {dataset.name!r}", str(target), dataset.classes)
    first = 0 if target is None else dataset.classes.index(str(target))
    period = len(dataset.classes) if target is None else 1
    scores = jnp.asarray(np.log([low / (1 - low), high / (1 - high)]), jnp.float32)
    # Placed on the device when an instance is drawn, so that building an environment does not need it.
    shared: list[Array] = []

    def draw(key: Array, number: ArrayLike = 0) -> Instance:
        if not shared:
            with jax.ensure_compile_time_eval():
                placed = map(jnp.asarray, (dataset.features, dataset.labels, np.float32(dataset.scale)))
                shared[:] = list(placed)  # at once: another thread may draw at the same time
        return Instance(first + jnp.asarray(number, jnp.int32) % period, scores, *shared)

    size, family = dataset.features.shape[1] + added, families.bernoulli
    return Environment(
        "classification", size, True, draw, examples(n_arms, added), reward_of(family), AXES, family.name
    )


@cache
def examples(count: int, intercept: bool) -> Any:
    """Return the function `offer` that shows `count` random examples; all data sets share the function."""

    def offer(key: Array, instance: Instance, t: ArrayLike) -> Offer:
        check_count("t", t, "the count of rounds before this one")
        drawn = jax.random.randint(jax.random.fold_in(key, t), (count,), 0, instance.labels.shape[0])
        pays = instance.labels[drawn] == instance.target
        scores = jnp.where(pays, instance.scores[1], instance.scores[0])
        arms = instance.features[drawn].astype(instance.scale.dtype) * instance.scale
        if intercept:
            arms = jnp.concatenate([arms, jnp.ones_like(arms[:, :1])], axis=1)
        return Offer(arms, families.bernoulli.mean(scores), scores)

    return offer


def lacks_constant(dataset: datasets.Dataset) -> bool:
    """Return whether features are numbers, not images, and no weights give all examples the same score other than 0."""
    return dataset.features.dtype == np.float32 and not spans_constant(dataset.features)


def spans_constant(features: np.ndarray) -> bool:
    """Return whether some weights give all rows of features the same score other than 0."""
    count, size = features.shape
    moments = np.zeros((size + 1, size + 1))  # of features and of 1
    for start in range(0, count, ROWS):
        rows = features[start : start + ROWS].astype(float)
        rows = np.concatenate([rows, np.ones((len(rows), 1))], axis=1)
        moments += rows.T @ rows
    lengths = np.sqrt(np.diagonal(moments))
    unit = np.where(lengths > 0, lengths, 1)
    values, vectors = np.linalg.eigh((moments / np.outer(unit, unit))[:size, :size])
    # The share of the constant that lies in the span of the columns.
    known = values > NEGLIGIBLE * size
    shares = (moments[:size, size] / unit[:size] / unit[size]) @ vectors[:, known] / np.sqrt(values[known])
    return bool(1 - np.sum(shares**2) <= NEGLIGIBLE**0.5)


def optimum(dataset: datasets.Dataset, n_arms: int = 10, high: float = 0.75, low: float = 0.25) -> float:
    """Return the best possible expected reward per round, averaged over the target labels."""
    shares = np.bincount(dataset.labels, minlength=len(dataset.classes)) / len(dataset.labels)
    return float(np.mean(high - (high - low) * (1 - shares) ** n_arms))
