"""An agent: a policy with state, for deciding now and being paid later.

    agent = Agent(make("glm_tsl"), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
    decision = agent.choose()                 # Decision(id=0, arm="blue", propensity=0.61, …)
    agent.learn(decision.id, 1.0)             # whenever the reward comes, in any order
    agent.save("agent.npz")                   # and later: Agent.load("agent.npz")

Four kinds of arms, by how the agent is made:

    arms=table                    fixed features.  choose()
    features=d (or encoder=)      arms that differ every time.  choose(table)
    arms={name: attributes},      named arms in a context: the columns that the attributes lack come with the context.
      encoder=                    choose({"device": "mobile", …})
    arms=sets.ball(…)             an infinite set; a point of it is chosen (`sets`).  choose()

`arms.py` says what a table may be.  Of arms with equal features only the first is ever chosen: ties go to it.

Decision t is a function of the seed, of t and of the state: `choose` and `learn` again in the same order make the same
decisions, which are those of `simulate` with one instance and the same seed.

**Ids.**  A new agent's decisions have the ids 0, 1, 2, …  One that is loaded goes on with the same decisions under ids
of a new range, drawn at random (`ids.py`): whatever the saved one decided after it was saved, no id is given out twice.
A reward for a decision that the snapshot does not know is refused.

**Threads.**  Any number of threads may call any method.  Choosing reads a state that is never changed, only replaced,
so choosers do not wait for the learner nor for each other; learning, saving and changing arms go one at a time.  A
snapshot has every decision that was returned before `save` was called.

**Precision.**  float64 unless `dtype="float32"`, whatever JAX's own default.
"""

import inspect
import os
import threading
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from explorax.agent import deciding, learning, propensity, saving, snapshot
from explorax.agent.arms import Arms
from explorax.agent.decisions import Decision, Decisions, Propensities
from explorax.agent.encoding import Encoder
from explorax.agent.menus import Among, AmongEach, Changing, Fixed, kind_of_arms
from explorax.agent.packing import Packed, Packing, packing_of
from explorax.agent.pending import Pending, as_ids
from explorax.agent.points import Points
from explorax.agent.sets import ArmSet
from explorax.checks import check_whole
from explorax.errors import InvalidArgument, UnknownName
from explorax.policies.base import Policy, State
from explorax.simulation import FLOOR, INIT, POLICY, REPEAT, instance_keys

MOST_SEED = 2**63 - 1


class Now(NamedTuple):
    """What a decision depends on; replaced as a whole, so that no chooser sees half of a change."""

    packing: Packing
    packed: Packed  # the state
    arms: Arms  # the agent's own

    @classmethod
    def of(cls, state: State, arms: Arms) -> "Now":
        """A state and the agent's own arms."""
        packing = packing_of(state)
        return cls(packing, packing.pack(state), arms)


