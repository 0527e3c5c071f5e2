"""What people have of a log, as the columns that it is made of: names, places, numbers and features, all checked."""

from collections.abc import Hashable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from explorax.errors import (
    InvalidArgument,
    InvalidFeatures,
    InvalidReward,
    InvalidShape,
    UnknownName,
    shown,
)
from explorax.log.features import ContextFeatures, Features, FixedFeatures, GivenFeatures

MOST_ARMS = 1_000_000  # that whole numbers without names may stand for
KINDS = {"rewards": InvalidReward, "contexts": InvalidFeatures, "features": InvalidFeatures}


def as_array(name: str, given: Any, kinds: str, what: str) -> np.ndarray:
    """Return what was given as an array of one of some kinds of NumPy; raise for anything else."""
    kind = KINDS.get(name, InvalidArgument)
    given = given.to_numpy() if hasattr(given, "to_numpy") else given
    try:
        array = np.asarray(given)
        if array.dtype.kind == "O" and array.size and all(map(is_plain, array.ravel().tolist())):
            array = array.astype(np.float64)  # None becomes NaN, which is refused where rows are looked at
    except (TypeError, ValueError):
        raise kind(f"{name} must be {what}, got rows of different lengths. Give rows of equal length.") from None
    if array.dtype.kind not in kinds and array.size:
        raise kind(f"{name} must be {what}, got {shown(given)}. Convert it to {what}.")
    return array


def is_plain(value: object) -> bool:
    """Tell whether a value of a column is a number or missing."""
    return value is None or isinstance(value, int | float | np.number | np.bool_)


def numbers(name: str, given: Any) -> np.ndarray:
    """Return what was given as floats."""
    array = as_array(name, given, "fiub", "numbers")
    return array.astype(array.dtype if array.dtype.kind == "f" and array.dtype.itemsize > 2 else np.float64)


def mask(name: str, given: Any) -> np.ndarray:
    """Return what was given as bools; raise for other numbers than 0 and 1."""
    array = as_array(name, given, "fiub", "bools")
    if not np.isin(array, (0, 1)).all():
        raise InvalidArgument(f"{name} must be bools, got {shown(array)} with other numbers than 0 and 1. Give bools.")
    return array.astype(bool)


def seconds(name: str, given: Any) -> np.ndarray:
    """Return times as seconds; dates of NumPy, pandas and polars become seconds since 1970."""
    array = np.asarray(given.to_numpy() if hasattr(given, "to_numpy") else given)
    if array.dtype.kind == "O" and array.size and all(isinstance(each, datetime) for each in array.tolist()):
        return np.array([(each if each.tzinfo else each.replace(tzinfo=UTC)).timestamp() for each in array.tolist()])
    if array.dtype.kind != "M":
        return numbers(name, array)
    since = (array - np.datetime64(0, "s")) / np.timedelta64(1, "s")
    return np.where(np.isnat(array), np.nan, since)


def identifiers(name: str, given: Any) -> np.ndarray:
    """Return ids as whole numbers, which differ."""
    array = as_array(name, given, "iu", "whole numbers").astype(np.int64)
    values, counts = np.unique(array, return_counts=True)
    if len(values) < array.size:
        raise InvalidArgument(f"{name} must differ, got {values[np.argmax(counts)]} twice. Leave out doubled rows.")
    return array


def plain_names(name: str, given: Any) -> list[Any]:
    """Return names as text and whole numbers of Python; raise for anything else."""
    given = given.tolist() if isinstance(given, np.ndarray) else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InvalidArgument(f"{name} must be a list, got {shown(given)}. Give one name for each.")
    plain = [int(each) if isinstance(each, np.integer) else each for each in given]
    for row, each in enumerate(plain):
        if isinstance(each, bool) or not isinstance(each, str | int) or each == "":
            raise InvalidArgument(
                f"{name} must be text, and not empty, or whole numbers, got {shown(each)} at place {row}. Give each "
                "arm such a name."
            )
    return plain


def checked_names(given: Any) -> tuple[Hashable, ...]:
    """Return the names of arms; raise if one is missing, cannot be used, or is given twice."""
    names = plain_names("names", given)
    if not names:
        raise InvalidShape("names must have at least one name, got an empty list. Name the arms.")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidArgument(f"names must differ, got {twice!r} twice. Rename one of these arms.")
    return tuple(names)


def name_arms(arms: Sequence[Any], known: int | None) -> tuple[Hashable, ...]:
    """Return the names of arms that were not named: 0 to K − 1 for whole numbers, else those in the log, sorted.

    Args:
        arms: The arms that were chosen.
        known: The number K of arms, if something else tells it.

    Returns:
        The names.

    Raises:
        InvalidArgument: If whole numbers are negative or huge.
        InvalidShape: If another number of arms was chosen than there is.
    """
    different = set(arms)
    if all(isinstance(arm, int) for arm in different):
        if min(different) < 0 or max(different) >= (known or MOST_ARMS):
            wrong = min(different) if min(different) < 0 else max(different)
            raise InvalidArgument(
                f"arms must be whole numbers from 0 to {(known or MOST_ARMS) - 1} if they have no names, got {wrong}. "
                "Give names."
            )
        return tuple(range(known or max(different) + 1))
    found = tuple(sorted(different, key=lambda arm: (isinstance(arm, str), arm)))
    if known not in (None, len(found)):
        raise InvalidShape(
            f"names must be given for {known} arms, of which the log has only {len(found)} different ones, got None. "
            "Give the names of all arms in their order."
            if known is not None and known > len(found)
            else f"arms must be among {known} arms, got {len(found)} different ones. Give a row for each arm."
        )
    return found


