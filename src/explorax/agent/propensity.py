"""Propensities: the probability with which a decision chose its arm.

P(arm | state, arms) of a randomized policy has, with few exceptions, no formula: it is the probability that the arm has
the largest score for a random θ̃.  So the decision is repeated M times with fresh randomness, and

    p̂ = C / (M + 1),    C = how many of the M + 1 draws, the decision itself among them, gave the chosen arm.

The decision and its repetitions are exchangeable: given how often each arm came up in all of them, the decision is
equally likely to be each of them.  Two things follow, for every M and not only in the limit:

    calibration       P(the arm is a | C_1, …, C_K) = C_a / (M + 1) = p̂_a
    off-policy use    E[1{the arm is a} / p̂_a] = P(some draw gives a) = 1 − (1 − p_a)^{M+1}

and p̂ is at least 1/(M + 1) for the arm that was chosen.  Its standard error is about √(p(1 − p) / M), at most 1/(2√M).

**Bias.**  An inverse-propensity estimate weighs a decision for arm a by 1/p̂_a, and these weights should be 1 on
average.  Although p̂ is an estimate they are, except for the term (1 − p_a)^{M+1}: an arm that none of the draws shows
is not chosen, and nothing makes up for it.  At p_a = 0.01 the mean weight is 0.19 with 20 draws, 0.64 with 100, and
1.00 with 1 000.

**A floor** takes the bias away.  With `explore_floor=ε` the arm is drawn uniformly from the K on offer with probability
ε, and is the policy's otherwise.  C_a still counts the policy's M + 1 draws, including the one that would have been its
decision if a uniform draw replaced it, and the stated propensity is

    q̂_a = (1 − ε) C_a / (M + 1) + ε / K.

Given all C the policy's draw is a with probability C_a / (M + 1), as before.  So P(the arm is a | C_1, …, C_K) = q̂_a
for every arm: it is calibrated.  And since q̂_a ≥ ε / K > 0,  E[1{the arm is a} / q̂_a] = 1  exactly, for every arm and
every M ≥ 1.  The standard error is (1 − ε) times that of p̂.  Forced decisions are mixed in the same way: they are
random then, and their propensities are exact.

**Batches.**  Between two rewards the decisions on fixed arms have one and the same law.  The n decisions of a batch and
M repetitions are n + M exchangeable draws, so that the same argument gives

    p̂ = C / (n + M),    C = how many of the n + M draws gave the chosen arm

for each of the n decisions: calibrated, with the standard error of n + M draws, and at the cost of M repetitions in
all.  This takes a policy whose law does not change with t (`Policy.stationary`); forced decisions are certain and not
among the draws.  If each decision has arms of its own, each is repeated M times, but with the same M keys for all
decisions of a batch.  A decision is then still exchangeable with its own repetitions; only the errors of p̂ of two
decisions are no longer independent.

`Agent.propensities` returns q̂_a of all arms from the draws that the next decision will use, so for the arm of that
decision it returns the propensity that the decision will state.

Propensities are exact if the policy has a formula for them (`Policy.probabilities`), and 1 if its decisions are not
random.  A policy whose randomness is in its training (DeepFPL) repeats its last training (`Policy.redraw`).

References: the identity for 1/p̂ is that of the inverse of a binomial plus one, Chao & Strawderman, 1972.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorax.checks import check_positive, check_whole, is_number
from explorax.errors import InvalidArgument
from explorax.policies.base import Policy
from explorax.registry import list_policies

DRAWS = 100  # by default
MOST_DRAWS, LEAST_STDERR = 1_000_000, 0.0005


@dataclass(frozen=True)
class Knowledge:
    """The way in which the propensities of a policy are known: estimated from repeated decisions, or exact."""

    draws: int  # M, as asked for
    estimated: bool  # whether propensities are estimated from these draws; else they are exact
    floor: float = 0.0  # ε

    @classmethod
    def of(cls, policy: Policy, draws: int, floor: float = 0.0) -> "Knowledge":
        """Return how the propensities of a policy are known: by a formula, as 1 if it is not random, or by draws."""
        check_whole("draws", draws, 0, MOST_DRAWS)
        if not (is_number(floor) and 0 <= floor < 1):
            raise InvalidArgument(
                f"explore_floor must be a number from 0 up to, but not including, 1, got {floor!r}. Give 0.02 to draw "
                "2 % of the arms uniformly, or use explorax.uniform() to draw all of them uniformly."
            )
        entry = list_policies().get(policy.recipe.name) if policy.recipe else None
        randomized = "yes" if entry is None else entry.randomized  # nothing is known about a policy of the user's own
        if draws and randomized == "in training" and policy.redraw is None:
            raise InvalidArgument(
                "policy must be made with redraws=True to have propensities, because it draws its noise in training. "
                "Make the agent with draws=0 for no propensities."
            )
        return cls(draws, policy.probabilities is None and randomized != "no", float(floor))

    @property
    def repetitions(self) -> int:
        """The number M of repetitions of a decision, 0 if propensities are exact."""
        return self.draws if self.estimated else 0

    def stated_one(self, count: int | None, exact: Any, offered: int) -> tuple[float | None, float | None]:
        """Return the propensity of a single decision and its standard error.  This is a faster `stated`."""
        if count is None:
            return None, None
        if not self.estimated:
            return self.mixed(float(exact), offered), 0.0
        if not self.draws:
            return None, None
        smoothed = (count + 1) / (self.draws + 3)
        stderr = math.sqrt(smoothed * (1 - smoothed) / (self.draws + 1))
        return self.mixed(count / (self.draws + 1), offered), (1 - self.floor) * stderr

    def stated(self, count: Any, exact: Any, offered: Any, pooled: int = 1) -> tuple[Any, Any]:
        """Return propensities and their standard errors, from how often an arm came up or from the formula.

        Args:
            count: How often the arm came up in the decisions and their repetitions; None if no arm has a probability.
            exact: P(arm) by the formula, used if propensities are exact.
            offered: The number of arms on offer, or that of each decision.
            pooled: The number n of decisions among the n + M draws that were counted.  Default: 1.

        Returns:
            The propensities and their standard errors, or None and None if there are no propensities.
        """
        if count is None:
            return None, None
        if not self.estimated:
            return self.mixed(np.asarray(exact, float), offered), np.zeros(np.shape(exact))
        if not self.draws:
            return None, None
        total = self.draws + pooled
        propensity = np.asarray(count, float) / total
        return self.mixed(propensity, offered), (1 - self.floor) * standard_error(propensity, total)

    def mixed(self, propensity: Any, offered: Any) -> Any:
        """Return the propensity (1 − ε) p + ε / K of an arm that the policy chooses with probability p."""
        return (1 - self.floor) * propensity + self.floor / offered if self.floor else propensity


def standard_error(propensity: np.ndarray | float, total: int) -> np.ndarray:
    """Return the standard error of p̂ = C/total, with one success and one failure added so that it is never 0."""
    smoothed = (np.asarray(propensity) * total + 1) / (total + 2)
    return np.sqrt(smoothed * (1 - smoothed) / total)


def checked_draws(draws: int | None, stderr: float | None) -> int:
    """Return the number M of draws, as given or from the largest standard error wanted."""
    if draws is not None and stderr is not None:
        raise InvalidArgument(
            f"draws and stderr must not both be given, got draws={draws} and stderr={stderr}. Give one of them."
        )
    if stderr is not None:
        check_positive("stderr", stderr, "Give, for example, 0.02.")
        if stderr < LEAST_STDERR:
            raise InvalidArgument(
                f"stderr must be at least {LEAST_STDERR}, got {stderr!r}. A decision takes 1/(4 stderr²) draws."
            )
        return math.ceil(0.25 / stderr**2)
    draws = DRAWS if draws is None else draws
    check_whole("draws", draws, 0, MOST_DRAWS)
    return draws
