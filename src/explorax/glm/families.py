"""Reward families: the generalized linear models that explorax can fit.

A family says how a reward y depends on the linear score η = xᵀθ.  Its density is proportional to
exp(yη − b(η)), with

    cumulant   b(η)
    mean       μ(η) = ḃ(η), increasing
    slope      μ̇(η) = b̈(η) > 0, the variance of y (for unit dispersion)

All three families have the canonical link, so the loss b(η) − yη is convex in η for *every* real y.  GLM-FPL relies on
this, because its perturbed rewards can be any real numbers, while observed rewards must be `valid` ones.  For rewards
that are 0 or more but not counts, and whose mean is e^η, replace `valid` of the Poisson family:
`poisson._replace(name="...", rewards="...", valid=...)`, as `examples/prices.py` does.

`self_concordance` is the smallest M with |μ̈| ≤ M μ̇.  It bounds how much the curvature changes when scores move by r,
e^{−Mr} μ̇ ≤ μ̇(η + r) ≤ e^{Mr} μ̇, so that a damped Newton step is known to be safe before it is tried (`glm.newton`).

Reference: McCullagh & Nelder, Generalized Linear Models, 1989, chapter 2.
"""

import math
import numbers
import reprlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from explorax.errors import InvalidReward, UnknownName


class Family(NamedTuple):
    """A family of reward distributions: a one-parameter exponential family with the canonical link.

    `families.bernoulli`, `families.gaussian` and `families.poisson` are the families that have a name.  A record of
    your own can be given wherever a family is asked for.

    Attributes:
        name: The name of the family, for messages and settings.
        mean: The mean function μ(η) of an array of scores η = xᵀθ.
        slope: Its derivative μ̇(η).
        cumulant: The cumulant b(η), whose derivative is μ(η).
        sample: `sample(key, scores, noise_std=1.0)` draws one reward for each score; only the Gaussian family uses
            `noise_std`.
        mean_range: The open interval of possible means.
        max_slope: The largest slope over all scores; infinite if slopes are unbounded.
        noise_std: The sub-Gaussian constant σ of the rewards; None if there is no such constant.
        self_concordance: The smallest M with |μ̈| ≤ M μ̇.
        rewards: What a valid reward is, in words, for messages.
        valid: A function that takes finite rewards, as an array or a single number, and returns which are valid.

    Example:
        >>> from explorax import families
        >>> families.bernoulli.rewards, families.bernoulli.max_slope
        ('between 0 and 1', 0.25)
        >>> float(families.bernoulli.mean(0.0))
        0.5
    """

    name: str
    mean: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    cumulant: Callable[[Array], Array]
    sample: Callable[..., Array]
    mean_range: tuple[float, float]
    max_slope: float
    noise_std: float | None
    self_concordance: float
    rewards: str
    valid: Callable[[Any], Any]


