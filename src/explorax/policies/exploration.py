"""The rounds before a policy may trust its estimate.

    basis     one pull of each of d linearly independent arms, found by pivoted QR (the paper's experiments)
    first     one pull of each of the first d arms
    theory    the arms of the basis in turn until λ_min(G) is what the theorem asks for
    none      no forced rounds; the ridge, or prior, must carry the first decisions

Arms that do not span the feature space, because there are fewer of them than features or because features are collinear
(a constant beside a full one-hot, say), are explored in the dimensions that they span.  The theory needs a basis and
refuses them, and so does a fit without a ridge.

With arms that change, `basis` takes in round t < d the t-th arm that pivoted QR finds among those on offer, and
`first` the t-th arm on offer (counted in a circle).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from explorax.batching import where_needed
from explorax.errors import InvalidArgument, InvalidShape, UnknownName
from explorax.glm.basis import Basis, check_spanning, rank, spanning_arms
from explorax.glm.linalg import eigen

KINDS = ("basis", "first", "theory", "none")


class Exploration(NamedTuple):
    """Which arms are forced, and for how long."""

    arms: Array | None  # forced arms, the first `cycle` of them in turn; None: found among the arms on offer
    cycle: Array  # ()
    rounds: Array  # () τ


def check_kind(kind: str, has_theory: bool = True) -> None:
    """Raise unless there is such a kind of exploration, for a policy that has a theory of it or not."""
    if kind not in KINDS:
        raise UnknownName("warmup", kind, KINDS)
    if kind == "theory" and not has_theory:
        raise InvalidArgument("warmup='theory' belongs to the GLM policies: use 'none', 'basis' or 'first'")


def plan(
    kind: str,
    arms: Array | int,
    required_eigenvalue: float = 0.0,
    dimensions: int | None = None,
    must_span: bool = False,
) -> Exploration:
    """The exploration of fixed arms (a matrix) or of changing ones (the number of features).

    Args:
        kind: One of `KINDS`.
        arms: The fixed arms, or the number of features.
        required_eigenvalue: What λ_min(G) must reach, for the theory.
        dimensions: How many dimensions fixed arms must span; all, or what they do span, unless given.
        must_span: Whether arms that do not span all dimensions are refused.
    """
    if isinstance(arms, int):
        if kind == "theory":
            raise InvalidArgument("warmup='theory' needs fixed arms, its length depends on them: use warmup='basis'")
        ends = {"basis": arms, "first": arms, "none": 0}[kind]
        in_turn = jnp.arange(arms) if kind == "first" else None
        return Exploration(in_turn, jnp.asarray(arms), jnp.asarray(ends))
    size = dimensions or arms.shape[1]
    if kind == "none":
        return Exploration(jnp.zeros(1, int), jnp.asarray(1), jnp.asarray(0))
    if kind == "first":
        if must_span and arms.shape[0] < size:
            raise InvalidShape(
                f"{arms.shape[0]} arms where warmup='first' pulls the first {size}: give a ridge above 0"
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
    exploration: Exploration, scores: Array, arms: Array, t: Array, mask: Array | None = None
) -> tuple[Array, Array]:
    """The forced arm while t < τ, else the best score; and whether it was forced."""
    forced = t < exploration.rounds
    free = best(scores, mask)
    if mask is not None or exploration.arms is None:
        return where_needed(forced, forced_or_free, (exploration, arms, t, mask, forced, free), free), forced
    order = exploration.arms % arms.shape[0]
    return jnp.where(forced, order[t % exploration.cycle % order.shape[0]], free), forced


def forced_or_free(
    exploration: Exploration, arms: Array, t: Array, mask: Array | None, forced: Array, free: Array
) -> Array:
    """The forced arm if there is one; work that is worth avoiding after the first rounds."""
    mask = jnp.ones(arms.shape[0], bool) if mask is None else mask
    return jnp.where(forced, forced_arm(exploration, arms, t, mask), free)


def forced_arm(exploration: Exploration, arms: Array, t: Array, mask: Array) -> Array:
    """The arm that is forced in round t; if it is not on offer, it gives way to one that is."""
    if exploration.arms is None:
        order = spanning_arms(jnp.where(mask[:, None], arms, 0)).arms
    else:
        order = exploration.arms % arms.shape[0]
    in_turn = order[t % exploration.cycle % jnp.minimum(order.shape[0], jnp.sum(mask))]
    return jnp.where(mask[in_turn], in_turn, counted(in_turn, mask))


def best(scores: Array, mask: Array | None = None) -> Array:
    """The first arm with the largest score; two plain reductions, which XLA runs five times faster than `argmax`."""
    count = scores.shape[0]
    if mask is None:
        return jnp.min(jnp.where(scores == jnp.max(scores), jnp.arange(count), count - 1))
    largest = jnp.max(jnp.where(mask, scores, -jnp.inf))
    places = jnp.arange(count)  # should scores be no numbers, the first arm on offer
    return jnp.min(jnp.where(mask, jnp.where(scores == largest, places, count + places), 2 * count)) % count


def counted(number: Array, mask: Array) -> Array:
    """The arm of that number, counted from 0 and in a circle, among those on offer."""
    rank = jnp.cumsum(mask) - 1
    return jnp.argmax(mask & (rank == number % jnp.sum(mask))).astype(number.dtype)
