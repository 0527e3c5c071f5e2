"""Deciding and learning over time: the state that threads share, what waits for rewards, and the log.

What changes over time is one record (`Now`), which is never changed but replaced as a whole.  Two properties of agents
follow.

**Threads.**  Any number of threads may call any method.  Choosing reads one `Now`, so choosers wait neither for the
learner nor for each other; learning, saving and changing arms happen one at a time, under a lock.

**Interrupts.**  The state and the ids of the rewards that it has learned last are replaced in one step.  An interrupt
while learning leaves all rewards of the call learned or none of them, and no decision is rewarded twice.  With a log
they are written before that step; what an interrupt leaves between the two is made up for by the next call
(`recording.py`).
"""

import contextlib
import json
import math
import threading
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from explorax.agent import compiled, warm_start
from explorax.agent.ahead import Ahead, Turns
from explorax.agent.arm_tables import Among, AmongEach, Pick, in_columns
from explorax.agent.decider import Decider, Now
from explorax.agent.decisions import Decision, Decisions, Propensities, plain
from explorax.agent.offers import Offer, Shown
from explorax.agent.own_arms import Arms
from explorax.agent.packing import Packed
from explorax.agent.pending import Pending, as_ids
from explorax.agent.pulled import Pulled
from explorax.agent.recording import NOTHING_SHOWN, Event, Then, Unrecorded
from explorax.agent.reward_window import Due, Window
from explorax.checks import check_whole
from explorax.errors import InvalidArgument
from explorax.policies.base import State
from explorax.policies.exploration import forced_rounds


class Taken:
    """The numbers of decisions that are made in a block, which are free again if it raises and they were not made."""

    def __init__(self, live: "Live", count: int) -> None:
        self.live, self.count = live, count

    def __enter__(self) -> int:
        self.first = self.live.pending.take(self.count)
        return self.first

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is not None:
            self.live.give_back(self.first)


