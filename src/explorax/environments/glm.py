"""Random problems with drawn arms, as in the paper's experiments, for rewards of any family.

    x_i uniform on [−1, 1]^d, i = 1 … K,    θ ~ N(0, v I),    reward of arm i: mean μ(x_iᵀθ), law by the family

    v   `parameter_variance`   Default: 3/d.  A coordinate of x has variance 1/3, so that var[xᵀθ] = v d / 3 is 1, as
                               the paper says it is.  The paper prints v = 3/d², which makes it 1/d: "printed".
    m   `nonzero`              The number of features of an arm that are not 0.  Default: d.  With one, as in the
                               paper's Theorem 2, arm i has feature i mod d, so that d arms span the space; with more,
                               each arm has m features that are drawn without replacement.
        `best_score`           If given, θ is scaled so that max_i x_iᵀθ is this number: 5 for a saturated logistic
                               problem, whose best arm pays with probability 0.993.  If no arm has a positive score,
                               −θ replaces θ first.

The arms are drawn once for each instance, or afresh in every round (`arms_change`).  Arms and θ can be given instead;
every instance then has them, and whatever is not given is drawn as usual.

Draws are made in float32 whatever JAX's default is.  They are used in the dtype of the arrays that are given, or in
float32 if no arrays are given.

Reference: Kveton et al., Randomized Exploration in Generalized Linear Bandits, AISTATS 2020, section 5.1.
"""

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated, Literal, NamedTuple, TypedDict, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from explorax.builders import Setting, filled
from explorax.checks import as_floats, check_count, check_positive, check_size, check_whole, is_known
from explorax.environments.base import Environment, Offer
from explorax.errors import InvalidArgument, InvalidFeatures, InvalidShape, shown
from explorax.glm import families
from explorax.glm.families import Family
from explorax.keys import in_one_row

ARMS = 100  # in the paper's experiments
LARGEST_MEAN = 2.0**31  # beyond it Poisson rewards cannot be counted
RARE = 7.0  # standard deviations that no normal draw will be off


class Settings(TypedDict, total=False):
    """The settings of all environments with drawn arms."""

    n_features: Annotated[int | None, Setting(None, "d, the number of features.", "that of fixed_arms or theta")]
    n_arms: Annotated[int | None, Setting(None, "K, the number of arms.", "100, as in the paper")]
    parameter_variance: Annotated[
        float | Literal["printed"] | None,
        Setting(None, 'v, the variance of each coordinate of θ, or "printed" for the paper\'s 3/d².', "3/d"),
    ]
    nonzero: Annotated[int | None, Setting(None, "The number of features of an arm that are not 0.", "d")]
    best_score: Annotated[
        float | None, Setting(None, "The score of the best arm, to which θ is scaled.", "θ is not scaled")
    ]
    arms_change: Annotated[bool, Setting(False, "Whether to draw fresh arms in every round.")]
    fixed_arms: Annotated[
        ArrayLike | Sequence[Sequence[float]] | None,
        Setting(None, "The (K, d) arms of every instance.", "arms are drawn"),
    ]
    theta: Annotated[
        ArrayLike | Sequence[float] | None,
        Setting(None, "The (d,) parameter θ of every instance.", "θ is drawn"),
    ]
    padded_to: Annotated[
        int | None, Setting(None, "The number of columns of fixed arms; those after the first d are 0.", "d")
    ]


class Shape(NamedTuple):
    """The shape of the arms of an instance."""

    n_arms: int  # K
    n_features: int  # d
    nonzero: int  # the number of features of an arm that are not 0
    columns: int  # d or more, zeros after the first d


class Instance(NamedTuple):
    """One random problem; scores and means of fixed arms are computed once."""

    theta: Array  # (d,)
    arms: Array | None  # (K, d); None, as all below, if arms change
    scores: Array | None  # (K,) xᵀθ
    means: Array | None  # (K,) μ(xᵀθ)


def logistic(**settings: Unpack[Settings]) -> Environment:
    """Build logistic bandits: a pull of arm x pays 1 with probability μ(xᵀθ) = 1 / (1 + exp(−xᵀθ)), else 0."""
    return environment("logistic", families.bernoulli, settings)


def gaussian(
    *,
    noise_std: Annotated[float, "σ, the standard deviation of a reward."] = 1.0,
    **settings: Unpack[Settings],
) -> Environment:
    """Build linear bandits: a pull of arm x pays N(xᵀθ, σ²)."""
    check_positive("noise_std", noise_std)
    return environment("gaussian", families.gaussian, settings, float(noise_std))


