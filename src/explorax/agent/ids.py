"""The ids of an agent's decisions, unique over all restarts of the agent, without any file.

A decision has a number t, which counts decisions from 0 on and determines its randomness, and an id, by which it is
rewarded: offset + t.  The offset of a new agent is 0.  A loaded agent draws its offset from the operating system's
randomness: the saved agent may have gone on deciding after it was saved, so it gave out ids that the snapshot does not
know and that must not be given out again.  An agent that is recovered from its log knows them all, and keeps its
offset.

Ids are below 2⁵³, so that every reader of JSON holds them exactly.  Two agents loaded from the same snapshot that make
n decisions each have an id in common with probability at most 2n/2⁵³: 1 in 4 billion for a million decisions.  An agent
has no id in common with those that it was loaded from (`ROOM`).
"""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

MOST = 2**53  # ids are below this
ROOM = 2**32  # ids that are left free for the agent whose offset is drawn, and for each one before it
UNDER_WAY = 2**16  # decisions of other threads that may be under way; older ones have failed, and nobody has their ids


class Span(NamedTuple):
    """Decisions whose ids have the same offset: the numbers from `first` up to, but not including, `end`."""

    offset: int
    first: int
    end: int

    def number(self, decision_id: int) -> int | None:
        """Return the number of the decision with this id, or None if it is not in this span."""
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
        self.unused: dict[int, int] = {}  # end -> first number, of those that were given back while later ones were out

    @property
    def loaded(self) -> bool:
        """Whether this agent was loaded, so that others may have given out ids after the snapshot was saved."""
        return bool(self.earlier or self.offset)

    def take(self, count: int) -> int:
        """Reserve the numbers of `count` decisions that are made now, and return the first of them."""
        first, self.count = self.count, self.count + count
        self.under_way[first] = self.count
        if len(self.under_way) > UNDER_WAY:
            del self.under_way[next(iter(self.under_way))]
        return first

    def made(self, first: int) -> int:
        """Note that the decisions whose first number this is are made now; return the id of the first."""
        self.under_way.pop(first, None)
        return self.offset + first

    def give_back(self, first: int) -> None:
        """Free the numbers of decisions that were taken and not made; those that made ones follow stay unused."""
        if first in self.under_way:
            self.unused[self.under_way.pop(first)] = first
            while self.count in self.unused:
                self.count = self.unused.pop(self.count)
            if len(self.unused) > UNDER_WAY:
                del self.unused[next(iter(self.unused))]

    def note(self, number: int) -> None:
        """Note that the decision with this number was made before, by the agent that gave out the same ids."""
        if number >= self.count:
            self.count = number + 1
        elif number < self.first:
            self.earlier.append(Span(self.offset, number, number + 1))

    def number(self, decision_id: int) -> int | None:
        """Return the number of the decision with this id, or None if the id is not known."""
        number = decision_id - self.offset
        if self.first <= number < self.count:
            return number
        return next((found for span in self.earlier if (found := span.number(decision_id)) is not None), None)

    def is_under_way(self, number: int) -> bool:
        """Tell whether the decision with this number is still being made."""
        return any(first <= number < end for first, end in self.under_way.items())

    def spans(self) -> list[Span]:
        """Return all decisions that were made, also before this agent was loaded, except those under way."""
        own, start = [], self.first
        for first, end in sorted(self.under_way.items()):
            own.append(Span(self.offset, start, first))
            start = end
        own.append(Span(self.offset, start, self.count))
        return self.earlier + [span for span in own if span.first < span.end]


def fresh_offset(earlier: Sequence[Span], count: int, offset: int) -> int:
    """Draw an offset at random for the ids of the decisions from number `count` on, far from all earlier ids.

    Args:
        earlier: The decisions whose ids were given out before.
        count: The number of the next decision.
        offset: The offset of the saved agent, which may have gone on with the ids from offset + count on.

    Returns:
        The offset.
    """
    used = {offset + count, *(span.offset + span.first for span in earlier)}
    while True:
        start = ROOM + secrets.randbelow(MOST - 2 * ROOM)
        if all(abs(start - each) >= ROOM for each in used):
            return start - count
