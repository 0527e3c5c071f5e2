"""Propensities: with what probability a decision fell on the arm that was chosen.

P(arm | state, arms) of a randomized policy has, with few exceptions, no formula: it is the
probability that a random θ̃ likes the arm best.  So the decision is repeated M times with fresh randomness, and

    p̂ = C / (M + 1),    C = how many of the M + 1 draws, the decision itself among them, gave the chosen arm.

The decision and its repetitions are exchangeable: given how often each arm came up in all of them, the decision is each
of them with equal chances.  Two things follow, for every M and not only in the limit:

    calibration       P(the arm is a | p̂_a) = p̂_a
    off-policy use    E[1{the arm is a} / p̂_a] = P(some draw gives a) = 1 − (1 − p_a)^{M+1},  which is 1 up to arms that
                      are never seen: inverse-propensity estimates are unbiased although p̂ is an estimate

and p̂ is at least 1/(M + 1).  Its standard error is about √(p(1 − p) / M), at most 1/(2√M).

Exact instead where the policy has a formula (`Policy.probabilities`), and 1 where its decisions are not random.  A
policy whose randomness is in its training (DeepFPL) repeats its last training (`Policy.redraw`).

References: the identity for 1/p̂ is that of the inverse of a binomial plus one, Chao & Strawderman, 1972.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorax.checks import check_positive, check_whole
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.registry import policies

DRAWS = 100  # unless given


@dataclass(frozen=True)
class Knowledge:
    """How the propensities of a policy are known."""

    draws: int  # as asked for
    estimated: bool  # by these draws; else they are exact

    @classmethod
    def of(cls, policy: Policy, draws: int | None, stderr: float | None) -> "Knowledge":
        """By a formula, by the registry's word that decisions are not random, or else by so many draws."""
        draws = checked_draws(draws, stderr)
        entry = policies().get(policy.recipe.name) if policy.recipe else None
        randomized = "yes" if entry is None else entry.randomized  # of another's policy nothing is known
        if draws and randomized == "in training" and policy.redraw is None:
            raise InvalidArgument(
                "this policy draws its noise in training, so its propensities need that repeated: make it with "
                "redraws=True, or the agent with draws=0 for no propensities"
            )
        return cls(draws, policy.probabilities is None and randomized != "no")

    @property
    def repetitions(self) -> int:
        """M."""
        return self.draws if self.estimated else 0

    def stated_one(self, count: int, exact: Any) -> tuple[float | None, float | None]:
        """The same as `stated` for a single decision, in a fraction of the time."""
        if not self.estimated:
            return float(exact), 0.0
        if not self.draws:
            return None, None
        smoothed = (count + 1) / (self.draws + 3)
        return count / (self.draws + 1), math.sqrt(smoothed * (1 - smoothed) / (self.draws + 1))

    def stated(self, count: Any, exact: Any) -> tuple[Any, Any]:
        """Propensities and their standard errors, from how often the arm came up, or from the formula."""
        if not self.estimated:
            return np.asarray(exact, float), np.zeros(np.shape(exact))
        if not self.draws:
            return None, None
        propensity = np.asarray(count, float) / (self.draws + 1)
        return propensity, standard_error(propensity, self.draws)


def standard_error(propensity: np.ndarray | float, draws: int) -> np.ndarray:
    """Of p̂ = C/(M + 1): that of a frequency, with one success and one failure added so that it is never 0."""
    count = draws + 1
    smoothed = (np.asarray(propensity) * count + 1) / (count + 2)
    return np.sqrt(smoothed * (1 - smoothed) / count)


def checked_draws(draws: int | None, stderr: float | None) -> int:
    """M, given or from the largest standard error wanted."""
    if draws is not None and stderr is not None:
        raise InvalidArgument(f"draws={draws} and stderr={stderr} say the same: give one of them")
    if stderr is not None:
        check_positive("stderr", stderr, ", for example 0.02")
        return math.ceil(0.25 / stderr**2)
    draws = DRAWS if draws is None else draws
    check_whole("draws", draws, 0)
    return draws
