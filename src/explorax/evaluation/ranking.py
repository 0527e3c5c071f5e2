"""Policies ranked by what a log says of them, with intervals that all hold at once.

Looking at many candidates makes some of them look good by luck.  So each interval holds with a probability that is high
enough for all of them together: with m candidates there are m + 1 values, m differences from the policy that made the
log, and m (m − 1) / 2 differences of two candidates, and each of these c intervals may fail with probability
(1 − level) / c (the union bound).  It does not matter then that the best candidate was chosen by looking: the interval
of its difference from any other one is among those that hold.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from explorax.errors import InvalidArgument, shown
from explorax.evaluation.comparing import checked_estimators, checked_level, difference, kind_for
from explorax.evaluation.evaluate import concluded
from explorax.evaluation.preparing import prepared
from explorax.evaluation.result import Evaluation
from explorax.evaluation.values import LOGGING, number, percent, span
from explorax.files import write_atomically
from explorax.log.data import LoggedData
from explorax.policies.base import Policy
from explorax.registry import entry_of, make
from explorax.text import listed, table


@dataclass(frozen=True)
class Place:
    """The place of a candidate in a ranking.

    Attributes:
        target: The name of the candidate.
        value: The estimate of its value.
        behind_low: The lower bound of how much the first candidate is better; 0 for the first one itself.
        behind_high: The upper bound of that difference.
        may_be_best: Whether the candidate is not shown worse than the first one.
        verdict: Whether it is shown to be "better" or "worse" than the policy that made the log, or "undecided".
    """

    target: str
    value: float
    behind_low: float
    behind_high: float
    may_be_best: bool
    verdict: str


@dataclass(frozen=True, eq=False)
class Ranking:
    """Candidates in the order of their values, the result of `explorax.rank_policies`.

    Attributes:
        places: The candidates, that with the largest value first.
        level: The probability with which all intervals hold at once.
        answer: Which candidate is best, or which may be, in one or two sentences.
        evaluation: The values behind the ranking, with diagnostics and assumptions; each of its intervals holds with a
            probability so much higher than `level` that all hold at once.
    """

    places: tuple[Place, ...]
    level: float
    answer: str
    evaluation: Evaluation

    @property
    def may_be_best(self) -> list[str]:
        """The names of the candidates that are not shown worse than the first one, itself included."""
        return [place.target for place in self.places if place.may_be_best]

    def __str__(self) -> str:
        head = ["place", "policy", "value", "behind the first", "may be best", f"against the {LOGGING}"]
        body = [
            [str(at), one.target, number(one.value), _behind(one, at), "yes" if one.may_be_best else "no", one.verdict]
            for at, one in enumerate(self.places, 1)
        ]
        return "\n\n".join([self.answer, table([head, *body], left=2), str(self.evaluation)])

    def to_dict(self) -> dict[str, Any]:
        """Return all that was found as plain data.

        Returns:
            Lists, dictionaries, texts, numbers, bools and None.
        """
        places = [asdict(place) for place in self.places]
        return {
            "answer": self.answer,
            "level": self.level,
            "places": places,
            "evaluation": self.evaluation.to_dict(),
        }

    def to_json(self) -> str:
        """Return all that was found as JSON, in which every number is finite.

        Returns:
            The text.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False, indent=2)

    def write(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write the files of the evaluation into a directory, and ranking.json.

        Args:
            directory: The directory, which is made if it is missing.

        Returns:
            The paths of the files, each of which is there whole or not at all.

        Raises:
            CannotWrite: If a file could not be written.
            ImportError: If matplotlib is not installed.
        """
        path = Path(directory) / "ranking.json"
        files = self.evaluation.write(directory)
        write_atomically(path, (self.to_json() + "\n").encode())
        return [*files, path]


def rank_policies(
    log: LoggedData | str | os.PathLike[str],
    policies: Mapping[str, Any],
    *,
    estimator: str = "dr",
    interval: str | None = None,
    level: float = 0.95,
    reward_model: Any = "glm",
    fitted: str = "past",
    reward_range: tuple[float, float] | None = None,
    propensities: Any = None,
    least_propensity: float | None = None,
    learning: str = "trained",
    seed: int = 0,
) -> Ranking:
    """Rank policies by what they would have earned, with intervals that all hold at once.

    Args:
        log: The log, or the path of a log file.
        policies: The candidates by name, each as `explorax.evaluate` takes it; `explorax.candidates` makes some.
        estimator: The name of the estimator.  Default: "dr".
        interval: The kind of interval, as in `explorax.evaluate`.  Default: the strongest that fits.
        level: The probability with which all intervals hold at once.  Default: 0.95.
        reward_model: The reward model, as in `explorax.evaluate`.  Default: "glm".
        fitted: How it is fitted, "past" or "cross".  Default: "past".
        reward_range: The least and the largest reward that can ever be.  Default: (0, 1) if all rewards are 0 or 1,
            else unknown.
        propensities: How propensities are estimated for a log without them.  Default: those of the log.
        least_propensity: A number that no propensity is below.  Default: unknown.
        learning: What becomes of a `Policy` that learns, "trained" or "replay".  Trained candidates are compared on the
            same rows, replayed ones on different rows, which makes intervals wider.  Default: "trained".
        seed: The seed of all random numbers.  Default: 0.

    Returns:
        The ranking: which candidates may be best, and which are shown worse.

    Raises:
        InvalidArgument: If an argument cannot be used, or two of them contradict each other.
        InvalidShape: If probabilities or predictions do not have a row for each decision and a column for each arm.
        InvalidReward: If a reward lies outside of `reward_range`, or a policy or model cannot have produced it.
        UnknownName: If there is no estimator, interval or model of that name.
        HistoryFull: If a policy has no room for the rewards that it should learn.

    Example:
        >>> import numpy as np, explorax
        >>> rng = np.random.default_rng(0)
        >>> arms = rng.integers(0, 2, 4000)
        >>> rewards = (rng.random(4000) < np.array([0.2, 0.6])[arms]).astype(float)
        >>> log = explorax.LoggedData.of(arms, rewards, propensities=np.full(4000, 0.5))
        >>> always = {name: np.tile(np.eye(2)[arm], (4000, 1)) for arm, name in enumerate(["old", "new"])}
        >>> explorax.rank_policies(log, always).may_be_best
        ['new']
    """
    if not isinstance(estimator, str):
        raise InvalidArgument(
            f"estimator must be the name of one estimator, got {shown(estimator)}. A ranking is by one of them."
        )
    names, level = checked_estimators(estimator, interval, reward_model), checked_level(level)
    found = prepared(
        log,
        policies,
        estimators=names,
        reward_model=reward_model,
        fitted=fitted,
        reward_range=reward_range,
        propensities=propensities,
        least_propensity=least_propensity,
        learning=learning,
        seed=seed,
    )
    count = len(found.targets) + len(found.replayed)
    each = 1 - (1 - level) / (1 + 2 * count + count * (count - 1) // 2)
    evaluation = concluded(found, names, interval, each)
    order = sorted(evaluation.rows[1:], key=lambda row: -row.value)
    best, places = order[0], []
    for row in order:
        low, high = 0.0, 0.0
        if row is not best:
            kind = kind_for(interval, estimator, found)
            low, high, _ = difference(found, best.target, row.target, estimator, kind, each)
        places.append(Place(row.target, row.value, low, high, low <= 0, row.verdict))
    return Ranking(tuple(places), level, _answer(places, level, evaluation), evaluation)


def candidates(name: str, **settings: Any) -> dict[str, Policy]:
    """Return a policy with its default amount of exploration, and with each of the amounts that are usual.

    Args:
        name: The name of a policy, for example "glm_tsl".
        **settings: Other settings, which all of them have, for example `family="gaussian"`.

    Returns:
        The policies by names such as "glm_tsl:scale=0.5", for `explorax.rank_policies`.

    Raises:
        UnknownName: If there is no such policy or setting.
        InvalidArgument: If a setting is out of its range.

    Example:
        >>> import explorax
        >>> list(explorax.candidates("glm_tsl"))
        ['glm_tsl', 'glm_tsl:scale=0.25', 'glm_tsl:scale=0.5', 'glm_tsl:scale=2']
    """
    entry = entry_of(name)
    found = {entry.name: make(entry.name, **settings)}
    for value in entry.grid if entry.knob not in settings else ():
        found[f"{entry.name}:{entry.knob}={value:g}"] = make(entry.name, **{**settings, entry.knob: value})
    return found


def _behind(place: Place, at: int) -> str:
    """Return by how much a candidate is behind the first one, as text."""
    return "-" if at == 1 else span(place.behind_low, place.behind_high, "+")


def _answer(places: list[Place], level: float, evaluation: Evaluation) -> str:
    """Return which candidates may be best, and whether the first is shown better than the policy that made the log."""
    if len(places) == 1 or not evaluation.random or any(one.verdict == "no" for one in evaluation.diagnostics.values()):
        return evaluation.answer
    able, first = [place.target for place in places if place.may_be_best], places[0]
    rest = [place.target for place in places if not place.may_be_best]
    together = f"({percent(level)} for all statements together)"
    if len(able) == 1:
        told = f"{first.target} is the best of the {len(places)} candidates {together}."
    elif rest:
        told = f"{listed(able)} may be best; {listed(rest)} {'are' if len(rest) > 1 else 'is'} shown worse {together}."
    else:
        told = f"Each of the {len(places)} candidates may be best {together}."
    against = {
        "better": "is shown better than",
        "worse": "is shown worse than",
        "undecided": "is not shown to differ from",
    }
    return f"{told} {first.target} {against[first.verdict]} the {LOGGING}."
