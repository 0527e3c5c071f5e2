"""Replay of a policy that learns: the rows of a log that the policy would have seen, had it played by itself.

The policy draws an arm in each row, with the past that it has.  The row is kept if it is the arm of the log and, in
addition, with the probability c / p_t, where p_t is the propensity and c a lower bound of all propensities.  The policy
learns from the rows that are kept, and from no other.  Whatever arm a the policy draws, the row is kept with the
probability p_t(a) · c / p_t(a) = c: nothing about the row has a part in that, so the rows that are kept have exactly
the law of the rounds of the policy playing by itself, and their mean reward is its own.

About c n of the n rows are kept, so that c = 1 / K of a uniform log is the best case.  The law is right if every arm
that the policy may draw had a propensity of at least c, and if rows do not depend on the arms that were chosen before
them.

Reference: Li, Chu, Langford & Wang, Unbiased Offline Evaluation of Contextual-Bandit-Based News Article Recommendation
Algorithms, WSDM 2011, for uniform logs.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from explorax.agent.compiled import check_finite, check_possible, compiled
from explorax.agent.packing import Packed, Packing
from explorax.agent.pulled import Pulled
from explorax.agent.rule import Rule, one_rule
from explorax.errors import InvalidArgument
from explorax.evaluation.reward_models import fixed_arms
from explorax.evaluation.targets import check_capacity, first_state
from explorax.log.data import LIMIT, LoggedData
from explorax.policies.base import ActFn, Policy, State, UpdateFn
from explorax.programs import kept as kept_programs

BLOCK = 2**22  # numbers in the features of the rows that are replayed at a time
LEAST_ROWS, MOST_ROWS = 64, 4096

ASSUMPTION = (
    "{name} was replayed with what it learns on the way: {kept} of {count} rows were kept, with c = {bound:.3g}. This "
    "is right if every arm that it may choose had a propensity of at least c, and if what a row offers does not depend "
    "on the arms chosen before."
)


def replay(policy: Policy, log: LoggedData, least_propensity: float | None = None, seed: int = 0) -> np.ndarray:
    """Return which rows of a log are kept when a policy that learns is replayed on it.

    Args:
        policy: The policy, which starts without any past.
        log: The log, with propensities and features of the arms.
        least_propensity: The lower bound c of all propensities.  Default: the smallest one of the log.
        seed: The seed of all random numbers.  Default: 0.

    Returns:
        (n,) True for each row that is kept; `log.some(rows)` is then the log of the policy itself.

    Raises:
        InvalidArgument: If the log has no propensities or features, or a propensity is below the bound.
        InvalidReward: If a reward is impossible in the policy's family.
        HistoryFull: If the policy has no room for as many rewards as are kept.
    """
    bound = least(log, least_propensity)
    assert log.propensities is not None
    state = first_state(policy, log, seed)
    check_possible(policy, log.rewards, "float64")
    features, n_arms = log.features, log.n_arms
    assert features is not None
    matrix = fixed_arms(features)
    each = 1 if matrix is not None else n_arms * features.shape[1]
    size = min(int(np.clip(BLOCK // each, LEAST_ROWS, MOST_ROWS)), max(LEAST_ROWS, 1 << (len(log) - 1).bit_length()))
    count, taken = 0, np.zeros(len(log), bool)
    rule = one_rule(policy.act, None, None, 0)
    with jax.enable_x64(True):
        packed, key = Packed.of(state), jax.random.key(seed)
        played = program(rule, policy.update, packed.packing, size, features.shape, matrix is not None)
        arrays = packed.arrays
        for start in range(0, len(log), size):
            rows = np.minimum(np.arange(start, start + size), len(log) - 1)
            offered = np.ones((size, n_arms), bool) if log.offered is None else log.offered[rows]
            tables = features.table(rows).astype(float) if matrix is None else matrix
            chances = np.where(np.arange(start, start + size) < len(log), bound / log.propensities[rows], 0)
            given = tables, offered, log.arms[rows], log.rewards[rows].astype(float), chances
            arrays, count, here = played(jax.random.fold_in(key, start), arrays, count, *given)
            taken[start : start + size] = np.asarray(here)[: len(log) - start]
    check_capacity(state, int(count))
    chosen = np.flatnonzero(taken)
    pulled = Pulled.of(log.arms[chosen], features.chosen(chosen, log.arms[chosen]).astype(float))
    check_finite(Packed(packed.packing, arrays).is_finite(), packed, pulled.paid(log.rewards[chosen]))
    return taken


def replay_note(name: str, kept: int, log: LoggedData, least_propensity: float | None) -> str:
    """Return what a reader must know of a replay: how much of the log it kept, and when it is right."""
    bound, every = least(log, least_propensity), log.all_propensities
    note = ASSUMPTION.format(name=name, kept=kept, count=len(log), bound=bound)
    if every is None:
        return note
    offered = np.ones(every.shape, bool) if log.offered is None else log.offered
    share = np.mean(np.any(offered & (every < bound * (1 - LIMIT)), axis=1))
    return f"{note} In {share:.1%} of the rows an arm on offer had less." if share else note


def least(log: LoggedData, given: float | None) -> float:
    """Return the lower bound c of all propensities, as given or the smallest of the log; raise if one is below it."""
    if log.propensities is None:
        raise InvalidArgument(
            "log must have propensities to replay a policy, got None. Use learning='trained' with "
            "propensities='estimate' or estimator='dm'."
        )
    if not len(log):
        raise InvalidArgument("log must have rows to replay a policy, got none. Log decisions first.")
    found = log.propensities.min()
    if log.all_propensities is not None:
        found = min(found, log.all_propensities[log.all_propensities > 0].min())
    if given is not None and not 0 < given <= found * (1 + LIMIT):
        raise InvalidArgument(
            f"least_propensity must be above 0 and at most {found:g}, the smallest propensity of the log, got "
            f"{given!r}. Give a number that no propensity is below, or leave it out."
        )
    return float(found if given is None else given)


@kept_programs
def program(
    rule: Rule, update: UpdateFn, packing: Packing, size: int, shape: tuple[int, int], fixed: bool
) -> Callable[..., Any]:
    """Return the compiled replay of some rows, on a packed state.

    Args:
        rule: The rule by which decisions are made.
        update: The policy's function `update`.
        packing: The layout of the packed state.
        size: The number of rows.
        shape: The shape (K, d) of the arms in a row.
        fixed: Whether all rows have the same arms.

    Returns:
        The program, a function of a key, packed arrays, the number of rows kept before, and what the rows hold.
    """
    act: ActFn = rule.act

    def all_of_them(key: Array, arrays: Any, count: Any, tables: Array, *columns: Array) -> Any:
        def one(so_far: tuple[State, Array], row: Any) -> tuple[tuple[State, Array], Array]:
            (state, count), (number, own, offered, arm, reward, chance) = so_far, row
            table = tables if fixed else own
            drawing, thinning = jax.random.split(jax.random.fold_in(key, number))
            drawn = act(drawing, state, table, count, offered).arm
            keep = (drawn == arm) & (jax.random.uniform(thinning) < chance)

            def learned(state: State) -> State:
                return update(state, arm, table[arm], reward)

            return (lax.cond(keep, learned, lambda state: state, state), count + keep), keep

        rows = (jnp.arange(size), None if fixed else tables, *columns)
        (state, count), taken = lax.scan(one, (packing.unpack(arrays), jnp.asarray(count)), rows)
        return packing.pack(state), count, taken

    return compiled(all_of_them)
