"""An agent: a policy with state, for deciding now and being paid later.

Decision t is a function of the seed, of t and of the state: `choose` and `learn` again in the same order make the same
decisions, which are those of `simulate` with one instance and the same seed.

**Ids.**  A new agent's decisions have the ids 0, 1, 2, …  One that is loaded goes on with the same decisions under ids
of a new range, drawn at random (`log.py`): whatever the saved one decided after it was saved, no id is given out twice.

**Threads.**  Any number of threads may call any method.  Choosing reads a state that is never changed, only replaced,
so choosers do not wait for the learner nor for each other; learning, saving and changing arms go one at a time.  A
snapshot has every decision that was returned before `save` was called.

**Interrupts.**  The state and the ids of the rewards that it has learned last are replaced in one step: an interrupt in
`learn` leaves all of them learned or none, and no decision is rewarded twice.
"""

import os
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import archive, compiled, propensity, snapshot
from explorax.agent.arm_tables import Among, AmongEach, Arms
from explorax.agent.decisions import Decider, Decision, Decisions, Now, Propensities, checked_policy
from explorax.agent.encoding import Encoder
from explorax.agent.log import Pending, as_ids
from explorax.agent.offers import read_source
from explorax.checks import check_whole
from explorax.errors import UnknownName
from explorax.policies.base import Policy, State