class Live:
    """A decider with the state that it decides by, the decisions that wait, and the lock of all that changes them."""

    now: Now

    def __init__(
        self,
        decider: Decider,
        state: State,
        own: Arms,
        max_pending: int,
        window: Window | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        check_whole("max_pending", max_pending, 1)
        if window is not None:
            window.check(decider.policy, decider.source.dtype)
        self.decider, self.window, self.lock = decider, window, threading.Lock()
        forced = forced_rounds(state) if decider.source.settles else math.inf
        self.now = Now(Packed.of(state), own, compiled.room(state), forced=forced)
        self.pending = Pending(decider.source.n_features, decider.source.dtype, max_pending, window)
        self.record = Unrecorded(clock if window else None)
        self.dump: Callable[[], bytes] | None = None  # what makes a snapshot for the log
        self.last: Offer | None = None  # the offer of the last decision
        self.turns = Turns()

    def state(self) -> State:
        """Return the state as the policy knows it."""
        self.record.settle()
        with self.decider.precision():
            return self.now.packed.state()

    def waiting(self) -> Pending:
        """Return the decisions that wait, without those whose rewards were learned before an interrupt."""
        self.record.settle()
        self.pending.remove(self.now.learned)
        return self.pending

    # Deciding

    def choose(
        self,
        given: Any,
        among: Among,
        exclude: Collection[Hashable] | None = None,
        every: bool = False,
        deferred: bool = False,
        explain: bool = False,
    ) -> Decision:
        """Make the next decision, and let it wait for its reward."""
        if deferred or self.window is not None:
            self.look_at_the_clock(deferred)
        now, decider = self.now, self.decider
        offer = decider.source.offer(now.arms, given, among)
        if exclude is not None:
            offer = offer.without(exclude)
        t = self.pending.take(1)
        try:
            self.last = None if every else offer
            explanation = decider.explain(offer, now, t) if explain else None
            pick, chance, stderr = decider.decide(offer, now, t, every)
            known = decider.of_every(offer, pick)[0] if every else None
            some = every or not (among is exclude is None)
            shown = decider.source.shown(offer, 1, [given], some) if self.record.logs else NOTHING_SHOWN
            decision = self.record.decided(self.pending, t, now.version, deferred, shown, pick, chance, stderr, known)
        except BaseException:
            self.give_back(t)
            raise
        told = (pick.arm, chance, stderr, pick.row, pick.features, pick.forced, pick.converged, known)
        return Decision(decision, *told, explanation)

    def give_back(self, first: int) -> None:
        """Free the numbers of decisions that were not made, if an error has come after they were taken."""
        self.record.settle()
        self.pending.give_back(first)

    def choose_many(self, given: Any, among: AmongEach, every: bool = False, deferred: bool = False) -> Decisions:
        """Make the next decisions with the same state, and let them wait for their rewards."""
        self.look_at_the_clock(deferred)
        now, decider, source = self.now, self.decider, self.decider.source
        offers = source.offers(now.arms, given, among)
        with Taken(self, offers.number) as first:
            picks, chances, stderrs = decider.decide_many(offers, now, first, every)
            known, some = decider.of_every(offers, picks) or None, every or among is not None
            shown = source.shown(offers, offers.number, given, some) if self.record.logs else NOTHING_SHOWN
            return self.let_wait(first, now.version, deferred, shown, picks, chances, stderrs, known)

    def choose_slate(
        self, size: int, given: Any, among: Among, exclude: Collection[Hashable] | None, every: bool, deferred: bool
    ) -> Decisions:
        """Make decisions for the places of a slate, each among the arms that the places before have left."""
        self.look_at_the_clock(deferred)
        now, decider, source = self.now, self.decider, self.decider.source
        left = source.offer(now.arms, given, among)
        if exclude is not None:
            left = left.without(exclude)
        if size > left.choices:
            raise InvalidArgument(
                f"size must be at most {left.choices}, the number of arms on offer, got {size}. Ask for fewer places."
            )
        with Taken(self, size) as first:
            self.last = None
            offers, found, known = [left], [decider.decide(left, now, first, every)], []
            for t in range(first + 1, first + size):
                offers.append(offers[-1].without([found[-1][0].arm]))
                found.append(decider.decide(offers[-1], now, t, every))
            for offer, (pick, *_) in zip(offers, found, strict=True):
                known += decider.of_every(offer, pick)

            some = size > 1 or every or not (among is exclude is None)
            logged = offers if self.record.logs else ()
            shown = [each for offer in logged for each in source.shown(offer, 1, [given], some)]
            picks, chances, stderrs = zip(*found, strict=True)
            stated, errors = (None if each[0] is None else np.array(each) for each in (chances, stderrs))
            told = (in_columns(picks), stated, errors, known or None)
            return self.let_wait(first, now.version, deferred, shown, *told)

    def let_wait(
        self,
        first: int,
        version: int,
        deferred: bool,
        shown: Sequence[Shown],
        picks: Pick,
        chances: np.ndarray | None,
        stderrs: np.ndarray | None,
        known: Sequence[Propensities] | None,
    ) -> Decisions:
        """Let several decisions wait for their rewards."""
        made = (first, version, deferred)
        ids = self.record.decided_many(self.pending, *made, shown, picks, chances, stderrs, known)
        told = (picks.arm, chances, stderrs, picks.row, picks.features, picks.forced, picks.converged)
        return Decisions(ids, *told, known)

    # Learning

    def learn(self, decision_id: int | Sequence[int] | np.ndarray, reward: Any) -> None:
        """Replace the state by the one that has learned these rewards, or raise and change nothing."""
        ids, single = as_ids(decision_id)
        rewards = compiled.as_rewards(reward, len(ids), single)
        if self.window is not None:
            self.look_at_the_clock()
        with self.lock:
            self.record.settle()
            if self.window is None:
                self.take_in(ids, rewards, self.record.rewarded)
            else:
                self.tell(ids, rewards)

    def take_in(
        self,
        ids: Sequence[int],
        rewards: Any,
        write: Callable[[Sequence[int], Any, Then], None],
        lost: Sequence[int] = (),
    ) -> None:
        """Learn rewards of decisions that wait, and forget these and those that are lost, once all that is written."""
        now, pending, policy = self.now, self.pending, self.decider.policy
        pending.remove(now.learned)
        pulled = self.record.hold(pending, ids)
        try:
            with self.decider.precision():
                compiled.check_possible(policy, rewards, self.decider.source.dtype)
                if len(ids) > now.room:
                    compiled.check_room_for(policy, now.packed.state(), len(ids))
                if now.arms.reused:
                    now, pulled = self.with_rows_of(pulled)
                packed, ahead = self.learned(now, pulled.paid(rewards), pending.is_only(ids))

            def done(version: int) -> None:
                self.now = Now(packed, now.arms, now.room - len(ids), ids, now.forced, ahead, version)
                pending.remove(ids)  # what an interrupt leaves undone here, `waiting` does
                if lost:
                    pending.withdraw(lost)

            write(ids, rewards, done)
        finally:
            pending.release()
        if self.dump is not None:
            self.record.keep(self.dump)

    def learned(self, now: Now, pulled: Pulled, in_turn: bool) -> tuple[Packed, Ahead | None]:
        """Return the packed state after learning what was pulled, and the decision that comes next if it is made, too.

        It is made if decisions and rewards have taken turns for long: then no reward can come before it, and most
        likely it is one like the last.
        """
        packed, offer = now.packed, now.arms.listed_once
        if self.turns.taken(in_turn) and offer is not None and offer is self.last:
            shapes, t = (packed.packing, offer.arms.shape, offer.offered is None), self.pending.ids.count
            if self.turns.ready != shapes:
                example = packed, Pulled(pulled.numbers.copy()), offer, t
                self.turns.prepare(shapes, partial(self.decider.rehearse, *example))
            if self.turns.ready == shapes:
                return self.decider.learn_and_decide(packed, pulled, offer, t)
        return compiled.learn(self.decider.policy.update, packed, pulled), None

    def learn_from(
        self, rows: np.ndarray, features: np.ndarray, rewards: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        """Learn rewards of arms that others pulled."""
        policy = self.decider.policy
        with self.lock, self.decider.precision():
            self.record.settle()
            compiled.check_possible(policy, rewards, self.decider.source.dtype)
            compiled.check_room_for(policy, self.now.packed.state(), len(rewards))
            if weights is None:
                pulled = Pulled.of(rows, features).paid(rewards)
                coming = self.now._replace(packed=compiled.learn(policy.update, self.now.packed, pulled))
            else:
                coming = warm_start.absorbed(self.decider, self.now, rows, features, weights, rewards)
            event = Event("learned_from", content=warm_start.earlier_bytes(rows, features, rewards, weights))
            self.happen(event, coming._replace(room=self.now.room - len(rewards), ahead=None))

    def happen(self, event: Event, coming: Now) -> None:
        """Let something happen after which the agent is another one, once that is written."""

        def happened(version: int) -> None:
            self.now = coming._replace(version=version)

        self.record.happened([event], happened)

    # Windows

    def look_at_the_clock(self, deferred: bool = False) -> None:
        """Learn the rewards of decisions whose windows are over, if the agent has a reward window."""
        if self.window is not None:
            self.close_windows(self.record.now())
        elif deferred:
            raise InvalidArgument(
                "deferred must be False for an agent without a reward_window, got True. Make it with reward_window, or "
                "withdraw decisions that were not shown."
            )

    def check_has_window(self) -> None:
        """Raise if the agent has no reward window."""
        if self.window is None:
            raise InvalidArgument(
                "Only an agent with a reward window has windows to close and decisions to activate, and this one is "
                "without a reward_window. Make it with reward_window, the seconds that a reward may take."
            )

    def close_windows(self, time: float) -> None:
        """Learn the rewards of decisions whose windows are over by now, in the order of the decisions."""
        if not self.pending.is_due(time):
            return
        with self.lock:
            pending = self.waiting()
            with self.record.lock:
                due = pending.hold_due(time)
            self.close(due, time)

    def close(self, due: Due, time: float) -> None:
        """Learn the rewards of decisions whose windows are over, and which are held."""
        if due.last is not None:
            self.take_in(due.paid, np.array(due.rewards), partial(self.record.closed, due, time), due.lost)

    def tell(self, ids: Sequence[int], rewards: Any) -> None:
        """Keep rewards until the windows of their decisions are over."""
        with self.holding(ids, untold=True) as pending:
            compiled.check_possible(self.decider.policy, rewards, self.decider.source.dtype)
            values = np.atleast_1d(rewards).tolist()
            self.record.told(ids, rewards, lambda version: pending.tell(ids, values))

    def withdraw(self, decision_id: int | Sequence[int] | np.ndarray) -> None:
        """Forget decisions that will have no reward."""
        self.look_at_the_clock()
        ids, _ = as_ids(decision_id)
        with self.lock, self.holding(ids, untold=True) as pending:
            self.note("withdrawn", ids, pending.withdraw)

    def activate(self, decision_id: int | Sequence[int] | np.ndarray) -> None:
        """Note that deferred decisions were shown."""
        self.check_has_window()
        self.look_at_the_clock()
        ids, _ = as_ids(decision_id)
        with self.lock, self.holding(ids) as pending:
            self.note("activated", ids, pending.activate)

    @contextlib.contextmanager
    def holding(self, ids: Sequence[int], untold: bool = False) -> Iterator[Pending]:
        """Hold decisions that wait, and, if `untold` is true, whose rewards have not come."""
        self.pending.remove(self.now.learned)
        self.record.hold(self.pending, ids)
        try:
            if untold:
                self.pending.check_untold(ids)
            yield self.pending
        finally:
            self.pending.release()

    def note(self, kind: str, ids: Sequence[int], then: Callable[[Sequence[int]], None]) -> None:
        """Let something happen to each of several decisions, once that is written."""

        def noted(version: int) -> None:
            self.now = self.now._replace(version=version)
            then(ids)

        self.record.happened([Event(kind, each) for each in ids], noted)

    # Arms

    def put(self, kind: str, name: Hashable, features: Any) -> None:
        """Add one of the agent's own arms ("added"), or give it other features ("updated")."""
        with self.lock, self.decider.precision():
            self.record.settle()
            row, attributes = self.decider.source.read(self.now.arms.changeable(), name, features)
            self.put_row(kind, name, row, attributes)

    def put_row(self, kind: str, name: Hashable, row: np.ndarray, attributes: Mapping[str, Any] | None) -> None:
        """Add one of the agent's own arms, or give it other features, which were read."""
        source, policy, now = self.decider.source, self.decider.policy, self.now
        arms = getattr(now.arms, kind)(name, row, attributes, source.vacant(policy, now.packed, now.arms))
        coming = now._replace(packed=source.extend(policy, now.packed, arms), arms=arms)
        told = row.tolist() if attributes is None else attributes
        self.happen(Event(kind, name=plain(name), content=json.dumps(told)), coming)

    def switch(self, name: Hashable, on: bool) -> None:
        """Put one of the agent's own arms on offer, or take it off offer."""
        source, policy = self.decider.source, self.decider.policy
        with self.lock:
            self.record.settle()
            now = self.now
            own, event = now.arms.changeable(), Event("restored" if on else "retired", name=plain(name))
            if name not in own.rowless:
                self.happen(event, now._replace(arms=own.switched(name, on)))
                return
            with self.decider.precision():
                arms = own.switched(name, on, source.vacant(policy, now.packed, own))
                coming = now._replace(packed=source.extend(policy, now.packed, arms), arms=arms)
                self.happen(event, coming)

    def with_rows_of(self, pulled: Pulled) -> tuple[Now, Pulled]:
        """Return what has a row for each arm that was pulled, also if its own was given away, and these rows."""
        now, source, policy = self.now, self.decider.source, self.decider.policy
        arms, rows = source.with_rows(policy, now.packed, now.arms, pulled.rows, pulled.features)
        if arms is not now.arms:
            now = now._replace(packed=source.extend(policy, now.packed, arms), arms=arms)
        return now, Pulled.of(rows, pulled.features)