def places(arms: Sequence[Any], names: tuple[Hashable, ...]) -> np.ndarray:
    """Return the places of arms among names; whole numbers are places already if no name is a whole number."""
    if all(isinstance(name, str) for name in names) and all(isinstance(arm, int) for arm in arms):
        return np.array(arms, np.int64)  # LoggedData looks whether there are such places
    place = {name: i for i, name in enumerate(names)}
    try:
        return np.array([place[arm] for arm in arms], np.int64)
    except KeyError as error:
        raise UnknownName("arm", error.args[0], map(str, names)) from None


def arms_on_offer(listed: Sequence[Any], names: tuple[Hashable, ...]) -> np.ndarray | None:
    """Return (n, K) which arms are on offer in rows that list their names; None if all always are."""
    offered = np.zeros((len(listed), len(names)), bool)
    for row, each in enumerate(listed):
        offered[row, places(plain_names("offered", each), names)] = True
    return None if offered.all() else offered


def as_features(
    features: Features | np.ndarray | None,
    contexts: np.ndarray | None,
    described: np.ndarray | None,
    rows: int,
    known: int,
) -> Features | None:
    """Return the features of K arms in n rows, or None if nothing is known of the arms.

    Args:
        features: The features that are given, or None.
        contexts: (n, c) The contexts, or None.
        described: (K, p) What describes the arms in a context; None for unit vectors.
        rows: The number n of rows.
        known: The number K of arms.

    Returns:
        The features.

    Raises:
        InvalidArgument: If features and descriptions of the arms are both given, or descriptions without contexts.
        InvalidFeatures: If features are not finite numbers.
        InvalidShape: If there are not as many arms and rows.
    """
    if described is not None and (features is not None or contexts is None):
        raise InvalidArgument(
            "arm_features must be given with contexts and without features, got "
            f"{'features, too' if features is not None else 'no contexts'}. Give either features, or contexts with "
            "arm_features."
        )
    if contexts is not None:
        check_table("contexts", contexts, ((rows, None),))
    if isinstance(features, Features):
        return features
    if features is not None:
        check_table("features", features, ((known, None), (rows, known, None)))
        return FixedFeatures(features) if features.ndim == 2 else GivenFeatures(features)
    if contexts is None:
        return None
    if described is None:
        return ContextFeatures(contexts, np.eye(known))
    check_table("arm_features", described, ((known, None),))
    return ContextFeatures(contexts, described)


def check_table(name: str, table: np.ndarray, shapes: Sequence[tuple[int | None, ...]]) -> None:
    """Raise unless features have one of some shapes, in which None stands for any number of features, and are finite.

    Args:
        name: The name of the features, for messages.
        table: The features.
        shapes: The shapes that they may have.

    Raises:
        InvalidShape: If they have another shape.
        InvalidFeatures: If there is NaN or infinity among them.
    """
    fits = any(
        table.ndim == len(shape) and all(want in (None, is_) for want, is_ in zip(shape, table.shape, strict=True))
        for shape in shapes
    )
    if not fits or table.shape[-1] == 0:
        wanted = " or ".join(str(shape).replace("None", "d") for shape in shapes)
        raise InvalidShape(
            f"{name} must have shape {wanted}, got {table.shape}. Give d numbers for each arm, in the order of names."
        )
    if not np.isfinite(table).all():
        raise InvalidFeatures(f"{name} must be finite, got NaN or infinity. Clean the data first.")


def columns(
    arms: Any,
    rewards: Any,
    names: Any,
    features: Any,
    propensities: Any,
    offered: Any,
    every: Any,
    contexts: Any,
    described: Any,
    times: Any,
    ids: Any,
) -> dict[str, Any]:
    """Return the fields of a log from what `LoggedData.of` is given."""
    chosen = plain_names("arms", arms)
    if not chosen:
        raise InvalidShape("arms must have at least one row, got an empty log. Give rows.")
    table = features if isinstance(features, Features) else optional_numbers("features", features)
    every, described = optional_numbers("all_propensities", every), optional_numbers("arm_features", described)
    contexts, may = optional_numbers("contexts", contexts), None if offered is None else mask("offered", offered)
    if names is None:
        axes = ((table, -2), (described, 0), (may, -1), (every, -1))
        known = [each.shape[axis] for each, axis in axes if each is not None and len(each.shape) > 1]
        named = name_arms(chosen, known[0] if known else None)
    else:
        named = checked_names(names)
    where = places(chosen, named)
    chances = optional_numbers("propensities", propensities)
    if chances is None and every is not None and every.shape == (len(where), len(named)):
        places_known = (where >= 0) & (where < len(named))
        chances = every[np.arange(len(where)), np.where(places_known, where, 0)]
    return {
        "arms": where,
        "rewards": numbers("rewards", rewards).astype(np.float64),
        "features": as_features(table, contexts, described, len(where), len(named)),
        "names": named,
        "propensities": chances,
        "offered": may,
        "all_propensities": every,
        "contexts": contexts,
        "times": None if times is None else seconds("times", times),
        "ids": None if ids is None else identifiers("ids", ids),
    }


def optional_numbers(name: str, given: Any) -> np.ndarray | None:
    """Return what was given as floats, or None if nothing was."""
    return None if given is None else numbers(name, given)
