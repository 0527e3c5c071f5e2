"""Checkpoints: the rounds at which a simulation is recorded, and the sums that are recorded there.

A simulation plays its rounds in chunks.  A `Tally` adds up the regrets and rewards of each chunk in float64, round by
round, so that the sums do not depend on where chunks end, and keeps the sums at the checkpoints of a `Schedule`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from explorax.checks import MOST_CHECKPOINTS, MOST_ROUNDS, check_whole
from explorax.errors import InvalidArgument, UnknownName, shown
from explorax.record import Records

Progress = Callable[[int], None]  # called with the number of rounds played so far


class Schedule(NamedTuple):
    """The rounds of a simulation, and the checkpoints among them.

    Attributes:
        rounds: The number of rounds to play.
        checkpoints: The (C,) rounds after which to record, increasing.
        chunk: The number of rounds to play between two reports; None for the default of the device.
        progress: The function to report to, if any.
    """

    rounds: int
    checkpoints: np.ndarray
    chunk: int | None
    progress: Progress | None


def check_schedule(
    rounds: int, checkpoints: int | Sequence[int], spacing: str, chunk: int | None, progress: Progress | None
) -> Schedule:
    """Return the schedule of these settings, or raise `InvalidArgument` if one of them is not in its range."""
    check_whole("rounds", rounds, 1, MOST_ROUNDS)
    if chunk is not None:
        check_whole("chunk", chunk, 1)
    if spacing not in ("even", "log"):
        raise UnknownName("spacing", spacing, ("even", "log"))
    if isinstance(checkpoints, int | np.integer):
        check_whole("checkpoints", checkpoints, 1, MOST_CHECKPOINTS)
        space = np.linspace(rounds / checkpoints, rounds, checkpoints)
        if spacing == "log":
            space = np.geomspace(1, rounds, checkpoints) if checkpoints > 1 else np.array([rounds])
        marks = np.unique(np.maximum(np.round(space), 1).astype(np.int64))
    else:
        marks = np.asarray(checkpoints)
        whole = marks.ndim == 1 and marks.size > 0 and np.issubdtype(marks.dtype, np.integer)
        if not (whole and np.all(np.diff(marks) > 0) and marks[0] >= 1 and marks[-1] == rounds):
            raise InvalidArgument(
                f"checkpoints must be a number, or whole numbers that increase from at least 1 to rounds={rounds}, "
                f"got {shown(checkpoints)}."
            )
        marks = marks.astype(np.int64)
    return Schedule(int(rounds), marks, chunk, progress)


class Tally:
    """The cumulative regret and reward of each instance so far, in float64, and their values at past checkpoints."""

    def __init__(self, size: int, schedule: Schedule) -> None:
        self.schedule = schedule
        self.played = 0
        self.regret = np.zeros(size)
        self.reward = np.zeros(size)
        self.unconverged = np.zeros(size, np.int64)
        self.kept: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, regret: np.ndarray, reward: np.ndarray, unconverged: np.ndarray) -> None:
        """Add the next rounds, given as arrays of shape (rounds, instances)."""
        count = min(len(regret), self.schedule.rounds - self.played)
        # One by one after the total so far, so that the sums do not depend on where chunks end.
        regrets = np.cumsum(np.vstack([self.regret, regret[:count]]), axis=0, dtype=np.float64)
        rewards = np.cumsum(np.vstack([self.reward, reward[:count]]), axis=0, dtype=np.float64)
        for checkpoint in self.schedule.checkpoints:
            if self.played < checkpoint <= self.played + count:
                at = checkpoint - self.played
                self.kept.append((regrets[at], rewards[at]))
        self.regret, self.reward = regrets[-1], rewards[-1]
        self.unconverged += np.sum(unconverged[:count], axis=0)
        self.played += count
        if self.schedule.progress is not None:
            self.schedule.progress(self.played)

    def records(self, digest: np.ndarray, instances: range, part: slice) -> Records:
        """Return the records of one part of the batch, or raise if they hold NaN or infinity."""
        regret, reward = (np.stack(values, axis=1)[part] for values in zip(*self.kept, strict=True))
        if not (np.all(np.isfinite(regret)) and np.all(np.isfinite(reward))):
            raise InvalidArgument(
                "The environment's means or rewards are not finite. Scale down its arms or parameters."
            )
        numbers = np.arange(instances.start, instances.stop, dtype=np.int64)
        return Records(numbers, self.schedule.checkpoints, regret, reward, digest[part], self.unconverged[part])
