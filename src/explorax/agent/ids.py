"""Ids of decisions: unique, over all restarts of an agent and without any log.

A decision has a number t, which counts decisions from 0 on and is what its randomness depends on, and an id, by which
it is rewarded: offset + t.  The offset of a new agent is 0.  An agent that is loaded draws one from the operating
system's randomness: the saved agent may have gone on deciding after it was saved, and gave out ids that the snapshot
does not know; they must not be given out again.

Decisions that are under way in other threads while an agent is saved are not in the snapshot, no more than those that
come after it: saving waits for nobody, and nobody for saving.  Their ids are left out of what the snapshot knows, so
that an agent loaded from it says that it does not know them.

Ids are below 2⁵³, which every reader of JSON holds exactly.  Two agents loaded from the same snapshot that make n
decisions each have an id in common with probability 2n/2⁵³ at the most: 1 in 4 billion for a million decisions.  An
agent has no id in common with those that it was loaded from (`ROOM`).
"""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

MOST = 2**53  # ids are below this
ROOM = 2**32  # ids that are left free for the agent that an offset is drawn for, and for each one before it
UNDER_WAY = 2**16  # decisions of other threads that may be under way; what is older has failed, and nobody has its id


class Span(NamedTuple):
    """Decisions whose ids have the same offset: the numbers from `first` up to, but not including, `end`."""

    offset: int
    first: int
    end: int

    def number(self, decision_id: int) -> int | None:
        """The number of the decision with this id; None if it is none of these."""
        number = decision_id - self.offset
        return number if self.first <= number < self.end else None


class Ids:
    """The ids that an agent has given out, and those of the agents that it was loaded from."""

    def __init__(self, earlier: Sequence[Span] = (), count: int = 0, offset: int = 0) -> None:
        self.earlier = list(earlier)
        self.offset, self.first = offset, count  # of this agent, in this process
        self.count = count  # numbers given out so far
        if self.earlier and (self.earlier[-1].offset, self.earlier[-1].end) == (offset, count):  # the same ids go on
            self.first = self.earlier.pop().first
        self.under_way: dict[int, int] = {}  # first number -> end

    @property
    def loaded(self) -> bool:
        """Whether others may have given out ids of this agent, after a snapshot that it was loaded from."""
        return bool(self.earlier or self.offset)

    def take(self, count: int) -> int:
        """The number of the next decision, of so many that are made now."""
        first, self.count = self.count, self.count + count
        self.under_way[first] = self.count
        if len(self.under_way) > UNDER_WAY:
            del self.under_way[next(iter(self.under_way))]
        return first

    def made(self, first: int) -> int:
        """The decisions that were taken with this number are made now; returns the id of the first."""
        self.under_way.pop(first, None)
        return self.offset + first

    def number(self, decision_id: int) -> int | None:
        """The number of a decision; None if the id is not known."""
        number = decision_id - self.offset
        if self.first <= number < self.count:
            return number
        return next((found for span in self.earlier if (found := span.number(decision_id)) is not None), None)

    def is_under_way(self, number: int) -> bool:
        """Whether a decision has not been made yet."""
        return any(first <= number < end for first, end in self.under_way.items())

    def spans(self) -> list[Span]:
        """All decisions that were made, those before this agent was loaded included; not those that are under way."""
        own, start = [], self.first
        for first, end in sorted(self.under_way.items()):
            own.append(Span(self.offset, start, first))
            start = end
        own.append(Span(self.offset, start, self.count))
        return self.earlier + [span for span in own if span.first < span.end]


def fresh_offset(earlier: Sequence[Span], count: int, offset: int) -> int:
    """An offset for the decisions from number `count` on, at random and far from all earlier ids.

    Those that the saved agent went on with, from number `count` and its own offset on, are among the earlier ones.
    """
    used = {offset + count, *(span.offset + span.first for span in earlier)}
    while True:
        start = ROOM + secrets.randbelow(MOST - 2 * ROOM)
        if all(abs(start - each) >= ROOM for each in used):
            return start - count
