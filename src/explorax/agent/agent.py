"""An agent: a policy with state, for deciding now and being paid later.

Decision t is a function of the seed, of t and of the state.  So `choose` and `learn` called again in the same order
make the same decisions, which are those of `simulate` with one instance and the same seed.
"""

import os
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from explorax.agent import archive, own_arms, propensity, snapshot
from explorax.agent.arm_tables import Among, AmongEach
from explorax.agent.decider import Decider, Live, checked_policy
from explorax.agent.decisions import Decision, Decisions, Propensities
from explorax.agent.encoding import Encoder
from explorax.agent.sources import read_source
from explorax.checks import check_whole
from explorax.errors import UnknownName
from explorax.policies.base import Policy, State


class Agent:
    """A policy with state, which decides now and is paid later.

    There are four kinds of arms, depending on how the agent is made:

        arms=table                          fixed features: choose()
        n_features=d (or encoder=)          arms that differ every time: choose(table)
        arms={name: attributes}, encoder=   named arms in a context, which has the columns that the attributes lack:
                                            choose({"device": "mobile", …})
        arms=arm_sets.ball(…)               an infinite set, of which a point is chosen: choose()

    A table of arms is a matrix, a mapping of names to rows, a pandas or polars DataFrame (the index of the former holds
    the names), or with an encoder also a list of dicts.  A name is text or a whole number.  Among arms with equal
    features only the first is ever chosen.

    The decisions of a new agent have the ids 0, 1, 2, …  A loaded agent draws the start of a new range of ids at
    random, so no id is given out twice, whatever the saved agent decided after it was saved.  Any number of threads may
    call any method.

    Args:
        policy: The policy that decides and learns, such as `explorax.glm_tsl()`.
        arms: The agent's own arms: a table, attributes by name, or an infinite set.  Default: no arms of its own.
        n_features: The number of features of arms that differ every time.  Default: taken from the arms or encoder.
        encoder: The encoder that turns tables and contexts into features.  Default: arms are numbers already.
        seed: The seed of all random numbers, a whole number from 0 to 2⁶³ − 1.  Default: 0.
        draws: The number of repetitions of a decision that its propensity is estimated from; 0 for no propensities.
            Default: 100.
        stderr: The largest standard error that a propensity may have, in place of `draws`.
        explore_floor: The probability with which an arm is drawn uniformly from those on offer in place of the policy's
            arm, from 0 up to, but not including, 1.  Each of K arms then has a propensity of at least
            explore_floor / K, and off-policy estimates have no bias.  Default: 0.
        max_pending: The number of decisions that may wait for their rewards; beyond it the oldest are dropped.
            Default: 100 000.
        dtype: The precision, "float64" or "float32", whatever the default of JAX is.  Default: "float64".

    Attributes:
        policy: The policy that decides and learns.
        seed: The seed of all random numbers.
        dtype: The precision, "float64" or "float32".

    Raises:
        InvalidArgument: If an argument cannot be used, or two of them contradict each other.

    Example:
        >>> import explorax
        >>> agent = explorax.Agent(explorax.lin_ts(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
        >>> decision = agent.choose()
        >>> decision.arm in ("red", "blue"), 0 < decision.propensity < 1
        (True, True)
        >>> agent.learn(decision.id, 1.0)  # whenever the reward comes, in any order
        >>> agent.decisions, agent.pending
        (1, [])
    """

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
            self._begin(Live(decider, decider.nothing_seen(policy, own), own, max_pending))

    def _begin(self, live: Live) -> None:
        """Start with a decider and its state."""
        self._live = live
        self.policy, self.seed, self.dtype = live.decider.policy, live.decider.seed, live.decider.source.dtype

    def __repr__(self) -> str:
        policy, names = self.policy.recipe.name if self.policy.recipe else "a policy", self.arms
        arms = f", {sum(names.values())} of {len(names)} arms on offer" if names else ""
        return (
            f"<Agent: {policy}, {self._live.decider.source.describe()} arms with {self.n_features} features{arms}, "
            f"seed {self.seed}, {self.decisions} decisions, {len(self.pending)} pending, {self.dropped} dropped>"
        )

    @property
    def n_features(self) -> int:
        """The number d of features of an arm."""
        return self._live.decider.source.n_features

    @property
    def state(self) -> State:
        """The state of the policy; `agent.state.theta_hat` is the estimate of a GLM policy."""
        return self._live.state()

    @property
    def decisions(self) -> int:
        """The number of decisions made so far, including those before this agent was saved and loaded."""
        return self._live.pending.ids.count

    @property
    def pending(self) -> list[int]:
        """The ids of the decisions that wait for their rewards, the oldest first."""
        return self._live.waiting().waiting()

    @property
    def dropped(self) -> int:
        """The number of decisions that were dropped because more than `max_pending` waited."""
        return self._live.pending.dropped

    @property
    def arms(self) -> dict[Hashable, bool]:
        """The agent's own arms by name, and whether each is on offer."""
        return self._live.now.arms.by_name()

    def is_pending(self, decision_id: int) -> bool:
        """Tell whether a decision waits for its reward.

        Args:
            decision_id: The id of a decision.

        Returns:
            True if the decision waits; False if it has had its reward, was dropped, or is not known.
        """
        return decision_id in self._live.waiting()

    # Deciding

    def choose(self, given: Any = None, *, among: Among = None, all_propensities: bool = False) -> Decision:
        """Choose an arm, either one of the agent's own or one of those given.

        Args:
            given: The table of arms on offer, if arms differ every time; the context, a dict or a row of a DataFrame,
                for arms in a context; None for fixed arms and infinite sets.  Default: None.
            among: The names of those of the agent's own arms that may be chosen this time.  Default: all on offer.
            all_propensities: Whether to tell the probabilities of all arms on offer.  Default: False.

        Returns:
            The decision: the arm to pull, its probability, and the id by which to `learn` its reward.

        Raises:
            InvalidArgument: If `given` or `among` is not what this agent's arms need, or no arm is on offer.
            InvalidFeatures: If features are missing, not numbers, or not finite.
            InvalidShape: If arms have more or fewer features than the agent was made for.
            UnknownName: If there is no arm of a name in `among`.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.lin_ucb(), n_features=2)
            >>> agent.choose({"short": [0.1, 0.0], "long": [3.0, 4.0]}).arm
            'long'
        """
        return self._live.choose(given, among, all_propensities)

    def choose_many(self, given: Any, *, among: AmongEach = None, all_propensities: bool = False) -> Decisions:
        """Choose several times with the same state, at a fraction of the cost of as many calls of `choose`.

        Args:
            given: A list of tables of arms or an array (n, K, d), if arms differ every time; a list of contexts or a
                DataFrame, for arms in a context; the number of decisions, for fixed arms and infinite sets.
            among: The names that may be chosen in all decisions, or a list of such lists, one for each decision.
                Default: all arms on offer.
            all_propensities: Whether to return the probabilities of all arms on offer, too.  Default: False.

        Returns:
            The decisions, as a sequence and column by column.

        Raises:
            InvalidArgument: For the reasons that `choose` has, or if `given` is not a list or a number of decisions.
            InvalidShape: For the reasons that `choose` has, or if `among` is not one list for each decision.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> agent.choose_many(3, among=["blue"]).arms
            ['blue', 'blue', 'blue']
        """
        return self._live.choose_many(given, among, all_propensities)

    def propensities(self, given: Any = None, *, among: Among = None) -> Propensities:
        """Return P(arm) for every arm on offer, as the next decision would state it, without making a decision.

        Args:
            given: What `choose` would be given.  Default: None.
            among: The names of the arms that may be chosen, as in `choose`.  Default: all arms on offer.

        Returns:
            The names of the arms on offer, their probabilities, and the standard errors of these.

        Raises:
            InvalidArgument: For the reasons that `choose` has, or if the agent was made with `draws=0`, or has an
                infinite set of arms.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> agent.propensities().probabilities
            array([0.5, 0.5])
        """
        return self._live.decider.propensities(self._live.now, self.decisions, given, among)

    # Learning

    def learn(
        self, decision_id: int | Sequence[int] | np.ndarray, reward: float | Sequence[float] | np.ndarray
    ) -> None:
        """Learn the reward of a decision, or those of several: all of them, or none if one of them is refused.

        Args:
            decision_id: The id of a decision that waits for its reward, or a list of ids, learned in that order.
            reward: The reward, a number that the policy's family allows, or a list with one reward for each id.

        Raises:
            AlreadyRewarded: If a decision has had its reward, or is named twice.
            UnknownDecision: If a decision was never made here, is not known any more, or was dropped.
            InvalidReward: If a reward is not a number, not finite, or impossible in the policy's family.
            InvalidShape: If there is not one reward for each decision.
            HistoryFull: If the policy's memory has no room for the rewards.
            NotFinite: If the state would have NaN or infinity in it.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.lin_ucb(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> first, second = agent.choose(), agent.choose()
            >>> agent.learn([second.id, first.id], [0.0, 1.0])
            >>> agent.pending
            []
        """
        self._live.learn(decision_id, reward)

    # Arms that come and go

    def add_arm(self, name: Hashable, features: Any) -> None:
        """Put a new arm on offer, or a retired one with other features.

        The model is shared by all arms, so the agent has an opinion of a new arm from its features.

        Args:
            name: The name of the arm, text or a whole number, which no arm on offer has.
            features: The row of features; a dict, if the agent has an encoder; the attributes of the arm, for arms in
                a context.

        Raises:
            InvalidArgument: If there is such an arm on offer, or the agent has no arms of its own.
            InvalidFeatures: If the features are missing, not numbers, or not finite.
            InvalidShape: If there are more or fewer features than other arms have.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2]})
            >>> agent.add_arm("blue", [0.3, 1.0])
            >>> agent.retire_arm("red")
            >>> agent.arms
            {'red': False, 'blue': True}
        """
        self._live.put(own_arms.Arms.added, name, features)

    def update_arm(self, name: Hashable, features: Any) -> None:
        """Give an arm other features; rewards of earlier decisions, also late ones, still count for the old features.

        For policies that count the rewards of each arm, an update of an arm that has had rewards takes up a row of
        memory.  If features change often, give the arms attributes and a context instead, or give the arms to `choose`.

        Args:
            name: The name of one of the agent's own arms; a retired arm stays retired.
            features: The new features, in the form that `add_arm` takes.

        Raises:
            UnknownName: If there is no such arm.
            InvalidArgument: If the agent has no arms of its own.
            InvalidFeatures: If the features are missing, not numbers, or not finite.
            InvalidShape: If there are more or fewer features than other arms have.
        """
        self._live.put(own_arms.Arms.updated, name, features)

    def retire_arm(self, name: Hashable) -> None:
        """Take an arm off offer; its rewards still count, also those that are yet to come.

        Args:
            name: The name of one of the agent's own arms.

        Raises:
            UnknownName: If there is no such arm.
            InvalidArgument: If the arm is retired already, or the agent has no arms of its own.
        """
        self._live.switch(name, False)

    def restore_arm(self, name: Hashable) -> None:
        """Put a retired arm back on offer, with all that was learned about it.

        Args:
            name: The name of one of the agent's own arms.

        Raises:
            UnknownName: If there is no such arm.
            InvalidArgument: If the arm is on offer already, or the agent has no arms of its own.
        """
        self._live.switch(name, True)

    # State on disk

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a snapshot, which `Agent.load` goes on from.

        The file is replaced atomically: an older snapshot stays as it is until the new one is complete.  The snapshot
        has every decision that was returned before `save` was called.

        Args:
            path: The file to write, in a folder that exists.

        Raises:
            InvalidArgument: If there can be no such file, or a part of the agent cannot be saved.
            NotFinite: If the state has NaN or infinity in it.
            OSError: If the file cannot be written.

        Example:
            >>> import explorax, os, tempfile
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     agent.save(os.path.join(folder, "agent.npz"))
            ...     again = explorax.Agent.load(os.path.join(folder, "agent.npz"))
            >>> again.choose().arm == agent.choose().arm
            True
        """
        snapshot.save(snapshot.take(self._live), path)

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
        """Load the agent of a snapshot, which makes the decisions that the saved one would have made.

        Its decisions get ids that the saved agent has not given out, not even after it was saved.

        Args:
            path: The file that `save` wrote.
            policy: The policy to go on with, if its settings could not be saved (a network or an optimizer of your
                own), or if they shall differ: another capacity or memory, for example.  Default: the saved policy.
            draws: The number of repetitions for propensities, as in `Agent`.  Default: the saved one.
            stderr: The largest standard error of propensities, as in `Agent`, in place of `draws`.
            explore_floor: The probability of uniform exploration, as in `Agent`.  Default: the saved one.
            max_pending: The number of decisions that may wait, as in `Agent`; if more wait, the oldest are dropped.
                Default: the saved one.
            same_ids: Whether to go on with the ids that the saved agent would have given out.  For services that repeat
                from a log of their own whatever happened after the snapshot.  Default: False.

        Returns:
            The agent, with the decisions that wait for their rewards.

        Raises:
            InvalidArgument: If an argument cannot be used.
            InvalidSnapshot: If the file is not a snapshot, is damaged, contradicts itself, or does not fit the policy.
            HistoryFull: If the policy given has less room than there are rewards.
        """
        path = archive.checked_path(path)
        if draws is not None or stderr is not None:
            draws = propensity.checked_draws(draws, stderr)
        if max_pending is not None:
            check_whole("max_pending", max_pending, 1)
        agent = cls.__new__(cls)
        agent._begin(snapshot.resume(path, policy, draws, explore_floor, max_pending, same_ids))
        return agent
