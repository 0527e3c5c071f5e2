"""How an agent learns: rewards by id, decisions that teach nothing, and logs that others made."""

from collections.abc import Sequence

import numpy as np

from explorax.agent.shell import Shell
from explorax.errors import InvalidArgument, InvalidShape
from explorax.log.data import LoggedData


class Learner(Shell):
    """An agent as far as it learns."""

    def learn(
        self, decision_id: int | Sequence[int] | np.ndarray, reward: float | Sequence[float] | np.ndarray
    ) -> None:
        """Learn the reward of a decision, or those of several: all of them, or none if one of them is refused.

        With a reward window they are kept until the windows of their decisions are over.

        Args:
            decision_id: The id of a decision that waits for its reward, or a list of ids, learned in that order.
            reward: The reward, a number that the policy's family allows, or a list with one reward for each id.

        Raises:
            AlreadyRewarded: If a decision has had its reward, or is named twice.
            UnknownDecision: If a decision was never made here, is not known any more, or was dropped or withdrawn.
            InvalidReward: If a reward is not a number, not finite, or impossible in the policy's family.
            InvalidShape: If there is not one reward for each decision.
            HistoryFull: If the policy's memory has no room for the rewards.
            NotFinite: If the state would have NaN or infinity in it.
            CannotWrite: If the agent has a log that cannot be written; nothing is learned then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.lin_ucb(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> first, second = agent.choose(), agent.choose()
            >>> agent.learn([second.id, first.id], [0.0, 1.0])
            >>> agent.pending
            []
        """
        self._live.learn(decision_id, reward)

    def withdraw(self, decision_id: int | Sequence[int] | np.ndarray) -> None:
        """Withdraw a decision that waits for its reward, or several: nobody was shown the arm, so it teaches nothing.

        Args:
            decision_id: The id of a decision that waits for its reward, or a list of ids.

        Raises:
            AlreadyRewarded: If a decision has had its reward, or is named twice.
            UnknownDecision: If a decision was never made here, is not known any more, or was dropped or withdrawn.
            CannotWrite: If the agent has a log that cannot be written; nothing is withdrawn then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> agent.withdraw(agent.choose().id)
            >>> agent.pending
            []
        """
        self._live.withdraw(decision_id)

    def activate(self, decision_id: int | Sequence[int] | np.ndarray) -> None:
        """Note that the arms of deferred decisions were shown, so that no news of them is news.

        Args:
            decision_id: The id of a decision that waits for its reward, or a list of ids.

        Raises:
            InvalidArgument: If the agent has no reward window.
            AlreadyRewarded: If a decision has had its reward, or is named twice.
            UnknownDecision: If a decision was never made here, is not known any more, or was dropped or withdrawn.
            CannotWrite: If the agent has a log that cannot be written; nothing is activated then.

        Example:
            >>> import explorax
            >>> arms = {"red": [1.0, 0.2], "blue": [0.3, 1.0]}
            >>> agent = explorax.Agent(explorax.uniform(), arms=arms, reward_window=3600, default_reward=0.0)
            >>> decision = agent.choose(deferred=True)
            >>> agent.activate(decision.id)
        """
        self._live.activate(decision_id)

    def close_windows(self) -> None:
        """Learn the rewards of all decisions whose windows are over by now, in the order of the decisions.

        Choosing and learning do so, too; call this where neither happens for long.

        Raises:
            InvalidArgument: If the agent has no reward window.
            CannotWrite: If the agent has a log that cannot be written; nothing is learned then.

        Example:
            >>> import explorax
            >>> now, arms = 0.0, {"red": [1.0, 0.2], "blue": [0.3, 1.0]}
            >>> agent = explorax.Agent(
            ...     explorax.lin_ts(), arms=arms, reward_window=60, default_reward=0.0, clock=lambda: now
            ... )
            >>> decision = agent.choose()
            >>> now = 61.0
            >>> agent.close_windows()
            >>> agent.pending
            []
        """
        self._live.check_has_window()
        self._live.look_at_the_clock()

    def learn_from(self, log: LoggedData, weights: Sequence[float] | np.ndarray | None = None) -> None:
        """Learn all rewards of a log that another system made.

        Without weights they are learned one by one, as if its decisions had been this agent's own.

        Args:
            log: The log.  Its arms must be the agent's own, by name, if these have fixed features; else it must have
                as many features as the agent's arms.
            weights: How much each reward of the log counts, numbers above 0: 0.5 is half a reward.  Rewards with
                weights are learned all at once, by GLM policies and linear policies.  Default: each counts as 1.

        Raises:
            InvalidArgument: If the log has arms or features that the agent does not have, a weight is not above 0, or
                the policy takes no weights.
            InvalidShape: If there is not one weight for each decision of the log.
            UnknownName: If an arm of the log is not one of the agent's.
            InvalidReward: If a reward is impossible in the policy's family.
            HistoryFull: If the policy's memory has no room for the rewards.
            NotFinite: If the state would have NaN or infinity in it.
            CannotWrite: If the agent has a log that cannot be written; nothing is learned then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.greedy(warmup="none"), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> log = explorax.LoggedData.of(["blue", "red", "blue"], [1.0, 0.0, 1.0], names=["red", "blue"])
            >>> agent.learn_from(log)
            >>> agent.choose().arm
            'blue'
        """
        given = self._live.decider.source.earlier(self._live.now.arms, log)
        if weights is None:
            return self._live.learn_from(*given)
        array = np.asarray(weights, float)
        if array.shape != (len(log),):
            raise InvalidShape(
                f"weights must have shape ({len(log)},), one for each decision of the log, got {array.shape}. Give as "
                "many weights."
            )
        if not np.all((array > 0) & np.isfinite(array)):
            bad = array[~((array > 0) & np.isfinite(array))][0]
            raise InvalidArgument(f"weights must be finite numbers above 0, got {bad}. Leave such rows out of the log.")
        self._live.learn_from(*given, array)
