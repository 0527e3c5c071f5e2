"""How an agent decides: one arm, a slate of arms, many decisions at once, and the propensities of a decision."""

from collections.abc import Collection, Hashable
from typing import Any

from explorax.agent.arm_tables import Among, AmongEach
from explorax.agent.decisions import Decision, Decisions, Propensities
from explorax.agent.learner import Learner
from explorax.checks import check_whole


class Chooser(Learner):
    """An agent as far as it learns and decides."""

    def choose(
        self,
        given: Any = None,
        *,
        among: Among = None,
        exclude: Collection[Hashable] | None = None,
        all_propensities: bool = False,
        deferred: bool = False,
        explain: bool = False,
    ) -> Decision:
        """Choose an arm, either one of the agent's own or one of those given.

        Args:
            given: The table of arms on offer, if arms differ every time; the context, a dict or a row of a DataFrame,
                for arms in a context; None for fixed arms and infinite sets.  Default: None.
            among: The names of those of the agent's own arms that may be chosen this time.  Default: all on offer.
            exclude: The names of arms that may not be chosen this time.  Default: none.
            all_propensities: Whether to tell the probabilities of all arms on offer, also in a log.  Default: False.
            deferred: Whether the decision teaches nothing unless `activate` says that its arm was shown, or a reward
                comes; for an agent with a reward window.  Default: False.
            explain: Whether to tell what speaks for each arm (`Decision.explanation`).  Default: False.

        Returns:
            The decision: the arm to pull, its probability, and the id by which to `learn` its reward.

        Raises:
            InvalidArgument: If `given` or `among` is not what this agent's arms need, or no arm is on offer.
            InvalidFeatures: If features are missing, not numbers, or not finite.
            InvalidShape: If arms have more or fewer features than the agent was made for.
            UnknownName: If there is no arm of a name in `among` or `exclude`.
            CannotWrite: If the agent has a log that cannot be written; the decision is not made then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.lin_ucb(), n_features=2)
            >>> agent.choose({"short": [0.1, 0.0], "long": [3.0, 4.0]}).arm
            'long'
        """
        return self._live.choose(given, among, exclude, all_propensities, deferred, explain)

    def choose_slate(
        self,
        size: int,
        given: Any = None,
        *,
        among: Among = None,
        exclude: Collection[Hashable] | None = None,
        all_propensities: bool = False,
        deferred: bool = False,
    ) -> Decisions:
        """Choose several different arms, one for each place of a slate.

        Each place is a decision of its own, among the arms that the places before it have left.  Its propensity is the
        probability of its arm given the arms of these places, so that of the first place is that of `choose`, and the
        probability of the whole slate is the product.  Learn a reward for each place that was looked at, and withdraw
        the others.

        Args:
            size: The number of places, at most that of the arms on offer.
            given: What `choose` would be given.  Default: None.
            among: The names of those of the agent's own arms that may be chosen this time.  Default: all on offer.
            exclude: The names of arms that may not be chosen this time.  Default: none.
            all_propensities: Whether to tell the probabilities of all arms left, for each place.  Default: False.
            deferred: Whether the decisions teach nothing unless they are activated, as in `choose`.  Default: False.

        Returns:
            The decisions, the first place first; with a log all of them are there, or none.

        Raises:
            InvalidArgument: For the reasons that `choose` has, or if there are fewer arms on offer than places.
            CannotWrite: If the agent has a log that cannot be written.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.lin_ucb(), arms={"red": [1.0], "green": [2.0], "blue": [3.0]})
            >>> agent.choose_slate(2).arms
            ['blue', 'green']
        """
        check_whole("size", size, 1)
        return self._live.choose_slate(int(size), given, among, exclude, all_propensities, deferred)

    def choose_many(
        self, given: Any, *, among: AmongEach = None, all_propensities: bool = False, deferred: bool = False
    ) -> Decisions:
        """Choose several times with the same state, at a fraction of the cost of as many calls of `choose`.

        Args:
            given: A list of tables of arms or an array (n, K, d), if arms differ every time; a list of contexts or a
                DataFrame, for arms in a context; the number of decisions, for fixed arms and infinite sets.
            among: The names that may be chosen in all decisions, or a list of such lists, one for each decision.
                Default: all arms on offer.
            all_propensities: Whether to return the probabilities of all arms on offer, too.  Default: False.
            deferred: Whether the decisions teach nothing unless they are activated, as in `choose`.  Default: False.

        Returns:
            The decisions, as a sequence and column by column.

        Raises:
            InvalidArgument: For the reasons that `choose` has, or if `given` is not a list or a number of decisions.
            InvalidShape: For the reasons that `choose` has, or if `among` is not one list for each decision.
            CannotWrite: If the agent has a log that cannot be written; none of the decisions is made then.

        Example:
            >>> import explorax
            >>> agent = explorax.Agent(explorax.uniform(), arms={"red": [1.0, 0.2], "blue": [0.3, 1.0]})
            >>> agent.choose_many(3, among=["blue"]).arms
            ['blue', 'blue', 'blue']
        """
        return self._live.choose_many(given, among, all_propensities, deferred)

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
