"""Random bandit problems to play against, one kind to a file; `base.py` says what an environment is.

environment = explorax.environments.logistic(n_features=5)        # or make("logistic", n_features=5)
instance = environment.draw(key)
offer = environment.offer(key, instance, t)                       # offer.arms, offer.means
reward = environment.reward(key, offer, arm)
"""

from collections.abc import Callable
from typing import Any

from explorax.environments.base import Environment, Offer
from explorax.environments.classification import classification
from explorax.environments.gaussian import gaussian
from explorax.environments.logistic import logistic
from explorax.environments.poisson import poisson
from explorax.errors import InvalidArgument, UnknownName, check_names
from explorax.glm import families
from explorax.registry import setting_names

__all__ = ["BUILDERS", "Environment", "Offer", "classification", "family_of", "gaussian", "logistic", "make", "poisson"]

BUILDERS: dict[str, Callable[..., Any]] = {
    "logistic": logistic,
    "gaussian": gaussian,
    "poisson": poisson,
    "classification": classification,
}
FAMILIES = {  # of their rewards, known before any data is read
    "logistic": families.bernoulli,
    "gaussian": families.gaussian,
    "poisson": families.poisson,
    "classification": families.bernoulli,
}


def make(name: str, **settings: object) -> Environment:
    """Build an environment by name, `make("logistic", n_features=5)`."""
    builder = BUILDERS[known_name(name)]
    check_names(f"setting of {name}", settings, setting_names(builder))
    environment: Environment = builder(**settings)
    return environment


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