def poisson(**settings: Unpack[Settings]) -> Environment:
    """Build Poisson bandits: a pull of arm x pays a count with mean exp(xᵀθ), 1 in the median of arms and problems."""
    return environment("poisson", families.poisson, settings)


def environment(name: str, family: Family, settings: Settings, noise_std: float = 1.0) -> Environment:
    """Build the environment whose rewards are of a family; `noise_std` is used by the Gaussian family only."""
    given = filled(Settings, settings)
    fixed_arms, theta, arms_change = given["fixed_arms"], given["theta"], given["arms_change"]
    nonzero, best_score, padded_to = given["nonzero"], given["best_score"], given["padded_to"]
    parameter_variance = given["parameter_variance"]
    if not isinstance(arms_change, bool):
        raise InvalidArgument(f"arms_change must be True or False, got {shown(arms_change)}.")
    if fixed_arms is not None and arms_change:
        raise InvalidArgument("fixed_arms must be left out if arms_change=True, got both. Leave out one of them.")
    if theta is not None and parameter_variance is not None:
        raise InvalidArgument(
            f"parameter_variance must be left out if theta is given, got {shown(parameter_variance)}. "
            "It is the variance of a theta that is drawn."
        )
    given_arms = None if fixed_arms is None else as_floats("fixed_arms", fixed_arms)
    given_theta = None if theta is None else as_floats("theta", theta)
    count, size = sizes(given["n_features"], given["n_arms"], given_arms, given_theta)
    if padded_to is not None and (arms_change or not isinstance(padded_to, int) or padded_to < size):
        raise InvalidArgument(
            f"padded_to must be a whole number of at least {size}, and arms must be fixed, got {shown(padded_to)}."
        )
    check_size(count, padded_to or size)
    check_nonzero(nonzero, count, size, fixed_arms is not None)
    check_best_score(best_score, arms_change, theta is not None, parameter_variance)
    std = variance(parameter_variance, size) ** 0.5
    check_means(family, nonzero or size, std, given_arms, given_theta, best_score)
    dtypes = [array.dtype for array in (given_arms, given_theta) if array is not None]
    dtype = jnp.result_type(*dtypes) if dtypes else jnp.dtype(jnp.float32)

    def draw(key: Array, number: ArrayLike = 0) -> Instance:
        shape = Shape(count, size, nonzero or size, padded_to or size)
        return draw_instance(key, std, given_arms, given_theta, best_score, family, shape, dtype, arms_change)

    offer = changing_arms(family, Shape(count, size, nonzero or size, size), dtype) if arms_change else fixed_offer
    return Environment(name, size, arms_change, draw, offer, reward_of(family, noise_std), family=family.name)


@partial(jax.jit, static_argnames=("family", "shape", "dtype", "arms_change"))
def draw_instance(
    key: Array,
    std: float,
    given_arms: Array | None,
    given_theta: Array | None,
    best_score: float | None,
    family: Family,
    shape: Shape,
    dtype: jnp.dtype,
    arms_change: bool,
) -> Instance:
    """Draw one random problem: θ and, if they are fixed, arms with their scores and means."""
    # In a caller's jit these numbers are constants, and moving constants about would change the last bits.
    std, best_score = jax.lax.optimization_barrier((std, best_score))
    arm_key, theta_key = jax.random.split(key)
    if given_theta is None:
        parameter = (std * jax.random.normal(in_one_row(theta_key), (shape.n_features,), jnp.float32)).astype(dtype)
    else:
        parameter = given_theta.astype(dtype)
    if arms_change:
        return Instance(parameter, None, None, None)
    matrix = uniform_arms(arm_key, shape, dtype) if given_arms is None else given_arms.astype(dtype)
    if best_score is not None:
        parameter = scaled(parameter, products(matrix, parameter), best_score)
    scores = products(matrix, parameter)
    zeros = (0, shape.columns - shape.n_features)
    return Instance(jnp.pad(parameter, zeros), jnp.pad(matrix, ((0, 0), zeros)), scores, family.mean(scores))


def fixed_offer(key: Array, instance: Instance, t: ArrayLike) -> Offer:
    """Return the arms of an instance whose arms are fixed."""
    check_round(instance, t)
    assert instance.arms is not None
    assert instance.means is not None
    assert instance.scores is not None
    return Offer(instance.arms, instance.means, instance.scores)


