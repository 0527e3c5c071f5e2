"""Logs as the dictionary `bandit_feedback` of the Open Bandit Pipeline, and back.

    n_rounds, n_actions   how many decisions and arms there are
    context               (n, c) what was known before each decision
    action_context        (K, p) what describes each arm
    action, reward        (n,) the place of the chosen arm, and its reward
    position              None: there is one place to show an arm at
    expected_reward       None: nobody knows it
    pscore                (n,) the propensity of the chosen arm
    pi_b                  (n, K, 1) the propensities of all arms, or None if they are unknown
    offered               (n, K) which arms were on offer, only if that was not always all of them

obp itself knows of no arms that are not on offer, so `offered` is for whoever makes an evaluation policy: it must give
them no probability.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from explorax.errors import InvalidArgument, InvalidShape
from explorax.log.data import LoggedData
from explorax.log.features import ContextFeatures, FixedFeatures

NEEDED = ("action", "reward", "n_actions")


def to_obp(data: LoggedData) -> dict[str, Any]:
    """Return a log as the dictionary `bandit_feedback` of the Open Bandit Pipeline.

    Args:
        data: The log.  If it has no contexts but features that differ from row to row, the features of all arms in a
            row are its context.

    Returns:
        The dictionary, with the keys n_rounds, n_actions, context, action_context, action, position, reward,
        expected_reward, pi_b and pscore; and `offered`, a mask (n, K), if some arms were not always on offer.

    Example:
        >>> import explorax
        >>> data = explorax.LoggedData.of([1, 0], [1.0, 0.0], propensities=[0.5, 0.25], contexts=[[0.1], [0.2]])
        >>> feedback = explorax.to_obp(data)
        >>> feedback["n_actions"], feedback["context"].shape, feedback["action_context"].shape, feedback["pscore"]
        (2, (2, 1), (2, 2), array([0.5 , 0.25]))
    """
    count, known, features = len(data), data.n_arms, data.features
    context, described = data.contexts, np.eye(known)
    if isinstance(features, FixedFeatures):
        described = np.array(features.matrix)
    elif isinstance(features, ContextFeatures):
        described = np.array(features.arms)
    elif features is not None and context is None:
        context = features.table(np.arange(count)).reshape(count, -1)
    feedback = {
        "n_rounds": count,
        "n_actions": known,
        "context": np.ones((count, 1)) if context is None else np.array(context),
        "action_context": described,
        "action": np.array(data.arms),
        "position": None,
        "reward": np.array(data.rewards),
        "expected_reward": None,
        "pi_b": None if data.all_propensities is None else data.all_propensities[:, :, None].copy(),
        "pscore": None if data.propensities is None else np.array(data.propensities),
    }
    return feedback if data.offered is None else {**feedback, "offered": np.array(data.offered)}


def from_obp(feedback: Mapping[str, Any], *, position: int | None = None) -> LoggedData:
    """Return the log in a dictionary `bandit_feedback` of the Open Bandit Pipeline.

    Args:
        feedback: The dictionary.
        position: The position whose decisions are taken, if arms were shown at several.  Default: there is only one.

    Returns:
        The log, whose arms are named 0 to K − 1, with features that are the products of (1, action_context) with
        (1, context).

    Raises:
        InvalidArgument: If something is missing or cannot be used, or there are several positions and none is given.
        InvalidShape: If arrays do not belong together.

    Example:
        >>> import explorax, numpy as np
        >>> feedback = {"n_rounds": 2, "n_actions": 3, "action": np.array([2, 0]), "reward": np.array([1, 0])}
        >>> data = explorax.from_obp({**feedback, "pscore": np.array([0.2, 0.3])})
        >>> data.arms, data.rewards, data.propensities
        (array([2, 0]), array([1., 0.]), array([0.2, 0.3]))
    """
    missing = [key for key in NEEDED if feedback.get(key) is None]
    if missing:
        raise InvalidArgument(
            f"feedback must have the keys {', '.join(NEEDED)}, got no {missing[0]!r}. Give what obp's "
            "obtain_batch_bandit_feedback returns."
        )
    keys = ("action", "reward", "context", "pscore", "pi_b", "offered", "position")
    columns = {key: None if feedback.get(key) is None else np.asarray(feedback[key]) for key in keys}
    count = np.size(feedback["action"])
    for key, column in columns.items():
        if column is not None and (column.ndim == 0 or len(column) != count):
            raise InvalidShape(
                f"{key} of feedback must have {count} rows, as action has, got shape {column.shape}. Give one row for "
                "each round."
            )
    shown = 0 if columns["position"] is None else chosen_position(columns["position"], position)
    rows = slice(None) if columns["position"] is None else columns["position"] == shown
    every = columns["pi_b"]
    if every is not None:
        every = every[rows, :, min(shown, every.shape[2] - 1)] if every.ndim == 3 else every[rows]
    taken = {key: None if column is None else column[rows] for key, column in columns.items()}
    described = feedback.get("action_context")
    return LoggedData.of(
        taken["action"],
        taken["reward"],
        names=range(int(feedback["n_actions"])),
        propensities=taken["pscore"],
        offered=taken["offered"],
        all_propensities=every,
        contexts=taken["context"],
        arm_features=None if taken["context"] is None else described,
        features=described if taken["context"] is None else None,
    )


def chosen_position(positions: np.ndarray, wanted: int | None) -> int:
    """Return the position whose decisions are taken; raise unless it is clear which."""
    there = np.unique(positions).tolist()
    if (wanted is None and len(there) > 1) or (wanted is not None and wanted not in there):
        raise InvalidArgument(
            f"position must be one of {', '.join(map(str, there))}, at which arms were shown, got {wanted}. Give the "
            "position whose decisions to take."
        )
    return int(there[0] if wanted is None else wanted)
