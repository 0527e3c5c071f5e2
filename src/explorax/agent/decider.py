"""Deciding: a decision as a function of seed, number and state.

Decision t is a function of the seed, of t and of the state (`Decider`).  What changes over time is one record (`Now`),
which is never changed but replaced as a whole (`live.py`).
"""

import inspect
import math
import reprlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import compiled
from explorax.agent.ahead import Ahead
from explorax.agent.arm_tables import Among, Listed, Pick
from explorax.agent.decisions import Explanation, Propensities
from explorax.agent.offers import Offer, Offers
from explorax.agent.own_arms import Arms
from explorax.agent.packing import Packed
from explorax.agent.propensity import Knowledge
from explorax.agent.pulled import Pulled
from explorax.agent.rule import Rule, key_at
from explorax.agent.sources import ArmSource
from explorax.checks import check_whole
from explorax.errors import InvalidArgument
from explorax.glm import families
from explorax.policies.base import Policy, State
from explorax.simulation import FLOOR, INIT, POLICY, REPEAT, instance_keys

MOST_SEED = 2**63 - 1
ROUNDING = 64  # times the precision of the largest score: what may be between two ways to compute a score
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
    version: int = 0  # the number of the last thing in the log that this comes from; 0 without a log


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

    def of_every(self, offers: Offer | Offers, pick: Pick) -> list[Propensities]:
        """Return the propensities of all arms on offer in each decision; none if they were not asked for.

        Decisions that are alike share one record.
        """
        if pick.every is None:
            return []
        found, which = pick.every
        chances, stderrs = self.known.stated(found, found, np.reshape(offers.choices, (-1, 1)), pick.pooled)
        each = []
        for i in range(len(found)):
            names, rows = offers.on_offer(i)
            each.append(Propensities(names, chances[i, rows], stderrs[i, rows]))
        return [each[i] for i in which.tolist()]

    def explain(self, offer: Offer, now: Now, t: int) -> Explanation:
        """Return what speaks for each arm in decision t."""
        policy = self.policy
        with self.precision():
            state = now.packed.state()
            theta = getattr(state, "theta_hat", None)
            if theta is None:
                raise InvalidArgument(
                    "explain must be False for a policy without an estimate of parameters, got True. Leave it out."
                )
            arms, mask = offer.as_played()
            action, other = (
                policy.act(key_at(key, jnp.asarray(t)), state, arms, t, mask) for key in (self.keys[0], self.keys[1])
            )
            family = families.FAMILIES.get(policy.families[0] if policy.families else "gaussian", families.gaussian)
            found = jnp.asarray(arms) @ theta
            estimates, means, scores = (np.asarray(each) for each in (found, family.mean(found), action.scores))
        names, rows = offer.on_offer(0)
        added, random = (scores - estimates)[rows], not np.array_equal(action.scores, other.scores)
        added[np.abs(added) <= ROUNDING * np.finfo(added.dtype).eps * np.abs(scores).max()] = 0
        nothing = np.zeros_like(added)
        apart = (added, nothing) if random else (nothing, added)
        own = names[int(np.flatnonzero(rows == int(action.arm))[0])]
        return Explanation(names, means[rows], estimates[rows], *apart, scores[rows], own)

    def propensities(self, now: Now, t: int, given: Any, among: Among) -> Propensities:
        """Return the propensities that decision t would state for each arm on offer."""
        offer = self.source.offer(now.arms, given, among)
        found = self.of_every(offer, self.decide(offer, now, t, every=True)[0])
        assert found is not None
        return found[0]
