"""An agent: a policy with state, for deciding now and being paid later.

Decision t is a function of the seed, of t and of the state.  So `choose` and `learn` called again in the same order
make the same decisions, which are those of `simulate` with one instance and the same seed.
"""

import os
import time
from collections.abc import Callable
from typing import Any

import jax

from explorax.agent import archive, compiled, propensity, recovery, snapshot, warm_start
from explorax.agent.chooser import Chooser
from explorax.agent.decider import Decider, checked_policy
from explorax.agent.encoding import Encoder
from explorax.agent.kinds import read_source
from explorax.agent.live import Live
from explorax.agent.reward_window import Window
from explorax.agent.warm_start import Prior
from explorax.checks import check_whole
from explorax.errors import UnknownName
from explorax.policies.base import Policy


class Agent(Chooser):
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
        prior: What an earlier model knew of the parameters.  Default: no more than the policy's ridge says.
        reward_window: The seconds after a decision in which its reward may come.  All rewards are then learned when
            their windows are over, in the order of the decisions, so that fast ones are not favored.  Default: rewards
            are learned when they come, whenever that is.
        default_reward: The reward of a decision that had none when its window was over.  Default: such a decision
            teaches nothing.
        log: The file to log to, in which no other agent has logged.  Every decision is in it before `choose` returns,
            and every reward before `learn` changes the state; `Agent.recover` goes on from it.  Default: no log.
        durability: What the log survives: "process", the end of the process in any way, or "power", a loss of power,
            too, which takes much longer for each decision.  Default: "process".
        clock: A function that tells the time in seconds, for the log and the reward window.  Default: `time.time`.

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
        prior: Prior | None = None,
        reward_window: float | None = None,
        default_reward: float | None = None,
        log: str | os.PathLike[str] | None = None,
        durability: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        policy = checked_policy(policy)
        if dtype not in ("float32", "float64"):
            raise UnknownName("dtype", dtype, ("float32", "float64"))
        draws = propensity.checked_draws(draws, stderr)
        window = Window.of(reward_window, default_reward)
        if window is not None and window.default is not None:
            compiled.check_possible(policy, window.default, dtype)
        recovery.check_log(log, durability)
        with jax.enable_x64(dtype == "float64"):
            source, own = read_source(arms, n_features, encoder, dtype)
            decider = Decider(policy, source, seed, draws, explore_floor)
            live = Live(decider, decider.nothing_seen(policy, own), own, max_pending, window, clock)
            if prior is not None:
                live.now = warm_start.with_prior(decider, live.now, prior)
        self._begin(live, log, durability, clock)

    def _begin(
        self,
        live: Live,
        log: str | os.PathLike[str] | None,
        durability: str | None,
        clock: Callable[[], float],
    ) -> None:
        """Start with a decider and its state, and with a new log if there is to be one."""
        self._live = live
        self.policy, self.seed, self.dtype = live.decider.policy, live.decider.seed, live.decider.source.dtype
        if log is not None:
            recovery.begin(live, log, durability or recovery.DURABILITY, clock)

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
        archive.write(path, snapshot.dumps(snapshot.take(self._live)))

    def close(self) -> None:
        """Close the log, so that another agent may go on with it; this one then decides and learns no more.

        An agent without a log has nothing to close.  A log is also closed when its agent is gone, or Python ends.
        """
        self._live.record.close()

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
        log: str | os.PathLike[str] | None = None,
        durability: str | None = None,
        clock: Callable[[], float] = time.time,
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
            log: The new file to log to from now on, as in `Agent`.  Default: no log.
            durability: What the log survives, as in `Agent`.  Default: "process".
            clock: A function that tells the time in seconds, as in `Agent`.  Default: `time.time`.

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
        recovery.check_log(log, durability)
        content = archive.read(path)
        agent = cls.__new__(cls)
        live = snapshot.resume(content, path, policy, draws, explore_floor, max_pending, same_ids, clock)
        agent._begin(live, log, durability, clock)
        return agent

    @classmethod
    def recover(
        cls,
        path: str | os.PathLike[str],
        policy: Policy | None = None,
        *,
        durability: str = "process",
        clock: Callable[[], float] = time.time,
    ) -> "Agent":
        """Return the agent of a log, in the state that it had when it last wrote there, and go on with the log.

        However the process ended that wrote the log, every decision that was returned and every reward that was
        learned is there.  The agent makes the decisions that it would have made, with the same ids.

        Args:
            path: The log.
            policy: The policy, if its settings could not be saved (a network or an optimizer of your own).  Default:
                the policy that the log tells.
            durability: What the log survives from now on, as in `Agent`.  Default: "process".
            clock: A function that tells the time in seconds, as in `Agent`.  Default: `time.time`.

        Returns:
            The agent, with the decisions that wait for their rewards.

        Raises:
            InvalidArgument: If an argument cannot be used, or another agent writes the log.
            InvalidLog: If the file is not a log, is truncated or damaged, or has a newer format; it stays as it is.
            InvalidSnapshot: If the log does not fit the policy.

        Example:
            >>> import explorax, os, tempfile
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     path = os.path.join(folder, "decisions.db")
            ...     agent = explorax.Agent(explorax.lin_ts(), arms={"red": [1.0], "blue": [0.5]}, log=path)
            ...     decision = agent.choose()
            ...     agent.learn(decision.id, 1.0)
            ...     agent.close()  # or the process ends
            ...     again = explorax.Agent.recover(path)
            ...     again.decisions, again.pending
            ...     again.close()
            (1, [])
        """
        agent = cls.__new__(cls)
        agent._begin(recovery.recover(path, policy, durability, clock), None, None, clock)
        return agent