@cache
def changing_arms(family: Family, shape: Shape, dtype: jnp.dtype) -> Callable[..., Offer]:
    """Return the function `offer` that draws arms in every round; environments of a kind share the function."""

    def offer(key: Array, instance: Instance, t: ArrayLike) -> Offer:
        check_round(instance, t)
        arms = uniform_arms(jax.random.fold_in(key, t), shape, dtype)
        scores = products(arms, instance.theta)
        return Offer(arms, family.mean(scores), scores)

    return offer


@cache
def reward_of(family: Family, noise_std: float = 1.0) -> Callable[..., Array]:
    """Return the function `reward` that draws from a reward family; environments of a kind share the function."""

    def reward(key: Array, offer: Offer, arm: ArrayLike) -> Array:
        if np.ndim(offer.scores) != 1:
            raise InvalidShape(
                f"offer must hold the arms of one round, got scores of shape {np.shape(offer.scores)}. "
                "Use jax.vmap for a batch of offers."
            )
        check_count("arm", arm, "the index of the arm that was pulled", np.shape(offer.scores)[0])
        return family.sample(key, offer.scores[arm], noise_std)

    return reward


def uniform_arms(key: Array, shape: Shape, dtype: jnp.dtype) -> Array:
    """Draw arms uniformly from [−1, 1]^d, and set all but `nonzero` features of each to 0."""
    count, size, nonzero, _ = shape
    # The same numbers as those of a matrix; but a loop over a few columns would be unrolled, which compiles slowly.
    numbers = jax.random.uniform(key, (count * size,), jnp.float32, minval=-1, maxval=1)
    arms = numbers.reshape(count, size).astype(dtype)
    if nonzero == size:
        return arms
    if nonzero == 1:
        return jnp.where(jnp.arange(count)[:, None] % size == jnp.arange(size), arms, 0)
    order = jnp.argsort(jax.random.uniform(jax.random.fold_in(key, 0), (count, size), jnp.float32), axis=1)
    return jnp.where(jnp.argsort(order, axis=1) < nonzero, arms, 0)  # a random rank for each feature of an arm


def scaled(theta: Array, scores: Array, best_score: float) -> Array:
    """Scale θ, or −θ if no score is positive, so that the best score is `best_score`; return θ if all scores are 0."""
    highest, lowest = jnp.max(scores), jnp.min(scores)
    best = jnp.where(highest > 0, highest, lowest)
    divides = jnp.abs(best) > best_score / float(jnp.finfo(scores.dtype).max) ** 0.5
    return theta * jnp.where(divides, best_score / jnp.where(divides, best, 1), 1)


def products(arms: Array, theta: Array) -> Array:
    """Return the scores xᵀθ of all arms, summed in pairs by elementwise operations."""
    # The last bits of a sum or matrix product may depend on the size of a batch, and GPUs round the factors of a matrix
    # product to fewer bits.  Elementwise operations do neither.
    terms = arms * theta
    while (width := terms.shape[-1]) > 1:
        half = width // 2
        pairs = terms[..., :half] + terms[..., half : 2 * half]
        terms = jnp.concatenate([pairs, terms[..., 2 * half :]], axis=-1)
    return terms[..., 0]


def variance(given: float | Literal["printed"] | None, n_features: int) -> float:
    """Return v, the variance of each coordinate of θ: 3/d, the paper's printed 3/d², or the number that is given."""
    if given is None:
        return 3 / n_features
    if isinstance(given, str) and given == "printed":
        return 3 / n_features**2
    check_positive("parameter_variance", given, "Leave it out for 3/d, or give 'printed' for the paper's 3/d².")
    return float(given)


