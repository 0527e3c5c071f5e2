"""Reward windows: rewards that are learned when their time is over, those that did not come among them.

Without a window a reward is learned when it comes.  If rewards of 1 come fast and rewards of 0 are only known by their
absence, a model that learns at once sees too many 1s.  With a window every decision is learned when it is `seconds`
old, with the reward that came until then or with a default, in the order of the decisions: fast rewards have no
advantage.

A decision may be deferred: if it is not activated by the end of its window, since nobody was shown the arm, and had no
reward, it teaches nothing.
"""

from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from explorax.agent.compiled import check_possible
from explorax.checks import check_positive, is_number
from explorax.errors import InvalidArgument, InvalidReward, UnknownDecision
from explorax.policies.base import Policy


class Window(NamedTuple):
    """How long a decision waits for its reward, and what it is taken for without one.

    Attributes:
        seconds: The time after a decision until which its reward may come.
        default: The reward of a decision without one; None if it then teaches nothing.
    """

    seconds: float
    default: float | None

    @classmethod
    def of(cls, seconds: float | None, default: float | None) -> "Window | None":
        """Return the window of an agent that is made with these arguments, or None."""
        if seconds is None:
            if default is not None:
                raise InvalidArgument(
                    f"default_reward must be left out without a reward_window, got {default!r}. Give reward_window, "
                    "the seconds after which a decision without a reward is given this one."
                )
            return None
        check_positive("reward_window", seconds, "Give the seconds that a reward may take, for example 3600.")
        if default is not None and not (is_number(default) and np.isfinite(default)):
            raise InvalidArgument(
                f"default_reward must be a finite number, got {default!r}. Give the reward that no news stands for, "
                "for example 0.0."
            )
        return cls(float(seconds), None if default is None else float(default))

    def check(self, policy: Policy, dtype: str) -> None:
        """Raise if the policy cannot learn the default."""
        if self.default is None:
            return
        try:
            check_possible(policy, self.default, dtype)
        except InvalidReward as error:
            raise InvalidReward(
                f"default_reward must be a reward that the policy can learn, got {self.default:g}: {error}"
            ) from error


class Due(NamedTuple):
    """Decisions whose windows are over, in their order."""

    paid: list[int]  # ids of those with a reward, their own or the default
    rewards: list[float]
    defaulted: list[int]  # ids of those among them that take the default
    lost: list[int]  # ids of those that teach nothing
    default: float | None
    last: int | None  # id of the youngest of all of them


class Opened:
    """The decisions whose windows are open, the oldest first, and what is known of their rewards.

    Whoever calls a method holds a lock.
    """

    def __init__(self, window: Window) -> None:
        self.window = window
        self.times: dict[int, float] = {}  # id -> when the decision was made
        self.rewards: dict[int, float] = {}  # id -> the reward that came
        self.deferred: set[int] = set()  # ids of those that were not activated yet

    def add(self, ids: Sequence[int], time: float, deferred: bool) -> None:
        """Open the windows of decisions that are made now."""
        self.times.update(dict.fromkeys(ids, time))
        if deferred:
            self.deferred.update(ids)

    def remove(self, ids: Sequence[int]) -> None:
        """Forget decisions that do not wait any more."""
        for each in ids:
            self.times.pop(each, None)
            self.rewards.pop(each, None)
            self.deferred.discard(each)

    def is_due(self, time: float) -> bool:
        """Tell whether the oldest window is over."""
        return next(iter(self.times.values()), np.inf) + self.window.seconds <= time

    def over(self, time: float) -> list[int]:
        """Return the decisions whose windows are over; one behind a younger decision waits for it."""
        return list(takewhile(lambda each: self.times[each] + self.window.seconds <= time, self.times))

    def through(self, last: int) -> list[int]:
        """Return the decisions from the oldest to this one."""
        if last not in self.times:
            raise UnknownDecision(f"decision_id must be the id of a decision whose window is open, got {last}.")
        return [*takewhile(lambda each: each != last, self.times), last]

    def due(self, over: Sequence[int]) -> Due:
        """Return what becomes of the decisions whose windows are over, the oldest first."""
        due = Due([], [], [], [], self.window.default, over[-1] if over else None)
        for each in over:
            reward = self.rewards.get(each, None if each in self.deferred else self.window.default)
            if reward is None:
                due.lost.append(each)
                continue
            due.paid.append(each)
            due.rewards.append(reward)
            if each not in self.rewards:
                due.defaulted.append(each)
        return due
