"""Forced exploration: the rounds before a policy may rely on its estimate (the setting `warmup`).

    basis     one pull of each of d linearly independent arms, found by pivoted QR (the paper's experiments)
    first     one pull of each of the first d arms
    theory    the arms of the basis in turn until λ_min(G) reaches the value that the theorem requires
    none      no forced rounds; the first decisions rely on the ridge, that is, the prior

Arms may fail to span the feature space, because there are fewer arms than features or because features are collinear (a
constant and a full one-hot encoding, for example).  Such arms are explored in the dimensions that they span.  The
theory needs a basis and refuses such arms, and so does a fit without a ridge.

With changing arms, "basis" takes in round t < d the t-th arm that pivoted QR finds among the arms on offer, and "first"
takes the t-th arm on offer (counted cyclically).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.errors import InvalidArgument, InvalidShape, UnknownName
from explorax.glm.basis import Basis, check_spanning, rank, spanning_arms
from explorax.glm.linalg import eigen

KINDS = ("basis", "first", "theory", "none")


class Exploration(NamedTuple):
    """The plan of a forced exploration.

    Attributes:
        arms: The forced arms, of which the first `cycle` are pulled in turn; None if they are found among the arms on
            offer.
        cycle: The number of different forced arms, of shape ().
        rounds: The number τ of forced rounds, of shape ().
    """

    arms: Array | None
    cycle: Array
    rounds: Array


class Over(NamedTuple):
    """The plan of a forced exploration whose rounds are over."""


def check_kind(kind: str, has_theory: bool = True) -> None:
    """Check that there is such a kind of exploration.

    Args:
        kind: One of `KINDS`.
        has_theory: Whether the policy has a theorem that says how long to explore.

    Raises:
        UnknownName: If there is no such kind.
        InvalidArgument: If the kind is "theory" and the policy has no such theorem.
    """
    if kind not in KINDS:
        raise UnknownName("warmup", kind, KINDS)
    if kind == "theory" and not has_theory:
        raise InvalidArgument(
            "warmup must be 'none', 'basis' or 'first' for this policy, which has no theorem about it, got 'theory'."
        )


def plan(
    kind: str,
    arms: Array | int,
    required_eigenvalue: float = 0.0,
    dimensions: int | None = None,
    must_span: bool = False,
) -> Exploration:
    """Plan the forced exploration of fixed or changing arms.

    Args:
        kind: One of `KINDS`.
        arms: The (K, d) matrix of fixed arms, or the number d of features if arms change.
        required_eigenvalue: The value that λ_min(G) must reach, for the kind "theory".
        dimensions: The number of dimensions that fixed arms must span.  Default: all, or as many as the arms span.
        must_span: Whether arms that do not span all dimensions are refused.

    Returns:
        The plan.

    Raises:
        InvalidArgument: If the kind is "theory" and arms change.
        InvalidShape: If there are too few arms and they must span the space.
    """
    if isinstance(arms, int):
        if kind == "theory":
            raise InvalidArgument(
                "warmup must be 'basis', 'first' or 'none' if arms change, got 'theory', whose length depends on fixed "
                "arms. Use warmup='basis'."
            )
        ends = {"basis": arms, "first": arms, "none": 0}[kind]
        in_turn = jnp.arange(arms) if kind == "first" else None
        return Exploration(in_turn, jnp.asarray(arms), jnp.asarray(ends))
    size = dimensions or arms.shape[1]
    if kind == "none":
        return Exploration(jnp.zeros(1, int), jnp.asarray(1), jnp.asarray(0))
    if kind == "first":
        if must_span and arms.shape[0] < size:
            raise InvalidShape(
                f"arms must have at least the {size} rows that warmup='first' pulls, got {arms.shape[0]}. "
                "Give a ridge above 0."
            )
        size = min(size, arms.shape[0])
        return Exploration(jnp.arange(arms.shape[1]), jnp.asarray(size), jnp.asarray(size))
    picks = spanning_arms(arms)
    if kind == "basis" and dimensions is None and not must_span:
        spanned = rank(picks, size)
        return Exploration(picks.arms, jnp.maximum(spanned, 1), spanned)
    basis = Basis(*(each[:size] for each in picks))
    check_spanning((arms.shape[0], size), basis, "Use warmup='basis' with a ridge above 0")
    pulls = jnp.asarray(1)
    if kind == "theory":
        chosen = arms[basis.arms]
        smallest = eigen(chosen @ chosen.T)[0][0]
        # An instance whose arms do not span explores without end rather than not at all.
        without_end = float(jnp.iinfo(pulls.dtype).max // (2 * size))
        pulls = jnp.ceil(required_eigenvalue / jnp.maximum(smallest, 0))
        pulls = jnp.minimum(pulls, without_end).astype(int)
    return Exploration(picks.arms, jnp.asarray(size), size * pulls)


def choose(
    exploration: Exploration | Over, scores: Array, arms: Array, t: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """Choose the forced arm while t < τ, and afterwards the arm with the largest score.

    Args:
        exploration: The plan; if its rounds are known to be over, the program does not look for them.
        scores: The (K,) scores of the arms.
        arms: The (K, d) matrix of the arms.
        t: The number of decisions made before this one.
        mask: A Boolean vector of shape (K,), True for each arm that may be pulled; None if all may be pulled.

    Returns:
        The index of the arm, and whether it was forced.
    """
    free = best(scores, mask)
    if isinstance(exploration, Over):
        return free, jnp.asarray(False)
    forced = t < exploration.rounds
    if mask is not None or exploration.arms is None:
        everything = jnp.ones(arms.shape[0], bool) if mask is None else mask
        # Without the scores, which many repetitions of a decision do not share, the basis is searched once for all.
        in_turn = where_needed(forced, forced_arm, (exploration, arms, t, everything), jnp.zeros_like(free))
        return jnp.where(forced, in_turn, free), forced
    order = exploration.arms % arms.shape[0]
    return jnp.where(forced, order[t % exploration.cycle % order.shape[0]], free), forced


def forced_rounds(state: Any) -> int:
    """Return the number of rounds of the forced exploration that is planned in a state, as far as there is a plan."""
    plans = (part for part in jax.tree.leaves(state, is_leaf=is_plan) if is_plan(part))
    return max((int(plan.rounds) for plan in plans), default=0)


def after_forced_rounds(state: Any) -> Any:
    """Return a state without the plan of its forced rounds, for programs that do not look for them any more."""
    return jax.tree.map(lambda part: Over() if is_plan(part) else part, state, is_leaf=is_plan)


def is_plan(part: Any) -> bool:
    """Return whether a part of a state is the plan of a forced exploration."""
    return isinstance(part, Exploration)


def forced_arm(exploration: Exploration, arms: Array, t: Array, mask: Array) -> Array:
    """Return the arm that is forced in round t, or another arm on offer if that arm is not."""
    if exploration.arms is None:
        order = spanning_arms(jnp.where(mask[:, None], arms, 0)).arms
    else:
        order = exploration.arms % arms.shape[0]
    in_turn = order[t % exploration.cycle % jnp.minimum(order.shape[0], jnp.sum(mask))]
    # What `counted` returns, by a single operation: a program that has many of them is slow even if it skips them.
    on_offer = jnp.sort(jnp.where(mask, jnp.arange(arms.shape[0]), arms.shape[0]))
    return jnp.where(mask[in_turn], in_turn, on_offer[in_turn % jnp.sum(mask)].astype(in_turn.dtype))


def best(scores: Array, mask: Array | None = None) -> Array:
    """Return the first arm with the largest score, or the first whose score is NaN.

    On a CPU, two plain reductions take the place of `argmax`, since XLA runs them several times faster.  XLA may
    compute the scores anew for each of them and round them otherwise, so that no score equals the largest one;
    `argmax` then has the last word.

    Args:
        scores: The (K,) scores of the arms.
        mask: A Boolean vector of shape (K,), True for each arm that may be pulled; None if all may be pulled.

    Returns:
        The index of the arm.
    """
    everything = jnp.ones(scores.shape[0], bool) if mask is None else mask
    if jax.default_backend() != "cpu":
        return largest_on_offer(scores, everything)
    on_offer = scores if mask is None else jnp.where(mask, scores, -jnp.inf)
    return first_equal(scores, jnp.max(on_offer), everything)


def first_equal(scores: Array, largest: Array, mask: Array) -> Array:
    """Return the first arm on offer whose score equals the largest one, or the best arm by `argmax` if none does."""
    count = scores.shape[0]
    place = jnp.min(jnp.where(mask & (scores == largest), jnp.arange(count), count))
    return where_needed(place == count, largest_on_offer, (scores, mask), place)


def largest_on_offer(scores: Array, mask: Array) -> Array:
    """Return the first arm on offer with the largest score, also if that is −∞, or the first whose score is NaN."""
    return jnp.argmax(jnp.where(mask, jnp.maximum(scores, jnp.finfo(scores.dtype).min), -jnp.inf))


def counted(number: Array, mask: Array) -> Array:
    """Return the arm with a number among the arms on offer, counted cyclically from 0."""
    rank = jnp.cumsum(mask) - 1
    return jnp.argmax(mask & (rank == number % jnp.sum(mask))).astype(number.dtype)
