"""Reward families: the generalized linear models that explorax can fit.

A family says how a reward y depends on the linear score η = xᵀθ.  Its density is proportional to
exp(yη − b(η)), with

    cumulant   b(η)
    mean       μ(η) = ḃ(η), increasing
    slope      μ̇(η) = b̈(η) > 0, the variance of y (for unit dispersion)

All three families have the canonical link, so the loss b(η) − yη is convex in η for *every* real y.  GLM-FPL needs
that: its perturbed rewards are any real numbers, although real rewards are not (`rewards`).  Rewards that are 0 or more
but no counts, whose mean is e^η all the same, have a family like the Poisson one with another `valid`: see
`examples/prices.py`.

`self_concordance` is the smallest M with |μ̈| ≤ M μ̇.  It says how fast the curvature can change when scores move by r:
e^{−Mr} μ̇ ≤ μ̇(η + r) ≤ e^{Mr} μ̇, which is what makes a damped Newton step safe without trying it (`glm.newton`).

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
    """A one-parameter exponential family with canonical link."""

    name: str
    mean: Callable[[Array], Array]  # μ(η)
    slope: Callable[[Array], Array]  # μ̇(η)
    cumulant: Callable[[Array], Array]  # b(η)
    sample: Callable[..., Array]  # (key, η, noise_std=1) -> rewards; only the Gaussian has a free noise_std
    mean_range: tuple[float, float]  # the open interval of possible means
    max_slope: float  # sup of μ̇ over all η, infinite if unbounded
    noise_std: float | None  # sub-Gaussian constant of the rewards, None if there is none
    self_concordance: float  # smallest M with |μ̈| ≤ M μ̇
    rewards: str  # which rewards are valid, in words
    valid: Callable[[Any], Any]  # finite rewards, an array or a single number -> which of them are valid


def sample_bernoulli(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """Ber(μ(η)) as 0 or 1 in the scores' dtype."""
    return jax.random.bernoulli(key, jax.nn.sigmoid(score)).astype(score.dtype)


def sample_gaussian(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """N(η, noise_std²)."""
    return score + noise_std * jax.random.normal(key, score.shape, score.dtype)


def sample_poisson(key: Array, score: Array, noise_std: float = 1.0) -> Array:
    """Poisson(e^η) counts in the scores' dtype."""
    return jax.random.poisson(key, jnp.exp(score)).astype(score.dtype)


def bernoulli_slope(score: Array) -> Array:
    """μ̇ = μ(1 − μ), written so that it does not vanish too early for large |η| in float32."""
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
    rewards="any finite number",
    valid=np.isfinite,
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
    rewards="whole numbers of 0 or more",
    valid=lambda y: (y >= 0) & (y == np.floor(y)),
)

FAMILIES = {family.name: family for family in (bernoulli, gaussian, poisson)}


def get(family: str | Family) -> Family:
    """The family of that name; a `Family` is passed through."""
    if isinstance(family, Family):
        return family
    if not isinstance(family, str) or family not in FAMILIES:
        raise UnknownName("family", family, FAMILIES)
    return FAMILIES[family]


def as_rewards(rewards: object) -> np.ndarray:
    """Rewards as an array of floats; raise `InvalidReward` for what is no number: text, dates, masked values."""
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
        f"reward must be a number, got {reprlib.repr(rewards)}. Convert it, and leave out what is not known yet."
    )


def check_rewards(family: Family, rewards: object) -> None:
    """Raise `InvalidReward` unless every reward is one the family can produce."""
    if type(rewards) is float and math.isfinite(rewards) and bool(family.valid(rewards)):
        return  # a single number, in a fraction of the time
    values = as_rewards(rewards)
    finite = np.isfinite(values)
    if not finite.all():
        bad = values[~finite].flat[0]
        raise InvalidReward(f"reward {bad} is not finite: drop it or wait until it is known")
    valid = family.valid(values)
    if not np.all(valid):
        bad = values[~valid].flat[0]
        raise InvalidReward(
            f"reward {bad:g} is impossible in the {family.name} family, whose rewards are {family.rewards}: "
            "rescale the reward or choose another family"
        )
