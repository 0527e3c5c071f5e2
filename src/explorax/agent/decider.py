"""Deciding and learning: a decision as a function of seed, number and state, and the state that threads share.

Decision t is a function of the seed, of t and of the state (`Decider`).  What changes over time is one record (`Now`),
which is never changed but replaced as a whole (`Live`).  Two properties of agents follow.

**Threads.**  Any number of threads may call any method.  Choosing reads one `Now`, so choosers wait neither for the
learner nor for each other; learning, saving and changing arms happen one at a time, under a lock.

**Interrupts.**  The state and the ids of the rewards that it has learned last are replaced in one step.  An interrupt
while learning leaves all rewards of the call learned or none of them, and no decision is rewarded twice.
"""

import inspect
import math
import reprlib
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import compiled
from explorax.agent.ahead import Ahead, Turns
from explorax.agent.arm_tables import Among, AmongEach, Listed, Pick
from explorax.agent.decisions import Decision, Decisions, Propensities
from explorax.agent.log import Pending, as_ids
from explorax.agent.offers import Offer, Offers
from explorax.agent.own_arms import Arms
from explorax.agent.packing import Packed
from explorax.agent.propensity import Knowledge
from explorax.agent.pulled import Pulled
from explorax.agent.rule import Rule
from explorax.agent.sources import ArmSource
from explorax.checks import check_whole
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy, State
from explorax.policies.exploration import forced_rounds
from explorax.simulation import FLOOR, INIT, POLICY, REPEAT, instance_keys

MOST_SEED = 2**63 - 1
ACT = ("key", "state", "arms", "t", "mask")  # what `act` of a policy takes


def checked_policy(policy: object) -> Policy:
    """Return the policy; raise if it is not a Policy whose `act` takes a mask, as an agent needs."""
    if not isinstance(policy, Policy):
        raise InvalidArgument(
            f"policy must be a Policy, got {reprlib.repr(policy)}. Build one with explorax.glm_tsl()."
        )
    count = len(inspect.signature(policy.act).parameters)
    if count < len(ACT):
        raise InvalidArgument(
            f"policy.act must take the arguments {', '.join(ACT)}, got {count} of them. Add `mask`, which tells the "
            "arms that may be pulled."
        )
    return policy


class Now(NamedTuple):
    """All that a decision depends on and that changes; replaced as a whole, so no chooser sees half of a change."""

    packed: Packed  # the state
    arms: Arms  # the agent's own
    room: float  # how many more rewards the state can take in
    learned: Sequence[int] = ()  # ids of the decisions whose rewards the state has learned last
    forced: float = math.inf  # the number of decisions that may be forced, if programs are told that they are over
    ahead: Ahead | None = None  # the next decision, if it is made already