class Agent:
    """A policy with state: it decides now and is paid later.

        agent = Agent(make("glm_tsl"), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        decision = agent.choose()                 # Decision(id=0, arm="blue", propensity=0.61, …)
        agent.learn(decision.id, 1.0)             # whenever the reward comes, in any order
        agent.save("agent.npz")                   # and later: Agent.load("agent.npz")

    There are four kinds of arms, by how the agent is made:

        arms=table                          fixed features: choose()
        n_features=d (or encoder=)          arms that differ every time: choose(table)
        arms={name: attributes}, encoder=   named arms in a context, which brings the columns that the attributes lack:
                                            choose({"device": "mobile", …})
        arms=arm_sets.ball(…)               an infinite set, of which a point is chosen: choose()

    A table of arms is a matrix, a mapping of names to rows, a pandas or polars DataFrame (the index of the former holds
    the names), or with an encoder also a list of dicts.  A name is text or a whole number.  Of arms with equal features
    only the first is ever chosen: ties go to it.

    Args:
        policy: What decides and learns, such as `explorax.make("glm_tsl")`.
        arms: The agent's own arms: a table, attributes by name, or an infinite set.
        n_features: The number of features of arms that differ every time.
        encoder: What makes features of tables and contexts.
        seed: What random numbers depend on, a whole number.
        draws: Repetitions of a decision that its propensity is estimated by, 100 unless given; 0 for no propensities.
        stderr: The largest standard error that a propensity may have, in place of `draws`.
        explore_floor: The probability of an arm drawn uniformly from those on offer in place of the policy's, so that
            each has a propensity of at least explore_floor / K, and off-policy estimates have no bias.
        max_pending: Decisions that may wait for their rewards; beyond that the oldest are dropped.
        dtype: "float64" or "float32", whatever JAX's own default.

    Raises:
        InvalidArgument: If an argument cannot be used, or two of them contradict each other.
    """

    _now: Now

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        arms: Any = None,
        n_features: int | None = None,
        encoder: Encoder | None = None,
        seed: int = 0,
        draws: int | None = None,
        stderr: float | None = None,
        explore_floor: float = 0.0,
        max_pending: int = 100_000,
        dtype: str = "float64",
    ) -> None:
        policy = checked_policy(policy)
        if dtype not in ("float32", "float64"):
            raise UnknownName("dtype", dtype, ("float32", "float64"))
        draws = propensity.checked_draws(draws, stderr)
        with jax.enable_x64(dtype == "float64"):
            source, own = read_source(arms, n_features, encoder, dtype)
            decider = Decider(policy, source, seed, draws, explore_floor)
            self._begin(decider, decider.nothing_seen(policy, own), own, max_pending)

    def __repr__(self) -> str:
        policy = self.policy.recipe.name if self.policy.recipe else "a policy"
        names = self.arms
        arms = f", {sum(names.values())} of {len(names)} arms on offer" if names else ""
        return (
            f"<Agent: {policy}, {self._decider.source.describe()} arms with {self.n_features} features{arms}, "
            f"seed {self.seed}, {self.decisions} decisions, {len(self.pending)} pending, {self.dropped} dropped>"
        )

    @property
    def n_features(self) -> int:
        """The number d of features of an arm."""
        return self._decider.source.n_features

    @property
    def state(self) -> State:
        """The state of the policy; `agent.state.theta_hat` is the estimate of a GLM policy."""
        with self._decider.precision():
            return self._now.packed.state()

    @property
    def decisions(self) -> int:
        """How many have been made, those before this agent was saved and loaded included."""
        return self._pending.ids.count

    @property
    def pending(self) -> list[int]:
        """The decisions that wait for their rewards, by id, the oldest first."""
        return self._waiting().waiting()

    @property
    def dropped(self) -> int:
        """How many decisions were dropped because more than `max_pending` waited."""
        return self._pending.dropped

    @property
    def arms(self) -> dict[Hashable, bool]:
        """The agent's own arms by name, and whether each is on offer."""
        own = self._now.arms
        return {name: on for name, on in zip(own.names, own.active.tolist(), strict=False) if name is not None}

    def is_pending(self, decision_id: int) -> bool:
        """Tell whether a decision waits for its reward.

        Args:
            decision_id: The id of a decision.

        Returns:
            False if it has had its reward, was dropped, or is not known.
        """
        return decision_id in self._waiting()

    # Deciding

    def choose(self, given: Any = None, *, among: Among = None) -> Decision:
        """Choose an arm, of those given or of the agent's own.

        Args:
            given: The table of arms on offer, where arms differ every time; the context, a dict or a row of a table,
                for arms in a context; nothing, for fixed arms and infinite sets.
            among: Names of the agent's own arms that are eligible this time; all on offer, unless given.

        Returns:
            The decision: what to pull, with what probability, and the id to `learn` its reward by.

        Raises:
            InvalidArgument: If `given` or `among` is not what this agent's arms need, or no arm is on offer.
            InvalidFeatures, InvalidShape: If features are missing or infinite, or another number of them is needed.
            UnknownName: If there is no arm of a name in `among`.
        """
        now, decider = self._now, self._decider
        offer = decider.source.offer(now.arms, given, among)
        t = self._pending.take(1)
        pick, chance, stderr = decider.decide(offer, now, t)
        decision_id = self._pending.made_one(t, pick.row, pick.features)
        return Decision(decision_id, pick.arm, chance, stderr, pick.row, pick.features, pick.forced, pick.converged)

    def choose_many(self, given: Any, *, among: AmongEach = None) -> Decisions:
        """Choose several times with the same state, as as many calls of `choose` would, at a fraction of their cost.

        Args:
            given: A list of tables of arms or an array (n, K, d), where arms differ every time; a list of contexts or a
                DataFrame, for arms in a context; how many decisions, for fixed arms and infinite sets.
            among: Names that are eligible in all of them, or a list of such lists, one for each.

        Returns:
            The decisions, as a sequence and column by column.

        Raises:
            InvalidArgument: As `choose` does, or if `among` has not one list for each decision.
        """
        now, decider = self._now, self._decider
        offers = decider.source.offers(now.arms, given, among)
        first = self._pending.take(offers.number)
        picks, chances, stderrs = decider.decide_many(offers, now, first)
        ids = self._pending.made(first, picks.row, picks.features)
        return Decisions(ids, picks.arm, chances, stderrs, picks.row, picks.features, picks.forced, picks.converged)

    def propensities(self, given: Any = None, *, among: Among = None) -> Propensities:
        """Tell P(arm) of every arm on offer, as the next decision would state it; makes none.

        Args:
            given: What `choose` would be given.
            among: What `choose` would be given.

        Returns:
            The names of the arms on offer, their probabilities, and the standard errors of these.

        Raises:
            InvalidArgument: As `choose` does, or if the agent was made with `draws=0`, or has an infinite set of arms.
        """
        return self._decider.propensities(self._now, self.decisions, given, among)

    # Learning

    def learn(
        self, decision_id: int | Sequence[int] | np.ndarray, reward: float | Sequence[float] | np.ndarray
    ) -> None:
        """Take in the reward of a decision, or those of several; change nothing at all if one cannot be.

        Args:
            decision_id: The id of a decision that waits for its reward, or a list of ids, learned in that order.
            reward: Its reward, a number that the policy's family allows, or a list of them.

        Raises:
            AlreadyRewarded: If a decision has had its reward, or is named twice.
            UnknownDecision: If a decision was never made here, is not known any more, or was dropped.
            InvalidReward: If a reward is not a number, not finite, or impossible in the policy's family.
            InvalidShape: If there is not one reward for each decision.
            HistoryFull: If the policy's memory has no room for the rewards.
            NotFinite: If the state would have NaN or infinity in it.
        """
        ids, single = as_ids(decision_id)
        rewards = compiled.as_rewards(reward, len(ids), single)
        with self._learning:
            now, pending = self._now, self._waiting()
            pulled = pending.hold(ids)  # none of them is dropped meanwhile
            try:
                with self._decider.precision():
                    compiled.check_possible(self.policy, rewards, self.dtype)
                    if len(ids) > now.room:
                        compiled.check_room_for(self.policy, now.packed.state(), len(ids))
                    packed = compiled.learn(self.policy.update, now.packed, *pulled, rewards)
                self._now = Now(packed, now.arms, now.room - len(ids), ids)
                pending.remove(ids)  # what an interrupt leaves undone here, `_waiting` does
            finally:
                pending.release()

    # Arms that come and go

    def add_arm(self, name: Hashable, features: Any) -> None:
        """Put a new arm on offer, or a retired one with other features.

        What is known about it is what the shared model says of its features.

        Args:
            name: Text or a whole number that no arm on offer has.
            features: A row of features; a dict, where the agent has an encoder; the attributes of the arm, for arms in
                a context.

        Raises:
            InvalidArgument: If there is such an arm on offer, or the agent has no arms of its own.
            InvalidFeatures: If the features cannot be those of an arm.
            InvalidShape: If there are more or fewer features than other arms have.
        """
        self._put(Arms.added, name, features)

    def update_arm(self, name: Hashable, features: Any) -> None:
        """Give an arm other features; rewards of earlier decisions, also late ones, still count for the old ones.

        Each update of fixed arms takes up a row.  For features that change often, give the arms attributes and a
        context, or give them to `choose`.

        Args:
            name: One of the agent's own arms; a retired one stays retired.
            features: What `add_arm` takes.

        Raises:
            InvalidArgument: If there is no such arm, or the agent has no arms of its own.
            InvalidFeatures: If the features cannot be those of an arm.
        """
        self._put(Arms.updated, name, features)

    def retire_arm(self, name: Hashable) -> None:
        """Take an arm off offer; its rewards still count, also those that are yet to come.

        Args:
            name: One of the agent's own arms.

        Raises:
            InvalidArgument: If there is no such arm, it is retired already, or the agent has no arms of its own.
        """
        self._switch(name, False)

    def restore_arm(self, name: Hashable) -> None:
        """Put a retired arm back on offer, with all that was learned about it.

        Args:
            name: One of the agent's own arms.

        Raises:
            InvalidArgument: If there is no such arm, it is on offer already, or the agent has no arms of its own.
        """
        self._switch(name, True)

    # State on disk

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot, atomically: a file that was there stays as it is until the new one is complete.

        Args:
            path: The file to write, in a folder that exists.

        Raises:
            InvalidArgument: If there can be no such file, or a part of the agent cannot be saved.
            NotFinite: If the state has NaN or infinity in it.
            OSError: If the file cannot be written.
        """
        decider, known = self._decider, self._decider.known
        with self._learning:
            now, ledger = self._now, self._waiting().ledger()
        with decider.precision():
            described, arrays = snapshot.flatten(now.packed.state())
        settings = (self.policy, self.seed, self.dtype, known.draws, known.floor, self._pending.limit)
        snapshot.save(snapshot.Saved(*settings, decider.source, now.arms, ledger, described, arrays), path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        policy: Policy | None = None,
        *,
        draws: int | None = None,
        stderr: float | None = None,
        explore_floor: float | None = None,
        max_pending: int | None = None,
        same_ids: bool = False,
    ) -> "Agent":
        """Load the agent of a snapshot; it makes the decisions that the saved one would have made.

        Its decisions get ids that the saved agent has not given out, not even after it was saved.

        Args:
            path: The file that `save` wrote.
            policy: The policy to go on with, where its settings could not be saved (a network or an optimizer of your
                own), or where they shall differ: another capacity or memory, for example.
            draws: As in `Agent`, if it shall be another number.
            stderr: As in `Agent`, in place of `draws`.
            explore_floor: As in `Agent`, if it shall be another one.
            max_pending: As in `Agent`; if more decisions wait, the oldest are dropped.
            same_ids: True to go on with the ids that the saved agent would have given out.  For services that repeat
                from a log of their own whatever happened after the snapshot.

        Returns:
            The agent, with the decisions that wait for their rewards.

        Raises:
            InvalidSnapshot: The file is no snapshot, is damaged, contradicts itself, or does not go with the policy.
            HistoryFull: The policy given has less room than there are rewards.
        """
        path = archive.checked_path(path)
        if draws is not None or stderr is not None:
            draws = propensity.checked_draws(draws, stderr)
        if max_pending is not None:
            check_whole("max_pending", max_pending, 1)
        with snapshot.understood(path):
            saved = snapshot.load(path, policy)
            agent = cls.__new__(cls)
            draws, floor, limit = saved.settings(draws, explore_floor, max_pending)
            with jax.enable_x64(saved.dtype == "float64"):
                decider = Decider(saved.policy, saved.source, saved.seed, draws, floor)
                own = saved.arms._replace(matrix=jnp.asarray(saved.arms.rows))
                state = saved.state(lambda policy: decider.nothing_seen(policy, own), path)
                agent._begin(decider, state, own, limit)
            agent._pending.resume(saved.ledger, same_ids)
        return agent

    def _begin(self, decider: Decider, state: State, own: Arms, max_pending: int) -> None:
        """Start from a state, with the agent's own arms."""
        check_whole("max_pending", max_pending, 1)
        self._decider, self._learning = decider, threading.Lock()
        self.policy, self.seed, self.dtype = decider.policy, decider.seed, decider.source.dtype
        self._now = Now(compiled.Packed.of(state), own, compiled.room(state))
        self._pending = Pending(self.n_features, self.dtype, max_pending)

    def _waiting(self) -> Pending:
        """Return the decisions that wait, without those whose rewards were learned before an interrupt."""
        self._pending.remove(self._now.learned)
        return self._pending

    def _put(self, change: Callable[..., Arms], name: Hashable, features: Any) -> None:
        """Add or change one of the agent's own arms."""
        source = self._decider.source
        with self._learning, self._decider.precision():
            own = self._now.arms.changeable()
            arms = change(own, name, *source.read(own, name, features))
            packed = compiled.Packed.of(source.extend(self.policy, self._now.packed.state(), arms))
            self._now = self._now._replace(packed=packed, arms=arms)

    def _switch(self, name: Hashable, on: bool) -> None:
        with self._learning:
            self._now = self._now._replace(arms=self._now.arms.changeable().switched(name, on))
