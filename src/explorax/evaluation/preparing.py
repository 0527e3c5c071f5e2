"""From the arguments of an evaluation to the scores of all its targets."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from explorax.checks import MOST_SEED, check_whole, is_number
from explorax.errors import InvalidArgument, InvalidReward, UnknownName, shown
from explorax.evaluation.propensity_models import Propensities, estimated, logged
from explorax.evaluation.replay import least, replay, replay_note
from explorax.evaluation.reward_models import Range, described, predictions, suitable_family
from explorax.evaluation.scores import Scores
from explorax.evaluation.scoring import Basis, scores_of, scores_of_logging
from explorax.evaluation.targets import Learning, Target, read_target, trained
from explorax.evaluation.values import LOGGING
from explorax.log.data import LoggedData
from explorax.text import listed

LEARNING = ("replay", "trained")
UNWEIGHED = ("on_policy", "dm")  # estimators that need no propensities
NAMED = "The log has no features of the arms: {names} learned by the names of arms, and by the context if it is known."
LEFT_OUT = "Decisions without known rewards are left out ({count} of them), which is right if they are no special ones."
FEWEST = 10  # rows of a log, and rows that a replay keeps


class Prepared(NamedTuple):
    """What a log says of several targets; all numbers of an evaluation follow from this.

    Attributes:
        log: The rows that are evaluated, without features, with the propensities that were used.
        logging: The scores of the policy that made the log, on the rows that are evaluated.
        targets: The scores of the targets that were weighed, on the same rows, by name.
        replayed: The scores of the targets that were replayed, on rows of their own, by name.
        propensities: The probabilities with which arms were chosen.
        assumptions: What the scores rest on, in sentences.
        flaw: Why intervals that hold for every number of rows are not to be had, by estimator, and what to do.
    """

    log: LoggedData
    logging: Scores
    targets: dict[str, Scores]
    replayed: dict[str, Scores]
    propensities: Propensities
    assumptions: tuple[str, ...]
    flaw: Mapping[str, str]


def prepared(
    log: LoggedData | str | os.PathLike[str],
    policies: Any,
    *,
    estimators: Sequence[str],
    reward_model: Any = "glm",
    fitted: str = "past",
    reward_range: Range | None = None,
    propensities: Any = None,
    least_propensity: float | None = None,
    learning: str = "replay",
    seed: int = 0,
) -> Prepared:
    """Return the scores of the targets, from arguments of `explorax.evaluate`.

    Args:
        log: The log, or the path of a log file.
        policies: A target, or a mapping of names to targets.
        estimators: The names of the estimators.
        reward_model: The reward model.
        fitted: How it is fitted.
        reward_range: The least and the largest reward, or None.
        propensities: How propensities are estimated, or None.
        least_propensity: A number that no propensity is below, or None.
        learning: What becomes of policies that learn.
        seed: The seed of all random numbers.

    Returns:
        The scores, and what they rest on.

    Raises:
        UnknownName: If there is no such way of learning.
    """
    check_whole("seed", seed, 0, MOST_SEED)
    if learning not in LEARNING:
        raise UnknownName("learning", learning, LEARNING)
    log = opened(log)
    reward_range = known_range(log, reward_range)
    asked = {name: read_target(value, log, seed) for name, value in named(policies).items()}
    learners = {name: target for name, target in asked.items() if isinstance(target, Learning)}
    fixed = {name: target for name, target in asked.items() if isinstance(target, Target)}
    first, notes = 0, []
    if learners and log.features is None:
        log, notes = replace(log, features=described(log)), [NAMED.format(names=listed(list(learners)))]
    if learners and learning == "trained":
        first = len(log) // 2
        fixed |= {name: trained(target, log, first, seed) for name, target in learners.items()}
        learners = {}
        fixed = {name: fixed[name] for name in asked}
    weights = weights_of(log, propensities, bool(fixed) and not set(estimators) <= {*UNWEIGHED})
    if least_propensity is not None:
        least(log, least_propensity)
    model = predictions(log, reward_model, fitted, reward_range) if fixed else None
    basis = Basis(log, first, weights, model, reward_range, least_propensity)
    targets = scores_of(fixed, basis)
    notes += [weights.assumption] if fixed else []
    said = dict.fromkeys(note for target in fixed.values() for note in target.notes)
    for note in said:
        names = [name for name, target in fixed.items() if note in target.notes]
        notes.append(note.replace("{name}", listed(names)))
    notes += [f"Reward model: {model.about}."] if model is not None else []
    replayed = {}
    for name, target in learners.items():
        rows = kept_rows(name, target, log, least_propensity, seed)
        replayed[name] = scores_of_logging(log.rewards[rows], reward_range)
        notes.append(replay_note(name, len(rows), log, least_propensity))
    notes += [LEFT_OUT.format(count=log.left_out)] if log.left_out else []
    logging = scores_of_logging(log.rewards[first:], reward_range)
    crossed = fitted == "cross" and (isinstance(reward_model, str) or hasattr(reward_model, "fit"))
    known, assumptions = rows_of(log, first, weights), tuple(filter(None, notes))
    return Prepared(known, logging, targets, replayed, weights, assumptions, flaws(log, crossed))


def flaws(log: LoggedData, crossed: bool) -> dict[str, str]:
    """Return why estimators have no intervals that hold for every number of rows, by name; none where they do."""
    if log.propensities is None:
        why = "propensities must be logged for {kind} intervals, got a log without. Ask for asymptotic intervals."
        return {"ips": why, "dr": why}
    why = (
        "fitted must be 'past' for {kind} intervals of dr, got 'cross', whose models know later rewards. Leave it out."
    )
    return {"dr": why} if crossed else {}


def rows_of(log: LoggedData, first: int, weights: Propensities) -> LoggedData:
    """Return the rows from one on, without features, with these propensities."""
    chosen, every, offered = (
        None if each is None else each[first:] for each in (weights.chosen, weights.every, log.offered)
    )
    return LoggedData(log.arms[first:], log.rewards[first:], None, log.names, chosen, offered, every)


def opened(log: Any) -> LoggedData:
    """Return a log that was given as a record or as the path of a file; raise unless it has rows to evaluate."""
    if isinstance(log, str | os.PathLike):
        from explorax.log.reading import read_log

        log = read_log(Path(log))
    if not isinstance(log, LoggedData):
        raise InvalidArgument(
            f"log must be a LoggedData or the path of a log file, got {shown(log)}. Build one with explorax.LoggedData."
        )
    if len(log) < FEWEST:
        raise InvalidArgument(f"log must have at least {FEWEST} rows, got {len(log)}. Log more decisions.")
    return log


def named(policies: Any) -> Mapping[str, Any]:
    """Return targets by name; a single one is named after what it is."""
    if not isinstance(policies, Mapping):
        recipe = getattr(policies, "recipe", None) or getattr(getattr(policies, "policy", None), "recipe", None)
        return {recipe.name if recipe else "policy": policies}
    if not policies:
        raise InvalidArgument("policies must not be empty, got no policy. Name at least one.")
    for name in policies:
        if not isinstance(name, str) or not name or name == LOGGING:
            raise InvalidArgument(
                f"policies must have names that are text and not {LOGGING!r}, got {name!r}. Choose another name."
            )
    return policies


def known_range(log: LoggedData, given: Range | None) -> Range | None:
    """Return the range of rewards as given, or (0, 1) if all rewards are 0 or 1; raise unless all lie in it."""
    if given is None:
        return (0.0, 1.0) if suitable_family(log.rewards) == "bernoulli" else None
    bounds = tuple(given) if isinstance(given, Sequence) else ()
    if len(bounds) != 2 or not all(map(is_number, bounds)) or bounds[0] >= bounds[1]:
        raise InvalidArgument(
            f"reward_range must be two finite numbers, the smaller one first, got {shown(given)}. Give, for example, "
            "(0, 1)."
        )
    low, high = map(float, bounds)
    outside = (log.rewards < low) | (log.rewards > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InvalidReward(
            f"rewards must lie in reward_range, from {low:g} to {high:g}, got {log.rewards[row]:g} in row {row}. Give "
            "the least and the largest reward that can ever be."
        )
    return low, high


def weights_of(log: LoggedData, propensities: Any, weighed: bool) -> Propensities:
    """Return the propensities of a log, those estimated for it, or none if nothing is weighed."""
    if log.propensities is not None:
        if propensities is not None:
            raise InvalidArgument(
                f"propensities must be left out for a log that has them, got {shown(propensities)}. Leave out the "
                "argument."
            )
        return logged(log)
    if propensities is not None:
        if isinstance(propensities, str) and propensities != "estimate":
            raise UnknownName("propensities", propensities, ("estimate",))
        return estimated(log, None if isinstance(propensities, str) else propensities)
    if weighed:
        raise InvalidArgument(
            "log must have propensities to weigh rewards, got None. Log them, or have them estimated by "
            "propensities='estimate', or rely on a model alone by estimator='dm'."
        )
    return Propensities(None, None, True)


def kept_rows(name: str, target: Learning, log: LoggedData, least_propensity: float | None, seed: int) -> np.ndarray:
    """Return the places of the rows that a replay keeps; raise if they are too few to say anything."""
    rows = np.flatnonzero(replay(target.policy, log, least_propensity, seed))
    if len(rows) < FEWEST:
        raise InvalidArgument(
            f"log must be long enough to replay {name}, got {len(rows)} rows that were kept out of {len(log)}. Use "
            "learning='trained', or log more decisions."
        )
    return rows
