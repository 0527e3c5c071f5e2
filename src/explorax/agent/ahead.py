"""The next decision, made together with learning the reward before it.

Where decisions and rewards take turns, one program learns a reward and makes the decision that comes next, which takes
seven microseconds less than two.  It is the answer if that decision is asked for, in this state and with these arms on
offer, and else it is forgotten: the decision is the same function of seed, number and state.

The program takes a second or a few to compile.  A thread does that once turns have been taken for long, and nobody
waits for it.
"""

from collections.abc import Callable, Hashable
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, NamedTuple

from explorax.agent.arm_tables import Listed
from explorax.agent.offers import Offer

PATIENCE = 5000  # turns of one decision and one reward after which the program is compiled


class Ahead(NamedTuple):
    """A decision that was made together with learning the reward before it, and may never be asked for."""

    offer: Listed
    t: int
    whole: list[int]  # what `Rule.decide` returned
    known: Any

    def answers(self, offer: Offer, t: int, every: bool) -> bool:
        """Tell whether this is decision t on an offer: the state is that of the record that holds it."""
        return self.offer is offer and self.t == t and not every


class Turns:
    """How long decisions and rewards have taken turns, and the program that is compiled then."""

    def __init__(self) -> None:
        self.count = 0  # how often in a row the reward of the only decision that waited was learned
        self.wanted: Hashable = None  # the shapes of the program that was asked for last
        self.ready: Hashable = None  # the shapes of the program that was compiled last

    def taken(self, in_turn: bool) -> bool:
        """Note that rewards were learned; tell whether turns have been taken for long."""
        self.count = self.count + 1 if in_turn else 0
        return self.count > PATIENCE

    def prepare(self, shapes: Hashable, rehearse: Callable[[], None]) -> None:
        """Let a thread compile the program for arrays of these shapes, unless one was asked to do so before."""
        if self.wanted != shapes:
            self.wanted = shapes
            self.start(partial(self.compile, shapes, rehearse))

    def compile(self, shapes: Hashable, rehearse: Callable[[], None]) -> None:
        """Compile a program by using it once; one that fails is never ready."""
        rehearse()
        self.ready = shapes

    def start(self, work: Callable[[], None]) -> None:
        """Start work in a thread, which Python waits for before it ends; without a thread to be had, do nothing."""
        with suppress(RuntimeError):  # too many threads, or Python ends: the reward must be learned all the same
            Thread(target=work, name="explorax-ahead").start()
