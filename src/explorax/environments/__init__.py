"""Random bandit problems to play against, each built by a function of its name.

    environment = explorax.environments.logistic(n_features=5)        # or make("logistic", n_features=5)
    instance = environment.draw(key)
    offer = environment.offer(key, instance, t)                       # offer.arms, offer.means
    reward = environment.reward(key, offer, arm)

`Environment` explains the three functions, and docs/adding-an-environment.md how to write an environment.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from explorax import datasets
from explorax.builders import documented, setting_names
from explorax.environments.base import Environment, Offer
from explorax.environments.glm import Settings, gaussian, logistic, poisson
from explorax.environments.labelled import classification
from explorax.environments.logged import from_log, read
from explorax.errors import InvalidArgument, UnknownName, check_names, shown
from explorax.glm import families

__all__ = [
    "BUILDERS",
    "Data",
    "Environment",
    "Offer",
    "Settings",
    "arms_change",
    "classification",
    "data_of",
    "family_of",
    "from_log",
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
    >>> import explorax, jax{before}
    >>> environment = explorax.environments.{name}({settings})
    >>> environment.name
    '{name}'
    >>> offer = environment.offer(jax.random.key(0), environment.draw(jax.random.key(1)), 0)
    >>> offer.arms.shape == (len(offer.means), environment.n_features)
    True"""


class Known(NamedTuple):
    """What is known of an environment before it is built."""

    builder: Callable[..., Environment]
    family: families.Family | None  # of the rewards; None if that depends on the settings
    example: str  # the settings that the builder's docstring shows
    before: str = ""  # a line before the example
    read: Callable[[Any, Any], dict[str, Any]] | None = None  # its settings with data read, by those that name data


KNOWN = (
    Known(logistic, families.bernoulli, "n_features=2, n_arms=3"),
    Known(gaussian, families.gaussian, "n_features=2, n_arms=3, noise_std=0.5"),
    Known(poisson, families.poisson, "n_features=2, n_arms=3"),
    Known(
        classification,
        families.bernoulli,
        "data=([[0.0, 1.0], [1.0, 0.0]], [0, 1]), n_arms=3",
        read=lambda data, label: {"data": datasets.load(data, label=label), "label": None},
    ),
    Known(
        from_log,
        None,
        "data=log",
        "log = explorax.LoggedData.of(['red', 'blue'], [1.0, 0.0])",
        lambda data, label: {"data": read(data)},
    ),
)
BUILDERS: dict[str, Callable[..., Environment]] = {
    each.builder.__name__: documented(
        each.builder,
        ENDING.format(
            name=each.builder.__name__,
            settings=each.example,
            before=f"\n    >>> {each.before}" if each.before else "",
        ),
    )
    for each in KNOWN
}
READERS = {each.builder.__name__: each.read for each in KNOWN}
FAMILIES = {each.builder.__name__: each.family and each.family.name for each in KNOWN}


def make(name: str, **settings: Any) -> Environment:
    """Build an environment by name.

    Args:
        name: "logistic", "gaussian", "poisson", "classification" or "from_log"; upper and lower case are the same.
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


def family_of(name: str, settings: Mapping[str, Any] | None = None) -> str:
    """Return the name of the reward family of an environment.

    Args:
        name: The name of an environment, as `make` takes it.
        settings: The settings of its builder, on which the family may depend.  Default: none.

    Returns:
        The name of a family, as `explorax.families` has it.

    Raises:
        UnknownName: If there is no environment of that name; the error suggests the nearest.
        InvalidArgument: If the name is not text, or the family depends on settings with which it cannot be built.

    Example:
        >>> import explorax
        >>> explorax.environments.family_of("logistic")
        'bernoulli'
    """
    found = FAMILIES[known_name(name)] or make(name, **(settings or {})).family
    assert found is not None  # every environment that has a name has a family
    return found


def arms_change(name: str, settings: Mapping[str, Any]) -> bool:
    """Return whether an environment offers other arms in each round.

    Args:
        name: The name of an environment, as `make` takes it.
        settings: The settings of its builder.

    Returns:
        The setting `arms_change`; its default if it is not given, and True for an environment that has no such setting.

    Raises:
        UnknownName: If there is no environment of that name; the error suggests the nearest.
        InvalidArgument: If the name is not text.

    Example:
        >>> import explorax
        >>> explorax.environments.arms_change("logistic", {"n_features": 5})
        False
    """
    return bool(settings.get("arms_change", "arms_change" not in setting_names(BUILDERS[known_name(name)])))


class Data(NamedTuple):
    """The data that an environment reads from files.

    Attributes:
        source: What names the data, which is equal for equal data.
        read: A function that reads it, and returns the settings to use in place of those that name it.
    """

    source: tuple[str, str]
    read: Callable[[], dict[str, Any]]


def data_of(name: str, settings: Mapping[str, Any]) -> Data | None:
    """Return the data that an environment reads from files, so that it can be read once for several processes.

    Args:
        name: The name of an environment, as `make` takes it.
        settings: The settings of its builder.

    Returns:
        The data; None if the environment reads none.

    Raises:
        UnknownName: If there is no environment of that name; the error suggests the nearest.
        InvalidArgument: If the name is not text.

    Example:
        >>> import explorax
        >>> digits = explorax.environments.data_of("classification", {"data": "digits"})
        >>> digits.read()["data"].features.shape
        (1797, 64)
    """
    reader = READERS[known_name(name)]
    data, label = settings.get("data"), settings.get("label")
    if reader is None or not isinstance(data, str | os.PathLike):
        return None
    return Data((str(data), str(label)), lambda: reader(data, label))


def known_name(name: str) -> str:
    """Return the name of an environment as `BUILDERS` spells it, or raise if there is no such environment."""
    if not isinstance(name, str):
        raise InvalidArgument(f"name must be the name of an environment, such as 'logistic', got {shown(name)}.")
    if name.lower() not in BUILDERS:
        raise UnknownName("environment", name, BUILDERS)
    return name.lower()
