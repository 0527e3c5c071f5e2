"""What a log says of one target policy, row by row: the vectors that all estimators and intervals start from.

A row t has a context and arms x_t, an arm a_t, a reward r_t and the probability p_t of that arm.  With the target π and
a reward model q̂_t, which is fitted to earlier rows or to other ones,

    w_t = π(a_t | x_t) / p_t                     the weight of the row
    m_t = Σ_a π(a | x_t) q̂_t(x_t, a)             what the model says of the target
    v_t = Σ_a π(a | x_t)² / e_t(a)               the spread: by how much weights enlarge the variance

where e_t(a) is the probability of every arm.  Intervals that hold at all times take rewards in [0, 1] and the score

    φ_t = w_t r_t − min(w_t q̂_t(x_t, a_t), k_t) + Σ_a min(π(a | x_t) q̂_t(x_t, a), k_t e_t(a))  ≥  −k_t,

which has the mean V_t, the value of the target in row t, given the past and x_t: the two minima have the same mean.
They are q̂ as a control variate, cut where it could be worth more than k_t, for which the same number `CAP` is taken in
all rows.  An arm that had no chance, e_t(a) = 0, adds nothing to φ_t, so the mean is at most V_t if the target wants
such an arm, and lower bounds remain lower bounds.  If of the probabilities only a lower bound ℓ is known, then ℓ takes
the place of e_t(a) in the cut of each arm,

    φ_t = w_t r_t − min(w_t q̂_t(x_t, a_t), k_t ℓ / p_t) + Σ_a min(π(a | x_t) q̂_t(x_t, a), k_t ℓ),

which has the same mean, and is at least −k_t since p_t ≥ ℓ.  If nothing is known, then k_t = 0 and φ_t = w_t r_t.

Propensities that are estimated from repeated draws (`explorax.Agent`) may take the place of exact ones: given how often
each arm came up in the decision and its repetitions, they are exact.

Reference: Waudby-Smith, Wu, Ramdas, Karampatziakis and Mineiro, 2022, Anytime-valid off-policy inference for contextual
bandits.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from explorax.errors import InvalidArgument, InvalidReward, InvalidShape

LIMIT = 1e-6  # by how much probabilities may miss their sum or each other, for rounding in the log of another system
RARE = 0.01  # the chance below which an arm is rare
CAP = 3.0  # k_t where there is a model; larger or growing caps gave no narrower intervals at 300 to 300 000 rows


class Scores(NamedTuple):
    """What a log says of one target, row by row: vectors of length n, or None for what the log does not tell.

    `reward_range` alone is not a vector.

    Attributes:
        rewards: r_t.
        weights: w_t.
        modelled: m_t, the mean of the model under the target; 0 without a model.
        predicted: q̂_t(x_t, a_t), the model at the arm that was chosen; 0 without a model.
        spread: v_t, infinite where the target wants an arm that had no chance; None unless all propensities are known.
        unsupported: The target's probability of arms that had no chance; None unless all propensities are known.
        rare: The target's probability of arms whose chance was below 1 %; None unless all propensities are known.
        lower: φ_t for rewards scaled to [0, 1]; None if the range of rewards is not known.
        caps: k_t, so that `lower` and `upper` are at least −k_t; None if the range of rewards is not known.
        upper: φ_t of the mirrored problem, which has 1 − r and 1 − q̂ for r and q̂; None like `lower`.
        reward_range: The least and the largest reward that can ever be; None if it is not known.
    """

    rewards: np.ndarray
    weights: np.ndarray
    modelled: np.ndarray
    predicted: np.ndarray
    spread: np.ndarray | None = None
    unsupported: np.ndarray | None = None
    rare: np.ndarray | None = None
    lower: np.ndarray | None = None
    caps: np.ndarray | None = None
    upper: np.ndarray | None = None
    reward_range: tuple[float, float] | None = None

    @property
    def size(self) -> int:
        """The number n of rows."""
        return len(self.rewards)

    def some(self, rows: Any) -> "Scores":
        """Return the scores of some rows.

        Args:
            rows: What NumPy takes as an index of rows: a slice, places, or bools.

        Returns:
            The scores of these rows, in this order.
        """
        columns = (None if column is None else column[rows] for column in self[:-1])
        return Scores._make((*columns, self.reward_range))


def scored(
    rewards: Any,
    arms: Any,
    propensities: Any,
    target: Any,
    predictions: Any = None,
    all_propensities: Any = None,
    reward_range: tuple[float, float] | None = None,
    least_propensity: float | None = None,
) -> Scores:
    """Return what a block of m rows of a log says of a target policy.

    Args:
        rewards: (m,) The rewards.
        arms: (m,) The places of the arms that were chosen.
        propensities: (m,) The probabilities with which they were chosen.
        target: (m, K) The target's probabilities of all arms.
        predictions: (m, K) What a model predicts that each arm pays, which must not have seen the reward of the row.
            Default: no model.
        all_propensities: (m, K) The probabilities of all arms, of which `propensities` are those of the chosen ones.
            Default: unknown.
        reward_range: The least and the largest reward that can ever be.  Default: unknown.
        least_propensity: A number that no propensity is below, for example ε / K.  Default: unknown.

    Returns:
        The scores of the block.

    Raises:
        InvalidShape: If the arrays do not fit together.
        InvalidReward: If a reward lies outside of `reward_range`.
        InvalidArgument: If probabilities are impossible, or contradict each other.

    Example:
        >>> block = scored(rewards=[1, 0], arms=[0, 1], propensities=[0.5, 0.25], target=[[1, 0], [0.5, 0.5]])
        >>> block.weights
        array([2., 2.])
    """
    rewards, arms, propensities = np.asarray(rewards, float), np.asarray(arms), np.asarray(propensities, float)
    target, count = np.asarray(target, float), len(rewards)
    model = None if predictions is None else np.asarray(predictions, float)
    every = None if all_propensities is None else np.asarray(all_propensities, float)
    _check(rewards, arms, propensities, target, model, every)
    rows = np.arange(count)
    with np.errstate(over="ignore"):
        weights = target[rows, arms] / propensities
    if not np.isfinite(weights).all():
        row = int(np.argmin(np.isfinite(weights)))
        raise InvalidArgument(
            f"propensities must be large enough to divide by, got {propensities[row]} in row {row}. Leave the row out."
        )
    _check_least(least_propensity, propensities)
    scores = Scores(rewards, weights, np.zeros(count), np.zeros(count))
    if model is not None:
        scores = scores._replace(modelled=np.einsum("ij,ij->i", target, model), predicted=model[rows, arms])
    if every is not None:
        if not np.allclose(every[rows, arms], propensities, rtol=LIMIT, atol=0):
            row = int(np.argmin(np.isclose(every[rows, arms], propensities, rtol=LIMIT, atol=0)))
            raise InvalidArgument(
                f"propensities must be those of the chosen arms in all_propensities, got {propensities[row]} and "
                f"{every[row, arms[row]]} in row {row}. Leave one of the two out."
            )
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            spread = np.sum(np.where(target > 0, target**2 / every, 0), axis=1)
        unsupported, rare = (np.sum(np.where(few, target, 0), axis=1) for few in (every == 0, every < RARE))
        scores = scores._replace(spread=spread, unsupported=unsupported, rare=rare)
    if reward_range is None:
        return scores
    low, high = _checked_range(reward_range, rewards)
    scale = high - low
    scores = scores._replace(reward_range=(low, high))
    scaled = (rewards - low) / scale
    chances = least_propensity if every is None else every
    if model is None or chances is None:
        return scores._replace(lower=weights * scaled, caps=np.zeros(count), upper=weights * (1 - scaled))
    room = CAP * np.broadcast_to(chances, target.shape)  # where π q̂ is cut
    at_most = room[rows, arms] / propensities
    model = np.clip((model - low) / scale, 0, 1)

    def controlled(payoff: np.ndarray, model: np.ndarray) -> np.ndarray:
        """Return φ for rewards and a model in [0, 1]."""
        control = np.sum(np.minimum(target * model, room), axis=1)
        return weights * payoff - np.minimum(weights * model[rows, arms], at_most) + control

    lower, upper = controlled(scaled, model), controlled(1 - scaled, 1 - model)
    return scores._replace(lower=lower, caps=np.full(count, CAP), upper=upper)


def joined(blocks: Sequence[Scores]) -> Scores:
    """Return the scores of blocks of rows as the scores of all rows, in this order.

    Args:
        blocks: The scores of each block, made from the same log, target and kind of model.

    Returns:
        The scores of all rows.

    Raises:
        InvalidArgument: If there are no blocks, or some of them lack what others have.
    """
    if not blocks:
        raise InvalidArgument("blocks must not be empty, got none. Give the scores of at least one block.")
    if len({block.reward_range for block in blocks}) > 1:
        raise InvalidArgument(
            f"blocks must all have the same reward_range, got {blocks[0].reward_range} and others. Score all blocks "
            "with the same arguments."
        )
    columns: list[Any] = []
    for name, column in zip(Scores._fields[:-1], zip(*(block[:-1] for block in blocks), strict=True), strict=True):
        lacking = sum(each is None for each in column)
        if lacking not in (0, len(blocks)):
            raise InvalidArgument(
                f"blocks must all have {name} or all lack it, got {lacking} of {len(blocks)} without it. Score all "
                "blocks with the same arguments."
            )
        columns.append(None if lacking else np.concatenate(column))
    return Scores._make((*columns, blocks[0].reward_range))


def _checked_range(reward_range: tuple[float, float], rewards: np.ndarray) -> tuple[float, float]:
    """Return the least and the largest reward, or raise unless all rewards lie between them."""
    low, high = (float(each) for each in reward_range)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InvalidArgument(
            f"reward_range must be two finite numbers, the smaller one first, got {reward_range}. Give, for example, "
            "(0, 1)."
        )
    inside = (rewards >= low) & (rewards <= high)
    if not inside.all():
        row = int(np.argmin(inside))
        raise InvalidReward(
            f"rewards must lie in the range from {low:g} to {high:g}, got {rewards[row]:g} in row {row}. Give the "
            "least and the largest reward that can ever be as reward_range."
        )
    return low, high


def _check(
    rewards: np.ndarray,
    arms: np.ndarray,
    propensities: np.ndarray,
    target: np.ndarray,
    model: np.ndarray | None,
    every: np.ndarray | None,
) -> None:
    """Raise unless the arrays fit together, are finite, and hold probabilities where they must."""
    count = len(rewards)
    if target.ndim != 2 or len(target) != count:
        raise InvalidShape(
            f"target must have shape ({count}, K), got {target.shape}. Give the probability of each arm in each row."
        )
    vectors = {"rewards": rewards, "arms": arms, "propensities": propensities}
    tables = {"target": target, "predictions": model, "all_propensities": every}
    given = {name: array for name, array in tables.items() if array is not None}
    for name, array in (vectors | given).items():
        wanted = target.shape[:1] if name in vectors else target.shape
        if array.shape != wanted:
            raise InvalidShape(f"{name} must have shape {wanted}, got {array.shape}. Give one row for each decision.")
        if not np.isfinite(array.sum()) and not np.isfinite(array).all():  # a sum is the quickest look
            raise InvalidArgument(f"{name} must be finite, got NaN or infinity. Leave such rows out.")
    if not np.issubdtype(arms.dtype, np.integer) or (count and not 0 <= arms.min() <= arms.max() < target.shape[1]):
        raise InvalidArgument(
            f"arms must be whole numbers from 0 to {target.shape[1] - 1}, got {arms[:3]}…. Give the place of each arm."
        )
    if not (propensities > 0).all():
        raise InvalidArgument(
            f"propensities must be above 0, got {propensities.min()}. An arm that was chosen had a chance: correct the "
            "row, or leave it out."
        )
    for name, array in given.items():
        off = np.abs(np.einsum("ij->i", array) - 1)
        if name != "predictions" and not (array.min(initial=0) >= 0 and off.max(initial=0) <= LIMIT):
            row = int(np.argmax(off + np.abs(array - np.abs(array)).sum(axis=1)))
            raise InvalidArgument(
                f"{name} must be at least 0 and add up to 1 in each row, got {array[row].min():g} as the least and "
                f"{array[row].sum():g} as the sum in row {row}. Give the probabilities of all arms."
            )


def _check_least(least: float | None, propensities: np.ndarray) -> None:
    """Raise unless a bound on propensities is a probability that none of them is below."""
    if least is not None and not 0 < least <= propensities.min(initial=1.0) * (1 + LIMIT):
        raise InvalidArgument(
            f"least_propensity must be above 0 and at most the least propensity {propensities.min(initial=1.0)}, got "
            f"{least!r}. Give a number that no propensity is below, or leave it out."
        )