def sample_bernoulli(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """Draw Bernoulli rewards with mean μ(η) = 1 / (1 + e^−η).

    Args:
        key: A JAX random key.
        score: The scores η, an array of any shape.
        noise_std: Not used: the mean determines the variance.

    Returns:
        One reward of 0 or 1 for each score, in the dtype of the scores.

    Example:
        >>> import jax
        >>> from explorax import families
        >>> families.bernoulli.sample(jax.random.key(0), jax.numpy.array([-100.0, 100.0])).tolist()
        [0.0, 1.0]
    """
    return jax.random.bernoulli(key, jax.nn.sigmoid(score)).astype(score.dtype)


def sample_gaussian(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """Draw Gaussian rewards from N(η, noise_std²).

    Args:
        key: A JAX random key.
        score: The scores η, an array of any shape, which are the means.
        noise_std: The standard deviation of the rewards.  Default: 1.

    Returns:
        One reward for each score, in the dtype of the scores.
    """
    return score + noise_std * jax.random.normal(key, score.shape, score.dtype)


def sample_poisson(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """Draw Poisson rewards with mean μ(η) = e^η.

    Args:
        key: A JAX random key.
        score: The scores η, an array of any shape.
        noise_std: Not used: the mean determines the variance.

    Returns:
        One count for each score, in the dtype of the scores.
    """
    return jax.random.poisson(key, jnp.exp(score)).astype(score.dtype)


def bernoulli_slope(score: Array) -> Array:
    """Return the slope μ̇(η) = μ(η) (1 − μ(η)) of the logistic mean, without cancellation for large |η|."""
    return jax.nn.sigmoid(score) * jax.nn.sigmoid(-score)


bernoulli = Family(
    name="bernoulli",
    mean=jax.nn.sigmoid,
    slope=bernoulli_slope,
    cumulant=jax.nn.softplus,
    sample=sample_bernoulli,
    mean_range=(0.0, 1.0),
    max_slope=0.25,
    noise_std=0.5,  # Hoeffding: a variable in [0, 1] is ¼-sub-Gaussian
    self_concordance=1.0,
    rewards="between 0 and 1",
    valid=lambda y: (y >= 0) & (y <= 1),
)

gaussian = Family(
    name="gaussian",
    mean=lambda score: score,
    slope=jnp.ones_like,
    cumulant=lambda score: score**2 / 2,
    sample=sample_gaussian,
    mean_range=(-np.inf, np.inf),
    max_slope=1.0,
    noise_std=1.0,
    self_concordance=0.0,
    rewards="a finite number",
    valid=lambda y: y == y,  # all of them, since they are finite
)

poisson = Family(
    name="poisson",
    mean=jnp.exp,
    slope=jnp.exp,
    cumulant=jnp.exp,
    sample=sample_poisson,
    mean_range=(0.0, np.inf),
    max_slope=np.inf,
    noise_std=None,  # Poisson tails are heavier than any Gaussian's
    self_concordance=1.0,
    rewards="a whole number of 0 or more",
    valid=lambda y: (y >= 0) & (y == np.floor(y)),
)

FAMILIES = {family.name: family for family in (bernoulli, gaussian, poisson)}


def get(family: str | Family) -> Family:
    """Return the reward family of a given name.

    Args:
        family: "bernoulli", "gaussian", "poisson", or a `Family`, which is returned as it is.

    Returns:
        The family.

    Raises:
        UnknownName: If there is no family of that name.

    Example:
        >>> from explorax import families
        >>> families.get("poisson").rewards
        'a whole number of 0 or more'
    """
    if isinstance(family, Family):
        return family
    if not isinstance(family, str) or family not in FAMILIES:
        raise UnknownName("family", family, FAMILIES)
    return FAMILIES[family]


def as_rewards(rewards: object) -> np.ndarray:
    """Convert rewards to an array of floats.

    Args:
        rewards: A number or an array of numbers: floats, whole numbers, truth values, fractions or decimals.

    Returns:
        The rewards as a NumPy array of floats, of the same shape.

    Raises:
        InvalidReward: If a reward is not a number, for example text, a date or a masked value.
    """
    if type(rewards) is float:
        return np.asarray(rewards)
    try:
        values = np.asarray(rewards)
        numeric = values.dtype.kind in "biuf" or (
            values.dtype.kind == "O" and all(isinstance(each, numbers.Real | Decimal) for each in values.flat)
        )
        if numeric and not np.ma.is_masked(rewards):
            return values.astype(float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidReward(
        f"reward must be a number, got {reprlib.repr(rewards)}. Convert it, or leave it out until it is known."
    )


def check_rewards(family: Family, rewards: object) -> None:
    """Check that every reward is one that a family can produce.

    Args:
        family: The reward family.
        rewards: A number or an array of numbers.

    Raises:
        InvalidReward: If a reward is not a number, not finite, or not valid in the family.
    """
    if type(rewards) is float and math.isfinite(rewards) and bool(family.valid(rewards)):
        return  # a single number, in a fraction of the time
    values = as_rewards(rewards)
    finite = np.isfinite(values)
    if not finite.all():
        bad = values[~finite].flat[0]
        raise InvalidReward(f"reward must be finite, got {bad}. Leave it out, or wait until it is known.")
    valid = family.valid(values)
    if not np.all(valid):
        bad = values[~valid].flat[0]
        raise InvalidReward(
            f"reward must be {family.rewards} in the {family.name} family, got {bad:g}. Rescale the reward, or choose "
            "another family."
        )
