"""Snapshots of former formats: names of settings and of arrays, translated to those of today.

Up to format 2 the state of a GLM policy had the past, the estimate and all that goes with it side by side.  They are
one memory now (`glm.memory`), and the numbers that a rule explores by, which were one array, are a record with a field
for each number.  Up to format 3 the state of a linear policy had neither its ridge, which is a setting, nor the
regression that follows from the other arrays, and up to format 4 a GLM policy's memory of rewards one by one did not
keep the root of its inverse curvature, which follows from the rewards and the estimate.
"""

import re
from typing import Any

import numpy as np

SETTINGS = {"explore": "warmup", "features": "n_features"}
# Names of arrays in a state, today's and the former ones; the first pattern that fits counts.
ARRAYS = (
    (r"\.memory\.(theta_hat|converged|warm|whitened)\b", r".\1"),
    (r"\.memory\.forgetting\.", "."),
    (r"\.memory\.past\.", ".history."),
    (r"\.memory\.", ".history."),
    (r"\.numbers\.\w+$", ".strength"),
)
STATES = 5  # since this format the arrays of states have the names of today
LACKING = re.compile(r"\.(ridge|regression\.\w+|memory\.kept_root)")  # arrays that a former state may lack
Described = list[list[Any]]  # name, shape and dtype of each array
Arrays = dict[str, np.ndarray]


def schema_today(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a snapshot of any format in today's format, except for the arrays of the state."""
    schema = dict(schema)
    if schema["format"] == 1:  # decisions that were under way had numbers, but are not in it
        count = schema["decisions"]
        schema |= {"explore_floor": 0.0, "offset": 0, "spans": [[0, 0, count]] if count else [], "unsure": count}
    if schema["format"] <= 2 and schema["settings"] is not None:
        schema["settings"] = {SETTINGS.get(name, name): value for name, value in schema["settings"].items()}
    if schema["format"] <= 4:
        schema["rowless"] = []
    if schema["format"] <= 5:
        schema |= {"reward_window": None, "default_reward": None}
    return schema


def former_name(name: str) -> str:
    """Return the name that an array of a state had up to format 2, given its name today."""
    for today, former in ARRAYS:
        name, found = re.subn(today, former, name)
        if found:
            break
    return name.replace("theta_hat", "theta_mle")


def arrays_today(
    expected: Described, fresh: Arrays, described: Described, arrays: Arrays, its_format: int
) -> tuple[Described, Arrays]:
    """Return the arrays of a former state with the names, and in the order, that they have today.

    Args:
        expected: The name, shape and dtype of each array in a state of the same policy today.
        fresh: The arrays of that state, which has seen no rewards.  Arrays that were not saved are taken from it, and
            have to be computed from the others (`Policy.complete`).
        described: The name, shape and dtype of each array that was saved.
        arrays: The arrays of the snapshot; those of the state are `state_0`, `state_1`, …
        its_format: The format of the snapshot.

    Returns:
        The descriptions and the arrays in today's format; unchanged if the two states cannot be matched.
    """
    places = {name: i for i, (name, *_) in enumerate(described)}
    found: list[tuple[str, np.ndarray]] = []
    fields: dict[str, int] = {}  # how many numbers were taken of each array that is a record now
    for i, (name, *_) in enumerate(expected):
        former = former_name(name) if its_format <= 2 else name
        if former not in places and LACKING.fullmatch(name):
            found.append((name, fresh[f"state_{i}"]))
            continue
        if former not in places:
            return described, arrays
        array = arrays[f"state_{places[former]}"]
        if former.endswith(".strength") and array.ndim:
            number = fields.setdefault(former, 0)
            if number >= len(array):
                return described, arrays
            fields[former], array = number + 1, array[number]
        found.append((name, array))
    others = {name: value for name, value in arrays.items() if not name.startswith("state_")}
    translated = {f"state_{i}": array for i, (_, array) in enumerate(found)}
    return [[name, list(array.shape), str(array.dtype)] for name, array in found], {**others, **translated}