def sizes(
    n_features: int | None, n_arms: int | None, given_arms: Array | None, given_theta: Array | None
) -> tuple[int, int]:
    """Return K and d, from the settings or from the given arrays, or raise if they do not match."""
    for name, value in (("n_features", n_features), ("n_arms", n_arms)):
        if value is not None:
            check_whole(name, value, 1)
    if given_arms is not None and (given_arms.ndim != 2 or 0 in given_arms.shape):
        raise InvalidShape(f"fixed_arms must have one row of features for each arm, got shape {given_arms.shape}.")
    if given_theta is not None and (given_theta.ndim != 1 or given_theta.size == 0):
        raise InvalidShape(f"theta must be a vector with one number for each feature, got shape {given_theta.shape}.")
    if given_arms is not None and n_arms not in (None, given_arms.shape[0]):
        raise InvalidShape(
            f"n_arms must be {given_arms.shape[0]}, the number of rows of fixed_arms, got {n_arms}. Leave n_arms out."
        )
    counts = {
        "n_features": n_features,
        "the columns of fixed_arms": None if given_arms is None else given_arms.shape[1],
        "the length of theta": None if given_theta is None else given_theta.shape[0],
    }
    known = {name: int(value) for name, value in counts.items() if value is not None}
    if not known:
        raise InvalidArgument("n_features must be the number of features, got None. Give it, or fixed_arms, or theta.")
    if len(set(known.values())) > 1:
        said = ", ".join(f"{name} = {value}" for name, value in known.items())
        raise InvalidShape(f"The numbers of features must be the same, got {said}.")
    count = (n_arms or ARMS) if given_arms is None else given_arms.shape[0]
    return int(count), next(iter(known.values()))


def check_nonzero(nonzero: int | None, n_arms: int, n_features: int, given: bool) -> None:
    """Raise unless each arm can have `nonzero` features that are not 0, and the arms can still span the space."""
    if nonzero is None:
        return
    if given:
        raise InvalidArgument(
            f"nonzero must be left out if fixed_arms are given, got {shown(nonzero)}. It is for arms that are drawn."
        )
    if isinstance(nonzero, bool) or not isinstance(nonzero, int | np.integer) or not 1 <= nonzero <= n_features:
        raise InvalidArgument(
            f"nonzero must be a whole number from 1 to n_features={n_features}, got {shown(nonzero)}."
        )
    if nonzero == 1 and n_arms < n_features:
        raise InvalidArgument(
            f"n_arms must be at least n_features={n_features} if nonzero=1, so that arms span the space, got {n_arms}."
        )


def check_best_score(best_score: float | None, arms_change: bool, theta: bool, variance: object) -> None:
    """Raise unless θ can be scaled so that the best arm has the score `best_score`."""
    if best_score is None:
        return
    check_positive("best_score", best_score, "It is the score xᵀθ of the best arm.")
    if arms_change:
        raise InvalidArgument(
            f"best_score must be left out if arms_change=True, got {best_score}. It is the score of an arm that stays."
        )
    if theta:
        raise InvalidArgument(
            f"best_score must be left out if theta is given, got {best_score}. A theta that is given is not scaled."
        )
    if variance is not None:
        raise InvalidArgument(
            f"parameter_variance must be left out if best_score is given, got {shown(variance)}. "
            "The length of theta follows from best_score."
        )


def check_means(
    family: Family,
    nonzero: int,
    std: float,
    given_arms: Array | None,
    given_theta: Array | None,
    best_score: float | None,
) -> None:
    """Raise if arms may have means that are too large to draw rewards with."""
    if not is_known(given_arms, given_theta):
        return
    arms = None if given_arms is None else np.asarray(given_arms, float)
    theta = None if given_theta is None else np.asarray(given_theta, float)
    with np.errstate(over="ignore"), jax.ensure_compile_time_eval():
        if arms is not None and theta is not None:
            scores = arms @ theta
        elif theta is not None:
            scores = np.sum(np.sort(np.abs(theta))[-nonzero:]) * np.array([-1, 1])
        elif best_score is not None:
            scores = best_score * np.array([-1, 1])
        else:
            # √(m/3) is a typical norm of drawn arms.
            norm = (nonzero / 3) ** 0.5 if arms is None else np.max(np.linalg.norm(arms, axis=1))
            scores = RARE * std * norm * np.array([-1, 1])
        means = np.asarray(family.mean(jnp.asarray(scores, jnp.float32)))
    worst = np.argmax(np.abs(means))
    if not np.abs(means[worst]) < LARGEST_MEAN:
        raise InvalidFeatures(
            f"A score xᵀθ of {scores[worst]:.3g} gives a {family.name} mean too large to draw rewards with "
            f"(the limit is {LARGEST_MEAN:.3g}). Scale down fixed_arms, theta, best_score or parameter_variance."
        )


def check_round(instance: Instance, t: ArrayLike) -> None:
    """Raise for a batch of instances, and for a `t` that is not a count of rounds."""
    check_count("t", t, "the count of rounds before this one")
    if np.ndim(instance.theta) != 1:
        raise InvalidShape(
            f"instance must be a single one, got theta of shape {np.shape(instance.theta)}. "
            "Use jax.vmap for a batch of instances."
        )
