"""What can be asked of an agent, and how its own arms change."""

from collections.abc import Hashable
from typing import Any

from explorax.agent.live import Live
from explorax.policies.base import State


class Shell:
    """An agent without decisions: what it is, what waits, and its own arms, which come and go."""

    _live: Live

    def __repr__(self) -> str:
        decider, names = self._live.decider, self.arms
        policy = decider.policy.recipe.name if decider.policy.recipe else "a policy"
        arms = f", {sum(names.values())} of {len(names)} arms on offer" if names else ""
        return (
            f"<Agent: {policy}, {decider.source.describe()} arms with {self.n_features} features{arms}, "
            f"seed {decider.seed}, {self.decisions} decisions, {len(self.pending)} pending, {self.dropped} dropped>"
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
            CannotWrite: If the agent has a log that cannot be written; nothing has changed then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2]})
            >>> agent.add_arm("blue", [0.3, 1.0])
            >>> agent.retire_arm("red")
            >>> agent.arms
            {'red': False, 'blue': True}
        """
        self._live.put("added", name, features)

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
            CannotWrite: If the agent has a log that cannot be written; nothing has changed then.
        """
        self._live.put("updated", name, features)

    def retire_arm(self, name: Hashable) -> None:
        """Take an arm off offer; its rewards still count, also those that are yet to come.

        Args:
            name: The name of one of the agent's own arms.

        Raises:
            UnknownName: If there is no such arm.
            InvalidArgument: If the arm is retired already, or the agent has no arms of its own.
            CannotWrite: If the agent has a log that cannot be written; nothing has changed then.
        """
        self._live.switch(name, False)

    def restore_arm(self, name: Hashable) -> None:
        """Put a retired arm back on offer, with all that was learned about it.

        Args:
            name: The name of one of the agent's own arms.

        Raises:
            UnknownName: If there is no such arm.
            InvalidArgument: If the arm is on offer already, or the agent has no arms of its own.
            CannotWrite: If the agent has a log that cannot be written; nothing has changed then.
        """
        self._live.switch(name, True)
