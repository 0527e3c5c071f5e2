"""The probabilities of a policy that learns no more: those with which it would choose each arm in each row of a log.

They are exact if the policy has a formula for them (`Policy.probabilities`), and 0 or 1 if its decisions are not
random.  Other policies repeat each decision with fresh randomness, 100 times by default.  The share of each arm is an
estimate without bias, and it knows nothing of the log; so estimates of the policy's value keep their means, and
intervals hold for the policy that draws one of these repetitions at random.  The value of that policy differs from the
value of the policy itself by about 0.5 / √(100 n / 8) of the range of rewards at most, which is little beside an
interval from n rows: groups of eight rows share the noise of their repetitions.  Rows that are alike, as those with
fixed arms are, share all repetitions, as many as they would have had apart, but at most 102 400 in a block.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from explorax.agent.compiled import GROUP, compiled
from explorax.agent.decider import checked_policy
from explorax.agent.packing import Packed, Packing
from explorax.agent.propensity import DRAWS, Knowledge
from explorax.agent.rule import Rule, one_rule
from explorax.checks import check_whole
from explorax.policies.base import Policy, State
from explorax.policies.exploration import after_forced_rounds
from explorax.programs import kept

CELLS = 512  # decisions computed at a time
MOST_REPEATED = 1024  # how often the repetitions of rows that are alike are repeated, at most


class Frozen(NamedTuple):
    """A policy together with the state that it stays in; `frozen` makes one.

    Attributes:
        policy: The policy.
        state: Its state.
        floor: The probability of an arm that is drawn uniformly in place of the policy's.
        decisions: The number of decisions made before; None if forced rounds are over.
        draws: The number of repetitions of each decision, for policies without a formula.
    """

    policy: Policy
    state: State
    floor: float = 0.0
    decisions: int | None = None
    draws: int = DRAWS


def frozen(
    policy: Policy, state: State, *, explore_floor: float = 0.0, decisions: int | None = None, draws: int = DRAWS
) -> Frozen:
    """Freeze a policy in a state, as something that can be evaluated: it decides by that state and learns no more.

    Args:
        policy: The policy.
        state: The state, as `policy.init` or `policy.update` returned it; if it was made for fixed arms, they must be
            those of the log, in the order of `log.names`.
        explore_floor: The probability with which an arm is drawn uniformly from those on offer.  Default: 0.
        decisions: The number of decisions made before, the `t` of `policy.act`.  Default: forced rounds are over, and
            t is 0.
        draws: The number of repetitions of a decision, for policies whose probabilities have no formula.  Default: 100.

    Returns:
        The frozen policy, a target of `explorax.evaluate`.

    Raises:
        InvalidArgument: If the policy is not a `Policy`, or a setting is out of its range.

    Example:
        >>> import jax, explorax
        >>> policy = explorax.epsilon_greedy(epsilon=0.2)
        >>> target = explorax.frozen(policy, policy.init(jax.numpy.eye(3)))
        >>> target.floor
        0.0
    """
    Knowledge.of(checked_policy(policy), draws, explore_floor)
    check_whole("draws", draws, 1)
    if decisions is not None:
        check_whole("decisions", decisions, 0)
    return Frozen(policy, state, float(explore_floor), decisions, draws)


class Chances:
    """The probabilities of a frozen policy, computed in blocks of rows.

    Args:
        what: The frozen policy.
        seed: The seed of its repetitions.
    """

    def __init__(self, what: Frozen, seed: int) -> None:
        self.known = Knowledge.of(what.policy, what.draws, what.floor)
        self.estimated = self.known.estimated
        policy, state = what.policy, what.state
        self.rule = one_rule(policy.act, policy.probabilities, policy.redraw, self.known.repetitions)
        with jax.enable_x64(True):
            self.packed = Packed.of(state if what.decisions is not None else after_forced_rounds(state))
            self.t, self.key = jnp.asarray(what.decisions or 0), jax.random.key(seed)

    def of_each(self, first: int, tables: np.ndarray, offered: np.ndarray) -> np.ndarray:
        """Return (m, K) the probabilities in m rows with arms of their own.

        Args:
            first: The place of the first row in the log, on which the random numbers depend.
            tables: (m, K, d) The features of the arms.
            offered: (m, K) Whether each arm is on offer.

        Returns:
            The probabilities.
        """
        return self.mixed(self._computed(first, tables, offered, GROUP), offered)

    def of_alike(self, first: int, matrix: np.ndarray, offered: np.ndarray) -> np.ndarray:
        """Return (m, K) the probabilities in m rows that have the same arms, of which others may be on offer.

        Args:
            first: The place of the first row in the log, on which the random numbers depend.
            matrix: (K, d) The features of the arms.
            offered: (m, K) Whether each arm is on offer.

        Returns:
            The probabilities.
        """
        masks, which, counts = np.unique(offered, axis=0, return_inverse=True, return_counts=True)
        which = which.reshape(-1)
        times = np.minimum(counts, MOST_REPEATED) if self.estimated else np.ones_like(counts)
        cells = np.repeat(np.arange(len(masks)), times)
        shape = (len(cells), *matrix.shape)
        found = self._computed(first, np.broadcast_to(matrix, shape), masks[cells], 1)
        shares = np.zeros(masks.shape)
        np.add.at(shares, cells, found)
        return self.mixed(shares[which] / times[which, None], offered)

    def mixed(self, found: np.ndarray, offered: np.ndarray) -> np.ndarray:
        """Return probabilities with the floor mixed in."""
        number = offered.sum(axis=1, keepdims=True)
        return np.asarray(np.where(offered, self.known.mixed(found, number), 0))

    def _computed(self, first: int, tables: np.ndarray, offered: np.ndarray, group: int) -> np.ndarray:
        """Return the probabilities in rows whose repetitions share their noise in groups."""
        packing, arrays = self.packed
        found = np.empty(offered.shape)
        with jax.enable_x64(True):
            key = jax.random.fold_in(self.key, first)
            for start in range(0, len(tables), CELLS):
                count = min(CELLS, len(tables) - start)
                room = max(GROUP, 1 << (count - 1).bit_length())
                places = np.minimum(np.arange(start, start + room), len(tables) - 1)
                program = chances(self.rule, packing, (room, *tables.shape[1:]), group)
                own = jax.random.fold_in(key, start)
                told = program(own, arrays, np.asarray(tables[places], float), self.t, offered[places])
                found[start : start + count] = np.asarray(told)[:count]
        return found


@kept
def chances(rule: Rule, packing: Packing, shape: tuple[int, int, int], group: int) -> Callable[..., Any]:
    """Return the compiled probabilities of a rule in several rows, on a packed state.

    Args:
        rule: The rule by which decisions are made.
        packing: The layout of the packed state.
        shape: The shape (count, K, d) of the arms.
        group: The number of rows that share the noise of their repetitions.

    Returns:
        The program, a function of a key, packed arrays, arms, the number of decisions before, and masks.
    """
    count, n_arms, _ = shape

    def by_formula(key: Array, state: State, arms: Array, t: Array, masks: Array) -> Array:
        assert rule.probabilities is not None
        formula = rule.probabilities
        return jax.vmap(lambda own, mask: formula(state, own, t, mask))(arms, masks)

    def certain(key: Array, state: State, arms: Array, t: Array, masks: Array) -> Array:
        chosen = jax.vmap(lambda own, mask: rule.act(key, state, own, t, mask).arm)(arms, masks)
        return jax.nn.one_hot(chosen, n_arms)

    def drawn(key: Array, state: State, arms: Array, t: Array, masks: Array) -> Array:
        def some(own: Any) -> Array:
            its_key, its_arms, its_masks = own

            def again(lot: Array) -> Array:
                redrawn = rule.redrawn(lot, state)
                return jax.vmap(lambda arms, mask: rule.act(lot, redrawn, arms, t, mask).arm)(its_arms, its_masks)

            chosen = jax.vmap(again, out_axes=1)(jax.random.split(its_key, rule.draws))
            return jax.vmap(lambda each: jnp.bincount(each, length=n_arms))(chosen)

        keys = jax.random.split(key, count // group)
        groups = [each.reshape(-1, group, *each.shape[1:]) for each in (arms, masks)]
        return lax.map(some, (keys, *groups)).reshape(count, n_arms) / rule.draws

    compute = by_formula if rule.probabilities is not None else drawn if rule.draws else certain

    def on_packed(key: Array, arrays: Any, arms: Array, t: Array, masks: Array) -> Array:
        return compute(key, packing.unpack(arrays), arms, t, masks)

    return compiled(on_packed)
