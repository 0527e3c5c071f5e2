"""Random bandit problems to play against; `base.py` says what an environment is.

environment = explorax.environments.logistic(n_features=5)        # or make("logistic", n_features=5)
instance = environment.draw(key)
offer = environment.offer(key, instance, t)                       # offer.arms, offer.means
reward = environment.reward(key, offer, arm)
"""

from collections.abc import Callable
from typing import Any

from explorax.builders import documented, setting_names
from explorax.environments.base import Environment, Offer
from explorax.environments.glm import Settings, gaussian, logistic, poisson
from explorax.environments.labelled import classification
from explorax.errors import InvalidArgument, UnknownName, check_names
from explorax.glm import families

__all__ = [
    "BUILDERS",
    "Environment",
    "Offer",
    "Settings",
    "classification",
    "family_of",
    "gaussian",
    "logistic",
    "make",
    "poisson",
]

ENDING = """Returns:
    The environment.

Raises:
    InvalidArgument: If a setting is not in its range, or contradicts another.
    UnknownName: If there is no setting of that name; the error suggests the nearest.
    InvalidShape: If arrays that are given do not go together."""
BUILDERS: dict[str, Callable[..., Environment]] = {
    builder.__name__: documented(builder, ENDING) for builder in (logistic, gaussian, poisson, classification)
}
FAMILIES = {  # of their rewards, known before any data is read
    "logistic": families.bernoulli,
    "gaussian": families.gaussian,
    "poisson": families.poisson,
    "classification": families.bernoulli,
}


def make(name: str, **settings: Any) -> Environment:
    """Build an environment by name, as `make("logistic", n_features=5)`.

    Args:
        name: "logistic", "gaussian", "poisson" or "classification".
        **settings: What the builder of that name takes: `help(explorax.environments.logistic)` explains them.

    Returns:
        The environment.

    Raises:
        UnknownName: If there is no environment or setting of that name; the error suggests the nearest.
        InvalidArgument: If a setting is not in its range, or contradicts another.
    """
    builder = BUILDERS[known_name(name)]
    check_names(f"setting of {name}", settings, setting_names(builder))
    return builder(**settings)


def family_of(name: str) -> str:
    """Return the name of the family that an environment's rewards have, for example "bernoulli" for "logistic"."""
    return FAMILIES[known_name(name)].name


def known_name(name: str) -> str:
    """The name of an environment as it is in `BUILDERS`."""
    if not isinstance(name, str):
        raise InvalidArgument(f"name={name!r} must be the name of an environment, for example 'logistic'")
    if name.lower() not in BUILDERS:
        raise UnknownName("environment", name, BUILDERS)
    return name.lower()
