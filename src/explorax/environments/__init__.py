"""Random bandit problems to play against, each built by a function of its name.

    environment = explorax.environments.logistic(n_features=5)        # or make("logistic", n_features=5)
    instance = environment.draw(key)
    offer = environment.offer(key, instance, t)                       # offer.arms, offer.means
    reward = environment.reward(key, offer, arm)

`Environment` explains the three functions, and docs/adding-an-environment.md how to write an environment.
"""

from collections.abc import Callable
from typing import Any

from explorax.builders import documented, setting_names
from explorax.environments.base import Environment, Offer
from explorax.environments.glm import Settings, gaussian, logistic, poisson
from explorax.environments.labelled import classification
from explorax.errors import InvalidArgument, UnknownName, check_names, shown
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
    The `Environment`.

Raises:
    InvalidArgument: If a setting is not in its range, or contradicts another.
    InvalidFeatures: If arrays are not finite, or means are too large to draw rewards with.
    InvalidShape: If the shapes of given arrays do not match.
    UnknownName: If there is no setting of that name; the error suggests the nearest.

Example:
    >>> import explorax, jax
    >>> environment = explorax.environments.{name}({settings}, n_arms=3)
    >>> instance = environment.draw(jax.random.key(0))
    >>> environment.offer(jax.random.key(1), instance, 0).arms.shape
    (3, 2)"""
SHOWN = {  # the settings in the example of each builder
    logistic: "n_features=2",
    gaussian: "n_features=2, noise_std=0.5",
    poisson: "n_features=2",
    classification: "data=([[0.0, 1.0], [1.0, 0.0]], [0, 1])",
}
BUILDERS: dict[str, Callable[..., Environment]] = {
    builder.__name__: documented(builder, ENDING.format(name=builder.__name__, settings=settings))
    for builder, settings in SHOWN.items()
}
FAMILIES = {  # of the rewards, known before any data is read
    "logistic": families.bernoulli,
    "gaussian": families.gaussian,
    "poisson": families.poisson,
    "classification": families.bernoulli,
}


def make(name: str, **settings: Any) -> Environment:
    """Build an environment by name.

    Args:
        name: "logistic", "gaussian", "poisson" or "classification"; upper and lower case are the same.
        **settings: The settings of the builder of that name, for example those that
            `help(explorax.environments.logistic)` explains.

    Returns:
        The `Environment`.

    Raises:
        UnknownName: If there is no environment or setting of that name; the error suggests the nearest.
        InvalidArgument: If a setting is not in its range, or contradicts another.

    Example:
        >>> import explorax
        >>> explorax.environments.make("poisson", n_features=5).family
        'poisson'
    """
    builder = BUILDERS[known_name(name)]
    check_names(f"setting of {name}", settings, setting_names(builder))
    return builder(**settings)


def family_of(name: str) -> str:
    """Return the name of the reward family of an environment.

    Args:
        name: The name of an environment, as `make` takes it.

    Returns:
        The name of a family, as `explorax.families` has it.

    Raises:
        UnknownName: If there is no environment of that name; the error suggests the nearest.
        InvalidArgument: If the name is not text.

    Example:
        >>> import explorax
        >>> explorax.environments.family_of("logistic")
        'bernoulli'
    """
    return FAMILIES[known_name(name)].name


def known_name(name: str) -> str:
    """Return the name of an environment as `BUILDERS` spells it, or raise if there is no such environment."""
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be the name of an environment, such as 'logistic', got {shown(name)}.")
    if name.lower() not in BUILDERS:
        raise UnknownName("environment", name, BUILDERS)
    return name.lower()