class Decider:
    """A policy, the source of its arms, and its randomness: a decision is a function of these, of t and of `Now`."""

    def __init__(self, policy: Policy, source: ArmSource, seed: int, draws: int, explore_floor: float) -> None:
        check_whole("seed", seed, 0, MOST_SEED)
        self.policy, self.source, self.seed = policy, source, seed
        self.known = Knowledge.of(policy, draws, explore_floor)
        self.rule = source.rule(policy, self.known)
        self.wide = source.dtype == "float64"
        compiled.options()  # found out now, and not within the first decision
        with self.precision():
            keys = [instance_keys(seed, range(1), use)[0] for use in (POLICY, REPEAT, FLOOR)]
            self.keys = jnp.stack([jax.random.key_data(key) for key in keys])

    def precision(self) -> AbstractContextManager[Any]:
        """Return the context in which JAX computes with the precision of this agent."""
        return jax.enable_x64(self.wide)

    def nothing_seen(self, policy: Policy, own: Arms) -> State:
        """Return the state from which a policy starts, given the agent's own arms."""
        return self.source.begin(policy, own, instance_keys(self.seed, range(1), INIT)[0])

    def rule_for(self, every: bool) -> Rule:
        """Return the rule of decisions, which also tells the propensities of all arms if `every` is true."""
        if not every:
            return self.rule
        if self.known.estimated and not self.known.draws:
            raise InvalidArgument(
                "This agent was made with draws=0, so it estimates no propensities. Make or load it with draws=100."
            )
        return self.rule.changed(vector=True)

    def decide(self, offer: Offer, now: Now, t: int, every: bool = False) -> tuple[Pick, float | None, float | None]:
        """Make decision t; return the choice, its propensity and the standard error of the propensity."""
        rule = self.rule_for(every)
        if t >= now.forced:
            rule = rule.after_forced_rounds
        if now.ahead is not None and now.ahead.answers(offer, t, every):
            pick = now.ahead.offer.picked(rule, now.ahead.whole, now.ahead.known)
        else:
            with self.precision():
                pick = offer.decide(rule, self.keys, now.packed, t)
        # The number of choices is looked up only where it is needed.
        return pick, *self.known.stated_one(pick.count, pick.exact, offer.choices if self.known.floor else 1)

    def learn_and_decide(self, packed: Packed, pulled: Pulled, offer: Listed, t: int) -> tuple[Packed, Ahead]:
        """Return the packed state after learning the reward before decision t, and this decision."""
        found = compiled.learn_and_decide(self.policy.update, packed, pulled, self.coming(offer, t))
        return found[0], Ahead(offer, t, *found[1:])

    def rehearse(self, packed: Packed, pulled: Pulled, offer: Listed, t: int) -> None:
        """Compile what `learn_and_decide` calls with these arguments."""
        with self.precision():
            compiled.together(self.policy.update, packed, pulled, self.coming(offer, t))

    def coming(self, offer: Listed, t: int) -> compiled.Coming:
        """Return decision t on an offer, as a program takes it that learns the reward before."""
        return compiled.Coming(self.rule, self.keys, offer.arms, t, offer.offered)

    def decide_many(self, offers: Offers, now: Now, first: int, every: bool = False) -> tuple[Pick, Any, Any]:
        """Make the decisions first, first + 1, …; return the choices, their propensities and standard errors."""
        rule = self.rule_for(every)
        with self.precision():
            picks = offers.decide(rule, self.keys, now.packed, first)
        return picks, *self.known.stated(picks.count, picks.exact, offers.choices, picks.pooled)

    def of_every(self, offers: Offer | Offers, pick: Pick) -> list[Propensities] | None:
        """Return the propensities of all arms on offer in each decision; None if they were not asked for.

        Decisions that are alike share one record.
        """
        if pick.every is None:
            return None
        found, which = pick.every
        chances, stderrs = self.known.stated(found, found, np.reshape(offers.choices, (-1, 1)), pick.pooled)
        each = []
        for i in range(len(found)):
            names, rows = offers.on_offer(i)
            each.append(Propensities(names, chances[i, rows], stderrs[i, rows]))
        return [each[i] for i in which.tolist()]

    def propensities(self, now: Now, t: int, given: Any, among: Among) -> Propensities:
        """Return the propensities that decision t would state for each arm on offer."""
        offer = self.source.offer(now.arms, given, among)
        found = self.of_every(offer, self.decide(offer, now, t, every=True)[0])
        assert found is not None
        return found[0]


