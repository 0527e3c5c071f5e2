"""Random bandit problems to play against, one kind to a file; `base.py` says what an environment is.

environment = explorax.environments.logistic(features=5)          # or make("logistic", features=5)
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
from explorax.registry import setting_names

__all__ = ["BUILDERS", "Environment", "Offer", "classification", "gaussian", "logistic", "make", "poisson"]

BUILDERS: dict[str, Callable[..., Any]] = {
    "logistic": logistic,
    "gaussian": gaussian,
    "poisson": poisson,
    "classification": classification,
}


def make(name: str, **settings: object) -> Environment:
    """Build an environment by name, `make("logistic", features=5)`."""
    if not isinstance(name, str):
        raise InvalidArgument(f"name={name!r} must be the name of an environment, for example 'logistic'")
    if name.lower() not in BUILDERS:
        raise UnknownName("environment", name, BUILDERS)
    builder = BUILDERS[name.lower()]
    check_names(f"setting of {name}", settings, setting_names(builder))
    environment: Environment = builder(**settings)
    return environment