class Agent:
    """See the module's docstring."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        arms: Any = None,
        features: int | None = None,
        encoder: Encoder | None = None,
        seed: int = 0,
        draws: int | None = None,
        stderr: float | None = None,
        explore_floor: float = 0.0,
        max_pending: int = 100_000,
        dtype: str = "float64",
    ) -> None:
        """An agent that has seen nothing.

        draws           repetitions of a decision that its propensity is estimated by, 100 unless given; 0 for none
        stderr          the largest standard error that a propensity may have, in place of `draws`
        explore_floor   the probability of an arm drawn uniformly from those on offer in place of the policy's, so that
                        each has a propensity of at least explore_floor / K, and off-policy estimates have no bias
        max_pending     decisions that may wait for their rewards; beyond that the oldest are dropped
        """
        if not isinstance(policy, Policy):
            raise InvalidArgument(f"policy must be a Policy, got {policy!r}. Build one with explorax.make('glm_tsl').")
        if len(inspect.signature(policy.act).parameters) < 5:
            raise InvalidArgument(
                "policy.act takes no `mask`: give it that fifth argument, the arms that may be pulled"
            )
        check_whole("seed", seed, 0, MOST_SEED)
        check_whole("max_pending", max_pending, 1)
        if dtype not in ("float32", "float64"):
            raise UnknownName("dtype", dtype, ("float32", "float64"))
        self.policy, self.seed, self.dtype = policy, seed, dtype
        self._known = propensity.Knowledge.of(policy, draws, stderr, explore_floor)
        self._rule = deciding.Rule.of(policy, self._known.repetitions, self._known.floor)
        self._lock, self._learning = threading.Lock(), threading.Lock()
        with self._precision():
            self.points = Points.of(arms, policy, self._rule, dtype) if isinstance(arms, ArmSet) else None
            given = None if self.points else arms
            self.kind, own = kind_of_arms(given, self.points.features if self.points else features, encoder, dtype)
            keys = [jax.random.key_data(instance_keys(seed, range(1), use)[0]) for use in (POLICY, REPEAT, FLOOR)]
            self._keys = jnp.stack(keys)
            state = self._nothing_seen(policy, own)
            self._now, self._room = Now.of(state, own), learning.room(state)
        self._pending = Pending(self.kind.features, dtype, max_pending)

    def __repr__(self) -> str:
        policy = self.policy.recipe.name if self.policy.recipe else "a policy"
        names = self.arms
        arms = f", {sum(names.values())} of {len(names)} arms on offer" if names else ""
        kind = self.kind.name if self.points is None else self.points.set.kind
        return (
            f"<Agent: {policy}, {kind} arms with {self.kind.features} features{arms}, seed {self.seed}, "
            f"{self.decisions} decisions, {len(self._pending)} pending, {self.dropped} dropped>"
        )

    @property
    def state(self) -> State:
        """The state of the policy; `agent.state.theta_hat` is the estimate of a GLM policy."""
        now = self._now
        with self._precision():
            return now.packing.unpack(now.packed)

    @property
    def decisions(self) -> int:
        """How many have been made, those before this agent was saved and loaded included."""
        return self._pending.ids.count

    @property
    def pending(self) -> list[int]:
        """The decisions that wait for their rewards, by id."""
        with self._lock:
            return list(self._pending.slots)

    @property
    def dropped(self) -> int:
        """How many decisions were dropped because more than `max_pending` waited."""
        return self._pending.dropped

    def is_pending(self, decision_id: int) -> bool:
        """Whether a decision waits for its reward."""
        return decision_id in self._pending.slots

    @property
    def arms(self) -> dict[Hashable, bool]:
        """The agent's own arms by name, and whether each is on offer."""
        own = self._now.arms
        return {name: on for name, on in zip(own.names, own.active.tolist(), strict=False) if name is not None}

    # Deciding

    def choose(self, given: Any = None, *, among: Among = None) -> Decision:
        """Choose an arm: of those given, or of the agent's own; `among` names those that are eligible this time."""
        if self.points is not None:
            if given is not None:
                raise InvalidArgument("this agent has a set of arms of its own: choose() without arms")
            return self._choose_points(1, among)[0]
        now = self._now
        menu = self.kind.one(now.arms, given, among)
        t = self._take(1)
        with self._precision():
            whole, exact = deciding.decide(self._rule, now.packing, self._keys, now.packed, menu, t)
            arm, forced, converged, count = whole
            chance, stderr = self._known.stated_one(count, exact, menu.choices)
        features = menu.rows[arm].copy()  # what was given may change hands
        with self._lock:
            decision_id = self._pending.made_one(t, arm, features)
        return Decision(decision_id, menu.names[arm], chance, stderr, arm, features, bool(forced), bool(converged))

    def choose_many(self, given: Any, *, among: AmongEach = None) -> Decisions:
        """Several decisions with the same state: for each table of arms or context, or so many where arms are fixed.

        They are the decisions that as many calls of `choose` would make, and cost much less.  `among` is a list of
        names for all of them, or a list of such lists, one for each.
        """
        if self.points is not None:
            return self._choose_points(given, among)
        now = self._now
        menus = self.kind.many(now.arms, given, among)
        first = self._take(menus.number)
        with self._precision():
            whole, exact = deciding.decide_many(self._rule, now.packing, self._keys, now.packed, menus, first)
        index, forced, converged, count = whole.T
        chance, stderr = self._known.stated(count, exact, menus.choices)
        names, features = menus.pick(index)
        with self._lock:
            ids = self._pending.made(first, index, features)
        return Decisions(ids, names, chance, stderr, index, features, forced.astype(bool), converged.astype(bool))

    def propensities(self, given: Any = None, *, among: Among = None) -> Propensities:
        """P(arm) of every arm on offer, as the next decision would state it if it were made now; makes none."""
        if self.points is not None:
            raise InvalidArgument("an infinite set has no list of propensities: see Decision.propensity")
        known, now = self._known, self._now
        if known.estimated and not known.draws:
            raise InvalidArgument("draws=0: this agent was told not to estimate propensities")
        menu = self.kind.one(now.arms, given, among)
        with self._precision():
            program = deciding.frequencies(self._rule, now.packing, menu.arms.shape, menu.offered is None)
            found = np.asarray(program(self._keys, now.packed, menu.arms, self.decisions, menu.offered), float)
        places = list(range(len(menu.names))) if menu.offered is None else np.flatnonzero(menu.offered).tolist()
        return Propensities([menu.names[i] for i in places], *known.stated(found[places], found[places], menu.choices))

    # Learning

    def learn(
        self, decision_id: int | Sequence[int] | np.ndarray, reward: float | Sequence[float] | np.ndarray
    ) -> None:
        """Take in the reward of a decision, or those of several, in the order given.

        Raises, and changes nothing at all, if one of the decisions is unknown or has had its reward, or if one of the
        rewards is impossible or finds no room.
        """
        ids, single = as_ids(decision_id)
        rewards = learning.checked_rewards(reward, ids, single)
        with self._learning:
            now = self._now
            with self._lock:
                pulled = self._pending.hold(ids)  # none of them is dropped meanwhile
            try:
                with self._precision():
                    learning.check_possible(self.policy, rewards, self.dtype)
                    if len(ids) > self._room:
                        learning.check_room_for(self.policy, self.state, len(ids))
                    packed = learning.learn(self.policy.update, now.packing, now.packed, pulled, rewards)
            except BaseException:
                with self._lock:
                    self._pending.release()
                raise
            with self._lock:
                self._now, self._room = now._replace(packed=packed), self._room - len(ids)
                self._pending.remove(ids)

    # Arms that come and go

    def add_arm(self, name: Hashable, features: Any) -> None:
        """Put a new arm on offer, or a retired one with other features.

        What is known about it is what the shared model says of its features.
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
            UnknownName: If there is no such arm.
            InvalidFeatures: If the features cannot be those of an arm.
        """
        self._put(Arms.updated, name, features)

    def retire_arm(self, name: Hashable) -> None:
        """Take an arm off offer.  Its rewards still count, also those that are yet to come."""
        self._switch(name, False)

    def return_arm(self, name: Hashable) -> None:
        """Put a retired arm back on offer, with all that was learned about it."""
        self._switch(name, True)

    # State on disk

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot, atomically: a file that was there stays as it is until the new one is complete."""
        with self._learning, self._lock:
            now, ledger = self._now, self._pending.ledger()
        with self._precision():
            saved = saving.Saved.of(self, now.arms, now.packing.unpack(now.packed), ledger)
        saving.save(saved, path)

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

        Its decisions get ids that the saved agent has not given out, not even after it was saved (`ids.py`).

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
        path = snapshot.checked_path(path)
        if draws is not None or stderr is not None:
            draws = propensity.checked_draws(draws, stderr)
        if max_pending is not None:
            check_whole("max_pending", max_pending, 1)
        with saving.understood(path):
            saved = saving.load(path, policy)
            agent = cls(saved.policy, **saved.arguments(draws, explore_floor, max_pending))
            agent.kind = replace(agent.kind, encoder=saved.encoder)
            with agent._precision():
                own = Arms.none() if saved.arms is None else saved.arms._replace(matrix=jnp.asarray(saved.arms.rows))
                state = saved.state(lambda policy: agent._nothing_seen(policy, own), path)
                agent._now, agent._room = Now.of(state, own), learning.room(state)
            agent._pending.resume(saved.ledger, same_ids)
        return agent

    # Within

    def _nothing_seen(self, policy: Policy, own: Arms) -> State:
        """The state that a policy starts from with the agent's own arms."""
        start = own.matrix if isinstance(self.kind, Fixed) else self.kind.features
        return policy.init(start, instance_keys(self.seed, range(1), INIT)[0])

    def _precision(self) -> AbstractContextManager[Any]:
        return jax.enable_x64(self.dtype == "float64")

    def _take(self, count: int) -> int:
        """The number of the next decision, of so many that are made now."""
        with self._lock:
            return self._pending.ids.take(count)

    def _choose_points(self, count: Any, among: AmongEach) -> Decisions:
        """Decisions in an infinite set."""
        check_whole("given", count, 1)
        if among is not None:
            raise InvalidArgument("among is for arms with names: an infinite set has none")
        assert self.points is not None
        now, first = self._now, self._take(int(count))
        times, index = np.arange(first, first + int(count)), np.zeros(int(count), np.int64)
        with self._precision():
            points, flags, counts = self.points.choose(self._keys, now.packing, now.packed, times)
        chance, stderr = (None, None) if counts is None else self._known.stated(counts, np.ones(len(index)), 1)
        with self._lock:
            ids = self._pending.made(first, index, points)
        return Decisions(ids, list(points), chance, stderr, index, points, *flags)

    def _put(self, change: Callable[..., Arms], name: Hashable, features: Any) -> None:
        """Add or change one of the agent's own arms."""
        with self._learning, self._precision():
            now = self._now
            arms, state = change(now.arms, name, *self.kind.read(now.arms, name, features)), self.state
            if isinstance(self.kind, Fixed) and self.policy.extend is not None:
                state = self.policy.extend(state, arms.matrix)
            with self._lock:
                self._now = Now.of(state, arms)

    def _switch(self, name: Hashable, on: bool) -> None:
        if isinstance(self.kind, Changing):
            raise InvalidArgument("this agent has no arms of its own to change: give those on offer to choose()")
        with self._learning:
            arms = self._now.arms.switched(name, on)
            with self._lock:
                self._now = self._now._replace(arms=arms)