class Live:
    """A decider with the state that it decides by, the decisions that wait, and the lock of all that changes them."""

    now: Now

    def __init__(self, decider: Decider, state: State, own: Arms, max_pending: int) -> None:
        check_whole("max_pending", max_pending, 1)
        self.decider, self.lock = decider, threading.Lock()
        forced = forced_rounds(state) if decider.source.settles else math.inf
        self.now = Now(Packed.of(state), own, compiled.room(state), forced=forced)
        self.pending = Pending(decider.source.n_features, decider.source.dtype, max_pending)
        self.last: Offer | None = None  # the offer of the last decision
        self.turns = Turns()

    def state(self) -> State:
        """Return the state as the policy knows it."""
        with self.decider.precision():
            return self.now.packed.state()

    def waiting(self) -> Pending:
        """Return the decisions that wait, without those whose rewards were learned before an interrupt."""
        self.pending.remove(self.now.learned)
        return self.pending

    def choose(self, given: Any, among: Among, every: bool = False) -> Decision:
        """Make the next decision, and let it wait for its reward."""
        now, decider = self.now, self.decider
        offer = decider.source.offer(now.arms, given, among)
        t = self.pending.take(1)
        pick, chance, stderr = decider.decide(offer, now, t, every)
        self.last = None if every else offer
        decision_id = self.pending.made_one(t, pick.row, pick.features)
        told = (pick.arm, chance, stderr, pick.row, pick.features, pick.forced, pick.converged)
        return Decision(decision_id, *told, *(decider.of_every(offer, pick) or ()) if every else ())

    def choose_many(self, given: Any, among: AmongEach, every: bool = False) -> Decisions:
        """Make the next decisions with the same state, and let them wait for their rewards."""
        now, decider = self.now, self.decider
        offers = decider.source.offers(now.arms, given, among)
        first = self.pending.take(offers.number)
        picks, chances, stderrs = decider.decide_many(offers, now, first, every)
        ids = self.pending.made(first, picks.row, picks.features)
        told = (picks.arm, chances, stderrs, picks.row, picks.features, picks.forced, picks.converged)
        return Decisions(ids, *told, decider.of_every(offers, picks) if every else None)

    def learn(self, decision_id: int | Sequence[int] | np.ndarray, reward: Any) -> None:
        """Replace the state by the one that has learned these rewards, or raise and change nothing."""
        ids, single = as_ids(decision_id)
        rewards, policy = compiled.as_rewards(reward, len(ids), single), self.decider.policy
        with self.lock:
            now, pending = self.now, self.waiting()
            pulled = pending.hold(ids)  # none of them is dropped meanwhile
            try:
                with self.decider.precision():
                    compiled.check_possible(policy, rewards, self.decider.source.dtype)
                    if len(ids) > now.room:
                        compiled.check_room_for(policy, now.packed.state(), len(ids))
                    if now.arms.reused:
                        now, pulled = self.with_rows_of(pulled)
                    packed, ahead = self.learned(now, pulled.paid(rewards), pending.is_only(ids))
                self.now = Now(packed, now.arms, now.room - len(ids), ids, now.forced, ahead)
                pending.remove(ids)  # what an interrupt leaves undone here, `waiting` does
            finally:
                pending.release()

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

    def put(self, change: Callable[..., Arms], name: Hashable, features: Any) -> None:
        """Add one of the agent's own arms, or give it other features."""
        source, policy = self.decider.source, self.decider.policy
        with self.lock, self.decider.precision():
            own = self.now.arms.changeable()
            row, attributes = source.read(own, name, features)
            arms = change(own, name, row, attributes, source.vacant(policy, self.now.packed, own))
            self.now = self.now._replace(packed=source.extend(policy, self.now.packed, arms), arms=arms)

    def switch(self, name: Hashable, on: bool) -> None:
        """Put one of the agent's own arms on offer, or take it off offer."""
        source, policy = self.decider.source, self.decider.policy
        with self.lock:
            own = self.now.arms.changeable()
            if name not in own.rowless:
                self.now = self.now._replace(arms=own.switched(name, on))
                return
            with self.decider.precision():
                arms = own.switched(name, on, source.vacant(policy, self.now.packed, own))
                self.now = self.now._replace(packed=source.extend(policy, self.now.packed, arms), arms=arms)

    def with_rows_of(self, pulled: Pulled) -> tuple[Now, Pulled]:
        """Return what has a row for each arm that was pulled, also if its own was given away, and these rows."""
        now, source, policy = self.now, self.decider.source, self.decider.policy
        arms, rows = source.with_rows(policy, now.packed, now.arms, pulled.rows, pulled.features)
        if arms is not now.arms:
            now = now._replace(packed=source.extend(policy, now.packed, arms), arms=arms)
        return now, Pulled.of(rows, pulled.features)
